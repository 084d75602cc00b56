"""Flag values from a command line or a flagfile, and the `Config` made from them.

Values are a dictionary by flag name. absl checks their types; `Config` parses and checks the rest.
"""

from __future__ import annotations

import re

from absl import flags

from rat_tf import errors, fields
from rat_tf.config import flagfiles, table
from rat_tf.transforms import spec

#: Flags of every flags.cfg, of any version and method, from its first to its last line.
RECORDED = (
    *("method", "dataset", "labels", "split_seed", "preprocessing", "labeled_batch"),
    *("network", "iterations", "validate_every", "learning_rate", "seed", "tensorboard"),
)

#: Flags that a kind of --adversary does not use.
UNUSED_BY = {"gradient": {"candidates"}, "worst_of": {"xi", "power_iterations"}}


def define_flags(registry: flags.FlagValues) -> None:
    """Defines one absl flag per field of `Config`."""
    for field in table.FLAGS.values():
        fields.define(field, registry)


def of_flags(parsed: flags.FlagValues) -> dict:
    """The values of absl flags after parsing."""
    return {name: parsed[name].value for name in table.FLAGS}


def of_arguments(arguments) -> dict:
    """The flag values given by command-line arguments."""
    return of_flags(_parsed(arguments))


def _parsed(arguments) -> flags.FlagValues:
    registry = flags.FlagValues()
    define_flags(registry)
    of_files, rest, _ = flagfiles.expand(arguments)
    words = parse(registry, [*of_files, *rest])
    if words:
        raise errors.UserError(f"expected only flags, got {' '.join(words)!r}")
    return registry


def parse(registry: flags.FlagValues, arguments) -> list[str]:
    """Parses absl flags and returns the other arguments; invalid flags raise a `UserError`."""
    try:
        return registry(["", *arguments])[1:]
    except flags.IllegalFlagValueError as error:
        raise errors.UserError(_in_our_words(registry, str(error))) from None
    except flags.Error as error:
        raise errors.UserError(str(error).removeprefix("ERROR:: ")) from None


_EXPECTED = {"int": "a whole number", "float": "a number", "bool": "true or false"}


def _in_our_words(registry: flags.FlagValues, text: str) -> str:
    """absl's message "flag --labels=x: invalid literal …" in the style of ours."""
    match = re.match(r"flag --(\w+)=(.*?): ", text, re.DOTALL)
    expected = match and _EXPECTED.get(registry[match[1]].flag_type())
    return f"--{match[1]}: expected {expected}, got {match[2]!r}" if expected else text


def of_file(path: str, required=()) -> dict:
    """The flag values given by a flagfile, which must set the `required` flags."""
    try:
        parsed = _parsed([f"--flagfile={path}"])
        missing = [f"--{name}" for name in required if not parsed[name].present]
        if missing:
            raise errors.UserError(f"expected all flags of a run, found no {', '.join(missing)}")
        return of_flags(parsed)
    except errors.UserError as error:
        raise errors.UserError(f"{path}: {error}") from None


def to_config(values: dict, given=()) -> table.Config:
    """Makes a `Config`. Flags that its method or search does not use are dropped, unless `given`.

    So `--adversary=gradient` can be added to a flagfile with `--candidates=8`.
    """
    return table.Config(**values | dict.fromkeys(unused(values).difference(given)))


def unused(values: dict, search: bool = True) -> set[str]:
    """The flags that the method of these values, and its `search`, do not use."""
    kind = values.get("adversary") or spec.ADVERSARIES[0]
    found = set(UNUSED_BY.get(kind, ())) if search else set()
    if values["method"] in table.METHODS:
        found |= {name for name in values if not table.is_used(name, values["method"])}
    return found


def config_of_file(path: str, required=(), **changes) -> table.Config:
    """The `Config` of a flagfile, with some flags changed."""
    return to_config({**of_file(path, required), **changes}, given=changes)


def config_of_record(path: str, **changes) -> table.Config:
    """The same for the flags.cfg of a run or a search: without `RECORDED` it is damaged."""
    try:
        return config_of_file(path, RECORDED, **changes)
    except errors.UserError as error:
        text = str(error)
        raise errors.UserError(text if path in text else f"{path}: {text}") from None


def changed_config(config: table.Config, **changes) -> table.Config:
    """The config with some flags changed.

    If the method changes, defaults of the old method become those of the new one, and flags that
    the new method does not use are dropped.
    """
    values = {name: getattr(config, name) for name in table.FLAGS}
    if changes.get("method", config.method) != config.method:
        defaults = table.Config(method=config.method)
        for name in table.METHOD_FLAGS:
            if values[name] == getattr(defaults, name):
                values[name] = None
    return to_config({**values, **changes}, given=changes)
