"""Small versions of images, as they are stored, for a page; and originals to lay out."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

SIDE = 240  # pixels at most
SMALL = 64  # images up to here are kept as PNG, without losses


def encoded(image: np.ndarray) -> tuple[str, bytes]:
    """The type and the bytes of a small version of an image, uint8 [H, W, C]."""
    picture = of_array(image)
    if max(picture.size) <= SMALL:
        return "image/png", _bytes(picture, "PNG")
    picture.thumbnail((SIDE, SIDE))
    return "image/jpeg", _bytes(picture.convert("RGB"), "JPEG", quality=80)


def of_array(image: np.ndarray) -> Image.Image:
    """An image of 1 to 4 channels for Pillow."""
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


def _bytes(picture: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()
