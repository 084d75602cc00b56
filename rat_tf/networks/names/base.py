"""How a network makes itself known to flags."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Family:
    """Networks that differ in the numbers of their names.

    The numbers are the groups of `pattern`, and the first arguments of the class `builder` in
    `module`. `expected` is the name in the words of an error, `about` a line for the help.
    """

    pattern: str
    expected: str
    about: str
    module: str
    builder: str
