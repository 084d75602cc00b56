"""One parameter of a search: the text that a user gives, and the values that it stands for.

A parameter is a flag of `Config` or `epsilon.<transformation>`, the ε inside --transforms, with

    0.1:1:0.1     start:stop:step, both ends included
    0.1:1         any number between (not for a grid)
    0.1:1:log     any number between, evenly in its logarithm (not for a grid)
    0.1:1:log:5   five numbers, each the same factor above the one before
    1e-6|1e-2     these values
"""

from __future__ import annotations

import dataclasses
import math

import keras_tuner as kt

from rat_tf import config as config_lib
from rat_tf import errors, transforms


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The values one flag may take: some (in order, as texts), or all from `low` to `high`."""

    name: str
    type: str  # of the flag: str, int, float or bool
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def add_to(self, space: kt.HyperParameters) -> None:
        if self.values:
            # Texts: a number that has been rounded on its way is not found among the choices.
            space.Choice(self.name, list(self.values))
        else:
            space.Float(self.name, self.low, self.high, sampling="log" if self.log else "linear")

    def ends(self) -> tuple:
        return self.values or (self.low, self.high)

    def value(self, found):
        """What the flag gets for a value that KerasTuner gives."""
        if isinstance(found, str):
            return _convert(self.type, found)
        if self.type == "int":
            return round(found)
        number = float(f"{found:.4g}")
        return f"{number:g}" if self.type == "str" else number


def parse(name: str, text: str, used) -> Parameter:
    """The parameter of `name`=`text`, its name and the form of its values checked."""
    if name.startswith("epsilon."):
        short = name.partition(".")[2]
        name = f"epsilon.{transforms.ALIASES.get(short, short)}"
        kind = "float"
        if name.partition(".")[2] not in used:
            hint = errors.did_you_mean(short, used)
            raise errors.UserError(
                f"--search: expected epsilon.<one of {', '.join(used) or 'no transformation'}>, "
                f"what this run uses, got {name}{hint}"
            )
    else:
        kind = _type_of(name)
    if "|" in text:
        values = [value.strip() for value in text.split("|")]
        if len(set(values)) < len(values):
            raise errors.UserError(f"--search: {name}={text} has a value twice")
        # Numbers in their order, which a Gaussian process takes for nearness.
        values = (
            sorted(values, key=float) if kind in ("int", "float") and _numbers(values) else values
        )
        parameter = Parameter(name, kind, tuple(values))
    else:
        parameter = _range(name, kind, text)
    for value in parameter.values:
        try:
            _convert(kind, value)
        except ValueError:
            raise errors.UserError(
                f"--search: {name} takes {_KINDS[kind]}, got {value!r}"
            ) from None
    return parameter


def _type_of(name: str) -> str:
    fields = {field.name: field for field in dataclasses.fields(config_lib.Config)}
    if name not in fields:
        searchable = [n for n, field in fields.items() if field.metadata["group"] != "Machine"]
        names = [*searchable, *(f"epsilon.{t}" for t in transforms.REGISTRY)]
        raise errors.UserError(
            f"--search: there is no flag {name!r}{errors.did_you_mean(name, names)}"
        )
    if fields[name].metadata["group"] == "Machine":
        raise errors.UserError(
            f"--search: {name} says where and how to compute, which changes no result to search for"
        )
    return fields[name].type.partition("|")[0].strip()


def _range(name: str, kind: str, text: str) -> Parameter:
    start, stop, *rest = [piece.strip() for piece in text.split(":")] + [""] * (":" not in text)
    log = rest[:1] == ["log"]
    numbers = [start, stop, *(rest[1:] if log else rest)]
    if kind == "bool" or not _numbers(numbers) or len(rest) > 1 + log:
        raise errors.UserError(
            f"--search: expected {name}=<start>:<stop>:<step>, <start>:<stop>:log[:<count>] or "
            f"<a>|<b>|…, got {name}={text}"
        )
    low, high, *last = map(float, numbers)
    if not low < high or (log and low <= 0):
        raise errors.UserError(
            f"--search: expected start < stop{' and start > 0' if log else ''}, got {name}={text}"
        )
    if not last:
        return Parameter(name, kind, (), low, high, log)
    if log and not (last[0] >= 2 and last[0] == int(last[0])):
        raise errors.UserError(f"--search: expected a count >= 2, got {name}={text}")
    if not log and not 0 < last[0] <= high - low:
        raise errors.UserError(
            f"--search: expected a step > 0 and <= stop - start, got {name}={text}"
        )
    count = last[0] if log else (high - low) / last[0] + 1
    if count > 10_000:
        raise errors.UserError(f"--search: {name}={text} has {count:.0f} values")
    if log:
        values = [low * (high / low) ** (i / (last[0] - 1)) for i in range(int(count))]
        values = [round(v) for v in values] if kind == "int" else [f"{v:.4g}" for v in values]
    else:
        # 0.1 + 2 * 0.1 is 0.30000000000000004: ten digits are enough to say what was meant.
        values = [f"{low + i * last[0]:.10g}" for i in range(int(count + 1e-9))]
    return Parameter(name, kind, tuple(dict.fromkeys(map(str, values))))


_KINDS = {"int": "whole numbers", "float": "numbers", "bool": "true or false", "str": "a text"}


def _convert(kind: str, text: str):
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return {"int": int, "float": float, "str": str}[kind](text)


def _numbers(texts) -> bool:
    try:
        return all(math.isfinite(float(text)) for text in texts)
    except ValueError:
        return False
