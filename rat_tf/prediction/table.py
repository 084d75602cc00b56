"""Predictions as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

COLUMNS = ("file", "class", "probability", "margin", "stability")


def margins(probabilities: np.ndarray) -> np.ndarray:
    """The largest probability minus the second largest, [N]."""
    if probabilities.shape[-1] < 2:
        return probabilities[..., 0]
    second, first = np.partition(probabilities, -2, axis=-1)[:, -2:].T
    return first - second


def rows(names, class_names, probabilities, stability=None) -> Iterator[dict]:
    """A row per image; a stability that is not known is blank."""
    best = probabilities.argmax(-1)
    margin = margins(probabilities)
    for i, name in enumerate(names):
        yield {
            "file": name,
            "class": class_names[best[i]],
            "probability": f"{probabilities[i, best[i]]:.6f}",
            "margin": f"{margin[i]:.6f}",
            "stability": "" if stability is None else f"{stability[i]:g}",
        }
