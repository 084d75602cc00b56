"""Flow field: a displacement for every pixel."""

from rat_tf.transforms import base


class FlowField(base.SpatialTransform):
    """Offset [B, H, W, 2] = (δx, δy) per pixel; norm √Σ(δx² + δy²), the paper's L2 norm."""

    name = "flow_field"

    def offset_shape(self, image_shape):
        return (*image_shape[:2], 2)

    def displacement(self, offset, height, width):
        return offset
