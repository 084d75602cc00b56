"""Training batches as a pure function of (seed, step), and batches for evaluation."""

from __future__ import annotations

import hashlib

import numpy as np
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf.data import examples
from rat_tf.data.examples import Examples

LABELED, UNLABELED = 0, 1  # apart in the seeds of the two shuffles
SMALL = 512  # up to here sorting random numbers is faster than the shuffle of single indices


def check_replicas(labeled_batch: int, unlabeled_batch: int, replicas: int) -> None:
    """Uneven shares would bias the means over replicas: refuses them."""
    for flag, batch in (("labeled_batch", labeled_batch), ("unlabeled_batch", unlabeled_batch)):
        if batch % replicas:
            raise config_lib.UserError(
                f"--{flag}: expected a multiple of the {replicas} replicas, got {batch}"
            )


def indices(step, batch: int, size: int, seed: int, stream: int) -> tf.Tensor:
    """Indices of the batch of `step`, int32 [batch], into `size` examples.

    The stream is a concatenation of epochs, each a permutation of its own (stateless, without
    replacement), cut into batches that may reach over an epoch's end.
    """
    position = tf.cast(step, tf.int64) * batch + tf.range(batch, dtype=tf.int64)
    epoch, place = position // size, tf.cast(position % size, tf.int32)
    if size <= SMALL:
        first = epoch[0]
        epochs = first + tf.range(batch // size + 2, dtype=tf.int64)
        order = tf.argsort(tf.bitcast(_hash(seed, stream, epochs, size), tf.int64))
        return tf.gather_nd(order, tf.stack([tf.cast(epoch - first, tf.int32), place], axis=1))
    # The raw op: the public wrapper of TF 2.15 cannot take a seed for each index. It uses the low
    # bits of each of the three numbers of a seed only, 8 or so, hence the hash: consecutive numbers
    # would repeat after 256 epochs. And its default of 4 rounds leaves successive epochs
    # correlated; with 12 no test tells them from random permutations.
    return tf.raw_ops.RandomIndexShuffle(
        index=place, seed=_hash(seed, stream, epoch, 3), max_index=size - 1, rounds=12
    )


def _hash(seed: int, stream: int, epochs, width: int) -> tf.Tensor:
    """Numbers of each epoch, uint64 [epochs, width], by SplitMix64 started by seed and stream."""
    digest = hashlib.sha256(f"{seed} {stream}".encode()).digest()
    start = np.frombuffer(digest[:8], "<u8")[0]
    counter = tf.cast(epochs, tf.uint64)[:, tf.newaxis] * np.uint64(width)
    counter += np.arange(width, dtype=np.uint64)
    mixed = counter * np.uint64(0x9E3779B97F4A7C15) + start
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(mixed, np.uint64(shift))
        mixed = tf.bitwise.bitwise_xor(mixed, shifted) * np.uint64(factor)
    return mixed


def training(
    labeled: Examples,
    unlabeled: Examples,
    labeled_batch: int,
    unlabeled_batch: int,
    seed: int,
    start: int = 0,
    replicas: int = 1,
    first_replica: int = 0,
    all_replicas: int = 1,
    prefetch: int = tf.data.AUTOTUNE,
) -> tf.data.Dataset:
    """Endless ((images, labels), unlabelled images) of one replica after the other, from `start`.

    Batch sizes are global. Elements are those of `replicas` replicas, counted from
    `first_replica` out of `all_replicas`, in turn: each has its consecutive rows of the batch.
    """
    check_replicas(labeled_batch, unlabeled_batch, all_replicas)
    take_labeled, take_unlabeled = _taker(labeled), _taker(unlabeled)

    def rows(step, replica, batch, size, stream):
        each = batch // all_replicas
        if not batch:
            return tf.zeros([0], tf.int32)
        chosen = indices(step, batch, size, seed, stream)
        return tf.ensure_shape(chosen[replica * each : (replica + 1) * each], [each])

    def element(count):
        step, replica = count // replicas, tf.cast(count % replicas, tf.int32) + first_replica
        ours = rows(step, replica, labeled_batch, len(labeled), LABELED)
        theirs = rows(step, replica, unlabeled_batch, len(unlabeled), UNLABELED)
        return take_labeled(ours), take_unlabeled(theirs)[0]

    steps = tf.data.Dataset.range(start * replicas, tf.int64.max)
    return _mapped(steps, element, labeled, unlabeled).prefetch(prefetch)


def evaluation(found: Examples, batch: int = 256) -> tf.data.Dataset:
    """(images, labels) in order, each example once."""
    take = _taker(found)

    def element(start):
        return take(tf.range(start, tf.minimum(start + batch, len(found))))

    dataset = _mapped(tf.data.Dataset.range(0, len(found), batch), element, found)
    options = tf.data.Options()
    # There are no files to be shared out among workers, only elements.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


def _taker(found: Examples):
    """A function from indices to (images, labels), by copying rows out of the shared pixels."""
    pixels = examples.as_tensor(found.pixels)
    with tf.device("CPU"):
        rows, labels = tf.constant(found.rows), tf.constant(found.labels)
    return lambda index: (tf.gather(pixels, tf.gather(rows, index)), tf.gather(labels, index))


def _mapped(dataset, element, *sources: Examples) -> tf.data.Dataset:
    """In parallel where a disk makes one wait; from memory one thread is faster (benchmarks)."""
    if any(isinstance(source.pixels, np.memmap) for source in sources):
        return dataset.map(element, tf.data.AUTOTUNE, deterministic=True)
    return dataset.map(element)
