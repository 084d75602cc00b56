"""The network of the paper's toy problem: three layers of weights, 128 hidden units, ReLU."""

import tensorflow as tf


class MLP(tf.keras.Model):
    """Points [B, D] to logits. No batch norm: `training` and `update_stats` have no effect."""

    def __init__(self, num_classes=2, hidden=128, seed=0, **kwargs):
        super().__init__(**kwargs)
        sizes = [(hidden, "relu"), (hidden, "relu"), (num_classes, None)]
        he_normal = tf.keras.initializers.HeNormal
        self.dense = [
            tf.keras.layers.Dense(units, activation, kernel_initializer=he_normal(1000 * seed + i))
            for i, (units, activation) in enumerate(sizes)
        ]

    def call(self, points, training=False, update_stats=True):
        for layer in self.dense:
            points = layer(points)
        return points
