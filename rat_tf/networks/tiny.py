"""A minimal network with batch normalisation, for smoke tests."""

import itertools

import tensorflow as tf

from rat_tf.networks import batch_norm, layers


class Tiny(tf.keras.Model):
    """conv3×3(16), batch norm, LeakyReLU 0.1, mean pool, linear.

    For 10 classes and 3 channels 432 + 32 + 170 = 634 trainable parameters. All initial weights
    follow from `seed`.
    """

    def __init__(self, num_classes, seed=0, synchronized=False, **kwargs):
        super().__init__(**kwargs)
        seeds = itertools.count(1000 * seed)
        self.first = layers.conv(16, 3, 1, seeds)
        self.norm = batch_norm.BatchNorm(synchronized=synchronized)
        self.linear = layers.linear(num_classes, seeds)

    def call(self, images, training=False, update_stats=True):
        return self.linear(self.features(images, training, update_stats))

    def features(self, images, training=False, update_stats=True) -> tf.Tensor:
        """The pooled activations, [B, 16]."""
        x = self.norm(self.first(images), training=training, update_stats=update_stats)
        return tf.reduce_mean(layers.leaky_relu(x, training), axis=[1, 2])
