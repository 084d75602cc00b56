"""Predictions, stability and features of all images of a pool."""

from __future__ import annotations

import numpy as np
import tqdm

from rat_tf.data import examples
from rat_tf.prediction import classifier as classifier_lib
from rat_tf.prediction import inputs


def scan(
    classifier: classifier_lib.Classifier,
    found: examples.Examples,
    draws: int = 0,
    seed: int = 0,
) -> classifier_lib.Outputs:
    """The outputs of all images; stability of `draws` transformations."""
    parts, done = [], 0
    with tqdm.tqdm(total=len(found), unit=" images", disable=None) as bar:
        for names, images in inputs.of_examples(found, classifier.batch):
            parts.append(classifier.outputs(images, done, draws, seed))
            done += len(names)
            bar.update(len(names))
    return classifier_lib.Outputs(
        *(None if column[0] is None else np.concatenate(column) for column in zip(*parts))
    )
