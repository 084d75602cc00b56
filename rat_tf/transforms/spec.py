"""Transformations and their search as flags. No TensorFlow here.

Every file in this folder that is not in `MACHINERY` is a transformation: `affine.py` has the class
`Affine`, which flags call `affine`.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pkgutil
import re

from rat_tf import errors

MACHINERY = ("base", "composite", "sampling", "spec")
NAMES = tuple(
    module.name
    for module in pkgutil.iter_modules([os.path.dirname(__file__)])
    if module.name not in MACHINERY
)
ALIASES = {"channel": "channel_weight", "tps": "thin_plate_spline", "flow": "flow_field"}

ASCENTS = ("paper", "steepest")
ADVERSARIES = ("gradient", "worst_of", "both")
PADDINGS = ("zeros", "edge")
SAMPLERS = ("resampler", "gather")
LIMIT = 1_000_000
"""ε and ξ are below it: an image of the largest size has a smaller norm, and the positions to which
a warp moves pixels must fit into 32 bits."""


@dataclasses.dataclass(frozen=True)
class Spec:
    """Transformations with their ε, in the order of application."""

    parts: tuple[tuple[str, float], ...]

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Reads "noise:1.0,affine:0.6"."""
        parts = tuple(_parse_one(part.strip(), text) for part in text.split(","))
        names = [name for name, _ in parts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"expected each transformation once, got {name} twice in {text!r}")
        return cls(parts)

    def __str__(self) -> str:
        return ",".join(f"{name}:{number(epsilon)}" for name, epsilon in self.parts)

    def only(self, *names: str) -> Spec:
        """Only the transformations with these names."""
        return Spec(tuple(part for part in self.parts if part[0] in names))

    @property
    def epsilons(self) -> dict[str, float]:
        return dict(self.parts)


def number(value: float) -> str:
    """A short text that parses to the same number: 0.6, 1e-6."""
    short = f"{value:g}"
    text = short if float(short) == value else repr(value)
    return re.sub(r"e([+-])0+", r"e\1", text)


def _parse_one(part: str, text: str) -> tuple[str, float]:
    name, _, epsilon = (piece.strip() for piece in part.partition(":"))
    name = ALIASES.get(name, name)
    if name not in NAMES:
        hint = errors.did_you_mean(name, [*NAMES, *ALIASES])
        raise ValueError(
            f"expected <name>:<epsilon>, <name> one of {', '.join(NAMES)}, got {part!r}{hint} "
            f"(in {text!r})"
        )
    try:
        value = float(epsilon)
    except ValueError:
        value = math.nan
    if not 0 < value < LIMIT:
        below = f" and < {LIMIT:,}" if value >= LIMIT else ""
        raise ValueError(
            f"expected {name}:<epsilon> with a number epsilon > 0{below}, got {part!r} "
            f"(in {text!r})"
        )
    return name, value


@dataclasses.dataclass(frozen=True)
class Xi:
    """The finite-difference step ξ: a number, or a multiple of the current ε of each transform."""

    value: float
    relative: bool = False

    @classmethod
    def parse(cls, text: str) -> Xi:
        """Reads "1e-6" (absolute) or "0.5eps" (relative to ε)."""
        digits, relative = text.strip(), text.strip().endswith("eps")
        try:
            value = float(digits[:-3] or 1 if relative else digits)
        except ValueError:
            value = math.nan
        if not 0 < value < LIMIT:
            below = f" and < {LIMIT:,}" if value >= LIMIT else ""
            raise ValueError(
                f"expected a number > 0{below}, or a multiple of ε such as 0.5eps, got {text!r}"
            )
        return cls(value, relative)

    def __str__(self) -> str:
        return number(self.value) + ("eps" if self.relative else "")

    def at(self, epsilon):
        return self.value * epsilon if self.relative else self.value


PAPER_XI = Xi(1e-6)
