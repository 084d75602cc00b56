"""Bilinear sampling of images at displaced grid points: the only module that imports tfa.

Coordinates are normalised to [-1, 1] with aligned corners, x along the width and y along the
height, as in Spatial Transformer Networks. A displacement of one unit is (W-1)/2 pixels along x.
"""

import warnings

import numpy as np
import tensorflow as tf

with warnings.catch_warnings():
    # The banner about TFA's end of life; tfa is pinned, and every other warning still shows.
    warnings.filterwarnings("ignore", message=r"\s*TensorFlow Addons \(TFA\) has ended")
    try:
        import tensorflow_addons as tfa
    except ImportError:  # it has ended: there is none for today's TensorFlow
        tfa = None


def fastest(compiled: bool) -> str:
    """The sampler for this machine: tfa's kernel, if there is one, on CPUs, else plain TensorFlow.

    XLA cannot compile tfa's kernel, and tfa 0.23 has none for GPUs: TensorFlow would run it on the
    host and copy the images back and forth for every warp.
    """
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    return "gather" if tfa is None or compiled or on_gpu else "resampler"


def grid(height: int, width: int) -> np.ndarray:
    """Normalised coordinates (x, y) of every pixel, float64 [H, W, 2]."""
    x, y = np.linspace(-1, 1, width), np.linspace(-1, 1, height)
    return np.stack(np.meshgrid(x, y), axis=-1)


def pool(images, factor: int) -> tf.Tensor:
    """Means over blocks of factor × factor pixels; height and width are multiples of it."""
    if factor == 1:
        return images
    return tf.nn.avg_pool2d(images, factor, factor, "VALID")


def warp(images, displacement, padding: str = "zeros", sampler: str = "gather") -> tf.Tensor:
    """Samples `images` [B,H,W,C] at the grid plus `displacement` [B,H,W,2] = (δx, δy), bilinearly.

    Outside the image a sample is zero (`padding="zeros"`: the neighbours outside weigh in as
    zeros) or the nearest border pixel (`"edge"`). A NaN displacement gives zero with either
    padding: it neither crashes the process nor spreads.

    `sampler="resampler"` is tfa's C++ kernel, `"gather"` plain TensorFlow. `tfa.image.transform`
    has no gradient for its parameters, and `tfa.image.dense_image_warp` none for most pixels at the
    identity: neither can be used for the search.
    """
    size, dtype = np.array(images.shape[2:0:-1]), images.dtype.as_numpy_dtype
    place = np.stack(np.meshgrid(*map(np.arange, size)), axis=-1).astype(dtype)  # (x, y) of pixels
    shift = displacement * ((size - 1) / 2).astype(dtype)
    if padding == "edge":
        shift = tf.clip_by_value(shift, -place, (size - 1).astype(dtype) - place)
        # One repeated pixel around the image, so that the kink at the border has the derivative of
        # a constant continuation and not that of a fall to zero.
        images = tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]], "SYMMETRIC")
        place += 1
    if sampler == "resampler":
        return tfa.image.resampler(images, place + shift)
    return _gather(images, place, shift)


def _gather(images, place, shift) -> tf.Tensor:
    """Σ over the four neighbours of place + shift of weight · pixel; zero beyond `images`."""
    limit = np.array(images.shape[2:0:-1], place.dtype)
    # A NaN would be a random index.
    shift = tf.where(tf.math.is_nan(shift), 2 * limit, shift)
    shift = tf.clip_by_value(shift, -1 - place, limit - place)
    # Clipping leaves neighbours at most one pixel before and two behind the image.
    images = tf.pad(images, [[0, 0], [1, 2], [1, 2], [0, 0]])
    height, width, channels = images.shape[1:]
    pixels = tf.reshape(images, [-1, height * width, channels])
    # The shift is split without the place: in the sum of both, 1e-6 would be rounded away.
    whole = tf.floor(shift)
    x_weight, y_weight = tf.split(shift - whole, 2, axis=-1)
    # 64 bits: integers of 32 would be added up on the host and not on a GPU.
    place = tf.cast(place + whole, tf.int64) + 1
    corner = place[..., 1] * width + place[..., 0]

    def neighbour(offset):
        return tf.gather(pixels, corner + offset, batch_dims=1)

    top = neighbour(0) * (1 - x_weight) + neighbour(1) * x_weight
    bottom = neighbour(width) * (1 - x_weight) + neighbour(width + 1) * x_weight
    return top * (1 - y_weight) + bottom * y_weight
