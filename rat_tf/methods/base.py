"""The `keras.Model` that all methods share: the training step around a method's objective."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import tensorflow as tf

from rat_tf import draws, schedules


class Method(tf.keras.Model, abc.ABC):
    """A classifier of raw images with a semi-supervised `train_step`.

    It maps stored images (uint8) to logits: `preprocessing`, then `network`. Training receives
    ((images, labels), unlabelled images); each method defines its `objective`.

    `averaged`, a second network with the same initial weights, follows the first as an exponential
    moving average with decay `ema_decay`; it is evaluated, too, and never trained.
    """

    #: Names of the values that `objective` returns besides the loss. `more_observations` adds
    #: those that depend on the arguments of a method.
    observations: tuple[str, ...] = ()

    def __init__(
        self,
        network,
        preprocessing,
        augmentation,
        seed: int = 0,
        averaged=None,
        ema_decay: float = 0.0,
        more_observations: Iterable[str] = (),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.observations = (*self.observations, *more_observations)
        self.network = network
        self.averaged = averaged
        self.ema_decay = ema_decay
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.seed = seed
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

    def examine(self, images, step) -> dict | None:
        """The transformed images and their KL; None for a method without transformations."""
        return None

    def call(self, images, training=False):
        return self.network(self.preprocessing(images), training=training)

    def forward(
        self, step, name: str, *parts, update_stats: bool, network=None, pooled: int = 1
    ) -> list[tf.Tensor]:
        """Logits of the parts of a batch after one training pass over all of them together.

        Augmentation is redrawn for every pass, under the pass's `name`, and comes after any
        adversarial transformation. `pooled` is the factor by which the images were pooled.
        """
        images = self.augment(step, name, *parts, pooled=pooled)
        logits = (network or self.network)(images, training=True, update_stats=update_stats)
        return tf.split(logits, [part.shape[0] for part in parts])

    def augment(self, step, name: str, *parts, pooled: int = 1) -> tf.Tensor:
        """The parts of a batch in one tensor, augmented by the draw called `name`."""
        rows = draws.Rows(*(part.shape[0] for part in parts))
        seed = draws.seed_for(self.seed, step, name)
        augmentation = self.augmentation if pooled == 1 else self.augmentation.pooled(pooled)
        return augmentation(tf.concat(parts, axis=0), seed, rows)

    def train_step(self, data):
        (labeled, labels), unlabeled = data
        step = tf.identity(self.optimizer.iterations)
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            labeled, unlabeled = self.preprocessing(labeled), self.preprocessing(unlabeled)
            loss, observed = self.objective(labeled, labels, unlabeled, step, tape)
            # Gradients are summed over the replicas, the loss is the mean over all images.
            share = loss / context.num_replicas_in_sync
            scaling = isinstance(self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
            if scaling:
                share = self.optimizer.get_scaled_loss(share)
        variables = self.network.trainable_variables
        gradients = tape.gradient(share, variables)
        if scaling:
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        self.optimizer.apply_gradients(zip(gradients, variables), skip_gradients_aggregation=True)
        if self.averaged is not None:
            decay = schedules.ema_decay(step, self.ema_decay)
            pairs = (self.averaged.variables, self.network.variables)
            context.merge_call(self._follow, args=(decay, *pairs))
        observed["loss"] = loss
        observed["learning_rate"] = self.optimizer.learning_rate
        observed["gradient_norm"] = tf.linalg.global_norm(gradients)
        for name in self.training_metrics:
            self._means[name].update_state(observed[name])
        return {name: self._means[name].result() for name in self.training_metrics}

    def _follow(self, strategy, decay, averages, variables):
        """Moves the averaged weights and statistics by (1 - decay) towards the network's."""
        for average, variable in zip(averages, variables):
            strategy.extended.update(
                average,
                lambda a, v, d: a.assign_sub((1 - d) * (a - tf.cast(v, a.dtype))),
                args=(variable, decay),
            )

    def test_step(self, data):
        images, labels = data
        images = self.preprocessing(images)
        for name, network in self.candidates.items():
            logits = network(images, training=False)
            self._means[name].update_state(tf.argmax(logits, axis=-1) != labels)
            if name == "error":
                self._means["loss"].update_state(cross_entropy(labels, logits))
        return {name: self._means[name].result() for name in self.test_metrics}

    @property
    def metrics(self):
        return list(self._means.values())


class SemiSupervised(Method):
    """A method with a loss on unlabelled images, weighted by a λ that ramps up."""

    def __init__(
        self, *args, consistency: float = 0.3, consistency_rampup: int = 200_000, **kwargs
    ):
        super().__init__(*args, **kwargs)
        self.consistency = consistency
        self.consistency_rampup = consistency_rampup

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


def cross_entropy(labels, logits) -> tf.Tensor:
    """-log p(y|x), [B]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
