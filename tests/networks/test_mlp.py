"""The perceptron against NumPy."""

import numpy as np

from rat_tf import networks


def test_logits_of_images_equal_numpy():
    images = np.random.default_rng(0).normal(size=(5, 3, 4, 2)).astype(np.float32)
    network = networks.build("mlp-7", 3, seed=2)
    logits = network(images, training=True, update_stats=False)
    found = images.reshape(5, -1).astype(np.float64)
    first, a, second, b, last, c = network.get_weights()
    assert first.shape == (24, 7) and second.shape == (7, 7) and last.shape == (7, 3)
    found = np.maximum(found @ first + a, 0)
    found = np.maximum(found @ second + b, 0) @ last + c
    np.testing.assert_allclose(logits, found, rtol=1e-5, atol=1e-5)
    assert not network.non_trainable_weights
