"""Validation images that stay validation, by content, when labels are added to a set.

A run that starts from the weights of an earlier one (--init_from) must not validate on images whose
labels these weights have been trained with, and must not train on images that have selected them.
"""

from __future__ import annotations

import numpy as np

from rat_tf import errors
from rat_tf.data import examples, sources

PARTS = ("validation", "labeled")  # whose fingerprints a split keeps


def texts(found: examples.Examples, indices=slice(None)) -> list[str]:
    """The fingerprints of images as text."""
    return [row.tobytes().hex() for row in found.fingerprints[indices]]


def first(order, count: int, source: sources.Source, earlier) -> tuple[np.ndarray, int]:
    """Indices of labelled images in a new order, and how many of them are for validation.

    First the validation images of the `earlier` split, then images that had no label there, then
    those whose labels have been trained with. The latter are not used for validation, and all of
    the former are, even if that makes another number than `count`. Copies of an image, in other
    files, count as the same image.
    """
    content = earlier.content
    if not content and earlier.hash == source.train.hash:  # written by the first version
        content = {part: texts(source.train, getattr(earlier, part)) for part in PARTS}
    if not content:
        raise errors.UserError(
            "--init_from: the images have changed, and the split.json of that run, of an earlier "
            "version, does not tell which images were for validation; train it again"
        )
    names = texts(source.train, order)
    validation, trained = (set(content.get(part, ())) for part in PARTS)
    rank = [0 if name in validation else 2 if name in trained else 1 for name in names]
    counts = np.bincount(rank, minlength=3)
    usable = counts[0] + counts[1]
    return order[np.argsort(rank, kind="stable")], int(np.clip(count, counts[0], usable))
