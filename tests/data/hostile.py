"""Image files that promise more than they hold, written by the formats' definitions."""

import io
import struct
import zlib

from PIL import Image


def chunk(kind, data):
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum


def png(width, height, before=b"", after=b"", pixels=False):
    """A grey PNG, with chunks before and after its header; the pixels are zero, if it has any."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes((width + 1) * height if pixels else 1)))
    return b"\x89PNG\r\n\x1a\n" + before + header + after + rows + chunk(b"IEND", b"")


def gif(frames, screen=(4, 4), end=b";", extension=b"", colours=0):
    """A GIF with frames of these (width, height), each with data for one pixel."""
    flags = 0x80 | (colours - 1) if colours else 0
    table = bytes(3 * 2**colours) if colours else b""
    made = b"GIF89a" + struct.pack("<HHBBB", *screen, flags, 0, 0) + table + extension
    for width, height in frames:
        made += b"," + struct.pack("<HHHHB", 0, 0, width, height, flags) + table
        made += b"\x02\x02\x4c\x01\x00"
    return made + end


def bmp(width, height, offset=54, bits=24, pixels=200):
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHi", 0, 0, 0, offset) + header + bytes(pixels)


def jpeg(width, height, scans=1):
    """Of 16×16 pixels with another size written over theirs; the last scan is repeated."""
    stream = io.BytesIO()
    Image.new("L", (16, 16)).save(stream, "JPEG", progressive=scans > 1)
    made = stream.getvalue()
    frame = made.index(b"\xff\xc2" if scans > 1 else b"\xff\xc0") + 5
    made = made[:frame] + struct.pack(">HH", height, width) + made[frame + 4 :]
    start, end = made.rindex(b"\xff\xda"), len(made) - 2
    return made[:end] + made[start:end] * (scans - 1) + made[end:]


#: What is to be refused, by decoders or before them.
FILES = (
    b"",
    b"broken",
    png(4, 4),
    png(4, 4, before=chunk(b"abCd", b""), pixels=True),
    png(30_000, 30_000),
    png(2**31 - 1, 2**31 - 1),
    jpeg(65_500, 65_500),
    jpeg(16, 16)[:40],
    gif([(65_535, 65_535)]),
    gif([(1, 1), (65_535, 65_535)]),
    gif([(1, 1)] * 1000 + [(65_535, 1), (1, 65_535)]),
    gif([(1, 1)], end=b""),
    bmp(30_000, 30_000),
    bmp(30_000, -(2**31)),
    *(bmp(4, 4, offset=offset) for offset in (-100, 2**31 - 1, -(2**31))),
    *(bmp(4, 4, bits=bits) for bits in (0, 1, 16, 64)),
)
