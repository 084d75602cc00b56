"""Mixup (Zhang et al., 2018) of images and targets, as MixMatch uses it."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf
from scipy import stats

from rat_tf import draws

# Points of the table of Beta's quantiles. Its error is below 1e-5 for α up to 1; above, that of its
# last cell is larger: 2e-3 at α = 2, 0.1 at α = 10.
POINTS = 4096


def mix(images, targets, alpha: float, seed, rows: draws.Rows):
    """λ' a + (1 - λ') b for every image a [B, H, W, C] and target [B, classes] of this replica.

    b is drawn without replacement from the same images, λ ~ Beta(α, α) for each image, and
    λ' = max(λ, 1 - λ) >= 1/2, so that the mixture stays closer to a (MixMatch, equations 8 to 11).
    Partners are of the same replica; everything else is drawn for the global batch.
    """
    seeds = draws.split(seed, 2)
    coefficient = rows(coefficients(rows.total, alpha, seeds[0]))
    # A permutation of the replica's rows: the order of random numbers.
    numbers = draws.uniform([rows.total], seeds[1])
    partner = tf.argsort(rows(numbers))

    def mixed(values):
        shape = [-1] + [1] * (len(values.shape) - 1)
        weight = tf.cast(tf.reshape(coefficient, shape), values.dtype)
        return weight * values + (1 - weight) * tf.gather(values, partner)

    return mixed(images), mixed(targets)


def coefficients(count: int, alpha: float, seed) -> tf.Tensor:
    """λ' = max(λ, 1 - λ) for λ ~ Beta(α, α), [count].

    As Beta(α, α) is symmetric about 1/2, λ' is its quantile at 1/2 + u/2 for u uniform in [0, 1).
    Read from a table: TensorFlow's own gamma draws cannot be compiled by XLA.
    """
    table = tf.constant(_quantiles(alpha), tf.float32)
    place = POINTS * draws.uniform([count], seed)
    below = tf.minimum(tf.cast(place, tf.int64), POINTS - 1)
    fraction = place - tf.cast(below, tf.float32)
    return (1 - fraction) * tf.gather(table, below) + fraction * tf.gather(table, below + 1)


@functools.cache
def _quantiles(alpha: float) -> np.ndarray:
    return stats.beta(alpha, alpha).ppf(0.5 + np.arange(POINTS + 1) / (2 * POINTS))
