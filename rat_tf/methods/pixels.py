"""Images between the range that a model takes and [-1, 1], on which transformations are defined."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class AsFloat(tf.keras.layers.Layer):
    """Images of any type as float32, their values unchanged: the preprocessing of a bare model."""

    def __init__(self, **kwargs):
        # float32 under any precision policy: the transformations that follow need it.
        super().__init__(dtype="float32", autocast=False, **kwargs)

    def call(self, images):
        return tf.cast(images, tf.float32)


class ValueRange(NamedTuple):
    """The smallest and the largest value of a pixel.

    Noise, channel weights and the zeros outside an image are defined on [-1, 1], as in the paper:
    so ε means the same for every model.
    """

    low: float
    high: float

    @classmethod
    def of(cls, value_range) -> ValueRange:
        try:
            low, high = map(float, value_range)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not low < high:
            raise ValueError(
                "value_range: expected the smallest and the largest value of a pixel, such as "
                f"(0, 255), got {value_range!r}"
            )
        return cls(low, high)

    def inward(self, images) -> tf.Tensor:
        """To [-1, 1]."""
        if self == (-1, 1):
            return images
        return (images - self.low) * (2 / (self.high - self.low)) - 1

    def outward(self, images) -> tf.Tensor:
        """From [-1, 1]."""
        if self == (-1, 1):
            return images
        return (images + 1) * ((self.high - self.low) / 2) + self.low


def at_least_one(images) -> tf.Tensor:
    """A batch of images, or one image of zeros if there are none.

    Some layers fail on an empty batch, and replicas get one where images are few.
    """
    if images.shape[0]:
        return images
    shape = tf.shape(images)
    missing = tf.concat([[tf.maximum(1 - shape[0], 0)], shape[1:]], axis=0)
    return tf.concat([images, tf.zeros(missing, images.dtype)], axis=0)
