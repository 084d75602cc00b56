"""Reads an image file: the one way for training, predictions and the client of a server.

PNG, JPEG, BMP and GIF files are decoded by TensorFlow, with the operation that the exported graph
contains, so that both see the same pixels. What that cannot decode goes through Pillow: WebP, TIFF,
and BMP with a palette, 16 bits or compression. Formats are recognised by their content, not by the
name of the file. Photos are turned as their EXIF orientation says, which the exported graph does
not do: `for_server` turns them before they are sent.
"""

from __future__ import annotations

import io
import os
import stat
import warnings

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

from rat_tf.data import examples, headers, layouts

EXTENSIONS = layouts.EXTENSIONS
MAX_FILE = 2**28  # bytes; more than an image of the largest size needs in any format
BROKEN = "not a whole PNG, JPEG, BMP, GIF, WebP or TIFF image"
GREY = bytes(value for grey in range(256) for value in (grey, grey, grey, 0))  # as a BMP palette
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # of both byte orders; + is BigTIFF
ORIENTATION, TILE_WIDTH, TILE_LENGTH = 0x0112, 322, 323  # tags of TIFF and EXIF
#: How stored pixels become upright, by EXIF orientation (TIFF 6.0, page 36).
UPRIGHT = {
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: np.rot90(image, -1),
    7: lambda image: image[::-1, ::-1].swapaxes(0, 1),
    8: lambda image: np.rot90(image),
}

# Pillow warns of unusual metadata, which is not used here, once per file.
warnings.filterwarnings("ignore", module=r"PIL\.")


class Unusable(Exception):
    """A file that cannot be used; the message says what was expected and what was found."""


def read(path: str) -> np.ndarray:
    """The first image of a file, upright, uint8 [H, W, C]: grey, grey and alpha, RGB or RGBA."""
    return decode(content(path))


def content(path: str) -> bytes:
    """The bytes of a file."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise Unusable("expected an image file, found a folder or a device")
        if found.st_size > MAX_FILE:
            raise Unusable(
                f"expected a file of at most {MAX_FILE:,} bytes, found {found.st_size:,}"
            )
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # such as a zero byte in the name
        raise Unusable(f"cannot be read: {error}") from error


def decode(data: bytes) -> np.ndarray:
    """As `read`, of the bytes of a file."""
    if needs_pillow(data):
        return _pillow(data)
    image = _tensorflow(data)
    turn = UPRIGHT.get(orientation(data))
    return np.ascontiguousarray(turn(image)) if turn else image


def for_server(data: bytes) -> bytes:
    """A file that the exported graph decodes to the pixels of `decode`: the same one if possible.

    A broken file is left for the server to refuse, unless it has a format that only Pillow reads.
    """
    if needs_pillow(data) or orientation(data) in UPRIGHT:
        return tf.io.encode_png(decode(data), compression=1).numpy()
    return data


def needs_pillow(data: bytes) -> bool:
    """Whether the exported graph cannot decode the file, or would not decode it correctly."""
    if data.startswith(b"BM"):
        size = int.from_bytes(data[14:18], "little")  # of the second header; 12 is that of OS/2
        bits = int.from_bytes(data[24:26] if size == 12 else data[28:30], "little")
        compressed = size > 12 and int.from_bytes(data[30:34], "little") in (1, 2)
        grey = bits == 8 and data.startswith(GREY, 14 + size)
        # TensorFlow would take the numbers of colours in a palette for grey values.
        return compressed or (0 < bits <= 16 and not grey)
    return data.startswith(TIFF) or _is_webp(data)


def orientation(data: bytes) -> int:
    """The EXIF orientation of a PNG or JPEG file; 1, upright, if it has none that can be read."""
    mark = {b"\xff\xd8\xff": b"Exif\0\0", b"\x89PN": b"eXIf"}.get(data[:3])
    if mark is None or mark not in data:  # at once: Pillow would decode a PNG to be sure
        return 1
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged metadata can raise anything, and the pixels may still be good
        return 1


def _tensorflow(data: bytes) -> np.ndarray:
    try:
        height, width, pixels = headers.size(data).numpy()
    except tf.errors.InvalidArgumentError as error:
        raise _broken(BROKEN) from error
    _check_size(height, width, pixels)
    try:
        return tf.io.decode_image(data, expand_animations=False).numpy()
    except tf.errors.OpError as error:
        raise _broken(examples.reason(error)) from error


def _pillow(data: bytes) -> np.ndarray:
    if _is_webp(data):  # Pillow allocates the pixels when it opens the file
        height, width = webp_size(data)
        _check_size(height, width, height * width)
    try:
        with Image.open(io.BytesIO(data)) as image:
            _check_size(image.height, image.width, image.height * image.width)
            tags = getattr(image, "tag_v2", {})  # tiles may be larger than the image
            tile = tags.get(TILE_LENGTH, 1), tags.get(TILE_WIDTH, 1)
            _check_size(*tile, tile[0] * tile[1])
            image.load()
            return _array(ImageOps.exif_transpose(image))
    except Unusable:
        raise
    except Image.DecompressionBombError as error:
        raise Unusable(
            f"expected an image of at most {headers.LIMIT:,} pixels ({error})"
        ) from error
    except Exception as error:  # a damaged file can raise anything
        raise _broken(str(error).splitlines()[0] if str(error) else repr(error)) from error


def _array(image: Image.Image) -> np.ndarray:
    """An image of Pillow as uint8 [H, W, C]; of 16 bits the upper 8, as TensorFlow does."""
    if image.mode.startswith("I;16"):
        pixels = (np.asarray(image) >> 8).astype(np.uint8)
    elif image.mode in ("I", "F"):
        raise Unusable("expected 8 or 16 bits per channel, found 32: convert it")
    elif image.mode in ("L", "LA", "RGB", "RGBA"):
        pixels = np.array(image)
    else:  # a palette, CMYK and others, or black and white
        pixels = np.array(image.convert("L" if image.mode == "1" else "RGB"))
    return pixels if pixels.ndim == 3 else pixels[..., np.newaxis]


def _is_webp(data: bytes) -> bool:
    return data.startswith(b"RIFF") and data[8:12] == b"WEBP"


def webp_size(data: bytes) -> tuple[int, int]:
    """Height and width of a WebP file (RFC 9649); zeros if it is broken."""
    kind, start = data[12:16], data[20:30]

    def number(begin, end):
        return int.from_bytes(start[begin:end], "little")

    if len(start) < 10:
        return 0, 0
    if kind == b"VP8X":
        return number(7, 10) + 1, number(4, 7) + 1
    if kind == b"VP8L":
        bits = number(1, 5)
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8 ":
        return number(8, 10) & 0x3FFF, number(6, 8) & 0x3FFF
    return 0, 0


def _check_size(height: int, width: int, pixels: int) -> None:
    if not pixels:
        raise _broken(BROKEN)
    if pixels > headers.LIMIT:
        raise Unusable(
            f"expected an image of at most {headers.LIMIT:,} pixels, found {pixels:,} "
            f"({height}×{width}, all frames counted): make it smaller"
        )


def _broken(reason: str) -> Unusable:
    return Unusable(f"expected an image, found a broken file ({reason})")
