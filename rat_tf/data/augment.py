"""Random augmentation on device, drawn anew for every pass from a stateless seed."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

PHILOX = {"alg": "philox"}  # by name: left to TensorFlow, XLA would draw differently


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

    def __call__(self, images, seed, rows) -> tf.Tensor:
        """Augments `images`; `rows` cuts what is drawn for `rows.total` images to these ones."""
        shift_seed, flip_seed, noise_seed = tf.unstack(tf.random.split(seed, 3, PHILOX["alg"]))
        count = rows.total if self.granularity == "image" else 1
        if self.shift:
            bounds = {"minval": -self.shift, "maxval": self.shift + 1, "dtype": tf.int32}
            shift = tf.random.stateless_uniform([count, 2], shift_seed, **bounds, **PHILOX)
            if self.granularity == "image":
                images = _shift_each(images, rows(shift))
            else:
                images = _shift_all(images, shift[0], self.shift)
        if self.flip:
            coin = tf.random.stateless_uniform([count], flip_seed, **PHILOX) < 0.5
            if self.granularity == "image":
                coin = rows(coin)
            else:
                coin = tf.broadcast_to(coin, images.shape[:1])
            # The older `where` selects whole images; the newer one would broadcast, far slower.
            images = tf.compat.v1.where(coin, tf.reverse(images, axis=[2]), images)
        if self.noise:
            shape = [rows.total, *images.shape[1:]]
            noise = tf.random.stateless_normal(shape, noise_seed, **PHILOX)
            images += self.noise * rows(noise)
        return images


def build(config) -> Augmentation:
    """The augmentation that a config asks for."""
    return Augmentation(
        shift=config.augment_shift,
        flip=config.augment_flip,
        noise=config.augment_noise,
        granularity=config.augment_granularity,
    )


def _shift_all(images, shift, largest: int) -> tf.Tensor:
    """One crop for the batch: a pad, a roll and a slice of the middle, which nothing rolls into.

    A slice that begins at `shift` would be a little cheaper, but XLA would compile it anew for
    every shift, and with it the whole step.
    """
    border = [largest, largest]
    padded = tf.pad(images, [[0, 0], border, border, [0, 0]], "REFLECT")
    rolled = tf.roll(padded, -shift, axis=[1, 2])
    return rolled[:, largest:-largest, largest:-largest]


def _shift_each(images, shift) -> tf.Tensor:
    """A shift [B, 2] = (rows, columns) for every image, by gathering along each axis."""
    for axis in (1, 2):
        size = images.shape[axis]
        index = tf.range(size)[tf.newaxis] + shift[:, axis - 1, tf.newaxis]
        index = (size - 1) - tf.abs((size - 1) - tf.abs(index))  # reflect at both borders
        if axis == 2:
            index = tf.repeat(index[:, tf.newaxis], images.shape[1], axis=1)
        images = tf.gather(images, index, axis=axis, batch_dims=axis)
    return images
