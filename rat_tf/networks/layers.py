"""Layers that our networks share; `seeds` is an iterator of integers."""

import tensorflow as tf

LEAK = 0.1  # of LeakyReLU


def leaky_relu(x, training) -> tf.Tensor:
    # Only training keeps activations; in an exported graph the gradient would have to be stored.
    return _remembering_outputs(x) if training else tf.nn.leaky_relu(x, LEAK)


@tf.custom_gradient
def _remembering_outputs(x):
    """LeakyReLU whose gradient is computed from the output, which has the sign of the input.

    The next convolution keeps the output anyway. TensorFlow's own gradient also keeps the input, a
    third of everything that a forward pass stores for the backward pass.
    """
    y = tf.nn.leaky_relu(x, LEAK)
    return y, lambda dy: tf.raw_ops.LeakyReluGrad(gradients=dy, features=y, alpha=LEAK)


def conv(filters, size, stride, seeds) -> tf.keras.layers.Conv2D:
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


def linear(num_classes, seeds) -> tf.keras.layers.Dense:
    """Logits in float32 under any precision policy: softmax and KL need the digits."""
    initializer = tf.keras.initializers.GlorotNormal(next(seeds))
    return tf.keras.layers.Dense(num_classes, kernel_initializer=initializer, dtype="float32")
