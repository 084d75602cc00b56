"""The description of a network for flags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Family:
    """Networks that differ in the numbers of their names.

    The groups of `pattern` are numbers, the first arguments of the class `builder` in `module`.
    `expected` describes the name in an error message, `about` in the help. `size(*numbers,
    image_shape, num_classes)` are the trainable parameters, and how many numbers the backward pass
    of an image needs at least; None: not known before the network is built.
    """

    pattern: str
    expected: str
    about: str
    module: str
    builder: str
    size: Callable[..., tuple[int, int]] | None = None
