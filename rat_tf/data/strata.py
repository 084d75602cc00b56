"""Samples with the same shares of the classes as the whole."""

from __future__ import annotations

import numpy as np


def shares(sizes, count: int) -> np.ndarray:
    """Whole numbers that sum to `count`, in proportion to the sizes, by largest remainders."""
    sizes = np.asarray(sizes)
    exact = count * sizes / max(sizes.sum(), 1)
    counts = np.floor(exact).astype(int)
    # Rounding down leaves some over: the largest remainders get them.
    counts[np.argsort(counts - exact, kind="stable")[: count - counts.sum()]] += 1
    return counts


def first(order: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """The indices `order` with a stratified sample of `count` in front.

    `labels` [N] are those of all images. The sample has the first images of each class. Of every
    class at least one image is not in the sample, even if that makes it smaller.
    """
    members = [order[labels[order] == k] for k in np.unique(labels[order])]
    sizes = np.array([len(each) for each in members])
    counts = np.minimum(shares(sizes, count), sizes - 1)
    for k in np.argsort(counts - sizes, kind="stable"):  # what is missing, from large classes
        counts[k] += min(count - counts.sum(), sizes[k] - 1 - counts[k])
    chosen = np.concatenate([each[:n] for each, n in zip(members, counts)])
    front = np.isin(order, chosen)
    return np.concatenate([order[front], order[~front]])


def sample(labels: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Indices of a stratified sample of `count` of the N images, drawn by the seed, in order."""
    if count >= len(labels):
        return np.arange(len(labels))
    order = np.random.default_rng(seed).permutation(len(labels))
    counts = dict(zip(*np.unique(labels, return_counts=True)))
    wanted = dict(zip(counts, shares(list(counts.values()), count)))
    return np.sort(np.concatenate([order[labels[order] == k][:n] for k, n in wanted.items()]))
