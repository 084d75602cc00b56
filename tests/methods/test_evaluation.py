"""Evaluation and prediction of few images on several replicas, against plain Keras on one."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import networks
from rat_tf.methods import supervised


@pytest.mark.parametrize("count", [1, 5])  # batches of 4: the last one leaves a replica without
def test_a_replica_without_images(two_replicas, count):
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (count, 8, 8, 3)).astype(np.float32)
    labels = np.arange(count) % 3

    def made():
        return networks.build("wrn-10-1", 3, 0, image_shape=(8, 8, 3))

    plain = made()
    plain(images)
    expected = plain.predict(images, verbose=0)
    with two_replicas.scope():
        model = supervised.Supervised(made())
        model.compile("sgd")
    model(images[:1])
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(4)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), expected, atol=1e-5)
    found = model.evaluate(dataset, return_dict=True, verbose=0)
    assert found["error"] == pytest.approx(np.mean(expected.argmax(1) != labels))
    log_p = expected - np.log(np.exp(expected).sum(1, keepdims=True))
    assert found["loss"] == pytest.approx(-log_p[np.arange(count), labels].mean(), rel=1e-4)
