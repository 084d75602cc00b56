"""The random numbers of one training step, a function of (seed, step, name) alone.

They are drawn for the global batch and sliced to the rows of this replica, so that a run does not
depend on the number of replicas and can be resumed or replayed from any step.
"""

from __future__ import annotations

import zlib

import tensorflow as tf

ALGORITHM = "philox"  # explicit: the default differs between XLA and other devices


def seed_for(seed: int, step, name: str) -> tf.Tensor:
    """A stateless seed of shape [2] for the draw called `name` of step `step`."""
    fold_in = tf.random.experimental.stateless_fold_in
    key = fold_in(tf.constant([seed, 0], tf.int64), tf.cast(step, tf.int64), ALGORITHM)
    return fold_in(key, tf.constant(zlib.crc32(name.encode()), tf.int64), ALGORITHM)


class Rows:
    """The rows of this replica in tensors drawn for the global batch.

    A replica's batch is made of parts (labelled, unlabelled) of `sizes` images; the global batch
    has the parts of all replicas together, part after part.
    """

    def __init__(self, *sizes: int):
        context = tf.distribute.get_replica_context()
        self._replicas = context.num_replicas_in_sync if context else 1
        self._replica = context.replica_id_in_sync_group if context else 0
        self._sizes = sizes
        self.total = self._replicas * sum(sizes)

    def __call__(self, drawn: tf.Tensor) -> tf.Tensor:
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
