"""How many images a run looks at together follows what a step of its training takes."""

import types

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf.data import examples
from rat_tf.training import evaluation, loop

SMALL = {"labeled_batch": 4, "unlabeled_batch": 4}


def set_of(side, count=200):
    """Images that share their pixels, so that large ones take no memory."""
    pixels = np.zeros((1, side, side, 1), np.uint8)
    fingerprints = np.zeros((count, 8), np.uint8)
    return examples.Examples(pixels, np.zeros(count, int), np.zeros(count, int), fingerprints)


@pytest.mark.parametrize(
    "side, flags, replicas, expected",
    [
        (32, {}, 1, 64),
        (32, {}, 4, 64),
        (32, SMALL, 1, 64),
        (8, SMALL, 2, 64),
        (64, {}, 1, 64),  # a step takes 100
        (64, {}, 2, 50),
        (64, SMALL, 1, 16),  # the pixels of 64 small images
        (224, SMALL, 1, 8),
        (224, {**SMALL, "method": "supervised"}, 1, 8),
        (224, SMALL, 4, 2),
    ],
)
def test_the_adversary_is_examined_on_fewer_large_images(side, flags, replicas, expected):
    config = config_lib.Config(**flags)
    images = types.SimpleNamespace(unlabeled=set_of(side), labeled=set_of(side, 1))
    strategy = types.SimpleNamespace(num_replicas_in_sync=replicas)
    assert len(loop.examined_images(config, images, strategy)) == expected


@pytest.mark.parametrize("side, most", [(32, 100), (64, 25)])
def test_a_trained_run_is_evaluated_on_fewer_large_images_at_once(side, most):
    sizes = []

    def logits(images):
        sizes.append(images.shape[0])  # traced once for each size
        return tf.zeros([images.shape[0], 3])

    trained = types.SimpleNamespace(logits=logits)
    assert evaluation.predict(trained, set_of(side)).shape == (200, 3)
    assert sizes == [most]
