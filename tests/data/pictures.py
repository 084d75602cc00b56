"""Photos as people have them: files of all formats, by Pillow."""

import io

import numpy as np
from PIL import Image

#: What the pixels of an upright image become when they are stored, by EXIF orientation.
STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,  # the viewer turns it clockwise
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def smooth(height=9, width=14, channels=3, seed=0):
    """Smooth noise, uint8 [H, W, C]: what JPEG and WebP compress well."""
    rng = np.random.default_rng(seed)
    planes = [
        Image.fromarray(rng.integers(0, 256, (3, 4), np.uint8)).resize((width, height), 3)
        for _ in range(channels)
    ]
    return np.stack([np.asarray(plane) for plane in planes], axis=-1)


def picture(image):
    """Of Pillow, from uint8 [H, W, C]."""
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def file(image, kind, orientation=None, **options):
    """The bytes of a file of a picture of Pillow; `orientation` stores it turned."""
    stream = io.BytesIO()
    if orientation is not None:
        if STORED[orientation] is not None:
            image = image.transpose(STORED[orientation])
        exif = Image.Exif()
        exif[0x0112], exif[0x010F] = orientation, "Camera"
        options["exif"] = exif
    image.save(stream, kind, **options)
    return stream.getvalue()


def palette(image):
    return picture(image).quantize(16)


def tiff_16(values, **options):
    """A TIFF of 16 bits, grey, from uint16 [H, W]."""
    return file(Image.fromarray(values), "TIFF", **options)
