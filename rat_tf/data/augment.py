"""Random augmentation on device, redrawn for every pass from a stateless seed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import tensorflow as tf

from rat_tf import draws

CROP, COLOR = 3, 4  # seeds of their own: shift, flip and noise are drawn as without these
ASPECT = 4 / 3  # the largest change of the aspect ratio by a crop
LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # grey from RGB (ITU-R BT.601); sums to 1


@tf.keras.saving.register_keras_serializable("rat_tf")
@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Reflecting shift by up to `shift` pixels, horizontal flip, and what else is asked for.

    With granularity "batch", as in the authors' code, one shift and one flip serve the whole
    batch; with "image", as in Oliver et al. (2018), every image has its own.

    For photos: a `crop` of at least this share of the area, resized to the whole (Szegedy et al.,
    2015), 1 for none; and brightness, contrast and saturation that change by factors in
    [1 - color, 1 + color], for pixels in [-1, 1]. Both are drawn for every image. Last comes
    Gaussian noise, drawn for every pixel. Images are [B, H, W, C]; any other rank can only have
    noise.
    """

    shift: int = 0
    flip: bool = False
    noise: float = 0.0
    granularity: str = "batch"
    crop: float = 1.0
    color: float = 0.0

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
        if self.crop < 1:
            drawn = draws.uniform([rows.total, 4], draws.fold_in(seed, CROP))
            images = _cropped(images, rows(drawn), self.crop)
        if self.color:
            drawn = draws.uniform([rows.total, 3], draws.fold_in(seed, COLOR))
            images = _recoloured(images, 1 + self.color * (2 * rows(drawn) - 1))
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
        crop=config.augment_crop,
        color=config.augment_color,
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


def _cropped(images, drawn, smallest: float) -> tf.Tensor:
    """Random crops, resized bilinearly; `drawn` [B, 4] is uniform in [0, 1).

    The area is uniform in [smallest, 1], the logarithm of the aspect ratio uniform, the place
    uniform among all inside the image. Resizing is linear in rows and in columns: products with
    matrices [H, H] and [W, W] per image, whose gradients are products, too; that of a gather
    would be a scatter.
    """
    _, height, width, _ = images.shape
    area = smallest + (1 - smallest) * drawn[:, 0]
    aspect = tf.exp((2 * drawn[:, 1] - 1) * math.log(ASPECT))
    rows = _resizing(height, tf.sqrt(area / aspect), drawn[:, 2])
    columns = _resizing(width, tf.sqrt(area * aspect), drawn[:, 3])
    return _along_rows(columns, _along_rows(rows, images))


def _along_rows(matrices, images) -> tf.Tensor:
    """Matrices [B, H, H] times the rows of images [B, H, W, C]; the result is [B, W, H, C]."""
    count, height, width, channels = images.shape
    product = matrices @ tf.reshape(images, [count, height, width * channels])
    return tf.transpose(tf.reshape(product, images.shape), [0, 2, 1, 3])


def _resizing(size: int, share, place) -> tf.Tensor:
    """[B, size, size]: row i interpolates the pixel at the place of i in a part of the axis.

    The part has a `share` of the axis, at most all; `place` in [0, 1) is where it begins, from the
    first to the last possible place.
    """
    length = size * tf.minimum(share, 1)[:, tf.newaxis]
    begin = (size - length) * place[:, tf.newaxis]
    centre = begin + (np.arange(size, dtype=np.float32) + 0.5) * length / size - 0.5
    centre = tf.clip_by_value(centre, 0, size - 1)
    distance = tf.abs(centre[:, :, tf.newaxis] - np.arange(size, dtype=np.float32))
    return tf.maximum(1 - distance, 0)


def _recoloured(images, factors) -> tf.Tensor:
    """Times brightness b, contrast c and saturation s, `factors` [B, 3], in this order, unclipped.

    Brightness scales the distance from black, contrast that from the mean grey m of the bright
    image, saturation that from the grey g of a pixel. Together, for x in [-1, 1]:
    b c (s (x + 1) + (1 - s) (g + 1)) + (1 - c) m - c.
    """
    brightness, contrast, saturation = tf.unstack(tf.reshape(factors, [-1, 3, 1, 1, 1]), axis=1)
    grey = images
    if images.shape[-1] == 3:
        grey = tf.reduce_sum(images * LUMA, axis=-1, keepdims=True)
    mean = (tf.reduce_mean(grey, axis=(1, 2, 3), keepdims=True) + 1) * brightness - 1
    scale = brightness * contrast
    offset = scale + (1 - contrast) * mean - contrast
    return (scale * saturation) * images + (scale * (1 - saturation) * grey + offset)
