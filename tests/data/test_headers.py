"""Sizes from headers, against the decoder and against files that lie."""

import io
import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from rat_tf.data import headers
from tests.data import hostile


def file(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
@pytest.mark.parametrize("width, height", [(1, 1), (13, 9), (300, 2), (3, 700)])
def test_sizes_are_those_of_the_decoder(kind, mode, width, height):
    data = file(Image.new(mode, (width, height)), kind)
    decoded = tf.io.decode_image(data, expand_animations=False)
    assert headers.size(data).numpy().tolist() == [*decoded.shape[:2], width * height]
    assert tuple(decoded.shape[:2]) == (height, width)


def test_frames_of_a_gif_are_all_counted():
    rng = np.random.default_rng(0)
    frames = [Image.fromarray(rng.integers(256, size=(50, 70, 3), dtype=np.uint8)) for _ in "12345"]
    data = file(frames[0], "GIF", save_all=True, append_images=frames[1:], comment=b"c" * 600)
    assert headers.size(data).numpy().tolist() == [50, 70, 5 * 50 * 70]
    with_tables = hostile.gif([(7, 5), (2, 9)], colours=3, extension=b"!\xfe\x02ab\x01c\x00")
    assert headers.size(with_tables).numpy().tolist() == [9, 7, 63]


def test_a_bmp_from_the_top():
    data = hostile.bmp(4, -7, pixels=84)
    assert headers.size(data).numpy().tolist() == [7, 4, 28]
    assert tf.io.decode_image(data).shape == (7, 4, 3)


@pytest.mark.parametrize(
    "data, size",
    [
        (hostile.png(10_000, 10_000), (10_000, 10_000)),
        (hostile.png(2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1)),
        (hostile.jpeg(65_500, 65_500), (65_500, 65_500)),
        (hostile.gif([(20_000, 30_000)]), (30_000, 20_000)),
        (hostile.gif([(1, 1), (60_000, 1), (1, 60_000)]), (60_000, 60_000)),
        (hostile.bmp(20_000, 20_000), (20_000, 20_000)),
        (hostile.bmp(20_000, -(2**31)), (2**31, 20_000)),
    ],
)
def test_more_pixels_than_the_limit_are_seen_without_decoding(data, size):
    assert len(data) < 1000
    height, width, pixels = headers.size(data).numpy()
    assert (height, width) == size and pixels >= height * width > headers.LIMIT


def test_many_small_frames_are_too_many_pixels():
    assert headers.size(hostile.gif([(4000, 1000)] * 9)).numpy()[2] == 36_000_000 > headers.LIMIT


TEXT = hostile.chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1000)))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"B", b"BM", b"GIF8", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\x89PNG", b"II*\0" * 20),
        hostile.png(4, 4, before=hostile.chunk(b"abCd", b"IHDR"), pixels=True),
        hostile.png(4, 4, after=TEXT * (headers.PNG_TEXTS + 1), pixels=True),
        *(hostile.png(0, 4), hostile.bmp(0, 4), hostile.bmp(4, 0), hostile.bmp(-4, 4)),
        *(hostile.gif([(1, 1)], end=b""), hostile.gif([(1, 1)], end=b"x"), hostile.gif([])),
        hostile.gif([(1, 1)], end=b"!\xfe\xff;"),
        hostile.gif([(1, 1)], extension=b"!\xfe" + b"\x01;" * headers.GIF_BLOCKS + b"\0"),
        hostile.jpeg(16, 16, scans=headers.JPEG_SCANS + 1),
    ],
    ids=lambda data: repr(data[:8]),
)
def test_no_size_of_what_is_no_image_or_takes_too_long(data):
    assert headers.size(data).numpy().tolist() == [0, 0, 0]


def test_a_film_after_a_photo_has_no_scans():
    film = np.random.default_rng(1).bytes(8_000_000)
    assert film.count(b"\xff\xda") > headers.JPEG_SCANS
    assert headers.size(hostile.jpeg(16, 16) + film).numpy()[2] == 256


def test_a_few_texts_and_scans_are_usual():
    assert headers.size(hostile.png(4, 4, after=TEXT * 3, pixels=True)).numpy()[2] == 16
    assert headers.size(hostile.jpeg(16, 16, scans=8)).numpy()[2] == 256


def test_half_a_header_of_a_jpeg_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        headers.size(hostile.jpeg(16, 16)[:40])
