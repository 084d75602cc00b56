"""The digits that come with scikit-learn: real images and no download."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from sklearn import datasets, model_selection

from rat_tf.data import examples, listing, options


def find(config: options.DataOptions) -> listing.Listing:
    """scikit-learn's 1,797 handwritten digits, 8×8 grey; a stratified fifth is for testing."""
    bunch = datasets.load_digits()
    images = np.round(bunch.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    train, test = model_selection.train_test_split(
        np.arange(len(images)), test_size=0.2, stratify=bunch.target, random_state=0
    )

    def part(indices, name):
        def batches():
            dataset = tf.data.Dataset.from_tensor_slices((images[indices], bunch.target[indices]))
            return examples.decoded(dataset, config.image_size, config.channels)

        return [examples.Part(len(indices), batches, lambda: f"digits {name}")]

    shape = examples.fit(tf.constant(images[0]), config.image_size, config.channels).shape
    return listing.Listing(
        class_names=tuple(str(name) for name in bunch.target_names),
        image_shape=tuple(shape),
        train=part(train, "train"),
        test=part(test, "test"),
    )
