"""Image files in the served graph: decoded as for training, and broken ones named."""

import functools
import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from export import classifier
from rat_tf.data import examples, headers
from tests.data import hostile


def picture(mode, size=(13, 9), seed=0):
    """Smooth noise in one of PIL's modes."""
    rng = np.random.default_rng(seed)
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
    coarse = rng.integers(256, size=(4, 4, channels), dtype=np.uint8)
    planes = [Image.fromarray(coarse[..., i]).resize(size) for i in range(channels)]
    return Image.merge(mode, planes) if channels > 1 else planes[0]


def file(image, kind="PNG"):
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


@functools.cache
def decoder(shape):
    """A graph for any number of files, as it is served."""
    files = tf.TensorSpec([None], tf.string)
    return tf.function(lambda data: classifier.decode(data, shape), input_signature=[files])


def decode(files, shape=(8, 8, 3)):
    return decoder(shape)(tf.constant(files, tf.string)).numpy()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "mode, kind",
    [("L", "PNG"), ("LA", "PNG"), ("RGB", "PNG"), ("RGBA", "PNG"), ("L", "JPEG"), ("RGB", "JPEG")]
    + [("RGB", "BMP"), ("RGBA", "BMP"), ("L", "GIF")],
)
def test_files_become_what_they_are_in_training(mode, kind, channels):
    sizes = [(13, 9), (8, 8), (3, 40)]
    files = [file(picture(mode, size, seed), kind) for seed, size in enumerate(sizes)]
    expected = [
        examples.fit(tf.io.decode_image(data, expand_animations=False), 8, channels).numpy()
        for data in files
    ]
    np.testing.assert_array_equal(decode(files, (8, 8, channels)), expected)


def test_images_of_the_right_size_are_not_touched_and_shapes_need_not_be_square():
    images = np.random.default_rng(0).integers(256, size=(5, 6, 11, 3), dtype=np.uint8)
    files = [file(Image.fromarray(image)) for image in images]
    np.testing.assert_array_equal(decode(files, (6, 11, 3)), images)


GOOD = file(picture("RGB"))


@pytest.mark.parametrize(
    "files, position",
    [
        ([b"not an image"], 0),
        ([GOOD, b"", GOOD], 1),
        ([GOOD] * 6 + [GOOD[: len(GOOD) // 2]], 6),
        ([GOOD, file(picture("RGB"), "JPEG")[:-40], b"x"], 1),
        ([b"x", b"y"], 0),
    ],
)
def test_a_broken_file_is_named_by_its_position(files, position):
    size = len(files[position])
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        decode(files)
    assert f"image_bytes[{position}] of {size} bytes" in error.value.message


def test_no_images_at_all():
    assert decode([]).shape == (0, 8, 8, 3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "large",
    [
        hostile.png(10_000, 10_000),
        hostile.jpeg(10_000, 10_000),
        hostile.gif([(1, 1), (10_000, 10_000)]),
        hostile.bmp(10_000, -10_000),
    ],
)
def test_a_file_of_too_many_pixels_is_named_with_the_limit(large, channels):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        decode([GOOD, large, GOOD], (8, 8, channels))
    text = f"image_bytes[1] of {len(large)} bytes has 10000000"
    assert text in error.value.message and "(10000 x 10000" in error.value.message
    assert f"expected at most {headers.LIMIT}" in error.value.message


def test_grey_in_parts_is_grey_as_a_whole(monkeypatch):
    image = np.random.default_rng(0).integers(256, size=(61, 47, 3), dtype=np.uint8)
    monkeypatch.setattr(classifier, "GREY_AT_ONCE", 100)
    found = decode([file(Image.fromarray(image))], (61, 47, 1))[0]
    np.testing.assert_array_equal(found, tf.image.rgb_to_grayscale(image))
