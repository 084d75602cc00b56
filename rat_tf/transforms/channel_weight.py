"""Channel-wise weighting (the paper's colour distortion), f_φ(x_c) = φ_c x_c, φ_id = 1."""

import tensorflow as tf

from rat_tf.transforms import base


class ChannelWeight(base.Transform):
    """Multiplies channel c by 1 + v_c; offset [B, C], operator norm of diag(v) = max_c |v_c|."""

    name = "channel_weight"

    def offset_shape(self, image_shape):
        return (image_shape[-1],)

    def steepest(self, gradient):
        """Under the max norm ⟨g, u⟩ is largest at the corner sign(g)."""
        return tf.sign(base.as_float(gradient))

    def _apply(self, images, offset):
        return images * (1 + offset[:, tf.newaxis, tf.newaxis, :])

    def _norm(self, offset):
        return tf.reduce_max(tf.abs(offset), axis=1)
