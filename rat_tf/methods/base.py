"""The `keras.Model` that all methods share: the training step around a method's objective."""

from __future__ import annotations

import abc
import threading
import warnings
from collections.abc import Iterable

import tensorflow as tf

from rat_tf import draws, schedules
from rat_tf.methods import checks, keras_habits, pixels, supervision
from rat_tf.methods.options import base as options
from rat_tf.networks import copies, guard

_STEP = threading.local()  # the regularisation losses of this replica's step


class Method(keras_habits.Habits, abc.ABC):
    """A classifier of images with a semi-supervised `train_step`.

    It maps stored images to the outputs of `network`, any Keras classifier, after `preprocessing`,
    if there is any: the network then takes pixels in `value_range`. Training receives
    ((images, labels), unlabelled images); each method defines its `objective`.

    `augmentation` is drawn anew for every pass: an `Augmentation` (of images scaled to [-1, 1]) or
    a layer of Keras (of images in `value_range`).

    `averaged`, a second network with the same initial weights, follows the first as an exponential
    moving average with decay `ema_decay`; it is evaluated, too, and never trained. Functional and
    sequential networks are copied for it.
    """

    #: The options with the defaults of the arguments.
    defaults: type[options.Options] = options.Options

    #: Names of the values that `objective` returns besides the loss. `more_observations` adds
    #: those that depend on the arguments of a method.
    observations: tuple[str, ...] = ()

    def __init__(
        self,
        network,
        preprocessing=None,
        augmentation=None,
        seed: int = 0,
        averaged=None,
        ema_decay: float | None = None,
        value_range: tuple[float, float] = (-1, 1),
        more_observations: Iterable[str] = (),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.observations = (*self.observations, *more_observations)
        self.ema_decay = self.default("ema_decay", ema_decay)
        checks.model(network)
        if averaged is not None:
            checks.model(averaged, "averaged")
        checks.same_keras(preprocessing=preprocessing, augmentation=augmentation)
        if averaged is None and self.ema_decay:
            averaged = copies.copied(network)
        for each in filter(None, (network, averaged)):
            guard.install(each)
        self.network = network
        self.averaged = averaged
        self.preprocessing = preprocessing or pixels.AsFloat()
        self.augmentation = augmentation
        self.value_range = pixels.ValueRange.of(value_range)
        self.seed = seed
        self.looked_at, self.classes = False, None  # by checks.first_batch
        # All weights are the network's: it is built when that is, whether or not it is called.
        self.built = network.built
        # Metrics are already reduced over the replicas when a step returns them; Keras would sum
        # them once more over the workers of a cluster.
        self.distribute_reduction_method = "first"
        self.training_metrics = ("loss", *self.observations, "learning_rate", "gradient_norm")
        self.test_metrics = (*self.candidates, "loss")
        names = {*self.training_metrics, *self.test_metrics}
        self._means = {name: tf.keras.metrics.Mean(name=name) for name in sorted(names)}

    @property
    def candidates(self) -> dict[str, tf.keras.Model]:
        """The networks that are validated, by the name of their error."""
        candidates = {"error": self.network, "ema_error": self.averaged}
        return {name: network for name, network in candidates.items() if network is not None}

    @abc.abstractmethod
    def objective(self, labeled, labels, unlabeled, step, tape) -> tuple[tf.Tensor, dict]:
        """The loss of this replica's images and a dictionary of all `observations`.

        Images are preprocessed and not yet augmented. `tape` records the step; constants
        are computed under `tape.stop_recording()`.
        """

    def check_search(self, images, count: int) -> None:
        """Refuses what the search cannot use: a network, images like these, or their number.

        `images` are scaled to [-1, 1]; a replica has `count` of them in a step.
        """

    def examine(self, images, step) -> dict | None:
        """The transformed images and their KL; None for a method without transformations."""
        return None

    def call(self, images, training=False):
        images = tf.convert_to_tensor(images)  # Keras leaves lists as they are
        some = self.preprocessing(pixels.at_least_one(images))
        return self.network(some, training=training)[: tf.shape(images)[0]]

    def default(self, name: str, value):
        """A value, checked, or that of the method's options where none is given."""
        return checks.option(self.defaults, name, value)

    def scaled(self, images) -> tf.Tensor:
        """Images as they are stored, preprocessed and scaled to [-1, 1]."""
        return self.value_range.inward(self.preprocessing(images))

    def forward(
        self, step, name: str, *parts, update_stats: bool, network=None, pooled: int = 1, only=None
    ) -> list[tf.Tensor]:
        """Logits of the parts of a batch after one training pass over all of them together.

        Augmentation is redrawn for every pass, under the pass's `name`, and comes after any
        adversarial transformation. `pooled` is the factor by which the images were pooled.
        """
        images = self.augment(step, name, *parts, pooled=pooled, only=only)
        logits = self.logits(images, update_stats, network)
        return tf.split(logits, [part.shape[0] for part in parts])

    def logits(self, images, update_stats: bool, network=None) -> tf.Tensor:
        """Logits of one training pass over images that are augmented already."""
        network = network or self.network
        outputs = guard.call(network, images, update_stats=update_stats)
        if update_stats:
            self.keep_losses(network)
        return self.supervision.logits(outputs)

    def keep_losses(self, network) -> None:
        """Takes the regularisation losses of the pass that was made last into the step's loss."""
        _STEP.losses = network.losses

    def augment(self, step, name: str, *parts, pooled: int = 1, only=None) -> tf.Tensor:
        """The parts of a batch in one tensor, augmented by the draw called `name`.

        The parts are scaled to [-1, 1], the result has the values that the network takes. `only`
        is (rows, count) for a part that is only these rows of the `count` of the batch: it is
        augmented as they are.
        """
        images = tf.concat(parts, axis=0)
        if isinstance(self.augmentation, tf.keras.layers.Layer):
            return self.augmentation(self.value_range.outward(images), training=True)
        if self.augmentation is not None:
            rows = draws.Rows(*(part.shape[0] for part in parts))
            if only:
                rows = draws.Rows(only[1], only=only[0])
            augmentation = self.augmentation if pooled == 1 else self.augmentation.pooled(pooled)
            images = augmentation(images, draws.seed_for(self.seed, step, name), rows)
        return self.value_range.outward(images)

    def label_loss(self, labels, logits) -> tf.Tensor:
        """The loss of each labelled image, [B]; the metrics of `compile` see them, too."""
        self.measure(labels, logits)
        return self.supervision.per_image(labels, logits)

    def train_step(self, data):
        labeled, labels, unlabeled = self.parts(data)
        step = tf.identity(self.optimizer.iterations)
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            labeled, unlabeled = self.scaled(labeled), self.scaled(unlabeled)
            loss, observed = self.objective(labeled, labels, unlabeled, step, tape)
            loss = _regularised(loss, _STEP.losses)
            # Gradients are summed over the replicas, the loss is the mean over all images.
            share = loss / context.num_replicas_in_sync
            scaling = isinstance(self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
            if scaling:
                share = self.optimizer.get_scaled_loss(share)
        variables = self.network.trainable_variables
        gradients, variables = _used(tape.gradient(share, variables), variables)
        if scaling:
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        self.optimizer.apply_gradients(zip(gradients, variables), skip_gradients_aggregation=True)
        if self.averaged is not None:
            decay = schedules.ema_decay(step, self.ema_decay)
            pairs = copies.paired(self.averaged, self.network)
            context.merge_call(self._follow, args=(decay, *pairs))
        observed["loss"] = loss
        observed["learning_rate"] = self.optimizer.learning_rate
        observed["gradient_norm"] = tf.linalg.global_norm(gradients)
        for name in self.training_metrics:
            self._means[name].update_state(observed[name])
        return self.results(self.training_metrics)

    def _follow(self, strategy, decay, averages, variables):
        """Moves the averaged weights and statistics by (1 - decay) towards the network's."""
        for average, variable in zip(averages, variables):
            strategy.extended.update(average, copies.follow, args=(variable, decay))

    def test_step(self, data):
        images, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data)
        labels = self.supervision.labels(labels, weights)
        images, count = self.preprocessing(pixels.at_least_one(images)), tf.shape(images)[0]
        for name, network in self.candidates.items():
            outputs = network(images, training=False)[:count]
            wrong = tf.argmax(outputs, axis=-1) != supervision.classes(labels)
            self._means[name].update_state(wrong)
            if name == "error":
                losses = self.label_loss(labels, self.supervision.logits(outputs))
                self._means["loss"].update_state(_regularised(losses, network.losses))
        return self.results(self.test_metrics)


class SemiSupervised(Method):
    """A method with a loss on unlabelled images, weighted by a λ that ramps up."""

    defaults = options.SemiSupervised

    def __init__(
        self,
        *args,
        consistency: float | None = None,
        consistency_rampup: int | None = None,
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        self.consistency = self.default("consistency", consistency)
        self.consistency_rampup = self.default("consistency_rampup", consistency_rampup)

    def weight(self, step) -> tf.Tensor:
        """λ(t)."""
        return self.consistency * schedules.rampup(step, self.consistency_rampup)

    def total(self, supervised, consistency, weight, **others) -> tuple[tf.Tensor, dict]:
        """What `objective` returns for a loss of two terms."""
        observed = {"cross_entropy": supervised, "consistency": consistency, "lambda": weight}
        return supervised + weight * consistency, {**observed, **others}


def softmax(logits) -> tf.Tensor:
    """p(y|x) in float32, at any precision of the network."""
    return tf.nn.softmax(tf.cast(logits, tf.float32))


def squared_distance(p, q) -> tf.Tensor:
    """mean_y (p(y) - q(y))², [B]."""
    return tf.reduce_mean(tf.math.squared_difference(p, q), axis=-1)


def _used(gradients, variables) -> tuple[list, list]:
    """The gradients that there are, and their variables; a warning names the others, as Keras'."""
    pairs = [(g, variable) for g, variable in zip(gradients, variables) if g is not None]
    if not pairs:
        raise ValueError("network: the loss depends on none of its trainable weights")
    unused = [variable.name for g, variable in zip(gradients, variables) if g is None]
    if unused:
        warnings.warn(f"the loss does not depend on {', '.join(unused)}: not trained", stacklevel=2)
    return [g for g, _ in pairs], [variable for _, variable in pairs]


def _regularised(loss, losses) -> tf.Tensor:
    """A loss plus those of the model's layers and weights."""
    return loss + tf.add_n([tf.cast(each, loss.dtype) for each in losses]) if losses else loss
