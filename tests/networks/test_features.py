"""Features of our networks and of foreign ones: the last layer makes the outputs of them."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import networks
from rat_tf.networks import features
from tests.data import make

IMAGES = make.pixels(3, (8, 8, 3)).astype(np.float32) / 127.5 - 1


@pytest.mark.parametrize("name, size", [("wrn-10-1", 64), ("tiny", 16), ("mlp-5", 5)])
def test_of_our_networks(name, size):
    network = networks.build(name, 4)
    outputs = network(IMAGES).numpy()
    found, again = features.with_features(network)(IMAGES)
    assert found.shape == (3, size)
    kernel, bias = network.linear.get_weights()
    np.testing.assert_allclose(found.numpy() @ kernel + bias, outputs, atol=1e-5)
    np.testing.assert_array_equal(again, outputs)


def foreign(*last):
    layers = [tf.keras.layers.Conv2D(6, 3), tf.keras.layers.GlobalAveragePooling2D(), *last]
    return tf.keras.Sequential([tf.keras.layers.Input((8, 8, 3)), *layers])


@pytest.mark.parametrize("last", [[], [tf.keras.layers.Softmax()]])
def test_of_a_functional_model(last):
    network = foreign(tf.keras.layers.Dense(4), *last)
    found, outputs = features.with_features(network)(IMAGES)
    pooled = tf.reduce_mean(network.layers[0](IMAGES), axis=[1, 2])
    np.testing.assert_allclose(found, pooled, atol=1e-6)
    np.testing.assert_array_equal(outputs, network(IMAGES))


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = foreign(tf.keras.layers.Dense(4))

    def call(self, images, training=False):
        return self.inner(images)


def test_models_that_do_not_tell_give_their_outputs():
    for network in (foreign(), Subclassed()):
        found, outputs = features.with_features(network)(IMAGES)
        np.testing.assert_array_equal(found, outputs)
        np.testing.assert_array_equal(outputs, network(IMAGES))
