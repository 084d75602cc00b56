"""Whether images and a network fit the search of a method, said before training.

Texts are those of arguments in Python; the command line shows them as flags.
"""

from __future__ import annotations

import tensorflow as tf

from rat_tf.transforms import sampling


def check(method, images) -> None:
    """Refuses `images` [B, H, W, C] of one replica, scaled to [-1, 1], or the method's network."""
    searching = method.searching
    scale(images.shape[1:3], searching.scale)
    factor, by_gradient = round(1 / searching.scale), searching.kind != "worst_of"
    pooled = sampling.pool(images, factor)
    gradients: list = []  # of the logits by the images, one for each replica that is traced

    def search(images):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(images)
            (logits,) = method.forward(0, "search0", images, update_stats=False, pooled=factor)
        if by_gradient:
            gradients.append(_gradient(tape, logits, images))
        return logits

    try:
        tf.function(lambda images: tf.distribute.get_strategy().run(search, (images,)))(pooled)
    except (ValueError, tf.errors.InvalidArgumentError):
        if factor == 1:
            raise
        size, small = ("x".join(map(str, each.shape[1:3])) for each in (images, pooled))
        raise ValueError(
            f"adversary_scale={searching.scale}: the network takes images of {size} only, not "
            f"those pooled to {small}"
        ) from None
    if by_gradient and gradients[0] is None:
        raise ValueError(
            f"{method.network.name}: its outputs have no gradient with respect to the images, as "
            "if it rounded them or made them whole numbers: a search by gradients finds nothing. "
            "Expected a network that takes float images, or adversary_kind=worst_of"
        )


def _gradient(tape, logits, images) -> tf.Tensor | None:
    try:
        return tape.gradient(logits, images)
    except LookupError:  # an operation that has none
        return None


def scale(image_shape, scale: float) -> None:
    """Refuses images that cannot be pooled to a `scale` of their height and width."""
    height, width = image_shape[:2]
    factor = round(1 / scale)
    if height % factor or width % factor:
        raise ValueError(
            f"adversary_scale={scale}: expected images whose height and width are multiples of "
            f"{factor}, got {height}x{width}"
        )
