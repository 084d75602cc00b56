"""Thin plate spline: a smooth warp that moves a 4×4 grid of control points."""

import functools

import numpy as np
import tensorflow as tf

from rat_tf.transforms import base, sampling

GRID = 4  # the paper's m = 16 control points


class ThinPlateSpline(base.SpatialTransform):
    """Offset [B, 16, 2] = (δx, δy) at the control points, L2 norm.

    The control points span the image, corners included, ordered by rows from the top left. With
    fixed points the spline is linear in their displacements: one constant [H·W, 16] matrix.
    """

    name = "thin_plate_spline"

    def offset_shape(self, image_shape):
        return (GRID * GRID, 2)

    def displacement(self, offset, height, width):
        matrix = tf.constant(_interpolation_matrix(height, width), offset.dtype)
        return tf.reshape(tf.einsum("pj,bjd->bpd", matrix, offset), [-1, height, width, 2])


def _kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """U(r) = r² log r between all pairs, zero at r = 0."""
    square = ((a[:, None] - b[None]) ** 2).sum(-1)
    return 0.5 * square * np.log(np.where(square > 0, square, 1))


@functools.lru_cache(maxsize=16)
def _interpolation_matrix(height: int, width: int) -> np.ndarray:
    """M [H·W, 16] with M v = the spline through v at the control points, in float64.

    The spline Σ_j w_j U(|p - c_j|) + α·(1, p) has [w; α] = [[K, P], [Pᵀ, 0]]⁻¹ [v; 0].
    """
    control = sampling.grid(GRID, GRID).reshape(-1, 2)
    pixels = sampling.grid(height, width).reshape(-1, 2)
    polynomial = np.hstack([np.ones((len(control), 1)), control])
    system = np.block([[_kernel(control, control), polynomial], [polynomial.T, np.zeros((3, 3))]])
    basis = np.hstack([_kernel(pixels, control), np.ones((len(pixels), 1)), pixels])
    return np.linalg.solve(system.T, basis.T).T[:, : len(control)]
