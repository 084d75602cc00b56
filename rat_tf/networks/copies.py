"""A second network for averaged weights."""

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


def follow(average, variable, decay):
    """Moves an average by (1 - decay) towards a variable; whole numbers are copied."""
    if not average.dtype.is_floating:
        return average.assign(variable)
    return average.assign_sub((1 - decay) * (average - tf.cast(variable, average.dtype)))
