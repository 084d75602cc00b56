"""Labelled and unlabelled datasets of one's own, as one dataset to train on."""

from __future__ import annotations

import tensorflow as tf


def pair(labeled: tf.data.Dataset, unlabeled: tf.data.Dataset) -> tf.data.Dataset:
    """Elements ((images, labels), unlabelled images) for `fit`, without end.

    Each dataset is repeated on its own, and neither is reordered: shuffle before. Batches may have
    any two sizes, but each always the same one.

    Args:
      labeled: batches (images, labels) or (images, labels, sample weights).
      unlabeled: batches of images, or tuples that begin with them.
    """
    for name, dataset in (("labeled", labeled), ("unlabeled", unlabeled)):
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(f"{name}: expected a tf.data.Dataset, got {type(dataset).__name__}")
        for part in tf.nest.flatten(dataset.element_spec):
            if part.shape.rank == 0 or part.shape[:1] == [None] or part.shape.rank is None:
                raise ValueError(
                    f"{name}: expected batches of one size, got {part}; use "
                    "batch(…, drop_remainder=True)"
                )
    spec = labeled.element_spec
    if not (isinstance(spec, tuple) and len(spec) in (2, 3)):
        raise ValueError(
            "labeled: expected (images, labels) or (images, labels, sample weights), got elements "
            f"{spec}"
        )
    images = unlabeled.map(lambda *element: element[0])
    return tf.data.Dataset.zip((labeled.repeat(), images.repeat()))
