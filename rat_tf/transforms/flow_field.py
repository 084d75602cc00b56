"""Flow field: a displacement for every pixel."""

from rat_tf.transforms import base, sampling


class FlowField(base.SpatialTransform):
    """Offset [B, H, W, 2] = (δx, δy) per pixel; norm √Σ(δx² + δy²), the paper's L2 norm.

    An image pooled to a smaller size is moved by the field pooled to that size. The offset and its
    norm, which depends on the number of pixels, stay those of the full size.
    """

    name = "flow_field"

    def offset_shape(self, image_shape):
        return (*image_shape[:2], 2)

    def displacement(self, offset, height, width):
        return sampling.pool(offset, offset.shape[1] // height)
