"""Bilinear sampling of images at displaced grid points: the only module that touches tfa.

Coordinates are normalised to [-1, 1] with aligned corners, x along the width and y along the
height, as in Spatial Transformer Networks. A displacement of one unit is (W-1)/2 pixels along x.
"""

import warnings

import tensorflow as tf

with warnings.catch_warnings():
    # The banner about TFA's end of life; tfa is pinned, and every other warning still shows.
    warnings.filterwarnings("ignore", message=r"\s*TensorFlow Addons \(TFA\) has ended")
    import tensorflow_addons as tfa

PADDINGS = ("zeros", "edge")
SAMPLERS = ("resampler", "gather")


def grid(height: int, width: int, dtype=tf.float32) -> tuple[tf.Tensor, tf.Tensor]:
    """Normalised coordinates (x, y) of every pixel, each [H, W]."""
    x = tf.linspace(tf.constant(-1, dtype), tf.constant(1, dtype), width)
    y = tf.linspace(tf.constant(-1, dtype), tf.constant(1, dtype), height)
    return tuple(tf.meshgrid(x, y))


def warp(images, displacement, padding: str = "zeros", sampler: str = "resampler") -> tf.Tensor:
    """Samples `images` [B,H,W,C] at the grid plus `displacement` [B,H,W,2] = (δx, δy), bilinearly.

    Outside the image a sample is zero (`padding="zeros"`: the neighbours outside weigh in as
    zeros) or the nearest border pixel (`"edge"`). A NaN displacement counts as far outside, so that
    it can neither crash the process nor spread.

    `sampler="resampler"` is tfa's C++ kernel, the faster one; `"gather"` is plain TensorFlow, which
    XLA can compile. `tfa.image.transform` has no gradient for its parameters, and
    `tfa.image.dense_image_warp` none for most pixels at the identity: neither can serve the search.
    """
    height, width = images.shape[1:3]
    dtype = images.dtype
    # The displacement in pixels, kept apart from the absolute position: adding the two first would
    # round a displacement of 1e-6 away.
    shift = displacement * tf.constant([(width - 1) / 2, (height - 1) / 2], dtype)
    shift = tf.where(tf.math.is_nan(shift), tf.constant(2.0 * (height + width), dtype), shift)
    column = tf.range(width, dtype=dtype)[tf.newaxis, :]
    row = tf.range(height, dtype=dtype)[:, tf.newaxis]
    margin = 1 if padding == "zeros" else 0
    dx = tf.clip_by_value(shift[..., 0], -margin - column, width - 1 + margin - column)
    dy = tf.clip_by_value(shift[..., 1], -margin - row, height - 1 + margin - row)
    if padding == "edge":
        # One repeated pixel around the image, so that the kink at the border has the derivative of
        # a constant continuation and not that of a fall to zero.
        images = tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]], "SYMMETRIC")
        column, row = column + 1, row + 1
    if sampler == "resampler":
        return tfa.image.resampler(images, tf.stack([column + dx, row + dy], axis=-1))
    return _gather(images, row, column, dy, dx)


def _gather(images, row, column, dy, dx) -> tf.Tensor:
    """Σ over the four neighbours of (row+dy, column+dx) of weight · pixel; zero beyond `images`."""
    # Clipping leaves neighbours at most one pixel before and two behind the image.
    images = tf.pad(images, [[0, 0], [1, 2], [1, 2], [0, 0]])
    height, width, channels = images.shape[1:]
    pixels = tf.reshape(images, [-1, height * width, channels])
    y0, x0 = tf.floor(dy), tf.floor(dx)
    y_weight, x_weight = (dy - y0)[..., tf.newaxis], (dx - x0)[..., tf.newaxis]
    corner = tf.cast(row + y0 + 1, tf.int32) * width + tf.cast(column + x0 + 1, tf.int32)

    def neighbour(offset):
        return tf.gather(pixels, corner + offset, batch_dims=1)

    top = neighbour(0) * (1 - x_weight) + neighbour(1) * x_weight
    bottom = neighbour(width) * (1 - x_weight) + neighbour(width + 1) * x_weight
    return top * (1 - y_weight) + bottom * y_weight
