"""A second network for averaged weights, and weights from one network to another."""

from __future__ import annotations

import tensorflow as tf


def copied(network: tf.keras.Model) -> tf.keras.Model:
    """A functional or sequential model once more, with weights of its own of the same values."""
    # Keras' own mark; a subclass of Model that is made of inputs and outputs has it, too.
    if not getattr(network, "_is_graph_network", False):
        raise ValueError(
            f"averaged: {type(network).__name__} cannot be copied as functional and sequential "
            "models with a known input shape can; expected a second network of the same kind as "
            "averaged=, or ema_decay=0"
        )
    copy = tf.keras.models.clone_model(network)
    copy.set_weights(network.get_weights())
    return copy


def leaves(network) -> list[tf.keras.layers.Layer]:
    """The layers of a model in order, those of the models in it, too."""
    inner = getattr(network, "layers", None)
    if inner is None:
        return [network]
    return [leaf for layer in inner for leaf in leaves(layer)]


def weighted(network) -> list[tf.keras.layers.Layer]:
    """The leaves that have weights; the last of a classifier is its head."""
    return [leaf for leaf in leaves(network) if leaf.weights]


def assign(network, source) -> None:
    """Gives a network the weights of another one of the same kind.

    Layer by layer: the order of all weights of a model depends on which of them are trained.
    """
    for ours, theirs in zip(weighted(network), weighted(source), strict=True):
        ours.set_weights(theirs.get_weights())


def follow(average, variable, decay):
    """Moves an average by (1 - decay) towards a variable; whole numbers are copied."""
    if not average.dtype.is_floating:
        return average.assign(variable)
    return average.assign_sub((1 - decay) * (average - tf.cast(variable, average.dtype)))
