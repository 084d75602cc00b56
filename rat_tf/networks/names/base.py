"""The description of a network for flags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Family:
    """Networks that differ in a part of their names.

    The groups of `pattern` are the first arguments of `builder` in `module`; those of digits are
    numbers. `expected` describes the name in an error message, `about` in the help. `check` says
    what is wrong with the groups. `size(*numbers, image_shape, num_classes)` are the trainable
    parameters, and how many numbers the backward pass of an image needs at least; None: not known
    before the network is built.

    A `foreign` network is a Keras model that knows nothing of RAT, with an output layer, its head,
    and a backbone. Its builder is called with the groups, the shape of an image and the number of
    classes. Without `batch_statistics`, an image's logits do not depend on the batch it is in.
    """

    pattern: str
    expected: str
    about: str
    module: str
    builder: str
    foreign: bool = False
    batch_statistics: bool = True
    check: Callable[..., str | None] = lambda *groups: None
    size: Callable[..., tuple[int, int]] | None = None
