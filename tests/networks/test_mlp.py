"""The perceptron against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

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


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_logits_are_float32_under_a_mixed_precision_policy(policy):
    images = np.random.default_rng(0).normal(size=(5, 3, 4, 2)).astype(np.float32)
    expected = networks.build("mlp-7", 3, seed=2)(images)
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        network = networks.build("mlp-7", 3, seed=2)
        logits, features = network(images), network.features(images)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    assert (logits.dtype, features.dtype) == (tf.float32, policy.removeprefix("mixed_"))
    assert {w.dtype for w in network.weights} == {tf.float32}
    np.testing.assert_allclose(logits, expected, rtol=0.05, atol=0.05)
    # The last layer is computed in float32, not only cast to it.
    kernel, bias = map(np.float64, network.linear.get_weights())
    exact = np.float64(tf.cast(features, tf.float32)) @ kernel + bias
    np.testing.assert_allclose(logits, exact, rtol=1e-5, atol=1e-5)
