"""Affine transformation of the pixel grid under the operator norm."""

import numpy as np
import tensorflow as tf

from rat_tf.transforms import base, sampling


class Affine(base.SpatialTransform):
    """δx = v₀·(x, y, 1), δy = v₁·(x, y, 1); offset [B, 2, 3], norm = largest singular value."""

    name = "affine"

    def offset_shape(self, image_shape):
        return (2, 3)

    def displacement(self, offset, height, width):
        places = sampling.grid(height, width)
        homogeneous = np.concatenate([places, np.ones([height, width, 1])], axis=-1)
        return tf.einsum("hwk,bdk->bhwd", tf.constant(homogeneous, offset.dtype), offset)

    def steepest(self, gradient):
        """The polar factor U Vᵀ of the gradient G = U Σ Vᵀ: ⟨G, U Vᵀ⟩ is the nuclear norm.

        With rows g₀, g₁, s = |g₀ × g₁| = √det(GGᵀ) and n = (g₀ × g₁)/s the matrix (GGᵀ)^(-1/2) G
        has the rows (g₀ + g₁ × n)/t and (g₁ + n × g₀)/t, t² = ‖G‖² + 2s (Cayley-Hamilton for the
        2×2 square root, then the vector triple product). No SVD, and no cancellation: for parallel
        rows n = 0 gives G/‖G‖, which is the right u vᵀ.
        """
        gradient = self.unit(gradient)
        g0, g1 = gradient[:, 0], gradient[:, 1]
        cross = tf.linalg.cross(g0, g1)
        s = tf.norm(cross, axis=1, keepdims=True)
        n = tf.math.divide_no_nan(cross, s)
        t = tf.sqrt(tf.reduce_sum(g0**2 + g1**2, axis=1, keepdims=True) + 2 * s)
        rows = [g0 + tf.linalg.cross(g1, n), g1 + tf.linalg.cross(n, g0)]
        return tf.math.divide_no_nan(tf.stack(rows, axis=1), t[:, tf.newaxis])

    def _norm(self, offset):
        """√λ_max of the 2×2 Gram matrix [[a, b], [b, c]] = v vᵀ, in closed form."""
        a = tf.reduce_sum(offset[:, 0] ** 2, axis=1)
        b = tf.reduce_sum(offset[:, 0] * offset[:, 1], axis=1)
        c = tf.reduce_sum(offset[:, 1] ** 2, axis=1)
        return tf.sqrt((a + c) / 2 + tf.sqrt(((a - c) / 2) ** 2 + b**2))
