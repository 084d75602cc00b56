"""Passes over any Keras model with batch statistics that leave the running ones alone.

Our own networks are told by the argument `update_stats`. A foreign model has none: its layers are
guarded, each by a function of its own in place of `add_update`, the method by which Keras' layers
move their statistics. Nothing else of the model changes; it is saved and loaded as plain Keras.
"""

from __future__ import annotations

import inspect
import threading
import types

import numpy as np
import tensorflow as tf

# Of the thread, not of a layer: replica threads interleave and would see each other's.
_PASS = threading.local()


def call(network, images, training: bool = True, update_stats: bool = True):
    """The network's outputs; running statistics move only if both arguments are true."""
    if is_told(network):
        return network(images, training=training, update_stats=update_stats)
    before = _paused()
    _PASS.paused = not update_stats
    try:
        return network(images, training=training)
    finally:
        _PASS.paused = before


def is_told(network) -> bool:
    """Whether a network takes `update_stats`."""
    return "update_stats" in inspect.signature(network.call).parameters


def install(network) -> None:
    """Guards all layers that a foreign model has by now; a second time changes nothing."""
    if is_told(network):
        return
    for layer in _layers(network):
        if getattr(layer, "renorm", False):
            raise ValueError(
                f"{layer.name}: batch norm with renorm=True is not supported, its moments move in "
                "every pass; expected renorm=False"
            )
        # A bound method: a deep copy of the layer has one that is bound to the copy.
        layer.add_update = types.MethodType(_add_update, layer)


def draws_numbers(network) -> bool:
    """Whether a network has layers that draw random numbers in training, such as dropout."""
    # The generator is what all of Keras' random layers share; there is no public mark of them.
    found = [layer for layer in _layers(network) if hasattr(layer, "_random_generator")]
    return any(getattr(layer, "rate", 1) for layer in found)


def verify(network, images, preprocessing=tf.identity) -> tf.Tensor:
    """Refuses a foreign model that moves a variable in a pass that is not to move any.

    Such are layers that assign to their variables by themselves, or that are traced once for both
    kinds of passes. The variables are left as they were. Returns the outputs for `images` behind
    their `preprocessing`, on every replica.
    """

    strategy = tf.distribute.get_strategy()

    def run(training, update_stats):
        def outputs(images):
            return call(network, preprocessing(images), training, update_stats)

        if strategy.num_replicas_in_sync == 1:
            return strategy.run(outputs, (images,))
        return tf.function(lambda images: strategy.run(outputs, (images,)))(images)

    def values():
        return [variable.numpy() for variable in network.non_trainable_variables]

    found = run(training=False, update_stats=False)  # makes all layers and variables
    if is_told(network):
        return found
    install(network)
    initial = values()
    run(training=True, update_stats=True)  # what it traces must not serve the other passes
    before = values()
    run(training=True, update_stats=False)
    pairs = zip(network.non_trainable_variables, before, values())
    moved = [variable.name for variable, old, new in pairs if not np.array_equal(old, new)]
    for variable, value in zip(network.non_trainable_variables, initial):
        variable.assign(value)
    if moved:
        raise ValueError(
            f"{_owner(network, moved[0])}: {', '.join(moved)} changed in a pass that is to leave "
            "running statistics alone; expected a layer that updates them through add_update, as "
            "Keras' BatchNormalization does, or a network whose call takes update_stats"
        )
    return found


def _add_update(self, updates):
    if not _paused():
        type(self).add_update(self, updates)


def _paused() -> bool:
    return getattr(_PASS, "paused", False)


def _layers(network) -> list[tf.keras.layers.Layer]:
    found = (network, *network.submodules)
    return [module for module in found if isinstance(module, tf.keras.layers.Layer)]


def _owner(network, variable: str) -> str:
    """The name of the layer that has a variable of that name and no layer inside that has it."""
    owners = [layer for layer in _layers(network) if any(w.name == variable for w in layer.weights)]
    return min(owners, key=lambda layer: len(_layers(layer))).name
