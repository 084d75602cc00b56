"""Random augmentation on device, redrawn for every pass from a stateless seed."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from rat_tf import draws


@tf.keras.saving.register_keras_serializable("rat_tf")
@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Reflecting shift by up to `shift` pixels, horizontal flip, Gaussian noise, in this order.

    With granularity "batch", as in the authors' code, one shift and one flip serve the whole
    batch; with "image", as in Oliver et al. (2018), every image has its own. Noise is always
    drawn per pixel. Images are [B, H, W, C]; any other rank can only have noise.
    """

    shift: int = 0
    flip: bool = False
    noise: float = 0.0
    granularity: str = "batch"

    def pooled(self, factor: int) -> Augmentation:
        """For images pooled by `factor`: shifts in their pixels, noise that has been averaged."""
        shift, noise = round(self.shift / factor), self.noise / factor
        return dataclasses.replace(self, shift=shift, noise=noise)

    def __call__(self, images, seed, rows) -> tf.Tensor:
        """Augments `images`; `rows` slices what is drawn for `rows.total` images to these."""
        seeds = draws.split(seed, 3)  # of shift, flip and noise
        if self.shift or self.flip:
            count = rows.total if self.granularity == "image" else 1
            shift = draws.integers([count, 2], seeds[0], -self.shift, self.shift + 1)
            flip = draws.uniform([count], seeds[1]) < 0.5 * self.flip
            if self.granularity == "image":
                shift, flip = rows(shift), rows(flip)
            images = _moved(images, shift, flip)
        if self.noise:
            shape = [rows.total, *images.shape[1:]]
            images += self.noise * rows(draws.normal(shape, seeds[2]))
        return images

    def get_config(self) -> dict:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict) -> Augmentation:
        return cls(**config)


def build(config) -> Augmentation:
    """The augmentation of a config."""
    return Augmentation(
        shift=config.augment_shift,
        flip=config.augment_flip,
        noise=config.augment_noise,
        granularity=config.augment_granularity,
    )


def _moved(images, shift, flip) -> tf.Tensor:
    """Images shifted by (down, right), then flipped: one gather of pixels [B·H·W, C].

    `shift` is [B or 1, 2], `flip` [B or 1]. With a slice or a roll by a random shift, a GPU would
    wait for the host to read the shift, and XLA would recompile a slice for every shift. Integers
    have 64 bits, because TensorFlow adds 32-bit integers on the host.
    """
    count, height, width, channels = images.shape
    right = np.arange(width)
    row = _reflected(shift[:, :1] + np.arange(height), height)
    column = tf.where(flip[:, tf.newaxis], right[::-1], right)
    column = _reflected(shift[:, 1:] + column, width)
    place = row[:, :, tf.newaxis] * width + column[:, tf.newaxis]
    place += np.arange(count)[:, np.newaxis, np.newaxis] * (height * width)
    return tf.gather(tf.reshape(images, [-1, channels]), place)


def _reflected(index, size: int) -> tf.Tensor:
    """Places less than `size` beyond either border, mirrored at its pixel into [0, size)."""
    return (size - 1) - tf.abs((size - 1) - tf.abs(index))
