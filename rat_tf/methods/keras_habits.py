"""What users of Keras expect of any model: compile, fit, metrics, config."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

import rat_tf
from rat_tf import stack
from rat_tf.methods import checks, supervision
from rat_tf.transforms import composite, spec

stack.check_keras()


class Habits(tf.keras.Model):
    """The part of a method that has nothing to do with what a step computes.

    Subclasses have a `network`, and `_means` of their own metrics by name.
    """

    #: Whether labels may have weights; not where they are mixed with each other.
    weighs_labels = True

    def __new__(cls, *args, **kwargs):
        model = super().__new__(cls, *args, **kwargs)
        # Past Keras' tracking, which does not work before __init__ and would save all twice.
        model.__dict__["_given"] = {**dict(zip(_positional(cls), args)), **kwargs}
        return model

    def __init__(self, **kwargs):
        # Without autocast: half precision would blur pixels in [0, 255] before they are scaled.
        super().__init__(autocast=False, **kwargs)
        self.supervision = supervision.Supervision()
        self._measured = False
        _announce()

    # ---- config

    def get_config(self) -> dict:
        """All arguments that were given, the network's config among them; no weights."""
        return {name: _serialized(name, value) for name, value in self._given.items()}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        with tf.keras.saving.custom_object_scope(custom_objects or {}):
            return cls(
                **{
                    name: tf.keras.saving.deserialize_keras_object(value)
                    for name, value in config.items()
                }
            )

    def save(self, filepath, *args, **kwargs):
        """As Keras' own, in its .keras format: others cannot describe a model of this kind."""
        if not str(filepath).endswith(".keras"):
            raise ValueError(
                f"save: expected a file name that ends in .keras, got {str(filepath)!r}; the "
                "classifier that was given as network can be saved in any format"
            )
        return super().save(filepath, *args, **kwargs)

    # ---- training

    def compile(
        self, optimizer="rmsprop", loss=None, metrics=None, weighted_metrics=None, **kwargs
    ):
        """As Keras' own. Without a loss it is cross entropy of classes and logits.

        The loss of labelled images is a `SparseCategoricalCrossentropy` or
        `CategoricalCrossentropy`. Its `from_logits` says whether the network gives logits or
        probabilities; label smoothing and weights are for labelled images alone.
        """
        checks.same_keras(
            optimizer=optimizer, loss=loss, metrics=metrics, weighted_metrics=weighted_metrics
        )
        if kwargs.get("loss_weights") is not None:
            raise ValueError(
                "loss_weights: not used; `consistency` is the weight of the unlabelled images"
            )
        optimizer = checks.optimizer(optimizer)
        given = supervision.Supervision(loss)
        checks.activation(self.network, given.from_logits)
        self.supervision = given
        self._measured = bool(metrics or weighted_metrics)
        super().compile(
            optimizer, given.loss, metrics=metrics, weighted_metrics=weighted_metrics, **kwargs
        )
        if loss is not None:
            self.test_metrics = ("loss", *(name for name in self.candidates if name != "error"))
        for transform in getattr(getattr(self, "transform", None), "transforms", ()):
            if self.jit_compile and getattr(transform, "sampler", None) == "resampler":
                transform.sampler = "gather"  # XLA cannot compile tfa's kernel

    def compile_from_config(self, config):
        """Of a model that `save` wrote, as it was compiled: its steps, λ and ε go on."""
        self.compile(**tf.keras.saving.deserialize_keras_object(config))
        if self.network.built:
            self.optimizer.build(self.network.trainable_variables)

    def fit(self, x=None, *args, class_weight=None, **kwargs):
        """As Keras' own, for a dataset of ((images, labels), unlabelled images), as `pair` makes.

        ((images, labels, sample weights), unlabelled images) are weighted. Before the first step
        the model is looked at once, on the first batch.
        """
        checks.same_keras(callbacks=kwargs.get("callbacks"))
        checks.dataset(self, x)
        if class_weight is not None:
            checks.class_weight(class_weight)
            x = x.map(lambda *data: self._by_class(data, class_weight))
        with self.distribute_strategy.scope():
            checks.first_batch(self, x)
        if class_weight is not None:
            checks.class_weight(class_weight, self.classes)
        return super().fit(x, *args, **kwargs)

    def _by_class(self, data, class_weight):
        labeled, labels, unlabeled = self.parts(data)
        classes = supervision.classes(labels)
        weights = tf.ones(classes.shape)
        for number, weight in class_weight.items():
            weights = tf.where(classes == number, float(weight), weights)
        if isinstance(labels, supervision.Weighted):
            weights *= tf.cast(tf.reshape(labels.weights, [-1]), weights.dtype)
        return (labeled, supervision.plain(labels), weights), unlabeled

    def parts(self, data):
        """Labelled images, their labels (see `supervision`), unlabelled images."""
        if not isinstance(data[0], tuple):  # labelled images alone, for a method that has no others
            data = (data, data[0][:0])
        labeled, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data[0])
        unlabeled = data[1][0] if isinstance(data[1], tuple) else data[1]
        if weights is not None and not self.weighs_labels:
            raise ValueError(
                f"{type(self).__name__} mixes labels with each other: expected no sample_weight "
                "and no class_weight"
            )
        return labeled, self.supervision.labels(labels, weights), unlabeled

    # ---- metrics

    def measure(self, labels, logits) -> None:
        """Shows labelled predictions to the metrics that `compile` was given."""
        if self._measured:
            weights = labels.weights if isinstance(labels, supervision.Weighted) else None
            self.compiled_metrics.update_state(
                supervision.plain(labels), self.supervision.outputs(logits), weights
            )

    def results(self, names) -> dict:
        """What a step returns: our means of these names, and the metrics of `compile`."""
        found = {name: self._means[name].result() for name in names}
        for metric in self.compiled_metrics.metrics if self._measured else ():
            found[metric.name] = metric.result()
        return found

    @property
    def metrics(self):
        means = dict(self._means)
        first = [means.pop("loss")] if self.supervision.loss is not None else []
        theirs = self.compiled_metrics.metrics if self._measured else []
        return [*first, *theirs, *means.values()]


def _positional(cls: type) -> Iterator[str]:
    """The names of positional arguments; those behind *args are the next class's."""
    for kind in cls.__mro__:
        if "__init__" not in vars(kind):
            continue
        _, *parameters = inspect.signature(kind.__init__).parameters.values()  # without self
        named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        yield from (each.name for each in parameters if each.kind in named)
        if all(each.kind != inspect.Parameter.VAR_POSITIONAL for each in parameters):
            return


def _serialized(name: str, value):
    if isinstance(value, composite.Composite):
        raise ValueError(
            f"{name}: expected text such as 'noise:1.0,affine:0.3' for get_config, got {value!r}"
        )
    if isinstance(value, (spec.Spec, spec.Xi)):
        return str(value)
    return tf.keras.saving.serialize_keras_object(value)


def _announce() -> None:
    """Says once what it costs that TensorFlow was imported first."""
    if rat_tf.TENSORFLOW_FIRST and not _pywrap_util_port.IsMklEnabled():
        print(
            "rat_tf: TensorFlow was imported first and has oneDNN off: a step on a CPU takes 1.2 "
            "to 2.2 times as long. Import rat_tf first, or set TF_ENABLE_ONEDNN_OPTS=1.",
            file=sys.stderr,
        )
        rat_tf.TENSORFLOW_FIRST = False
