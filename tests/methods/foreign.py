"""Small models of Keras' own layers, and data to train them on."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(-1, 1, (4, 6, 6, 3)).astype(np.float32)
LABELS = np.array([0, 2, 1, 2])
UNLABELED = RNG.uniform(-1, 1, (6, 6, 6, 3)).astype(np.float32)


def classifier(activation=None, front=(), shape=(6, 6, 3), **options):
    """Convolution, batch norm, tanh, mean pool, three classes; the same weights every time."""
    tf.keras.utils.set_random_seed(1)
    inputs = tf.keras.Input(shape)
    x = inputs
    for layer in front:
        x = layer(x)
    x = layers.Conv2D(5, 3, **options)(x)
    x = layers.Activation("tanh")(layers.BatchNormalization(synchronized=True)(x))
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, layers.Dense(3, activation, dtype="float32")(x))


def batch(labels=LABELS, weights=None, images=IMAGES, unlabeled=UNLABELED):
    """A dataset of one element."""
    labeled = (images, labels) if weights is None else (images, labels, np.float32(weights))
    return tf.data.Dataset.from_tensors((labeled, unlabeled))


def trained(model, data=None, loss=None, steps=1, eager=True, **options):
    """The logs of a short training with steps of the gradient's length."""
    compiled = {name: options.pop(name) for name in ("metrics", "weighted_metrics", "jit_compile")
                if name in options}  # fmt: skip
    model.compile(tf.keras.optimizers.SGD(1.0), loss, run_eagerly=eager, **compiled)
    data = (data or batch()).repeat(steps)
    return model.fit(data, verbose=0, **options).history
