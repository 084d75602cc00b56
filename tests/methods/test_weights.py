"""What a step does with the weights: averages that follow them, frozen ones, unused ones."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

import rat_tf
from rat_tf.networks import copies
from tests.methods.foreign import batch, classifier, trained
from tests.networks import foreign

layers = tf.keras.layers


def of_blocks(*kinds):
    tf.keras.utils.set_random_seed(2)
    return tf.keras.Sequential(
        [layers.Input((6, 6, 3)), layers.Flatten(), foreign.Block(*kinds), layers.Dense(3)]
    )


def parts(network):
    """The weights by the layers that have them, as no list of Keras' has them."""
    block, head = network.layers[1:]
    return [value for layer in (block.a, block.b, head) for value in layer.get_weights()]


def assert_follows(network, model, start):
    """The decay of the first step is 1/10."""
    assert any(np.any(a != b) for a, b in zip(start, parts(network)))
    for old, new, average in zip(start, parts(network), parts(model.averaged)):
        np.testing.assert_allclose(average, 0.1 * old + 0.9 * new, rtol=1e-4, atol=1e-6)


def test_averaged_weights_are_a_copy_that_follows():
    network = classifier()
    model = rat_tf.MeanTeacher(network, ema_decay=0.5)
    start = network.get_weights()
    for ours, theirs in zip(network.get_weights(), model.averaged.get_weights()):
        np.testing.assert_array_equal(ours, theirs)
    trained(model)  # the decay of the first step is 1/10
    for old, new, average in zip(start, network.get_weights(), model.averaged.get_weights()):
        np.testing.assert_allclose(average, 0.1 * old + 0.9 * new, rtol=1e-4, atol=1e-6)
    count, average = tf.Variable(7, dtype=tf.int64), tf.Variable(3, dtype=tf.int64)
    copies.follow(average, count, 0.9)
    assert average == 7
    with pytest.raises(ValueError, match="averaged: .*second network"):
        rat_tf.MeanTeacher(tf.keras.Sequential([tf.keras.layers.Dense(3)]))


@pytest.mark.parametrize("kinds", [("dense", "dense"), ("batch_norm", "batch_norm")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_averages_follow_a_network_with_a_frozen_layer_in_a_block(kinds, when):
    network = of_blocks(*kinds)
    network.layers[1].a.trainable = when != "before"
    model = rat_tf.Supervised(network, ema_decay=0.5)
    start = parts(network)
    for ours, theirs in zip(start, parts(model.averaged)):
        np.testing.assert_array_equal(ours, theirs)
    network.layers[1].a.trainable = False
    trained(model)
    assert_follows(network, model, start)


def test_averages_of_two_replicas_follow_a_frozen_layer_in_a_block(two_replicas):
    with two_replicas.scope():
        network = of_blocks("dense", "dense")
        network.layers[1].a.trainable = False
        model = rat_tf.Supervised(network, ema_decay=0.5)
        start = parts(network)
        data = batch().map(lambda labeled, unlabeled: labeled)
        trained(model, data, eager=False, steps_per_epoch=1)
    assert_follows(network, model, start)


def test_averages_of_another_kind_of_network_are_refused():
    model = rat_tf.Supervised(of_blocks("dense", "dense"), averaged=classifier(), ema_decay=0.5)
    with pytest.raises(ValueError, match="expected two networks of the same kind"):
        trained(model)


class Spare(layers.Layer):
    """A weight that is never used."""

    def build(self, input_shape):
        self.weight = self.add_weight("spare", (2,), initializer="ones")

    def call(self, x):
        return x


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_a_weight_without_a_gradient_is_named_and_left_alone(policy):
    """All others make the step that they make without it."""
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            expected = rat_tf.Supervised(classifier())
            logs = trained(expected, eager=False)
        model = rat_tf.Supervised(classifier(front=[Spare(name="spare")]), ema_decay=0.5)
        with pytest.warns(UserWarning, match="does not depend on spare/spare:0: not trained"):
            found = trained(model, eager=False)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    for name, value in logs.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
    spare, *others = model.network.layers[1:]
    for network in (model.network, model.averaged):
        np.testing.assert_array_equal(network.layers[1].weight, [1, 1])
    for ours, theirs in zip(others, expected.network.layers[1:], strict=True):
        for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_two_replicas_train_beside_a_weight_without_a_gradient(two_replicas):
    with two_replicas.scope():
        model = rat_tf.Supervised(classifier(front=[Spare()]))
        before = model.network.layers[2].get_weights()
        data = batch().map(lambda labeled, unlabeled: labeled)
        with pytest.warns(UserWarning, match="spare"):
            trained(model, data, eager=False, steps_per_epoch=1)
    assert np.any(before[0] != model.network.layers[2].get_weights()[0])


def test_a_loss_that_depends_on_no_weight_is_refused():
    network = classifier(front=[Spare()])
    for layer in network.layers[2:]:
        layer.trainable = False
    with pytest.raises(ValueError, match="depends on none of its trainable weights"):
        trained(rat_tf.Supervised(network))
