"""Training batches as a pure function of (seed, step), and batches for evaluation."""

from __future__ import annotations

import hashlib

import numpy as np
import tensorflow as tf

from rat_tf import errors, memory
from rat_tf.data import examples
from rat_tf.data.examples import Examples

LABELED, UNLABELED = 0, 1  # give the two shuffles different seeds
PREFETCH = 2  # batches per replica
EVALUATED = 256  # images at once, of up to 32×32 pixels
SMALL = 2048  # up to this size, sorting random numbers is faster than shuffling indices


def check_replicas(labeled_batch: int, unlabeled_batch: int, replicas: int) -> None:
    """Refuses batches that do not divide evenly, which would bias means over replicas."""
    for flag, batch in (("labeled_batch", labeled_batch), ("unlabeled_batch", unlabeled_batch)):
        if batch % replicas:
            raise errors.UserError(
                f"--{flag}: expected a multiple of the {replicas} replicas, got {batch}"
            )


def indices(start, count: int, size: int, seed: int, stream: int) -> tf.Tensor:
    """Indices into `size` examples, int32 [count], from position `start` of the stream on.

    The stream is a concatenation of epochs, each with its own permutation (stateless, without
    replacement). Batches are consecutive parts of it and may cross the end of an epoch.
    """
    start = tf.cast(start, tf.int64)
    first = start // size
    epochs = first + tf.range(count // size + 2, dtype=tf.int64)  # all that may be touched
    position = tf.cast(start - first * size, tf.int32) + tf.range(count)
    if size <= SMALL:
        order = tf.argsort(tf.bitcast(_hash(seed, stream, epochs, size), tf.int64))
        return tf.gather(tf.reshape(order, [-1]), position)
    # The raw op: the public wrapper of TF 2.15 cannot take a seed for each index. It uses no
    # more than the low bits of the three numbers of a seed (8 of each, measured up to 65,000
    # examples), hence the hash: epochs counted 0, 1, 2… would repeat after 256. And its default of
    # 4 rounds leaves successive epochs correlated; with 12 the tests find nothing.
    seeds = tf.gather(_hash(seed, stream, epochs, 3), position // size)
    return tf.raw_ops.RandomIndexShuffle(
        index=position % size, seed=seeds, max_index=size - 1, rounds=12
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
    prefetch: int = PREFETCH,
) -> tf.data.Dataset:
    """Endless ((images, labels), unlabelled images) of one replica after the other, from `start`.

    Batch sizes are global. Elements are those of `replicas` replicas, counted from
    `first_replica` out of `all_replicas`, in turn: each has its consecutive rows of the batch.
    `prefetch` steps are computed in advance.
    """
    check_replicas(labeled_batch, unlabeled_batch, all_replicas)
    ours, theirs = _Reader(labeled), _Reader(unlabeled)

    def share(turn, batch, size, stream):
        """Indices of one replica at one step."""
        if not batch:  # then the set may be empty, too
            return tf.zeros([0], tf.int32)
        step, replica = turn // replicas, first_replica + turn % replicas
        each = batch // all_replicas
        return indices(step * batch + replica * each, each, size, seed, stream)

    def element(turn):
        index = share(turn, labeled_batch, len(labeled), LABELED)
        other = share(turn, unlabeled_batch, len(unlabeled), UNLABELED)
        return (ours.images(index), ours.labels(index)), theirs.images(other)

    # An infinite dataset, so that a cluster of workers keeps the static batch shapes.
    dataset = tf.data.Dataset.counter(start * replicas).map(element)
    return dataset.prefetch(prefetch * replicas).with_options(_options())


def balanced(labels: np.ndarray) -> np.ndarray:
    """Weights of the classes, N / (K · N_k), float32 [K]: every class has the same sum of weights.

    `labels` [N] have all K classes.
    """
    counts = np.bincount(labels)
    return (len(labels) / (len(counts) * counts)).astype(np.float32)


def weighted(dataset: tf.data.Dataset, weights: np.ndarray) -> tf.data.Dataset:
    """((images, labels, weights), unlabelled images) of a dataset without weights, by class."""

    def element(labeled, unlabeled):
        return (*labeled, tf.gather(weights, labeled[1])), unlabeled

    return dataset.map(element)


def evaluation(found: Examples, batch: int | None = None, replicas: int = 1) -> tf.data.Dataset:
    """(images, labels) in order, each example once; of large images fewer at once.

    Keras shares a `batch` among the replicas; each gets as many images as one alone would.
    """
    batch = batch or replicas * memory.at_once(EVALUATED, found.image_shape)
    reader = _Reader(found)

    def element(start):
        index = tf.range(start, tf.minimum(start + batch, len(found)))
        return reader.images(index), reader.labels(index)

    dataset = tf.data.Dataset.range(0, len(found), batch).map(element)
    options = _options()
    # There are no files to shard, only elements.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.prefetch(PREFETCH).with_options(options)


def _options() -> tf.data.Options:
    """One thread for the few short operations of a batch: more threads take longer."""
    options = examples.options()
    options.threading.private_threadpool_size = 1
    return options


class _Reader:
    """Examples as tensors; pixels are shared, not copied, until rows are read."""

    def __init__(self, found: Examples):
        self._pixels = examples.as_tensor(found.pixels)
        with tf.device("CPU"):
            self._rows, self._labels = tf.constant(found.rows), tf.constant(found.labels)

    def labels(self, index) -> tf.Tensor:
        return tf.gather(self._labels, index)

    def images(self, index) -> tf.Tensor:
        return tf.gather(self._pixels, tf.gather(self._rows, index))
