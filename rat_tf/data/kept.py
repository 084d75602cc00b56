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

    A set with validation images of its own keeps these, and needs no others: 0.
    """
    content = earlier.content
    if not content and earlier.hash == source.train.hash:  # written by the first version
        content = {part: texts(source.train, getattr(earlier, part)) for part in PARTS}
    validation, trained = (set(content.get(part, ())) for part in PARTS)
    if len(source.validation):
        if both := len(trained.intersection(texts(source.validation))):
            raise errors.UserError(
                f"--init_from: {both} of the validation images of this set have been trained with "
                "labels in that run; take them out of validation/, or train without --init_from"
            )
        return order, 0
    if not content:
        raise errors.UserError(
            "--init_from: the images have changed, and the split.json of that run, of an earlier "
            "version, does not tell which images were for validation; train it again"
        )
    names = texts(source.train, order)
    rank = [0 if name in validation else 2 if name in trained else 1 for name in names]
    counts = np.bincount(rank, minlength=3)
    usable = counts[0] + counts[1]
    if not usable:
        raise errors.UserError(
            "--init_from: the labels of all images of this set have been trained with in that run: "
            "expected images for validation, in validation/<class>/ or newly labelled, found none"
        )
    return order[np.argsort(rank, kind="stable")], int(np.clip(count, counts[0], usable))
