"""The supervised step and the evaluation against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from rat_tf import methods, networks
from rat_tf.data import augment

RNG = np.random.default_rng(0)
POINTS, LABELS = RNG.integers(0, 256, (7, 4), np.uint8), RNG.integers(0, 3, 7)
UNLABELED = np.zeros((0, 4), np.uint8)


@pytest.fixture
def model():
    """An MLP of 4-6-6-3 units; with this optimiser a step subtracts the gradient."""
    network = networks.MLP(6, 3, seed=1)
    scale = tf.keras.layers.Rescaling(1 / 127.5, -1)
    model = methods.Supervised(network, scale, augment.Augmentation())
    model.compile(tf.keras.optimizers.SGD(1.0))
    model(POINTS)
    return model


def logits(weights):
    """Dense, ReLU, dense, ReLU, dense."""
    x = POINTS / 127.5 - 1
    for i, (kernel, bias) in enumerate(zip(weights[::2], weights[1::2])):
        x = (np.maximum(x, 0) if i else x) @ kernel + bias
    return x


def cross_entropy(weights):
    return -np.mean(special.log_softmax(logits(weights), axis=1)[np.arange(7), LABELS])


def central_differences(function, weights, step=1e-6):
    """Gradient of `function` of a list of float64 arrays."""
    gradients = [np.zeros_like(w) for w in weights]
    for w, gradient in zip(weights, gradients):
        for i in np.ndindex(w.shape):
            old = w[i]
            w[i] = old + step
            high = function(weights)
            w[i] = old - step
            gradient[i] = (high - function(weights)) / (2 * step)
            w[i] = old
    return gradients


def test_step_descends_the_cross_entropy(model):
    weights = [np.float64(w) for w in model.network.get_weights()]
    expected = central_differences(cross_entropy, weights)
    batch = (POINTS, LABELS), UNLABELED
    logs = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history
    assert model.optimizer.iterations == 1
    assert sum(np.any(g != 0) for g in expected) == 6
    for old, new, gradient in zip(weights, model.network.get_weights(), expected):
        np.testing.assert_allclose(old - new, gradient, rtol=1e-4, atol=1e-6)
    size = np.sqrt(sum(np.sum(g**2) for g in expected))
    loss = cross_entropy(weights)
    values = {"loss": loss, "cross_entropy": loss, "gradient_norm": size, "learning_rate": 1}
    for name, value in values.items():
        np.testing.assert_allclose(logs[name], [value], rtol=1e-5, err_msg=name)


def test_evaluation_counts_every_image_once(model):
    """Batches of 4 and 3 images: the mean over images, not over batches."""
    weights = model.network.get_weights()
    dataset = tf.data.Dataset.from_tensor_slices((POINTS, LABELS)).batch(4)
    result = model.evaluate(dataset, return_dict=True, verbose=0)
    wrong = np.mean(logits(weights).argmax(axis=1) != LABELS)
    assert 0 < wrong < 1
    np.testing.assert_allclose(result["error"], wrong, rtol=1e-6)
    np.testing.assert_allclose(result["loss"], cross_entropy(weights), rtol=1e-5)


def test_learning_rate_is_that_of_the_step(model):
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([4], [0.5, 0.25])
    model.compile(tf.keras.optimizers.SGD(schedule))
    batches = tf.data.Dataset.from_tensors(((POINTS, LABELS), UNLABELED))
    rates = []
    for step in (0, 4, 5):
        model.optimizer.iterations.assign(step)
        rates += model.fit(batches, verbose=0).history["learning_rate"]
    np.testing.assert_allclose(rates, [0.5, 0.5, 0.25])
