"""A flag as a field of a dataclass: its help, its check, and the methods that it is for."""

from __future__ import annotations

import dataclasses
import math

from absl import flags

from rat_tf import errors


def flag(default, group: str, text: str, check=None, choices=None):
    """A field with all that a flag needs.

    A `default` that is a dictionary holds one for each method that has a use for the flag. The
    field itself is then None until the method is known, and stays None for the other methods.
    """
    defaults = default if isinstance(default, dict) else None
    return dataclasses.field(
        default=None if defaults else default,
        metadata={
            "group": group,
            "help": text,
            "check": check,
            "choices": choices,
            "defaults": defaults,
        },
    )


def resolve(config, method: str) -> None:
    """Fills the flags whose default depends on the method; refuses those it has no use for."""
    for field in dataclasses.fields(config):
        defaults, value = field.metadata["defaults"], getattr(config, field.name)
        if defaults is None:
            continue
        if method in defaults:
            value = defaults[method] if value is None else value
            object.__setattr__(config, field.name, value)  # frozen, but still being made
        elif value is not None:
            raise errors.UserError(
                f"--{field.name}: method {method} has no use for it; it is for "
                f"{', '.join(defaults)}"
            )


def useless(field, method: str) -> bool:
    """Whether a flag is for other methods than this one."""
    defaults = field.metadata["defaults"]
    return defaults is not None and method not in defaults


def problem(field, value) -> str | None:
    """What is wrong with a flag's value: expected and found; None if nothing is."""
    choices, check = field.metadata["choices"], field.metadata["check"]
    if value is None and field.metadata["defaults"]:
        return None
    if choices and value not in choices:
        hint = errors.did_you_mean(str(value), choices)
        return f"expected one of {', '.join(choices)}, got {value!r}{hint}"
    return check(value) if check else None


def default_text(field) -> str:
    """The default as the help shows it: 0.003; pi_model 0.0003."""

    def shown(value):
        return str(value).lower() if field.type == "bool" else str(value)

    defaults = field.metadata["defaults"]
    if defaults is None:
        return shown(field.default)
    by_value: dict[str, list[str]] = {}
    for method, value in defaults.items():
        by_value.setdefault(shown(value), []).append(method)
    return "; ".join(f"{', '.join(methods)}: {value}" for value, methods in by_value.items())


_DEFINE = {
    "str": flags.DEFINE_string,
    "int": flags.DEFINE_integer,
    "float": flags.DEFINE_float,
    "bool": flags.DEFINE_boolean,
}


def define(config_class, registry) -> None:
    """Defines one absl flag per field."""
    for field in dataclasses.fields(config_class):
        _DEFINE[field.type](field.name, field.default, field.metadata["help"], flag_values=registry)


# ---- checks: None where a value is right, else what was expected and found


def expect(condition, expected: str):
    return lambda value: None if condition(value) else f"expected {expected}, got {value!r}"


def at_least(low):
    return expect(lambda value: low <= value < math.inf, f"a number >= {low}")


positive = expect(lambda value: 0 < value < math.inf, "a number > 0")
seed = expect(lambda value: 0 <= value < 2**31, "a number from 0 to below 2^31")
fraction = expect(lambda value: 0 <= value < 1, "a number from 0 to below 1")


def parsed_by(parse):
    """A check that leaves the verdict, and the words, to the parser of the value."""

    def check(value):
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return None

    return check
