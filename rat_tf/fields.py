"""Flags as fields of dataclasses: default, help and check. Every room declares its own."""

from __future__ import annotations

import dataclasses
import fractions
import math
import os
import re

from absl import flags

from rat_tf import errors


def flag(default, text: str, check=None, choices=None, parse=None, group: str = "Method"):
    """A dataclass field that defines a flag.

    Args:
      default: the default value, as text if the flag has a `parse`; None: the flag is required.
      text: the help text.
      check: returns what is wrong with a value, or None.
      choices: the allowed values.
      parse: converts a text to a value; raises ValueError with what was expected and found.
      group: the section of the help. Flags of "Machine" do not change the result.
    """
    return dataclasses.field(
        default=default,
        metadata={"help": text, "check": check, "choices": choices, "parse": parse, "group": group},
    )


def path(default, text: str, check=None, group: str = "Method"):
    """A flag with a file or folder. ~ is the home folder, which shells do not fill in here."""
    return flag(default, text, check, parse=os.path.expanduser, group=group)


def inherit(cls: type) -> type:
    """Class decorator below @dataclass: a plain new default keeps the base's help and checks.

    A subclass can then write `consistency: float = 20.0`.
    """
    for name in cls.__dict__.get("__annotations__", {}):
        value = cls.__dict__.get(name)
        above = (getattr(base, "__dataclass_fields__", {}).get(name) for base in cls.__mro__[1:])
        inherited = next(filter(None, above), None)
        if inherited is not None and not isinstance(value, dataclasses.Field):
            setattr(cls, name, dataclasses.field(default=value, metadata=inherited.metadata))
    return cls


def value_of(field: dataclasses.Field, value):
    """Parses and checks the value of a field; raises a UserError that names the flag."""
    parse, choices, check = (field.metadata[key] for key in ("parse", "choices", "check"))
    problem = None
    if parse and isinstance(value, str):
        try:
            value = parse(value)
        except ValueError as error:
            problem = str(error)
    if problem is None and choices and value not in choices:
        hint = errors.did_you_mean(str(value), choices)
        problem = f"expected one of {', '.join(filter(None, choices))}, got {value!r}{hint}"
    elif problem is None and check and not getattr(value, "share", ""):  # that is counted later
        problem = check(value)
    if problem:
        raise errors.UserError(f"--{field.name}: {problem}")
    return value


def text_of(value) -> str:
    """A value as written in a flagfile."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Steps(int):
    """A number of steps that remembers the share of the run it was given as, such as 40%.

    It is an int wherever steps are counted and compared. `Config` computes it from --iterations,
    and again when --iterations changes; a flagfile gets the share.
    """

    share: str = ""

    @classmethod
    def parse(cls, text: str) -> int:
        """The steps in a text: a whole number, or a share, still without its number of steps."""
        match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?%)", text.strip())
        if not match or (match[2] and fractions.Fraction(match[2][:-1]) > 100):
            raise ValueError(
                "expected a whole number of steps, or a share of --iterations such as 40%, "
                f"got {text!r}"
            )
        return int(match[1]) if match[1] else cls._of(match[2], 0)

    @classmethod
    def _of(cls, share: str, steps: int) -> Steps:
        found = cls(steps)
        found.share = share
        return found

    def of(self, iterations: int) -> Steps:
        """The same share of a run of that many steps, rounded to whole steps, half up."""
        exact = fractions.Fraction(self.share[:-1]) * iterations / 100
        return self._of(self.share, math.floor(exact + fractions.Fraction(1, 2)))

    def near(self, steps: int) -> Steps:
        """The same share, counted as this many steps."""
        return self._of(self.share, steps)

    def __str__(self) -> str:
        return self.share or super().__repr__()

    __repr__ = __str__


def steps(default: int, text: str, low: int = 0, group: str = "Method"):
    """A flag that counts steps, or says them as a share of --iterations."""
    text += " A number, or a share of --iterations such as 40%."
    return flag(default, text, at_least(low), parse=Steps.parse, group=group)


_DEFINE = {
    "int": flags.DEFINE_integer,
    "float": flags.DEFINE_float,
    "bool": flags.DEFINE_boolean,
    "list[str]": flags.DEFINE_multi_string,
}


def define(field: dataclasses.Field, registry: flags.FlagValues) -> None:
    """Defines the absl flag of a field."""
    kind, default = _DEFINE.get(field.type, flags.DEFINE_string), field.default
    if isinstance(default, int) and kind is flags.DEFINE_string:
        default = str(default)  # of `steps`
    kind(field.name, default, field.metadata["help"], flag_values=registry)


# ---- checks: return None for a valid value, otherwise what was expected and found


def expect(condition, expected: str):
    return lambda value: None if condition(value) else f"expected {expected}, got {value!r}"


def at_least(low):
    return _within(lambda value: low <= value, f"a number >= {low}")


def between(low, high):
    return expect(lambda value: low <= value <= high, f"a number in [{low}, {high}]")


def _within(condition, expected: str):
    """`expect`, and no number that TensorFlow's integers of 64 bits cannot hold."""

    def check(value):
        above = " and < 2^63" if LIMIT <= value < math.inf else ""
        return expect(lambda v: condition(v) and v < LIMIT, expected + above)(value)

    return check


LIMIT = 2**63
positive = _within(lambda value: 0 < value, "a number > 0")
seed = expect(lambda value: 0 <= value < 2**31, "a number in [0, 2^31)")
fraction = expect(lambda value: 0 <= value < 1, "a number in [0, 1)")
