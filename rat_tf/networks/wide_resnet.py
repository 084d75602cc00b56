"""Wide ResNet as in Oliver et al. (2018) and the authors' port: WRN-28-2 is the paper's network."""

from __future__ import annotations

import itertools

import tensorflow as tf

from rat_tf.networks import batch_norm, layers


class WideResNet(tf.keras.Model):
    """conv3×3(16), three groups of (depth - 4)/6 pre-activation blocks, mean pool, linear.

    Group widths 16k, 32k, 64k with strides 1, 2, 2 for `width` k; LeakyReLU 0.1; no convolution
    bias. WRN-28-2 for 10 classes and 3 channels has 1,467,610 trainable parameters. All initial
    weights follow from `seed`.
    """

    def __init__(self, depth, width, num_classes, seed=0, synchronized=False, **kwargs):
        super().__init__(**kwargs)
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth: expected 6n + 4 with n >= 1 (10, 16, 22, 28, …), got {depth}")
        seeds = itertools.count(1000 * seed)
        blocks = (depth - 4) // 6
        self.first = layers.conv(16, 3, 1, seeds)
        self.blocks = []
        channels = 16
        for group, stride in enumerate((1, 2, 2)):
            filters = 16 * width * 2**group
            for block in range(blocks):
                self.blocks.append(
                    _Block(
                        filters,
                        stride if block == 0 else 1,
                        project=channels != filters or (block == 0 and stride != 1),
                        activate_shortcut=not self.blocks,
                        synchronized=synchronized,
                        seeds=seeds,
                    )
                )
                channels = filters
        self.norm = batch_norm.BatchNorm(synchronized=synchronized)
        self.linear = layers.linear(num_classes, seeds)

    def call(self, images, training=False, update_stats=True):
        return self.linear(self.features(images, training, update_stats))

    def features(self, images, training=False, update_stats=True) -> tf.Tensor:
        """The pooled activations, [B, 64k]."""
        x = self.first(images)
        for block in self.blocks:
            x = block(x, training=training, update_stats=update_stats)
        x = layers.leaky_relu(self.norm(x, training=training, update_stats=update_stats), training)
        return tf.reduce_mean(x, axis=[1, 2])


class _Block(tf.keras.layers.Layer):
    """BN, act, conv, BN, act, conv, plus the shortcut (1×1 where the shape changes)."""

    def __init__(self, filters, stride, project, activate_shortcut, synchronized, seeds):
        super().__init__()
        self.activate_shortcut = activate_shortcut
        self.norm1 = batch_norm.BatchNorm(synchronized=synchronized)
        self.conv1 = layers.conv(filters, 3, stride, seeds)
        self.norm2 = batch_norm.BatchNorm(synchronized=synchronized)
        self.conv2 = layers.conv(filters, 3, 1, seeds)
        self.shortcut = layers.conv(filters, 1, stride, seeds) if project else None

    def call(self, inputs, training=False, update_stats=True):
        x = self.norm1(inputs, training=training, update_stats=update_stats)
        if self.conv1.strides != (1, 1):
            # Symmetric, as in PyTorch: TensorFlow's SAME would pad only below and to the right.
            # Activated after it, zero stays zero, and no activations are kept besides padded ones.
            x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        x = layers.leaky_relu(x, training)
        shortcut = x if self.activate_shortcut else inputs
        if self.shortcut is not None:
            shortcut = self.shortcut(shortcut)
        x = self.conv1(x)
        x = layers.leaky_relu(self.norm2(x, training=training, update_stats=update_stats), training)
        return self.conv2(x) + shortcut
