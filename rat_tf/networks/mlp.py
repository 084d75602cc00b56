"""Multi-layer perceptrons: with 128 hidden units the network of the paper's toy problem."""

import tensorflow as tf


class MLP(tf.keras.Model):
    """Points or images [B, …] to logits: two hidden layers with ReLU.

    No batch norm: `training`, `update_stats` and `synchronized` have no effect.
    """

    def __init__(self, hidden=128, num_classes=2, seed=0, synchronized=False, **kwargs):
        super().__init__(**kwargs)
        # Logits in float32 under any precision policy: softmax and KL need the digits.
        sizes = [(hidden, "relu", None), (hidden, "relu", None), (num_classes, None, "float32")]
        he_normal = tf.keras.initializers.HeNormal
        self.flatten = tf.keras.layers.Flatten()
        self.dense = [
            tf.keras.layers.Dense(
                units, activation, kernel_initializer=he_normal(1000 * seed + i), dtype=dtype
            )
            for i, (units, activation, dtype) in enumerate(sizes)
        ]

    def call(self, points, training=False, update_stats=True):
        return self.linear(self.features(points))

    def features(self, points, training=False, update_stats=True) -> tf.Tensor:
        """The second hidden layer, [B, hidden]."""
        points = self.flatten(points)
        for layer in self.dense[:-1]:
            points = layer(points)
        return points

    @property
    def linear(self) -> tf.keras.layers.Layer:
        """The layer from features to logits."""
        return self.dense[-1]
