"""Wide ResNet as in Oliver et al. (2018) and the authors' port: WRN-28-2 is the paper's network."""

from __future__ import annotations

import itertools

import tensorflow as tf

from rat_tf.networks import batch_norm

LEAK = 0.1  # of LeakyReLU


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
        self.first = _conv(16, 3, 1, seeds)
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
        # float32 logits under any precision policy: softmax and KL need the digits.
        self.linear = tf.keras.layers.Dense(
            num_classes,
            kernel_initializer=tf.keras.initializers.GlorotNormal(next(seeds)),
            dtype="float32",
        )

    def call(self, images, training=False, update_stats=True):
        x = self.first(images)
        for block in self.blocks:
            x = block(x, training=training, update_stats=update_stats)
        x = _activation(self.norm(x, training=training, update_stats=update_stats), training)
        return self.linear(tf.reduce_mean(x, axis=[1, 2]))


class _Block(tf.keras.layers.Layer):
    """BN, act, conv, BN, act, conv, plus the shortcut (1×1 where the shape changes)."""

    def __init__(self, filters, stride, project, activate_shortcut, synchronized, seeds):
        super().__init__()
        self.activate_shortcut = activate_shortcut
        self.norm1 = batch_norm.BatchNorm(synchronized=synchronized)
        self.conv1 = _conv(filters, 3, stride, seeds)
        self.norm2 = batch_norm.BatchNorm(synchronized=synchronized)
        self.conv2 = _conv(filters, 3, 1, seeds)
        self.shortcut = _conv(filters, 1, stride, seeds) if project else None

    def call(self, inputs, training=False, update_stats=True):
        x = self.norm1(inputs, training=training, update_stats=update_stats)
        if self.conv1.strides != (1, 1):
            # Symmetric, as in PyTorch: TensorFlow's SAME would pad only below and to the right.
            # Activated after it, zero stays zero, and no activations are kept besides padded ones.
            x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        x = _activation(x, training)
        shortcut = x if self.activate_shortcut else inputs
        if self.shortcut is not None:
            shortcut = self.shortcut(shortcut)
        x = self.conv1(x)
        x = _activation(self.norm2(x, training=training, update_stats=update_stats), training)
        return self.conv2(x) + shortcut


def _activation(x, training):
    # Only training keeps activations; in an exported graph the gradient would have to be stored.
    return _remembering_outputs(x) if training else tf.nn.leaky_relu(x, LEAK)


@tf.custom_gradient
def _remembering_outputs(x):
    """LeakyReLU whose gradient is computed from the output, which has the sign of the input.

    The next convolution keeps the output anyway. TensorFlow's own gradient keeps the input, too, a
    third of all that a forward pass leaves for the backward pass.
    """
    y = tf.nn.leaky_relu(x, LEAK)
    return y, lambda dy: tf.raw_ops.LeakyReluGrad(gradients=dy, features=y, alpha=LEAK)


def _conv(filters, size, stride, seeds):
    """Convolution without bias, weights N(0, 2/(size²·filters))."""
    return tf.keras.layers.Conv2D(
        filters,
        size,
        stride,
        padding="same" if stride == 1 else "valid",
        use_bias=False,
        kernel_initializer=tf.keras.initializers.VarianceScaling(
            2.0, "fan_out", "untruncated_normal", seed=next(seeds)
        ),
    )
