"""Values given to flags, on a command line or in a flagfile, and the `Config` that they make.

Values are a dictionary by flag. absl checks their types while parsing; a `Config` parses and checks
the rest when it is made of them.
"""

from __future__ import annotations

from absl import flags

from rat_tf import errors, fields
from rat_tf.config import flagfiles, table


def define_flags(registry: flags.FlagValues) -> None:
    """Defines one absl flag per field of `Config`."""
    for field in table.FLAGS.values():
        fields.define(field, registry)


def of_flags(parsed: flags.FlagValues) -> dict:
    """The values of absl's flags after parsing."""
    return {name: parsed[name].value for name in table.FLAGS}


def of_arguments(arguments) -> dict:
    """The values that arguments of a command line give."""
    registry = flags.FlagValues()
    define_flags(registry)
    of_files, rest, _ = flagfiles.expand(arguments)
    parse(registry, [*of_files, *rest])
    return of_flags(registry)


def parse(registry: flags.FlagValues, arguments) -> list[str]:
    """Parses absl's flags; a mistake in them is a `UserError`. Returns the other arguments."""
    try:
        return registry(["", *arguments])[1:]
    except flags.Error as error:
        raise errors.UserError(str(error).removeprefix("ERROR:: ")) from None


def of_file(path: str) -> dict:
    """The values that a flagfile gives."""
    try:
        return of_arguments([f"--flagfile={path}"])
    except errors.UserError as error:
        raise errors.UserError(f"{path}: {error}") from None


def to_config(values: dict, given=()) -> table.Config:
    """The `Config` of these values; what its method does not use is left out, unless `given`."""
    method = values["method"]
    if method in table.METHODS:
        values = {
            name: None if not table.is_used(name, method) and name not in given else value
            for name, value in values.items()
        }
    return table.Config(**values)


def config_of_file(path: str, **changes) -> table.Config:
    """The `Config` of a flagfile, with some flags changed."""
    return to_config({**of_file(path), **changes}, given=changes)


def changed_config(config: table.Config, **changes) -> table.Config:
    """The config with some flags changed; with another method, what was the default of the old one
    becomes that of the new, and what the new one does not use is left out.
    """
    values = {name: getattr(config, name) for name in table.FLAGS}
    if changes.get("method", config.method) != config.method:
        defaults = table.Config(method=config.method)
        for name in table.METHOD_FLAGS:
            if values[name] == getattr(defaults, name):
                values[name] = None
    return to_config({**values, **changes}, given=changes)
