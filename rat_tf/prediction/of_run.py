"""The classifier of a run folder, with stability and features."""

from __future__ import annotations

import numpy as np
import scipy.special
import tensorflow as tf

from rat_tf.networks import features
from rat_tf.prediction import classifier, stability
from rat_tf.training import build, run_folder, weights


class OfRun(classifier.Classifier):
    """The classifier of a run folder."""

    def __init__(self, folder: str, which: str = "best", allow_code: bool = False):
        run = run_folder.Run(folder)
        config = run.config()
        self.trained = weights.load(run, which, allow_code)
        self.class_names = self.trained.class_names
        self.image_shape = self.trained.image_shape
        #: None for a method without transformations.
        self.transform = None if config.used_transforms is None else build.transform(config)
        self._both = features.with_features(self.trained.network)
        self._function = tf.function(self._compute)

    def _compute(self, images, start, draws, seed):
        images = self.trained.preprocessing(images)
        found, clean = self._both(images)
        if not draws:
            return clean, found
        stays = stability.share(
            self.transform, lambda x: self._both(x)[1], images, clean, start, draws, seed
        )
        return clean, found, stays

    def outputs(self, images, start=0, draws=0, seed=0):
        count = len(images)
        # A few sizes, so that not every number of images makes a graph of its own.
        size = min(1 << (count - 1).bit_length(), self.batch) if count > 1 else 1
        padded = images[np.minimum(np.arange(size), count - 1)]
        draws = draws if self.transform is not None else 0
        found = self._function(tf.constant(padded), tf.constant(start, tf.int64), draws, seed)
        clean, learned, *stays = (each[:count].numpy() for each in found)
        probabilities = scipy.special.softmax(clean.astype(np.float64), axis=-1)
        return classifier.Outputs(
            probabilities.astype(np.float32), stays[0] if stays else None, learned
        )
