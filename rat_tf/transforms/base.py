"""The interface of a transformation: the shape of its offset, a norm and `apply`."""

from __future__ import annotations

import tensorflow as tf

from rat_tf import draws, stack
from rat_tf.transforms import sampling, spec


class Transform:
    """f_φ with φ = φ_id + v, where v is the *offset* from the identity (conditions C1, C2).

    An offset for a batch is a tensor [B, *offset_shape]. The norm is the L2 norm unless a subclass
    says otherwise. `epsilon` is the radius ‖v‖ ≤ ε of Eq. (argmax over φ). Images and offsets may
    be anything that `tf.convert_to_tensor` takes, such as NumPy arrays and lists.
    """

    name: str
    #: Whether an offset for an image does the same to the image pooled to a smaller size.
    pools: bool = True

    def __init__(self, epsilon: float):
        if not epsilon > 0:
            raise ValueError(f"{self.name}: epsilon must be a number > 0, got {epsilon!r}")
        self.epsilon = float(epsilon)

    def __repr__(self) -> str:
        return f"{self.name}:{self.epsilon:g}"

    def offset_shape(self, image_shape) -> tuple[int, ...]:
        """Shape of the offset of one image of shape `image_shape`, (H, W, C)."""
        raise NotImplementedError

    def apply(self, images, offset) -> tf.Tensor:
        """f_{φ_id+v}(images): float32 (float64 for float64 images), and `images` where v = 0."""
        images = as_float(images)
        return self._apply(images, tf.cast(offset, images.dtype))

    def norm(self, offset) -> tf.Tensor:
        """‖v‖ of each image's offset, [B].

        Computed on v / max|v|, so that no square under- or overflows: an inner gradient of 1e-25 is
        a perfectly good direction.
        """
        offset = as_float(offset)
        largest = tf.reduce_max(tf.abs(_flat(offset)), axis=1)
        scale = tf.where(largest > 0, largest, tf.ones_like(largest))
        return largest * self._norm(offset / per_image(scale, offset))

    def unit(self, offset) -> tf.Tensor:
        """v / ‖v‖, the paper's normalisation; 0 where v = 0."""
        offset = as_float(offset)
        return tf.math.divide_no_nan(offset, per_image(self.norm(offset), offset))

    def steepest(self, gradient) -> tf.Tensor:
        """argmax of ⟨gradient, u⟩ over ‖u‖ ≤ 1: for the L2 norm the normalised gradient."""
        return self.unit(gradient)

    def random_direction(self, batch_size, image_shape, seed, dtype=tf.float32) -> tf.Tensor:
        """Offsets of norm 1, one per image, from a stateless `seed` of shape [2]."""
        shape = [batch_size, *self.offset_shape(image_shape)]
        return self.unit(draws.normal(shape, seed, dtype))

    def _apply(self, images, offset) -> tf.Tensor:
        raise NotImplementedError

    def _norm(self, offset) -> tf.Tensor:
        return tf.norm(_flat(offset), axis=1)


class SpatialTransform(Transform):
    """A transformation that moves pixels: (u, v) → (u + δu, v + δv), sampled bilinearly."""

    def __init__(self, epsilon: float, padding: str = "zeros", sampler: str | None = None):
        super().__init__(epsilon)
        sampler = sampler or sampling.fastest(compiled=False)
        for option, value, known in (
            ("padding", padding, spec.PADDINGS),
            ("sampler", sampler, spec.SAMPLERS),
        ):
            if value not in known:
                raise ValueError(f"{self.name}: {option} must be one of {known}, got {value!r}")
        if sampler == "resampler" and sampling.tfa is None:
            raise ValueError(f"{self.name}: {stack.NO_RESAMPLER}")
        self.padding = padding
        self.sampler = sampler

    def displacement(self, offset, height: int, width: int) -> tf.Tensor:
        """(δx, δy) of every pixel in normalised coordinates, [B, H, W, 2]; linear in the offset."""
        raise NotImplementedError

    def _apply(self, images, offset) -> tf.Tensor:
        height, width = images.shape[1:3]
        displacement = self.displacement(offset, height, width)
        return sampling.warp(images, displacement, self.padding, self.sampler)


def as_float(values) -> tf.Tensor:
    """float32, or float64 where `values` are: half precision has no room for small offsets."""
    values = tf.convert_to_tensor(values)
    return values if values.dtype == tf.float64 else tf.cast(values, tf.float32)


def _flat(offset) -> tf.Tensor:
    return tf.reshape(offset, [tf.shape(offset)[0], -1])


def per_image(values, like) -> tf.Tensor:
    """Reshapes `values` [B] to broadcast against `like` [B, ...]."""
    return tf.reshape(values, [-1] + [1] * (like.shape.rank - 1))
