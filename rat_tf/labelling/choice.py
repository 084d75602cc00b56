"""Chooses images to label: uncertain or unstable, and different from each other.

This is diverse mini-batch active learning (Zhdanov, 2019), with RAT's stability as a second signal:
k-means over the candidates with the highest scores, weighted by their scores, and of every cluster
the image nearest to its centre.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn import cluster, preprocessing

from rat_tf.prediction import table

CANDIDATES = 10  # per image that is asked for
UNSURE = 0.8  # margins below are called uncertain


class Choice(NamedTuple):
    """Rows of the pool, the highest score first, and how many candidates each stands for."""

    rows: np.ndarray
    group_sizes: np.ndarray


def scores(probabilities: np.ndarray, stability: np.ndarray | None) -> np.ndarray:
    """1 - margin, plus 1 - stability where that is known, [N]; 0 for an image that is sure."""
    uncertain = 1 - table.margins(probabilities)
    return uncertain if stability is None else uncertain + (1 - stability)


def choose(scored: np.ndarray, features: np.ndarray, count: int, seed: int = 0) -> Choice:
    """`count` rows, or all of them if there are not more.

    Distances are between directions of features: their lengths depend on the contrast of an image.
    """
    order = np.argsort(-scored, kind="stable")
    if count >= len(order):
        return Choice(order, np.ones(len(order), int))
    candidates = order[: CANDIDATES * count]
    points = preprocessing.normalize(features[candidates].astype(np.float64))
    distinct = len(np.unique(points, axis=0))
    clusters = cluster.KMeans(min(count, distinct), n_init=1, random_state=seed)
    weights = scored[candidates] + 1e-6  # images that are all sure are all the same
    distances = clusters.fit_transform(points, sample_weight=weights)
    members = distances.argmin(axis=1)
    sizes = np.bincount(members, minlength=clusters.n_clusters)
    nearest = {}
    for position in np.argsort(distances.min(axis=1), kind="stable"):
        nearest.setdefault(members[position], position)
    chosen = {int(position): int(sizes[group]) for group, position in nearest.items()}
    for position in range(len(candidates)):  # copies of images leave clusters empty
        if len(chosen) >= count:
            break
        chosen.setdefault(position, 1)
    positions = sorted(chosen)  # candidates are ordered by their scores
    return Choice(candidates[positions], np.array([chosen[position] for position in positions]))


def why(probabilities, stability: float | None, draws: int, group_size: int, class_names) -> str:
    """Why an image is asked for, in words."""
    best, second = np.argsort(-probabilities, kind="stable")[:2]
    reasons = []
    if probabilities[best] - probabilities[second] < UNSURE:
        reasons.append(f"uncertain: {class_names[best]} or {class_names[second]}")
    if stability is not None and stability < 1:
        changes = round((1 - stability) * draws)
        reasons.append(f"unstable: changes under {changes} of {draws} transformations")
    if not reasons:
        reasons.append("rather sure, but less than the rest")
    if group_size > 1:
        reasons.append(f"stands for {group_size} similar images")
    return "; ".join(reasons)
