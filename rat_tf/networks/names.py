"""The names of the networks. No TensorFlow here."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Family:
    """Networks that differ in the numbers of their names.

    The groups of `pattern` are numbers, the first arguments of the class `builder` in `module`.
    `expected` describes the name in an error message, `about` in the help.
    """

    pattern: str
    expected: str
    about: str
    module: str
    builder: str


FAMILIES = (
    Family(
        r"wrn-(10|16|22|28|34|40)-([1-9]\d*)",
        "wrn-<depth>-<width> such as wrn-28-2",
        "wrn-<depth>-<width>, a Wide ResNet of depth 10, 16, 22, 28, 34 or 40",
        "rat_tf.networks.wide_resnet",
        "WideResNet",
    ),
    Family(
        r"tiny",
        "tiny",
        "tiny, a single convolution for smoke tests",
        "rat_tf.networks.tiny",
        "Tiny",
    ),
)


def parse(name: str) -> tuple[Family, tuple[int, ...]]:
    """The family of a network and the numbers in its name."""
    for family in FAMILIES:
        match = re.fullmatch(family.pattern, name)
        if match:
            return family, tuple(map(int, match.groups()))
    expected = ", or ".join(family.expected for family in FAMILIES)
    raise ValueError(f"expected {expected}, got {name!r}")


def check(name: str) -> str | None:
    """What is wrong with the name of a network: expected and found; None if it is valid."""
    try:
        parse(name)
    except ValueError as error:
        return str(error)
    return None
