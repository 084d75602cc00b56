"""The random numbers of one training step, a function of (seed, step, name) alone.

They are drawn for the global batch and sliced to the rows of this replica: they do not depend on
the number of replicas, and a run can be resumed or replayed from any step. Nor do they depend on
the device: XLA and TensorFlow's kernels draw the same bits from Philox, but make other numbers of
them, so `uniform` and `normal` do that here, in the way of the kernels.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
import tensorflow as tf

ALGORITHM = "philox"  # explicit: the default differs between XLA and other devices


def fold_in(seed, data) -> tf.Tensor:
    """Another stateless seed of shape [2], from a seed and a number."""
    return tf.random.experimental.stateless_fold_in(seed, data, ALGORITHM)


def seed_for(seed: int, step, name: str) -> tf.Tensor:
    """A stateless seed of shape [2] for the draw called `name` of step `step`."""
    key = fold_in(tf.constant([seed, 0], tf.int64), tf.cast(step, tf.int64))
    return fold_in(key, tf.constant(zlib.crc32(name.encode()), tf.int64))


def split(seed, count: int) -> tf.Tensor:
    """Stateless seeds, [count, 2]."""
    return tf.random.split(seed, count, ALGORITHM)


def integers(shape, seed, low: int, high: int) -> tf.Tensor:
    """Integers from [low, high), int64."""
    return tf.random.stateless_uniform(shape, seed, low, high, tf.int64, alg=ALGORITHM)


def uniform(shape, seed) -> tf.Tensor:
    """Numbers from [0, 1), float32: 23 bits each."""
    bits = tf.random.stateless_uniform(shape, seed, None, None, tf.int32, alg=ALGORITHM)
    one_to_two = (bits & 0x7FFFFF) | 0x3F800000  # as the mantissa of a number in [1, 2)
    return tf.bitcast(one_to_two, tf.float32) - 1


def normal(shape, seed, dtype=tf.float32) -> tf.Tensor:
    """Standard normal numbers, by Box and Muller in float32."""
    count = math.prod(shape)
    numbers = uniform([(count + 1) // 2, 2], seed)
    radius = tf.sqrt(-2 * tf.math.log(tf.maximum(numbers[:, 0], 1e-7)))
    angle = 2 * math.pi * numbers[:, 1]
    pairs = tf.stack([radius * tf.sin(angle), radius * tf.cos(angle)], axis=1)
    return tf.cast(tf.reshape(tf.reshape(pairs, [-1])[:count], shape), dtype)


class Rows:
    """The rows of this replica in tensors drawn for the global batch.

    A replica's batch is made of parts (labelled, unlabelled) of `sizes` images; the global batch
    has the parts of all replicas together, part after part. With `only` these are taken of the
    replica's rows.
    """

    def __init__(self, *sizes: int, only: np.ndarray | None = None):
        context = tf.distribute.get_replica_context()
        self._replicas = context.num_replicas_in_sync if context else 1
        self._replica = context.replica_id_in_sync_group if context else 0
        self._sizes, self._only = sizes, only
        self.total = self._replicas * sum(sizes)

    def __call__(self, drawn: tf.Tensor) -> tf.Tensor:
        rows = self._of_replica(drawn)
        return rows if self._only is None else tf.gather(rows, self._only)

    def _of_replica(self, drawn: tf.Tensor) -> tf.Tensor:
        if self._replicas == 1:
            return drawn
        start, parts = 0, []
        for size in self._sizes:
            begin = start + self._replica * size
            parts.append(drawn[begin : begin + size])
            start += self._replicas * size
        rows = tf.concat(parts, axis=0)
        rows.set_shape([sum(self._sizes), *drawn.shape[1:]])
        return rows
