"""The grammar of flag values in --vary (rat_tf.sweep) and --search (rat_tf.tune).

    rat|vat        these values
    0..4           the whole numbers from 0 to 4
    0.1:1:0.1      start:stop:step, both ends included
    0.1:1:log:5    five numbers from 0.1 to 1, evenly spaced on a logarithmic scale
    0.1:1          any number from 0.1 to 1
    0.1:1:log      any number from 0.1 to 1, sampled on a logarithmic scale

All but the last two are lists. Lists can be joined: 0..4|9. Parameters are separated by semicolons
or commas: "seed=0..4; xi=1e-6|1e-2".
"""

from __future__ import annotations

import dataclasses
import math
import re

from rat_tf import errors, fields

MAX_VALUES = 10_000
FORMS = "<value>|<value>|…, <a>..<b>, <start>:<stop>:<step> or <start>:<stop>:log[:<count>]"
STEPS = "fields.Steps"  # the type of flags that count steps or give them as a share
_KINDS = {
    "int": "whole numbers",
    STEPS: "whole numbers, or shares such as 40%",
    "float": "numbers",
    "bool": "true or false",
}
WHOLE = ("int", STEPS)
_BOOLS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}  # absl's


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The values of a flag: a list of texts, or all numbers from `low` to `high`."""

    name: str
    kind: str  # the type of the flag: int, STEPS, float, bool; anything else is a text
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def check_list(self, flag: str, user: str) -> None:
        """Raises a `UserError` if this is a range; `user` needs a list."""
        if not self.values:
            ends = f"{self.name}={self.low:g}:{self.high:g}"
            raise errors.UserError(
                f"{flag}: {user} needs a list of values, got the range {ends}{':log' * self.log}; "
                f"use {ends}:{'log:5' if self.log else '<step>'}"
            )


def split(flag: str, text: str) -> list[tuple[str, str]]:
    """The names and values in "name=values; name=values"."""
    found = []
    # Values may contain commas; a separating comma is followed by the next name.
    for part in re.split(r";|,(?=\s*[\w.]+\s*=)", text):
        name, equals, values = (piece.strip() for piece in part.partition("="))
        if part.strip() and not (name and equals and values):
            raise errors.UserError(f"{flag}: expected <flag>={FORMS}, got {part.strip()!r}")
        if part.strip():
            found.append((name, values))
    return found


def parse(flag: str, name: str, text: str, kind: str) -> Parameter:
    """The parameter `name`=`text`, given by `flag`; a `UserError` if the text is malformed."""
    try:
        return _parse(name, text, kind)
    except ValueError as expected:
        raise errors.UserError(f"{flag}: expected {expected}, got {name}={text}") from None


def convert(text: str, kind: str):
    """The text as a value of that kind; a ValueError if it is invalid."""
    try:
        if kind == "bool":
            return _BOOLS[text.lower()]
        return {"int": int, STEPS: fields.Steps.parse, "float": float}.get(kind, str)(text)
    except (KeyError, ValueError):
        raise ValueError(_KINDS[kind]) from None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# ---- one parameter; a ValueError says what was expected


def _parse(name: str, text: str, kind: str) -> Parameter:
    pieces = [piece.strip() for piece in text.split("|")]
    numbers, log = _range(text)
    if len(numbers) == 2 and kind != "bool":
        return Parameter(name, kind, (), *numbers, log)
    values = [value for piece in pieces for value in _list(piece, kind)]
    for value in values:
        convert(value, kind)
    return Parameter(name, kind, tuple(dict.fromkeys(values)))


def _list(text: str, kind: str) -> list[str]:
    """The values of one part between two |."""
    whole = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text)
    numbers, log = _range(text)
    if whole and kind != "bool":
        first, last = int(whole[1]), int(whole[2])
        if last < first:
            raise ValueError("a <= b in <a>..<b>")
        return [str(first + i) for i in range(_count(last - first + 1))]
    if len(numbers) == 3 and kind != "bool":
        return (_factors if log else _steps)(*numbers, kind)
    # Values of some flags contain colons: noise:1,affine:0.3.
    if not text or numbers or (":" in text and kind in _KINDS):
        raise ValueError(FORMS)
    return [text]


def _range(text: str) -> tuple[list[float], bool]:
    """The numbers of start:stop:step or start:stop[:log[:count]]; empty otherwise."""
    numbers = text.split(":")
    log = [piece.strip() for piece in numbers[2:3]] == ["log"]
    if log:
        del numbers[2]
    if not 2 <= len(numbers) <= 3 or not all(map(_is_number, numbers)):
        return [], False
    low, high = map(float, numbers[:2])
    if not low < high or (log and low <= 0):
        raise ValueError("start < stop" + " and start > 0" * log)
    return [float(number) for number in numbers], log


def _steps(low: float, high: float, step: float, kind: str) -> list[str]:
    if not 0 < step <= high - low:
        raise ValueError("0 < step <= stop - start")
    # 0.1 + 2 * 0.1 is 0.30000000000000004: rounded to ten digits.
    return [f"{low + i * step:.10g}" for i in range(_count((high - low) / step + 1 + 1e-9))]


def _factors(low: float, high: float, count: float, kind: str) -> list[str]:
    if count < 2 or count != int(count):
        raise ValueError("a count >= 2")
    numbers = [low * (high / low) ** (i / (count - 1)) for i in range(_count(count))]
    return [str(round(number)) if kind in WHOLE else f"{number:.4g}" for number in numbers]


def _count(count: float) -> int:
    if count > MAX_VALUES:
        raise ValueError(f"at most {MAX_VALUES} values")
    return int(count)
