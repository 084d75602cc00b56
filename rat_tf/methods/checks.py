"""What is wrong with a model, a loss or data, said before training."""

from __future__ import annotations

import numbers
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from rat_tf.methods import pixels, supervision
from rat_tf.methods.options import arguments
from rat_tf.networks import guard

_EXPECTED = "expected a tf.data.Dataset of ((images, labels), unlabelled images), as rat_tf.pair"


def model(network, name: str = "network") -> None:
    """A classifier of Keras 2 with channels last."""
    if not isinstance(network, tf.keras.Model):
        raise ValueError(
            f"{name}: expected a tf.keras.Model of Keras 2, got {_kind(network)}; "
            "models of Keras 3 are not supported: build it with tf.keras after importing rat_tf"
        )
    for layer in network.submodules:
        if getattr(layer, "data_format", None) == "channels_first":
            raise ValueError(f"{layer.name}: expected channels last, got channels_first")
    shape = getattr(network, "output_shape", None) if network.built else None
    if shape is not None:
        _outputs(shape)


def option(kind, name: str, given):
    """An argument by the check of its flag, or the default; tensors are taken as they are."""
    if tf.is_tensor(given):
        return given
    default = getattr(kind, name, None)
    if given is None and default is None:
        return None
    return arguments.value(kind, name, default if given is None else given)


def same_keras(**given) -> None:
    """Refuses what was made with another Keras, alone or in lists; arguments by their names.

    Where tf.keras is the package tf_keras, `import keras` is Keras 3.
    """
    other = {"keras", "tf_keras"} - {_package(tf.keras.Model)}
    for name, value in given.items():
        for each in tf.nest.flatten(value):
            if not other.isdisjoint(map(_package, type(each).__mro__)):
                raise ValueError(
                    f"{name}: expected what tf.keras has, which is Keras 2, got {_kind(each)} of "
                    "another Keras; make it with tf.keras after importing rat_tf"
                )


def optimizer(given):
    """An optimizer of tf.keras.optimizers, also for names where Keras takes a legacy one.

    It does so on Apple silicon.
    """
    legacy = tf.keras.optimizers.legacy.Optimizer
    if isinstance(given, str):
        found = tf.keras.optimizers.get(given)
        kind = type(found)
        return getattr(tf.keras.optimizers, kind.__name__)() if isinstance(found, legacy) else found
    if isinstance(given, legacy):
        name = type(given).__name__
        raise ValueError(
            f"optimizer: expected one of tf.keras.optimizers, got tf.keras.optimizers.legacy.{name}"
        )
    return given


def activation(network, from_logits: bool) -> None:
    """The last activation, where it is known, is what the loss takes the outputs for."""
    found = _last_activation(network)
    if from_logits and found in ("softmax", "sigmoid"):
        raise ValueError(
            f"loss: the network ends in {found}, which gives probabilities, and from_logits=True "
            "takes them for logits; expected a loss with from_logits=False, or a network without "
            "the last activation"
        )
    if not from_logits and found in ("linear", "sigmoid"):
        raise ValueError(
            f"loss: the network ends in {found}, and from_logits=False takes its outputs for "
            "probabilities of one class each; expected a loss with from_logits=True, or softmax"
        )


def dataset(method, data) -> None:
    """The structure of a dataset, and that batches have one size."""
    if isinstance(data, tf.distribute.DistributedDataset):
        return
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(f"fit: {_EXPECTED}, got {type(data).__name__}")
    spec = data.element_spec
    pair = isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], tuple)
    alone = isinstance(spec, tuple) and not method.defaults.unlabeled
    if not (alone or pair and len(spec[0]) in (2, 3)):
        raise ValueError(f"fit: {_EXPECTED}, got elements {spec}")
    for part in tf.nest.flatten(spec):
        if part.shape.rank is None or part.shape[:1] == [None]:
            raise ValueError(
                f"fit: expected batches of one size, got {part}; use batch(…, drop_remainder=True)"
            )


def class_weight(found, classes: int | None = None) -> None:
    """Weights by the number of a class; of `classes`, once their number is known."""
    fits = isinstance(found, Mapping) and all(
        isinstance(number, numbers.Integral)
        and number >= 0
        and isinstance(weight, numbers.Real)
        and 0 <= weight < float("inf")
        for number, weight in found.items()
    )
    if not fits:
        raise ValueError(
            "class_weight: expected a dictionary from the numbers of classes to weights >= 0, such "
            f"as {{0: 1.0, 1: 5.0}}, got {found!r}"
        )
    if classes is not None and found and max(found) >= classes:
        raise ValueError(
            f"class_weight: expected classes from 0 to {classes - 1}, got {max(found)}"
        )


def first_batch(method, data) -> None:
    """Looks once at how a foreign model behaves, and at images that no preprocessing scales."""
    bare = isinstance(method.preprocessing, pixels.AsFloat)
    if method.looked_at or (guard.is_told(method.network) and not bare):
        return
    strategy = tf.distribute.get_strategy()
    # Of a distributed dataset what the first replica gets; another one is split among all.
    of_all = isinstance(data, tf.data.Dataset)
    batch = tf.nest.map_structure(
        lambda part: strategy.experimental_local_results(part)[0], next(iter(data))
    )
    labeled, labels, unlabeled = method.parts(batch)
    if bare:
        _images(method.value_range, labeled, "labelled")
        _images(method.value_range, unlabeled, "unlabelled")
    labeled = labeled[:2]
    for network in filter(None, (method.network, method.averaged)):
        found = guard.verify(network, labeled, method.preprocessing)
        outputs = strategy.experimental_local_results(found)[0]
        _outputs(outputs.shape)
    if not method.network.trainable_variables:
        raise ValueError(f"network: {method.network.name} has no trainable weights")
    _labels(method.supervision, supervision.plain(labels).numpy(), outputs.shape[-1])
    replicas = strategy.num_replicas_in_sync if of_all else 1
    method.check_search(method.scaled(unlabeled), unlabeled.shape[0] // replicas)
    method.classes = outputs.shape[-1]
    method.looked_at = method.built = True


def _kind(found) -> str:
    return f"{type(found).__module__}.{type(found).__name__}"


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _outputs(shape) -> None:
    if not (isinstance(shape, (tuple, tf.TensorShape)) and len(shape) == 2 and shape[1] != 1):
        raise ValueError(
            "network: expected one output of [batch, classes] with two classes or more, got "
            f"{shape}"
        )


def _images(value_range, images, which: str) -> None:
    shape = images.shape
    if len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3, 4):
        raise ValueError(
            f"{which} images: expected channels last, [batch, height, width, channels], got {shape}"
        )
    if not shape[0]:
        return
    low, high = float(np.min(images)), float(np.max(images))
    slack = 1e-3 * (value_range.high - value_range.low)
    if not value_range.low - slack <= low <= high <= value_range.high + slack:
        raise ValueError(
            f"{which} images: expected values in value_range=({value_range.low:g}, "
            f"{value_range.high:g}), got values from {low:g} to {high:g}"
        )
    if 0 < high - low < (value_range.high - value_range.low) / 100:
        raise ValueError(
            f"{which} images: expected values that differ by more than a hundredth of value_range="
            f"({value_range.low:g}, {value_range.high:g}), got values from {low:g} to {high:g}; "
            "value_range is that of the images that the network takes"
        )


def _labels(supervised, labels, count: int) -> None:
    if supervised.sparse:
        if labels.ndim != 1:
            raise ValueError(f"labels: expected classes [batch], got shape {labels.shape}")
        if labels.min() < 0 or labels.max() >= count:
            raise ValueError(
                f"labels: expected classes from 0 to {count - 1}, got {labels.min()} to "
                f"{labels.max()}"
            )
    elif labels.shape[1:] != (count,):
        raise ValueError(
            f"labels: expected one-hot [batch, {count}] for CategoricalCrossentropy, got shape "
            f"{labels.shape}"
        )


def _last_activation(network) -> str | None:
    """The name of the activation of a functional model's output layer; None if it is not known."""
    while getattr(network, "_is_graph_network", False):
        network = network.get_layer(network.output_names[0])
    if isinstance(network, tf.keras.layers.Softmax):
        return "softmax"
    return getattr(getattr(network, "activation", None), "__name__", None)
