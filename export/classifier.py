"""The served graph: from pixels, or from the bytes of image files, to answers."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rat_tf.training import weights

DECODED_IN_PARALLEL = 4  # image files of one request


class Classifier(tf.Module):
    """What is saved: variables, assets and signatures, and nothing of Keras or of training.

    It holds the network's variables and not the network, because Keras would trace and save every
    layer's call, those for training among them.
    """

    def __init__(self, trained: weights.Trained, assets: Sequence[str] = ()):
        super().__init__()
        self._trained = trained
        self.weights = [*trained.preprocessing.weights, *trained.network.weights]
        self.assets = [tf.saved_model.Asset(path) for path in assets]

    def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
        """The functions that a client can call, all with a free batch dimension."""
        images = tf.TensorSpec([None, *self._trained.image_shape], tf.uint8, "images")
        image_bytes = tf.TensorSpec([None], tf.string, "image_bytes")
        classes = tf.TensorSpec([None], tf.int64, "classes")
        return {
            "serving_default": tf.function(self.classify).get_concrete_function(images),
            "serving_bytes": tf.function(self.classify_bytes).get_concrete_function(image_bytes),
            # So that a client can name the classes of `probabilities`. It has a batch dimension,
            # like all signatures, since a server that batches requests asks for one.
            "class_names": tf.function(self.label).get_concrete_function(classes),
        }

    def classify(self, images) -> dict[str, tf.Tensor]:
        """uint8 [B, H, W, C] to probabilities and logits [B, K], classes and labels [B]."""
        logits = self._trained.logits(images)
        classes = tf.argmax(logits, axis=-1)
        return {
            "probabilities": tf.nn.softmax(logits),
            "logits": tf.identity(logits),
            "classes": classes,
            **self.label(classes),
        }

    def classify_bytes(self, image_bytes) -> dict[str, tf.Tensor]:
        """The same for PNG, JPEG, BMP or GIF files of any size, strings [B]."""
        return self.classify(decode(image_bytes, self._trained.image_shape))

    def label(self, classes) -> dict[str, tf.Tensor]:
        return {"labels": tf.gather(tf.constant(self._trained.class_names), classes)}


def decode(image_bytes, image_shape) -> tf.Tensor:
    """The images in files, strings [B], as uint8 [B, *image_shape].

    An error of a decoding op would not say which string it met. Under `ignore_errors` the images
    that cannot be decoded are missing, and the positions of the others tell which those are.
    """
    count = tf.size(image_bytes, tf.int64)
    images = tf.data.Dataset.from_tensor_slices(image_bytes).enumerate()
    images = images.map(
        lambda position, data: (position, decode_one(data, image_shape)), DECODED_IN_PARALLEL
    )
    # One more at the end, so that there is something to be found even if all fail.
    end = tf.data.Dataset.from_tensors((count, tf.zeros(image_shape, tf.uint8)))
    found = images.ignore_errors().concatenate(end).batch(count + 1)
    positions, pixels = found.with_options(_plain()).get_single_element()
    missing = positions != tf.range(tf.size(positions, tf.int64))
    bad = tf.minimum(tf.argmax(missing), tf.maximum(count - 1, 0))
    # The size helps a client to tell its own file from one of another request in the same batch.
    message = tf.strings.format(
        "image_bytes[{}] of {} bytes is not a whole PNG, JPEG, BMP or GIF image",
        (bad, tf.strings.length(tf.gather(tf.concat([image_bytes, [""]], 0), bad))),
    )
    with tf.control_dependencies(
        [tf.debugging.Assert(tf.size(positions, tf.int64) > count, [message])]
    ):
        return tf.ensure_shape(pixels[:count], [None, *image_shape])


def _plain() -> tf.data.Options:
    """Nothing to be tuned or rewritten in a pipeline of one batch: that would cost more and log."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def decode_one(data, image_shape) -> tf.Tensor:
    """One image file, made what `rat_tf.data.examples.fit` makes of it for training.

    Channels first: any alpha is left out, grey becomes RGB or the reverse; then the size.
    """
    height, width, channels = image_shape
    image = tf.io.decode_image(data, expand_animations=False)
    size, depth = tf.shape(image)[:2], tf.shape(image)[2]
    image = image[..., : depth - (1 - depth % 2)]
    image = tf.ensure_shape(tf.broadcast_to(image, [*tf.unstack(size), 3]), [None, None, 3])
    if channels == 1:  # of a grey image, now three times the same, rounding makes itself again
        image = tf.image.rgb_to_grayscale(image)
    resized = tf.image.resize(image, [height, width], antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)
