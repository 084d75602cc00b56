"""Ramps and the learning rate as functions of the step."""

import tensorflow as tf


def rampup(step, length: int) -> tf.Tensor:
    """exp(-5 (1 - min(t/T, 1))²), Mean Teacher's sigmoid shape; constant 1 if T = 0.

    The paper ramps λ over T = 200,000 steps and, with ε-rampup, ε over T = 400,000.
    """
    if length == 0:
        return tf.ones([])
    progress = tf.minimum(tf.cast(step, tf.float32) / length, 1.0)
    return tf.exp(-5.0 * (1.0 - progress) ** 2)


def linear_rampup(step, length: int) -> tf.Tensor:
    """min(t/T, 1), MixMatch's ramp of λ; constant 1 if T = 0."""
    if length == 0:
        return tf.ones([])
    return tf.minimum(tf.cast(step, tf.float32) / length, 1.0)


def ema_decay(step, decay: float) -> tf.Tensor:
    """min(decay, (1 + t)/(10 + t)), the decay of averaged weights, as in tf.train.

    Early on it averages over about a tenth of the steps so far; with a constant 0.999 the average
    would consist mostly of initial weights for thousands of steps.
    """
    t = tf.cast(step, tf.float32)
    return tf.minimum((1.0 + t) / (10.0 + t), decay)


class LearningRate(tf.keras.optimizers.schedules.LearningRateSchedule):
    """`initial`, multiplied by `decay` after `decay_at` steps (the paper: 0.2 after 400,000).

    Keras' PiecewiseConstantDecay branches on the step, which a GPU would copy to the host at every
    step.
    """

    def __init__(self, initial: float, decay_at: int, decay: float):
        self._initial, self._decay_at, self._decay = initial, decay_at, decay

    def __call__(self, step) -> tf.Tensor:
        return tf.where(step < self._decay_at, self._initial, self._initial * self._decay)

    def get_config(self) -> dict:
        return {"initial": self._initial, "decay_at": self._decay_at, "decay": self._decay}
