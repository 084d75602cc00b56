"""Adam with one operation per variable."""

from __future__ import annotations

import tensorflow as tf


class Adam(tf.keras.optimizers.Adam):
    """Keras' Adam, its update of a variable fused into TensorFlow's own kernel.

    m ← m + (1 - β₁)(g - m),  v ← v + (1 - β₂)(g² - v),
    θ ← θ - lr √(1 - β₂ᵗ)/(1 - β₁ᵗ) · m/(√v + ε)

    Keras 2.15 writes this as some forty operations, which for the 80 variables of WRN-28-2 are more
    than the network's own, each to be launched on a GPU. Variables and checkpoints are Keras'.
    """

    def __init__(self, *args, **kwargs):
        # Keras would compile each update with XLA on a GPU, to fuse what is fused here already.
        super().__init__(*args, jit_compile=False, **kwargs)

    def update_step(self, gradient, variable):
        index = self._index_dict[self._var_key(variable)]
        step = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, variable.dtype), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, variable.dtype), step),
            lr=tf.cast(self.learning_rate, variable.dtype),
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=gradient,
        )
