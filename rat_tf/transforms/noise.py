"""Noise injection, f_φ(x) = x + φ, under the L2 norm. Alone, it makes RAT equal to VAT."""

from rat_tf.transforms import base


class Noise(base.Transform):
    """Adds the offset to the image; offset [B, H, W, C], L2 norm."""

    name = "noise"
    pools = False

    def offset_shape(self, image_shape):
        return tuple(image_shape)

    def _apply(self, images, offset):
        return images + offset
