"""X and y of scikit-learn as the images and labels of a training."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from sklearn.utils import multiclass

from rat_tf import fields, methods
from rat_tf.data import examples as examples_lib
from rat_tf.methods import checks

UNLABELED = -1


def check_arguments(model) -> None:
    """Refuses arguments of the wrong type; their values are checked with the method's options."""
    kinds = methods.options.METHODS
    if not isinstance(model.method, str) or model.method not in kinds:
        raise ValueError(f"method: expected one of {', '.join(kinds)}, got {model.method!r}")
    whole, number = (numbers.Integral, "a whole number"), (numbers.Real, "a number")
    text = str, "text such as 'noise:0.5'"
    network = (str, Callable), "a name or a function of (image_shape, classes)"
    sequence = (Sequence, np.ndarray)
    expected = {
        **dict.fromkeys(("iterations", "labeled_batch", "unlabeled_batch"), whole),
        **dict.fromkeys(("learning_rate", "consistency", "ema_decay"), number),
        "transforms": text,
        "network": network,
        "image_shape": (sequence, "(height, width, channels)"),
        "value_range": (sequence, "(low, high)"),
        "method_options": (Mapping, "a dictionary of options by name"),
    }
    for name, (kind, words) in expected.items():
        value = getattr(model, name)
        wrong = not isinstance(value, kind) and (value is not None or kind is numbers.Integral)
        if name in ("image_shape", "value_range") and value is not None and not wrong:
            wrong = not all(isinstance(each, numbers.Real) for each in value)
            wrong |= name == "value_range" and len(value) != 2
        problem = f"expected {words}, got {value!r}" if wrong else None
        if not problem and kind is numbers.Integral:
            problem = fields.positive(value)
        if problem:
            raise ValueError(f"{name}: {problem}")


def check_network(network, image_shape, count: int) -> None:
    """Builds a network, which must give one logit per class."""
    checks.model(network)
    outputs = network(tf.zeros([1, *image_shape]))
    if tuple(outputs.shape) != (1, count):
        raise ValueError(
            f"network: expected logits [batch, {count}], one per class, got {outputs.shape}"
        )


def images(X, image_shape) -> tuple[np.ndarray, bool]:
    """X as [n, height, width, channels], and whether these are images; rows become 1×1 pixels."""
    if image_shape is None:
        if X.ndim == 2:
            return X[:, np.newaxis, np.newaxis, :], False
        if X.ndim != 4:
            raise ValueError(
                "X: expected images [n, height, width, channels], or rows [n, features], got "
                f"shape {X.shape}"
            )
        return X, True
    shape = tuple(image_shape)
    if len(shape) != 3 or X[:1].size != np.prod(shape):
        raise ValueError(
            "image_shape: expected (height, width, channels) with a product of the "
            f"{X[:1].size} features of X, got {shape}"
        )
    return X.reshape(-1, *shape), True


def normalisation(found, is_image: bool, value_range) -> tuple[np.ndarray, np.ndarray]:
    """(x - mean) / scale is in [-1, 1] for pixels, and of variance 1 for features."""
    if not is_image:
        scale = found.std(axis=(0, 1, 2))
        return found.mean(axis=(0, 1, 2)), np.where(scale > 0, scale, 1)
    if value_range is not None:
        low, high = value_range
    elif np.issubdtype(found.dtype, np.integer):
        low, high = 0, 255
    else:
        low, high = found.min(), found.max()
    if not low < high or found.min() < low or found.max() > high:
        raise ValueError(
            f"value_range: expected (low, high) that holds all of X, from {found.min():g} to "
            f"{found.max():g}, got ({low:g}, {high:g})"
        )
    return np.float64(low + high) / 2, np.float64(high - low) / 2


def layer(mean, scale) -> tf.keras.layers.Layer:
    """The normalisation as a layer in front of the network."""
    variance = np.square(scale).astype("float32")
    return tf.keras.layers.Normalization(axis=-1, mean=mean.astype("float32"), variance=variance)


def known(y) -> np.ndarray:
    """Which labels are not -1; the others must be classes."""
    if y.dtype.kind in "US":
        return np.ones(len(y), bool)
    found = np.array([not (np.isscalar(label) and label == UNLABELED) for label in y], bool)
    if found.any():
        multiclass.check_classification_targets(y[found])
    return found


def examples(found, labels=None) -> examples_lib.Examples:
    if labels is None:
        labels = np.full(len(found), examples_lib.UNLABELED)
    nothing = np.zeros([len(found), 8], np.uint8)  # fingerprints, which only splits need
    return examples_lib.Examples(found, labels.astype(np.int64), fingerprints=nothing)
