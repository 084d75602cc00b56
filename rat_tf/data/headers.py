"""Reads the size of an image from its file, so that large images are refused before decoding.

A file of 300 KB can decode to 100 million pixels. `size` is plain TensorFlow: image folders call it
and the exported graph contains it. It detects formats and reads the size exactly as the decoder of
`tf.io.decode_image` does, so that a file cannot show different sizes to the two.
"""

from __future__ import annotations

import tensorflow as tf

LIMIT = 2**25
"""Maximum pixels of an image, 33,554,432: photos of a 32-megapixel camera."""
BROKEN = "not a whole PNG, JPEG, BMP or GIF image"
HEAD = 32  # bytes that contain the size in PNG and BMP
# Limits on what can make a small file take minutes to decode, at any image size. Ordinary files
# have a few scans and texts; a GIF of this many blocks has 16 MB.
GIF_BLOCKS = 2**16
JPEG_SCANS = 100
PNG_TEXTS = 20


@tf.function(input_signature=[tf.TensorSpec([], tf.string)])
def size(data) -> tf.Tensor:
    """Height, width and pixels of an image file, int64 [3]; zeros if it is `BROKEN`.

    Pixels are those of all frames of a GIF together, as all of them are decoded. A JPEG without a
    header is an error of TensorFlow's.
    """
    start = tf.strings.substr(data, 0, HEAD)
    head = tf.cast(tf.io.decode_raw(start + bytes(HEAD), tf.uint8)[:HEAD], tf.int64)
    kinds = {
        b"\xff\xd8\xff": lambda: _jpeg(data),
        b"\x89PNG\r\n\x1a\n": lambda: _png(data, start, head),
        b"GIF8": lambda: _gif(data),
        b"BM": lambda: _bmp(data, head),
    }
    branches = [
        (tf.strings.substr(start, 0, len(magic)) == magic, read) for magic, read in kinds.items()
    ]
    return tf.case(branches, default=lambda: tf.zeros([3], tf.int64))


def _jpeg(data) -> tf.Tensor:
    """A progressive JPEG is decoded once per scan, and a scan can be as small as 20 bytes.

    A scan's header is counted with its length, 6 + 2n, and its n components, as the decoder reads
    it: the film after a phone's photo has the marker alone by chance.
    """
    height, width, _ = tf.unstack(tf.cast(tf.io.extract_jpeg_shape(data), tf.int64))
    starts = [b"\xff\xda\0" + bytes([6 + 2 * n, n]) for n in range(5)]
    scans = tf.add_n([_count(data, start) for start in starts])
    return _sized(height, width, height * width, scans <= JPEG_SCANS)


def _png(data, start, head) -> tf.Tensor:
    """IHDR must come first; libpng would accept unknown chunks before it."""
    first = tf.strings.substr(start + bytes(HEAD), 8, 8) == b"\0\0\0\x0dIHDR"
    texts = _count(data, b"zTXt") + _count(data, b"iTXt")  # 8 KB of text can unpack to 8 MB
    width, height = _big_endian(head[16:20]), _big_endian(head[20:24])
    return _sized(height, width, height * width, first & (texts <= PNG_TEXTS))


def _bmp(data, head) -> tf.Tensor:
    """Rows from the top have a negative height. The pixels must be in the file."""
    width, height = _signed(head[18:22]), tf.abs(_signed(head[22:26]))
    return _sized(height, width, height * width, tf.strings.length(data) >= HEAD)


def _gif(data) -> tf.Tensor:
    """Walks over all blocks of the file.

    The decoder's image has the height of the highest and the width of the widest frame,
    regardless of the logical screen.
    """
    end = tf.strings.length(data)
    content = tf.io.decode_raw(data + bytes(16), tf.uint8)

    def at(position):
        return tf.cast(content[tf.minimum(position, end)], tf.int32)

    def after_blocks(position, blocks):
        """Data: blocks of 1 to 255 bytes after their length, the last one empty."""
        position, blocks = tf.while_loop(
            lambda place, count: (at(place) > 0) & (count < GIF_BLOCKS),
            lambda place, count: (place + 1 + at(place), count + 1),
            [position, blocks],
        )
        return position + 1, blocks + 1

    def colours(flags):
        """Bytes of the table of colours that may follow."""
        table = tf.bitwise.left_shift(6, tf.bitwise.bitwise_and(flags, 7))
        return tf.where(flags >= 128, table, 0)

    def frame(position, blocks, height, width, pixels):
        fields = tf.cast(content[position + 5 : position + 9], tf.int64)
        own_width, own_height = fields[0] + 256 * fields[1], fields[2] + 256 * fields[3]
        data_start = position + 11 + colours(at(position + 9))
        return (
            *after_blocks(data_start, blocks),
            tf.maximum(height, own_height),
            tf.maximum(width, own_width),
            pixels + own_height * own_width,
        )

    def step(position, blocks, *sizes):
        return tf.cond(
            at(position) == ord(","),
            lambda: frame(position, blocks, *sizes),
            lambda: (*after_blocks(position + 2, blocks), *sizes),
        )

    def more(position, blocks, *_):
        kind = at(position)
        return ((kind == ord(",")) | (kind == ord("!"))) & (blocks < GIF_BLOCKS)

    none = tf.constant(0, tf.int64)
    start = 13 + colours(at(10))
    position, _, height, width, pixels = tf.while_loop(
        more, step, [start, tf.constant(0), none, none, none]
    )
    whole = (at(position) == ord(";")) & (position < end)
    return _sized(height, width, tf.maximum(pixels, height * width), whole)


def _sized(height, width, pixels, whole) -> tf.Tensor:
    whole &= (height > 0) & (width > 0)
    return tf.where(whole, tf.stack([height, width, pixels]), 0)


def _count(data, part: bytes) -> tf.Tensor:
    return tf.size(tf.strings.split(data, part)) - 1


def _big_endian(four) -> tf.Tensor:
    return tf.reduce_sum(four * [2**24, 2**16, 2**8, 1])


def _signed(four) -> tf.Tensor:
    """Little-endian, in two's complement."""
    value = _big_endian(four[::-1])
    return tf.where(value < 2**31, value, value - 2**32)
