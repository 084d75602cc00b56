"""The description of a network for flags."""

from __future__ import annotations

import dataclasses


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
