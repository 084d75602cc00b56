"""The loss of labelled images: cross entropy, or the loss that `compile` is given."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

_BY_NAME = {
    "sparse_categorical_crossentropy": tf.keras.losses.SparseCategoricalCrossentropy,
    "categorical_crossentropy": tf.keras.losses.CategoricalCrossentropy,
}
# The smallest probability whose logarithm is taken; smaller ones lose digits in float32.
_SMALLEST = 1e-37


class Weighted(NamedTuple):
    """Labels with a weight for each, [B]."""

    labels: tf.Tensor
    weights: tf.Tensor


class Supervision:
    """What a loss says of labels (sparse or one-hot) and of outputs (logits or probabilities).

    Methods compute with logits throughout; those of a model that gives probabilities are their
    logarithms.
    """

    def __init__(self, loss=None):
        self.loss = _resolved(loss)
        self.from_logits = True
        self.sparse = self.loss is None or isinstance(
            self.loss, tf.keras.losses.SparseCategoricalCrossentropy
        )
        if self.loss is not None:
            self.from_logits = self.loss.get_config()["from_logits"]

    def logits(self, outputs) -> tf.Tensor:
        if self.from_logits:
            return outputs
        return tf.math.log(tf.maximum(tf.cast(outputs, tf.float32), _SMALLEST))

    def outputs(self, logits) -> tf.Tensor:
        """As the model gives them, in float32."""
        logits = tf.cast(logits, tf.float32)
        return logits if self.from_logits else tf.nn.softmax(logits)

    def labels(self, labels, weights=None):
        """As methods get them: classes [B] or one-hot [B, classes], `Weighted` if there are any."""
        labels = tf.convert_to_tensor(labels)
        if not self.sparse:
            labels = tf.cast(labels, tf.float32)
        else:
            if labels.shape.rank == 2 and labels.shape[1] == 1:
                labels = tf.squeeze(labels, axis=1)
            labels = tf.cast(labels, tf.int64)
        return labels if weights is None else Weighted(labels, weights)

    def per_image(self, labels, logits) -> tf.Tensor:
        """The loss of every image, [B], times its weight; `labels` may also be mixtures."""
        if isinstance(labels, Weighted):
            losses = self.per_image(labels.labels, logits)
            return losses * tf.cast(tf.reshape(labels.weights, [-1]), losses.dtype)
        if self.sparse and len(labels.shape) == 2:
            return tf.nn.softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
        if self.loss is None:
            return cross_entropy(labels, logits)
        return self.loss.call(labels, self.outputs(logits))


def cross_entropy(labels, logits) -> tf.Tensor:
    """-log p(y|x), [B]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))


def plain(labels) -> tf.Tensor:
    """Labels without their weights."""
    return labels.labels if isinstance(labels, Weighted) else labels


def classes(labels) -> tf.Tensor:
    """Whole numbers [B] of labels of either kind."""
    labels = plain(labels)
    return tf.argmax(labels, axis=-1) if len(labels.shape) == 2 else labels


def one_hot(labels, count: int) -> tf.Tensor:
    """[B, count] of labels of either kind."""
    labels = plain(labels)
    return labels if len(labels.shape) == 2 else tf.one_hot(labels, count)


def _resolved(loss):
    """A loss object that says whether it takes logits; None for none."""
    if loss is None:
        return None
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", None)
    found = _BY_NAME[name]() if name in _BY_NAME else loss
    if isinstance(found, str):
        found = tf.keras.losses.get(found)
    kinds = (tf.keras.losses.SparseCategoricalCrossentropy, tf.keras.losses.CategoricalCrossentropy)
    if not isinstance(found, kinds):
        raise ValueError(
            "loss: expected SparseCategoricalCrossentropy or CategoricalCrossentropy of "
            f"tf.keras.losses, which say with from_logits what the model gives; got {loss!r}"
        )
    return found
