"""A second network for averaged weights, and weights from one network to another."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf


def copied(network: tf.keras.Model) -> tf.keras.Model:
    """A functional or sequential model once more, with weights of its own of the same values.

    What is frozen stays so: Keras makes a layer again from its config, which does not say what of
    the layers inside it is trained.
    """
    # Keras' own mark; a subclass of Model that is made of inputs and outputs has it, too.
    if not getattr(network, "_is_graph_network", False):
        raise ValueError(
            f"averaged: {type(network).__name__} cannot be copied as functional and sequential "
            "models with a known input shape can; expected a second network of the same kind as "
            "averaged=, or ema_decay=0"
        )
    copy = tf.keras.models.clone_model(network)
    assign(copy, network)
    for ours, theirs in zip(copy._flatten_layers(), network._flatten_layers()):
        ours.trainable = theirs.trainable  # changes those inside, too, which come after it
    return copy


def in_order(layer) -> list[tf.Variable]:
    """The weights of a layer or a model in an order that `trainable` does not change.

    Keras' `weights` has those that are trained first, in each layer that is made of layers, too:
    they move when something inside is frozen. Here all come as Keras has those of a layer of which
    everything is trained. Each once, also where layers share them.
    """
    trained, others = [], []
    for module in layer._flatten_modules():
        # Keras' own lists of what a layer itself has do not move; a tf.Module cannot be frozen.
        keras = isinstance(module, tf.keras.layers.Layer)
        trained += module._trainable_weights if keras else module.trainable_variables
        others += module._non_trainable_weights if keras else module.non_trainable_variables
    places: dict[int, int] = {}
    for place, weight in enumerate((*trained, *others)):
        places.setdefault(id(weight), place)  # the first of those that share it
    return sorted(layer.weights, key=lambda weight: places.get(id(weight), math.inf))


def paired(network, other) -> tuple[list[tf.Variable], list[tf.Variable]]:
    """The weights of two networks of the same kind, each with its counterpart at the same place."""
    ours, theirs = in_order(network), in_order(other)
    shapes = [[tuple(weight.shape) for weight in weights] for weights in (ours, theirs)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"expected two networks of the same kind, but {network.name} has weights of the shapes "
            f"{shapes[0]} and {other.name} {shapes[1]}"
        )
    return ours, theirs


def values(layer) -> list[np.ndarray]:
    """The values of the weights, `in_order`."""
    return tf.keras.backend.batch_get_value(in_order(layer))


def fill(layer, found) -> None:
    """Gives the weights the `values` of another layer or model of the same kind."""
    by_weight = {id(weight): value for weight, value in zip(in_order(layer), found, strict=True)}
    layer.set_weights([by_weight[id(weight)] for weight in layer.weights])


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
    """Gives a network the weights of another one of the same kind."""
    paired(network, source)
    fill(network, values(source))


def follow(average, variable, decay):
    """Moves an average by (1 - decay) towards a variable; whole numbers are copied."""
    if not average.dtype.is_floating:
        return average.assign(variable)
    return average.assign_sub((1 - decay) * (average - tf.cast(variable, average.dtype)))
