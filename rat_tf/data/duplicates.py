"""Images that occur more than once, by their fingerprints: with two labels, or in two parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rat_tf.data import examples


def found(data) -> Iterator[str]:
    """What is wrong with the images of a `loading.Data`, a line for each."""
    labeled = data.train.take(np.flatnonzero(data.train.labels != examples.UNLABELED))
    numbers = _numbers(labeled)
    _, which = np.unique(numbers, return_inverse=True)
    order = np.lexsort((labeled.labels, which))
    same = which[order[1:]] == which[order[:-1]]
    pairs = np.flatnonzero(same & (labeled.labels[order[1:]] != labeled.labels[order[:-1]]))
    if len(pairs):
        both = np.sort([order[pairs], order[pairs + 1]], axis=0)
        first, second = map(labeled.name, labeled.rows[both[:, both[0].argmin()]])
        yield (
            f"{len(np.unique(which[order[pairs]])):,} images have two labels, such as {first} and "
            f"{second}: keep the right one"
        )
    for name in ("validation", "test"):
        part = getattr(data, name)
        # By fingerprint: before the split, validation images are training images, too.
        seen = np.concatenate([_numbers(data.labeled), _numbers(data.unlabeled)])
        if shared := np.isin(_numbers(part), seen).sum():
            yield f"training sees copies of {shared:,} of the {len(part):,} {name} images"


def _numbers(some: examples.Examples) -> np.ndarray:
    """Fingerprints as numbers, which NumPy compares faster than rows."""
    return np.ascontiguousarray(some.fingerprints).view("<u8").ravel()
