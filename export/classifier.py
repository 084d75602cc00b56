"""The served graph: classifies pixels, or the bytes of image files."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rat_tf.data import headers
from rat_tf.training import weights

DECODED_IN_PARALLEL = 4  # image files of one request
GREY_AT_ONCE = 2**20  # pixels; as floating-point numbers they take 16 bytes each


class Classifier(tf.Module):
    """The module that is saved: variables, assets and signatures, without Keras and training.

    It holds the variables of the network and not the network, because Keras would trace and save
    every layer's call, including those for training.
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
            # So that clients can name the classes of `probabilities`. All signatures have a batch
            # dimension, which a server that batches requests needs.
            "class_names": tf.function(self.label).get_concrete_function(classes),
        }

    def classify(self, images) -> dict[str, tf.Tensor]:
        """uint8 [B, H, W, C] to probabilities and logits [B, K], classes and labels [B].

        The shape is checked here, as the server does not: oneDNN ends the process on a wrong rank,
        and fails on an empty batch. That is padded with one image, whose answer is dropped.
        """
        images = tf.ensure_shape(images, [None, *self._trained.image_shape])
        count = tf.shape(images)[0]
        missing = tf.maximum(1 - count, 0)
        logits = self._trained.logits(tf.pad(images, [[0, missing], [0, 0], [0, 0], [0, 0]]))
        logits = logits[:count]
        classes = tf.argmax(logits, axis=-1)
        return {
            "probabilities": tf.nn.softmax(logits),
            "logits": tf.identity(logits),
            "classes": classes,
            **self.label(classes),
        }

    def classify_bytes(self, image_bytes) -> dict[str, tf.Tensor]:
        """The same for PNG, JPEG, BMP or GIF files of up to `headers.LIMIT` pixels, strings [B]."""
        image_bytes = tf.ensure_shape(image_bytes, [None])
        return self.classify(decode(image_bytes, self._trained.image_shape))

    def label(self, classes) -> dict[str, tf.Tensor]:
        classes = tf.ensure_shape(classes, [None])
        return {"labels": tf.gather(tf.constant(self._trained.class_names), classes)}


def decode(image_bytes, image_shape) -> tf.Tensor:
    """The images in files, strings [B], as uint8 [B, *image_shape].

    A decoding op does not report which string failed. With `ignore_errors` the images that cannot
    be decoded are missing, and the positions of the others show which ones. Files that are too
    large are not decoded; files with a header that is `headers.BROKEN` are an error.
    """

    def read(position, data):
        size = headers.size(data)
        image = tf.cond(
            size[2] > headers.LIMIT,
            lambda: tf.zeros(image_shape, tf.uint8),
            # Empty bytes fail to decode.
            lambda: decode_one(tf.where(size[2] > 0, data, b""), image_shape),
        )
        return position, size, image

    count = tf.size(image_bytes, tf.int64)
    images = tf.data.Dataset.from_tensor_slices(image_bytes).enumerate()
    images = images.map(read, DECODED_IN_PARALLEL)
    # One more element, so that the dataset is not empty even if all fail.
    end = tf.data.Dataset.from_tensors(
        (count, tf.zeros([3], tf.int64), tf.zeros(image_shape, tf.uint8))
    )
    found = images.ignore_errors().concatenate(end).batch(count + 1)
    positions, sizes, pixels = found.with_options(_plain()).get_single_element()
    missing = positions != tf.range(tf.size(positions, tf.int64))
    large = sizes[:, 2] > headers.LIMIT
    broken, large_one = tf.argmax(missing), tf.argmax(large)
    height, width, total = tf.unstack(sizes[large_one])
    checks = [
        tf.debugging.Assert(
            ~tf.reduce_any(missing), [_message(image_bytes, broken, f"is {headers.BROKEN}")]
        ),
        tf.debugging.Assert(
            ~tf.reduce_any(large),
            [
                _message(
                    image_bytes,
                    positions[large_one],
                    "has {} pixels ({} x {}, all frames counted), expected at most {}",
                    total, height, width, headers.LIMIT,
                )
            ],
        ),
    ]  # fmt: skip
    with tf.control_dependencies(checks):
        return tf.ensure_shape(pixels[:count], [None, *image_shape])


def _message(image_bytes, position, text: str, *values) -> tf.Tensor:
    """An error message. The size helps clients to recognise their own file in a shared batch."""
    data = tf.gather(tf.concat([image_bytes, [""]], 0), position)
    return tf.strings.format(
        f"image_bytes[{{}}] of {{}} bytes {text}", (position, tf.strings.length(data), *values)
    )


def _plain() -> tf.data.Options:
    """No tuning or rewriting of a pipeline with one batch: it would cost more, and log."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def decode_one(data, image_shape) -> tf.Tensor:
    """One image file, converted as by `rat_tf.data.examples.fit` for training.

    First the channels: alpha is dropped, grey becomes RGB or the reverse. Then the size.
    """
    height, width, channels = image_shape
    image = tf.io.decode_image(data, expand_animations=False)
    size, depth = tf.shape(image)[:2], tf.shape(image)[2]
    image = image[..., : depth - (1 - depth % 2)]
    image = tf.ensure_shape(tf.broadcast_to(image, [*tf.unstack(size), 3]), [None, None, 3])
    if channels == 1:  # rounding restores a grey image, now three equal channels
        image = _grey(image)
    resized = tf.image.resize(image, [height, width], antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)


def _grey(image) -> tf.Tensor:
    """`tf.image.rgb_to_grayscale` in parts: at once it would take 16 more bytes per pixel."""
    pixels = tf.reshape(image, [-1, 3])
    parts = -(-tf.shape(pixels)[0] // GREY_AT_ONCE)

    def add(part, done):
        some = pixels[part * GREY_AT_ONCE : (part + 1) * GREY_AT_ONCE]
        return part + 1, done.write(part, tf.image.rgb_to_grayscale(some))

    done = tf.TensorArray(tf.uint8, parts, infer_shape=False, element_shape=[None, 1])
    _, done = tf.while_loop(lambda part, _: part < parts, add, [0, done], parallel_iterations=1)
    return tf.reshape(done.concat(), [*tf.unstack(tf.shape(image)[:2]), 1])
