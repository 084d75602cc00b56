"""Networks of tf.keras.applications behind the preprocessing that each family expects."""

from __future__ import annotations

import tensorflow as tf

from rat_tf.networks.names import applications as names


def build(name: str, image_shape, num_classes: int, allow_code: bool = False) -> tf.keras.Model:
    """Images in [-1, 1] to logits: preprocessing, the network without its top, a linear layer.

    The head is the same with and without pretrained weights: mean pooling and a linear layer.
    Images of one channel are repeated in three, as pretrained weights expect them.
    """
    check(image_shape)
    height, width, channels = image_shape
    inputs = tf.keras.Input((height, width, channels))
    backbone = getattr(tf.keras.applications, name)(
        include_top=False, weights=None, input_shape=(height, width, 3), pooling="avg"
    )
    features = backbone(preprocessed(name, colored(inputs)))
    # float32 under any precision policy: softmax and KL need the digits.
    outputs = tf.keras.layers.Dense(num_classes, dtype="float32", name="head")(features)
    return tf.keras.Model(inputs, outputs, name=name)


def check(image_shape) -> None:
    """Refuses images that are too small."""
    height, width, _ = image_shape
    if min(height, width) < names.SMALLEST:
        raise ValueError(
            f"expected images of {names.SMALLEST}x{names.SMALLEST} or larger, got "
            f"{height}x{width}; --image_size={names.SMALLEST} enlarges them"
        )


def preprocessed(name: str, images):
    """Images in [-1, 1] as the network of that name takes them, by Keras' own function."""
    (module,) = (module for module, some in names.MODULES.items() if name in some)
    # float32, too: half precision would blur values up to 255.
    pixels = tf.keras.layers.Rescaling(127.5, 127.5, dtype="float32")(images)
    return getattr(tf.keras.applications, module).preprocess_input(pixels)


def colored(images):
    """Images of one channel repeated in three."""
    if images.shape[-1] == 1:
        return tf.keras.layers.Concatenate()([images] * 3)
    if images.shape[-1] != 3:
        raise ValueError(
            f"expected images of 1 or 3 channels, got {images.shape[-1]}; --channels=3 drops alpha"
        )
    return images
