"""The features of a classifier: what its last layer sees of an image."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


def with_features(network: tf.keras.Model) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """A function from images, as the network takes them, to features [B, F] and outputs [B, K].

    One pass in inference mode. Features of our networks are the activations before the linear
    layer, those of functional and sequential models the input of the last layer with weights. Other
    models have none that can be told: their outputs take the place.
    """
    if hasattr(network, "features") and hasattr(network, "linear"):

        def ours(images):
            found = network.features(images, training=False)
            return found, network.linear(found)

        return ours
    last = _last_with_weights(network)
    if last is None:
        return lambda images: 2 * (network(images, training=False),)
    both = tf.keras.Model(network.inputs, [last.input, network.outputs[0]])

    def foreign(images):
        found, outputs = both(images, training=False)
        return tf.reshape(found, [tf.shape(found)[0], -1]), outputs

    return foreign


def _last_with_weights(network):
    """The last layer with weights of a functional model, a dense one used once; else None."""
    if not getattr(network, "_is_graph_network", False) or len(network.outputs) != 1:
        return None
    for layer in reversed(network.layers):
        if layer.weights:
            used_once = isinstance(layer, tf.keras.layers.Dense) and len(layer.inbound_nodes) == 1
            return layer if used_once else None
    return None
