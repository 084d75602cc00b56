"""What the transformations should compute, in NumPy and SciPy, float64, one image at a time."""

import numpy as np
from scipy import interpolate, ndimage

_MODES = {"zeros": "grid-constant", "edge": "nearest"}


def grid(height, width):
    """Normalised coordinates (x, y) of every pixel, corners aligned."""
    return np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))


def displacement(name, v, height, width):
    """(dx, dy) at every pixel for an offset of the spatial transformation `name`."""
    x, y = grid(height, width)
    if name == "affine":
        return np.einsum("ij,jhw->ihw", v, np.stack([x, y, np.ones_like(x)]))
    if name == "thin_plate_spline":
        control = np.stack([c.ravel() for c in grid(4, 4)], -1)
        spline = interpolate.RBFInterpolator(control, v, kernel="thin_plate_spline")
        return spline(np.stack([x.ravel(), y.ravel()], -1)).T.reshape(2, height, width)
    return np.moveaxis(v, -1, 0)


def positions(name, v, height, width):
    """Row and column, in pixels, from which every pixel is read."""
    x, y = grid(height, width)
    dx, dy = displacement(name, v, height, width)
    return np.stack([(y + dy + 1) * (height - 1) / 2, (x + dx + 1) * (width - 1) / 2])


def apply(name, image, v, padding="zeros"):
    image, v = np.asarray(image, np.float64), np.asarray(v, np.float64)
    if name == "noise":
        return image + v
    if name == "channel_weight":
        return image * (1 + v)
    where = positions(name, v, *image.shape[:2])
    channels = np.moveaxis(image, -1, 0)
    return np.stack(
        [ndimage.map_coordinates(c, where, order=1, mode=_MODES[padding]) for c in channels], -1
    )


def norm(name, v):
    v = np.asarray(v, np.float64)
    if name == "affine":
        return np.linalg.svd(v, compute_uv=False).max()
    return np.abs(v).max() if name == "channel_weight" else np.linalg.norm(v)


def dual_norm(name, g):
    """max <g, u> over norm(u) <= 1."""
    g = np.asarray(g, np.float64)
    if name == "affine":
        return np.linalg.svd(g, compute_uv=False).sum()
    return np.abs(g).sum() if name == "channel_weight" else np.linalg.norm(g)


def differences(function, at, low, high):
    """Gradient of a scalar function, entry by entry, from its values at `at` + low and + high."""
    at = np.asarray(at, np.float64)
    gradient = np.zeros_like(at)
    for index in np.ndindex(*at.shape):
        unit = np.zeros_like(at)
        unit[index] = 1
        gradient[index] = (function(at + high * unit) - function(at + low * unit)) / (high - low)
    return gradient
