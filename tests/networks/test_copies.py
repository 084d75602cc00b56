"""Weights from one network to another of its kind, whatever of either is frozen."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf.networks import backbone, copies
from tests.networks import foreign

layers = tf.keras.layers
INPUTS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


def functional(*parts):
    inputs = x = tf.keras.Input((4,))
    for part in parts:
        x = part(x)
    return tf.keras.Model(inputs, x)


class Own(tf.keras.Model):
    """Layers in a list, and weights of its own: in a list, in a module, and a metric."""

    def __init__(self):
        super().__init__()
        self.scales = []
        self.blocks = [foreign.Block("batch_norm", "dense"), layers.Dense(4)]
        self.seen = tf.keras.metrics.Mean()
        self.shift = self.add_weight("shift", (4,))
        self.count = self.add_weight("count", (), trainable=False)
        self.module = tf.Module()
        self.module.moved, self.module.scale = tf.Variable(0.0, False), tf.Variable(1.0)
        self.scales += [tf.Variable(0.5, trainable=False), tf.Variable(2.0)]

    def call(self, x):
        for block in self.blocks:
            x = block(x * self.scales[0] * self.module.scale) + self.shift
        return x * self.scales[1] + self.module.moved


class Tied(layers.Layer):
    """Takes the kernel of another layer for its own, which both then list."""

    def __init__(self, dense):
        super().__init__()
        self.dense = dense

    def build(self, input_shape):
        self.kernel = self.dense.kernel
        self.bias = self.add_weight("bias", (4,), trainable=False)

    def call(self, x):
        return x @ tf.transpose(self.kernel) + self.bias


def tied():
    dense = layers.Dense(4)
    return functional(dense, foreign.Block("dense", "batch_norm"), dense, Tied(dense))


NETWORKS = {
    "functional": lambda: functional(foreign.Block("dense", "dense"), layers.Dense(3)),
    "sequential": lambda: tf.keras.Sequential(
        [layers.Input((4,)), foreign.Block("batch_norm", "batch_norm"), layers.Dense(3)]
    ),
    "random": lambda: functional(
        layers.GaussianNoise(0.1), foreign.Block("dropout", "dense"), layers.Dropout(0.5)
    ),
    "nested": lambda: functional(
        functional(foreign.Block("dense", "batch_norm"), layers.Dense(4)),
        foreign.Block("batch_norm", "block"),
    ),
    "subclassed": Own,
    "tied": tied,
}


def made(kind, seed=0):
    """A network whose weights all have values of their own."""
    network = NETWORKS[kind]()
    network(INPUTS)
    rng = np.random.default_rng(seed)
    network.set_weights([rng.uniform(0.5, 1.5, w.shape) for w in network.get_weights()])
    return network


def freezable(network):
    """All layers inside, those of blocks, too."""
    return [module for module in network.submodules if isinstance(module, layers.Layer)]


def ids(weights):
    return [id(weight) for weight in weights]


@pytest.mark.parametrize("kind", NETWORKS)
def test_no_weight_moves_when_something_is_frozen(kind):
    network = made(kind)
    before = ids(copies.in_order(network))
    assert sorted(before) == sorted(ids(network.weights)) and len(before) == len(set(before))
    for layer in [*freezable(network), network]:
        layer.trainable = False
        assert ids(copies.in_order(network)) == before
        layer.trainable = True
    assert ids(copies.in_order(network)) == before


@pytest.mark.parametrize("layer", ["block", "tied"])
def test_the_order_is_keras_own_of_what_is_trained(layer):
    """So do files of weights have it."""
    network = foreign.Block("batch_norm", "block") if layer == "block" else tied()
    network(INPUTS)
    assert ids(copies.in_order(network)) == ids(network.weights)
    (network if layer == "block" else network.layers[2]).a.trainable = False
    assert ids(copies.in_order(network)) != ids(network.weights)


@pytest.mark.parametrize("kind", NETWORKS)
def test_weights_are_assigned_whatever_is_frozen(kind):
    source, network = made(kind), made(kind, seed=1)
    expected = source(INPUTS)
    assert np.abs(network(INPUTS) - expected).max() > 0.01
    for each, every in ((source, 2), (network, 3)):
        for layer in freezable(each)[1::every]:
            layer.trainable = False
    copies.assign(network, source)
    np.testing.assert_array_equal(network(INPUTS), expected)


def test_a_network_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"same kind, but .*\(4, 4\), .* and .*\(4,\)"):
        copies.assign(made("functional"), made("sequential"))


def test_a_copy_is_frozen_where_its_original_is():
    network = functional(foreign.Block("dense", "batch_norm"), layers.Dense(3))
    network.layers[1].b.trainable = network.layers[2].trainable = False
    copy = copies.copied(network)
    assert [layer.trainable for layer in (copy.layers[1].a, copy.layers[1].b)] == [True, False]
    assert not copy.layers[2].trainable
    np.testing.assert_array_equal(copy(INPUTS), network(INPUTS))
    copy(INPUTS, training=True)  # statistics of its own are those of the original
    np.testing.assert_array_equal(copy(INPUTS), network(INPUTS))


@pytest.mark.parametrize("frozen", ["source", "network", "file"])
def test_a_backbone_of_blocks_gets_weights_whatever_is_frozen(frozen, tmp_path):
    source, network = made("sequential"), made("sequential", seed=1)
    path = str(tmp_path / "source.h5")
    if frozen != "file":
        source.save_weights(path)
    {"network": network}.get(frozen, source).layers[0].a.trainable = False
    if frozen == "file":
        source.save_weights(path)
    expected = source.layers[0](INPUTS)
    for weights in (backbone.of_model(source), backbone.read(path)):
        network.layers[0].set_weights([0 * w for w in network.layers[0].get_weights()])
        backbone.assign(network, weights, "w.h5")
        np.testing.assert_array_equal(network.layers[0](INPUTS), expected)
