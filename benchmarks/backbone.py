"""A small network of plain Keras layers, for experiments with pretrained weights.

python -m rat_tf.train --network=benchmarks.backbone:small …
"""

import tensorflow as tf

layers = tf.keras.layers


def small(image_shape, classes: int) -> tf.keras.Model:
    """Four convolutions with batch norm, strides 2, 1, 2, 2, mean pool, linear: 97,000 weights."""
    inputs = x = tf.keras.Input(image_shape)
    for filters, stride in ((16, 2), (32, 1), (64, 2), (128, 2)):
        x = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x))
    return tf.keras.Model(inputs, layers.Dense(classes)(layers.GlobalAveragePooling2D()(x)))
