"""The served graph: from pixels, or from the bytes of image files, to answers."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rat_tf.data import headers
from rat_tf.training import weights

DECODED_IN_PARALLEL = 4  # image files of one request
GREY_AT_ONCE = 2**20  # pixels; as floating-point numbers they take 16 bytes each


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
        """uint8 [B, H, W, C] to probabilities and logits [B, K], classes and labels [B].

        The shape is checked here, as no server does it: oneDNN ends the process where the number of
        dimensions is wrong, and fails on an empty batch. That is given one image, whose answer is
        left out.
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

    An error of a decoding op would not say which string it met. Under `ignore_errors` the images
    that cannot be decoded are missing, and the positions of the others tell which those are. What
    is too large is not decoded; what is `headers.BROKEN` by its header is made an error.
    """

    def read(position, data):
        size = headers.size(data)
        image = tf.cond(
            size[2] > headers.LIMIT,
            lambda: tf.zeros(image_shape, tf.uint8),
            # Of no bytes nothing can be decoded.
            lambda: decode_one(tf.where(size[2] > 0, data, b""), image_shape),
        )
        return position, size, image

    count = tf.size(image_bytes, tf.int64)
    images = tf.data.Dataset.from_tensor_slices(image_bytes).enumerate()
    images = images.map(read, DECODED_IN_PARALLEL)
    # One more at the end, so that there is something to be found even if all fail.
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
            ~tf.reduce_any(missing), [_complaint(image_bytes, broken, f"is {headers.BROKEN}")]
        ),
        tf.debugging.Assert(
            ~tf.reduce_any(large),
            [
                _complaint(
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


def _complaint(image_bytes, position, text: str, *values) -> tf.Tensor:
    """The size helps a client to tell its own file from one of another request in the batch."""
    data = tf.gather(tf.concat([image_bytes, [""]], 0), position)
    return tf.strings.format(
        f"image_bytes[{{}}] of {{}} bytes {text}", (position, tf.strings.length(data), *values)
    )


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
        image = _grey(image)
    resized = tf.image.resize(image, [height, width], antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)


def _grey(image) -> tf.Tensor:
    """`tf.image.rgb_to_grayscale` in parts: as a whole it takes 16 more bytes for each pixel."""
    pixels = tf.reshape(image, [-1, 3])
    parts = -(-tf.shape(pixels)[0] // GREY_AT_ONCE)

    def add(part, done):
        some = pixels[part * GREY_AT_ONCE : (part + 1) * GREY_AT_ONCE]
        return part + 1, done.write(part, tf.image.rgb_to_grayscale(some))

    done = tf.TensorArray(tf.uint8, parts, infer_shape=False, element_shape=[None, 1])
    _, done = tf.while_loop(lambda part, _: part < parts, add, [0, done], parallel_iterations=1)
    return tf.reshape(done.concat(), [*tf.unstack(tf.shape(image)[:2]), 1])
