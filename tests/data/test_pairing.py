"""Two datasets as one: order, repetition, and what is refused."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import rat_tf


def numbered(count, size, **options):
    """Images that are their own number, with labels of ten times it, in batches."""
    numbers = np.arange(count, dtype=np.float32)
    images = np.broadcast_to(numbers[:, None, None, None], (count, 2, 2, 1))
    options = {"drop_remainder": True, **options}
    return tf.data.Dataset.from_tensor_slices((images, 10 * numbers)).batch(size, **options)


def values(images):
    return list(images[:, 0, 0, 0].numpy())


@pytest.mark.parametrize("labels", [False, True])
def test_each_is_repeated_on_its_own_in_its_order(labels):
    unlabeled = numbered(7, 3)
    if not labels:
        unlabeled = unlabeled.map(lambda x, y: x)
    found = itertools.islice(rat_tf.pair(numbered(4, 2), unlabeled), 3)
    rows = [(values(x), list(y.numpy()), values(u)) for (x, y), u in found]
    assert rows == [
        ([0, 1], [0, 10], [0, 1, 2]),
        ([2, 3], [20, 30], [3, 4, 5]),
        ([0, 1], [0, 10], [0, 1, 2]),
    ]


def test_weights_stay_with_their_labels():
    weighted = numbered(4, 2).map(lambda x, y: (x, y, y / 2))
    (_, _, weights), _ = next(iter(rat_tf.pair(weighted, numbered(7, 3))))
    assert list(weights.numpy()) == [0, 5]


@pytest.mark.parametrize(
    "labeled, unlabeled, message",
    [
        (numbered(4, 2), numbered(7, 3, drop_remainder=False), "unlabeled: .*drop_remainder=True"),
        (numbered(4, 2, drop_remainder=False), numbered(7, 3), "labeled: .*drop_remainder=True"),
        (numbered(4, 2).unbatch(), numbered(7, 3), "labeled: .*batches"),
        (numbered(4, 2).map(lambda x, y: x), numbered(7, 3), r"labeled: .*\(images, labels\)"),
        (np.zeros(3), numbered(7, 3), "labeled: .*tf.data.Dataset, got ndarray"),
    ],
)
def test_what_cannot_be_paired_is_refused(labeled, unlabeled, message):
    with pytest.raises(ValueError, match=message):
        rat_tf.pair(labeled, unlabeled)
