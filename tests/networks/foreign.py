"""A module of a user's: functions of (image_shape, classes) that build models."""

import tensorflow as tf

layers = tf.keras.layers


def small(image_shape, classes):
    return tf.keras.Sequential(
        [
            layers.Input(image_shape),
            layers.Conv2D(4, 3, strides=2, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


class Doubled(layers.Layer):
    """A layer of the user's own."""

    def call(self, x):
        return 2 * x


class Block(layers.Layer):
    """Two layers in one: dense, batch_norm, dropout or another block of a dense and a norm."""

    def __init__(self, first, second, **options):
        super().__init__(**options)
        self.kinds = (first, second)
        self.a, self.b = map(self.part, self.kinds)

    @staticmethod
    def part(kind):
        if kind == "block":
            return Block("dense", "batch_norm")
        parts = {"batch_norm": layers.BatchNormalization, "normalization": layers.Normalization}
        parts |= {"dense": lambda: layers.Dense(4), "dropout": lambda: layers.Dropout(0.5)}
        return parts[kind]()

    def call(self, x):
        return self.b(self.a(x))

    def get_config(self):
        first, second = self.kinds
        return {**super().get_config(), "first": first, "second": second}


def own(image_shape, classes):
    model = small(image_shape, classes)
    return tf.keras.Model(model.inputs, Doubled()(model.outputs[0]))


def lambdas(image_shape, classes):
    inputs = tf.keras.Input(image_shape)
    x = layers.Flatten()(layers.Lambda(lambda x: x / 2, name="halved")(inputs))
    return tf.keras.Model(inputs, layers.Dense(classes)(x))


def sliced(image_shape, classes):
    """With TensorFlow's operations, as layers of Keras."""
    inputs = tf.keras.Input(image_shape)
    x = tf.reduce_mean(inputs[..., ::-1], axis=[1, 2])
    return tf.keras.Model(inputs, layers.Dense(classes)(x))


def probable(image_shape, classes):
    return tf.keras.Sequential(
        [layers.Input(image_shape), layers.Flatten(), layers.Dense(classes, "softmax")]
    )


def nested(image_shape, classes):
    """Probabilities, by a model that has no input of its own."""
    return tf.keras.Sequential([small(image_shape, classes), layers.Softmax()])


def failing(image_shape, classes):
    raise KeyError("no such weights")
