"""Values given to flags, on a command line or in a flagfile, and the `Config` that they make.

Values are a dictionary with all fields of a `Config`. Types are checked while parsing; ranges, and
whether values go together, when a `Config` is made of them.
"""

from __future__ import annotations

import dataclasses

from absl import flags

from rat_tf import config as config_lib
from rat_tf import errors, fields


def define_flags(registry: flags.FlagValues) -> None:
    """Defines one absl flag per field of `Config`."""
    fields.define(config_lib.Config, registry)


# ---- values


def of_flags(parsed: flags.FlagValues) -> dict:
    """The values of absl's flags after parsing."""
    return {field.name: getattr(parsed, field.name) for field in _fields()}


def of_arguments(arguments) -> dict:
    """The values that arguments of a command line give."""
    registry = flags.FlagValues()
    define_flags(registry)
    try:
        registry(["", *arguments])
    except flags.Error as error:
        raise errors.UserError(message(error)) from None
    return of_flags(registry)


def of_file(path: str) -> dict:
    """The values that a flagfile gives."""
    try:
        return of_arguments([f"--flagfile={path}"])
    except errors.UserError as error:
        raise errors.UserError(f"{path}: {error}") from None


def message(error: flags.Error) -> str:
    """absl's message; what it cannot find may be a flagfile that another one names."""
    text = str(error).removeprefix("ERROR:: ")
    if "flagfile" in text:
        text += "; flagfiles name others as seen from the project's folder: run the command there"
    return text


# ---- configs


def to_config(values: dict, given=()) -> config_lib.Config:
    """The `Config` of these values; what its method has no use for is left out, unless `given`."""
    method = values["method"]
    left_out = [
        field.name
        for field in _fields()
        if method in config_lib.METHODS
        and fields.useless(field, method)
        and field.name not in given
    ]
    return config_lib.Config(**{**values, **dict.fromkeys(left_out)})


def config_of_file(path: str, **changes) -> config_lib.Config:
    """The `Config` of a flagfile, with some fields changed."""
    return to_config({**of_file(path), **changes}, given=changes)


def changed_config(config: config_lib.Config, **changes) -> config_lib.Config:
    """The config with some fields changed; with another method, what was the default of the old one
    becomes that of the new, and what the new one has no use for is left out.
    """
    values = {field.name: getattr(config, field.name) for field in _fields()}
    if changes.get("method", config.method) != config.method:
        for field in _fields():
            defaults = field.metadata["defaults"]
            if defaults and defaults.get(config.method) == values[field.name]:
                values[field.name] = None
    return to_config({**values, **changes}, given=changes)


def _fields() -> tuple[dataclasses.Field, ...]:
    return dataclasses.fields(config_lib.Config)
