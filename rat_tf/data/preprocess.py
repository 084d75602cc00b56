"""Preprocessing as Keras layers in front of the network, the same in training and export."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from rat_tf.data import cache, options, zca


def build(config: options.DataOptions, data=None) -> tf.keras.layers.Layer:
    """The layer that --preprocessing names, from uint8 images to what the network sees.

    gcn_zca is fitted to `data`, as `rat_tf.data.load` returns it; without it the layer gets its
    weights from a checkpoint.
    """
    if config.preprocessing == "scale":
        return Scale()
    layer = GcnZca()
    if data is not None:
        layer.build((None, *data.train.image_shape))
        layer.set_weights(zca.fitted(data.train, cache.folder(config)))
    return layer


class Scale(tf.keras.layers.Layer):
    """uint8 [0, 255] to float32 [-1, 1]: SVHN's normalisation in the paper."""

    def __init__(self, **kwargs):
        # float32 under any precision policy: the transformations that follow need it.
        super().__init__(dtype="float32", autocast=False, **kwargs)

    def call(self, images):
        return tf.cast(images, tf.float32) / 127.5 - 1.0


class GcnZca(tf.keras.layers.Layer):
    """uint8 images to global contrast normalisation and ZCA: CIFAR-10's normalisation.

    (gcn(x) - mean) · matrix, see `zca`. Mean and matrix are weights that are not trained, so that
    they are saved and exported with the network.
    """

    def __init__(self, **kwargs):
        super().__init__(dtype="float32", autocast=False, trainable=False, **kwargs)

    def build(self, input_shape):
        size = math.prod(input_shape[1:])
        self.mean = self.add_weight("mean", [size], initializer="zeros", trainable=False)
        self.matrix = self.add_weight("matrix", [size, size], initializer="zeros", trainable=False)
        super().build(input_shape)

    def call(self, images):
        flat = tf.cast(tf.reshape(images, [-1, math.prod(images.shape[1:])]), tf.float32)
        flat -= tf.reduce_mean(flat, axis=1, keepdims=True)
        norm = tf.norm(flat, axis=1, keepdims=True)
        flat *= zca.SCALE / tf.maximum(norm, np.float32(zca.SMALLEST_NORM))
        white = tf.matmul(flat - self.mean, self.matrix)
        return tf.reshape(white, [-1, *images.shape[1:]])
