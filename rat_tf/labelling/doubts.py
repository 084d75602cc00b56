"""Labels that a model doubts: cross-validated predictions on its features.

The network has been trained with these labels and may have learned wrong ones by heart. A logistic
regression on its features, fitted without an image, says what the other images make of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn import linear_model, model_selection, pipeline, preprocessing

from rat_tf import errors

FOLDS = 5
# Strong: directions that the network has learned for a few images only must not count.
PENALTY = 100.0


class Doubts(NamedTuple):
    """Rows whose label is not the most probable class, the most doubtful first.

    `probabilities` [rows, K] are those of the regression that has not seen the image.
    """

    rows: np.ndarray
    probabilities: np.ndarray


def find(features: np.ndarray, labels: np.ndarray, classes: int, seed: int = 0) -> Doubts:
    """Images are ordered by how much more probable than their label another class is.

    Classes with a single image cannot be judged, and are left out.
    """
    counts = np.bincount(labels, minlength=classes)
    rows = np.flatnonzero(counts[labels] > 1)
    judged = np.unique(labels[rows])
    if len(judged) < 2:
        raise errors.UserError(
            "--suspicious: expected two labelled images each of two classes or more, found "
            f"{len(judged)} such classes"
        )
    folds = model_selection.StratifiedKFold(
        min(FOLDS, counts[judged].min()), shuffle=True, random_state=seed
    )
    regression = pipeline.make_pipeline(
        preprocessing.StandardScaler(),
        linear_model.LogisticRegression(C=1 / PENALTY, class_weight="balanced", max_iter=1000),
    )
    probabilities = np.zeros((len(rows), classes))
    probabilities[:, judged] = model_selection.cross_val_predict(
        regression, features[rows], labels[rows], cv=folds, method="predict_proba"
    )
    doubt = probabilities.max(-1) - probabilities[np.arange(len(rows)), labels[rows]]
    order = np.argsort(-doubt, kind="stable")
    order = order[doubt[order] > 0]
    return Doubts(rows[order], probabilities[order])
