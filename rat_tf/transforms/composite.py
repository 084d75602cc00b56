"""Composite transformations f⁽ⁿ⁾ ∘ … ∘ f⁽¹⁾, applied in list order as in Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from rat_tf import draws
from rat_tf.transforms import base


class Composite:
    """Several transformations, each with its own offset, norm and ε; offsets are lists.

    Names must be unique: they identify metrics and offsets.
    """

    def __init__(self, transforms: Sequence[base.Transform]):
        if not transforms:
            raise ValueError("Composite: expected at least one transformation, got none")
        names = [t.name for t in transforms]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is given twice; each transformation can be used once")
        self.transforms = tuple(transforms)

    def __repr__(self) -> str:
        return ",".join(map(repr, self.transforms))

    def offset_shape(self, image_shape) -> list[tuple[int, ...]]:
        return [t.offset_shape(image_shape) for t in self.transforms]

    def norm(self, offsets) -> list[tf.Tensor]:
        return [t.norm(v) for t, v in zip(self.transforms, offsets)]

    def random_direction(self, batch_size, image_shape, seed, dtype=tf.float32) -> list[tf.Tensor]:
        """A direction of norm 1 for every transformation, from independent seeds."""
        return [
            t.random_direction(batch_size, image_shape, draws.fold_in(seed, i), dtype)
            for i, t in zip(np.arange(len(self.transforms)), self.transforms)  # 64 bits
        ]

    def apply(self, images, offsets) -> tf.Tensor:
        if len(offsets) != len(self.transforms):
            raise ValueError(
                f"offsets: expected one for each of {self!r}, got {len(offsets)} of them"
            )
        for transform, offset in zip(self.transforms, offsets):
            images = transform.apply(images, offset)
        return base.as_float(images)
