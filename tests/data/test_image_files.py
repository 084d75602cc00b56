"""Files of all formats, against Pillow, NumPy and the decoder of the exported graph."""

import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from export import classifier
from rat_tf.data import headers, image_files
from tests.data import hostile, pictures

PHOTO = pictures.smooth()


def served(data, shape):
    """The pixels that the exported graph makes of a file."""
    return classifier.decode_one(tf.constant(data), shape).numpy()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("kind, options", [("PNG", {}), ("TIFF", {}), ("WEBP", {"lossless": True})])
def test_lossless_files_give_what_was_written(kind, options, depth):
    image = pictures.smooth(channels=depth)
    if kind == "WEBP":  # has no grey; "exact": Pillow would drop the colour of transparent pixels
        image, options = pictures.smooth(channels=3 + (1 - depth % 2)), {**options, "exact": True}
    found = image_files.decode(pictures.file(pictures.picture(image), kind, **options))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, image)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
def test_what_the_exported_graph_decodes_is_bit_equal_to_it(kind):
    data = pictures.file(pictures.picture(PHOTO), kind)
    found = image_files.decode(data)
    np.testing.assert_array_equal(found, served(data, found.shape))
    assert image_files.for_server(data) is data


@pytest.mark.parametrize("kind, tolerance", [("JPEG", 24), ("PNG", 0), ("WEBP", 0), ("TIFF", 0)])
@pytest.mark.parametrize("orientation", pictures.STORED)
def test_photos_are_upright_here_and_at_the_server(kind, tolerance, orientation):
    options = {
        "JPEG": {"quality": 100, "subsampling": 0},
        "WEBP": {"lossless": True},
    }.get(kind, {})
    data = pictures.file(pictures.picture(PHOTO), kind, orientation, **options)
    found = image_files.decode(data)
    assert found.shape == PHOTO.shape
    assert np.abs(found.astype(int) - PHOTO).max() <= tolerance
    np.testing.assert_array_equal(served(image_files.for_server(data), PHOTO.shape), found)


def test_damaged_exif_does_not_spoil_a_photo():
    data = pictures.file(pictures.picture(PHOTO), "JPEG", orientation=1)
    start = data.index(b"Exif\0\0") + 6
    damaged = data[:start] + b"\xff" * 8 + data[start + 8 :]
    np.testing.assert_array_equal(image_files.decode(damaged), image_files.decode(data))


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bits_lose_their_lower_8(order):
    values = np.random.default_rng(0).integers(0, 2**16, (5, 7), np.uint16)
    expected = (values >> 8)[..., np.newaxis]
    if order == "<":
        png = pictures.file(Image.fromarray(values), "PNG")
        np.testing.assert_array_equal(image_files.decode(png), expected)
        assert image_files.for_server(png) is png
    colour = tf.io.encode_png(np.stack([values] * 3, -1)).numpy()
    np.testing.assert_array_equal(image_files.decode(colour), np.repeat(expected, 3, -1))
    tiff = grey_tiff(values, order)
    np.testing.assert_array_equal(image_files.decode(tiff), expected)
    np.testing.assert_array_equal(served(image_files.for_server(tiff), (5, 7, 1)), expected)


def grey_tiff(values, order, tags=()):
    """An uncompressed TIFF by its definition (TIFF 6.0), bits from the type of the values."""
    height, width = values.shape
    bits = 8 * values.dtype.itemsize
    entries = [(256, width), (257, height), (258, bits), (259, 1), (262, 1), (277, 1), *tags]
    start = 8 + 2 + 12 * (len(entries) + 2) + 4
    entries += [(273, start), (279, values.nbytes)]
    made = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    made += struct.pack(order + "H", len(entries))
    for tag, value in sorted(entries):
        made += struct.pack(order + "HHII", tag, 4, 1, value)
    return made + bytes(4) + values.astype(values.dtype.newbyteorder(order)).tobytes()


@pytest.mark.parametrize("colours", [2, 16, 256])
def test_a_bmp_with_a_palette(colours):
    picture = pictures.picture(PHOTO).quantize(colours)
    data = pictures.file(picture, "BMP")
    found = image_files.decode(data)
    np.testing.assert_array_equal(found, np.array(picture.convert("RGB")))
    np.testing.assert_array_equal(served(image_files.for_server(data), found.shape), found)


def test_black_and_white():
    picture = pictures.picture(PHOTO).convert("1")
    for kind in ("BMP", "TIFF", "PNG"):
        found = image_files.decode(pictures.file(picture, kind))
        np.testing.assert_array_equal(found[..., 0], np.array(picture.convert("L")))


def test_only_the_first_of_several_images_is_read():
    frames = [pictures.picture(pictures.smooth(seed=seed)) for seed in range(3)]
    more = {"save_all": True, "append_images": frames[1:]}
    expected = np.array(frames[0])
    for kind, options in (("TIFF", {}), ("WEBP", {"lossless": True})):
        data = pictures.file(frames[0], kind, **more, **options)
        np.testing.assert_array_equal(image_files.decode(data)[..., :3], expected)
    gif = image_files.decode(pictures.file(frames[0], "GIF", **more))
    assert np.abs(gif.astype(int) - expected).mean() < 8  # 256 colours


def test_cmyk_becomes_rgb():
    cmyk = pictures.picture(PHOTO).convert("CMYK")
    tiff = image_files.decode(pictures.file(cmyk, "TIFF"))
    np.testing.assert_array_equal(tiff, np.array(cmyk.convert("RGB")))
    jpeg = image_files.decode(pictures.file(cmyk, "JPEG", quality=100))
    assert np.abs(jpeg.astype(int) - PHOTO).max() <= 12


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0"}])
def test_the_size_of_a_webp_is_read_from_its_header(options):
    data = pictures.file(pictures.picture(pictures.smooth(31, 517)), "WEBP", **options)
    assert image_files.webp_size(data) == (31, 517)
    assert Image.open(io.BytesIO(data)).size == (517, 31)


def large_webp(kind):
    sizes = {
        b"VP8X": bytes(4) + b"\xfe\x3f\x00\xfe\x3f\x00",
        b"VP8L": b"\x2f" + struct.pack("<I", 0x0FFFFFFF) + bytes(5),
        b"VP8 ": b"\0\0\0\x9d\x01\x2a\xff\x3f\xff\x3f",
    }
    return b"RIFF" + struct.pack("<I", 22) + b"WEBP" + kind + struct.pack("<I", 10) + sizes[kind]


def wide_tiff(width):
    """Of 4×4 pixels with another width written over theirs."""
    written, said = (struct.pack("<HHII", 256, 4, 1, value) for value in (4, width))
    return grey_tiff(np.zeros((4, 4), np.uint8), "<").replace(written, said)


LARGE = {
    "webp": large_webp(b"VP8X"),
    "lossless webp": large_webp(b"VP8L"),
    "lossy webp": large_webp(b"VP8 "),
    "tiff": wide_tiff(2**24),
    "tiff that Pillow refuses": wide_tiff(2**28),
    "tiff with large tiles": grey_tiff(
        np.zeros((4, 4), np.uint8), "<", [(322, 2**16), (323, 2**16)]
    ),
    "bmp with a palette": hostile.bmp(10_000, 10_000, bits=8),
    "png": hostile.png(10_000, 10_000),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_more_pixels_than_the_limit_are_not_decoded(data, monkeypatch):
    monkeypatch.setattr(tf.io, "decode_image", lambda *_, **__: pytest.fail("decoded"))
    monkeypatch.setattr(Image.Image, "load", lambda *_: pytest.fail("decoded"))
    with pytest.raises(image_files.Unusable, match=f"at most {headers.LIMIT:,} pixels"):
        image_files.decode(data)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_half_a_file_is_broken(kind):
    data = pictures.file(pictures.picture(pictures.smooth(60, 80)), kind)
    for end in (len(data) // 2, 30, 12):
        with pytest.raises(image_files.Unusable, match="expected an image, found a broken file"):
            image_files.decode(data[:end])


def test_what_cannot_be_used_says_why():
    with pytest.raises(image_files.Unusable, match="8 or 16 bits per channel, found 32"):
        image_files.decode(pictures.file(Image.new("F", (4, 4)), "TIFF"))
    with pytest.raises(image_files.Unusable, match="not a whole PNG, JPEG, .* TIFF image"):
        image_files.decode(b"text")
    with pytest.raises(image_files.Unusable, match="cannot be read: No such file"):
        image_files.read("/no/where.png")
    with pytest.raises(image_files.Unusable, match="expected an image file, found a folder or"):
        image_files.read("/dev/zero")
    with pytest.raises(image_files.Unusable, match="cannot be read: embedded null byte"):
        image_files.read("a\0.png")


def test_a_name_does_not_decide_the_format(tmp_path):
    (tmp_path / "a.jpg").write_bytes(pictures.file(pictures.picture(PHOTO), "WEBP", lossless=True))
    np.testing.assert_array_equal(image_files.read(str(tmp_path / "a.jpg")), PHOTO)
