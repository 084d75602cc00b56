"""Stability: whether a class survives the transformations that training used."""

from __future__ import annotations

import tensorflow as tf

from rat_tf import adversary, draws
from rat_tf.transforms import composite

# Nothing else tells the passes apart: a smaller ξ is lost in rounding.
XI = adversary.Xi(0.1, relative=True)


def share(
    transform: composite.Composite, logits, images, clean_logits, start, count: int, seed: int = 0
) -> tf.Tensor:
    """The share of `count` transformations of norm ε under which the class stays, float32 [B].

    The first is random, the second adversarial (Algorithm 1 with steepest ascent), and so on. What
    is drawn is a function of (seed, `start`, number of the transformation), where `start` is the
    position of the first image.

    Args:
      logits: maps preprocessed images to logits, without updating any state.
      images: preprocessed, [B, H, W, C].
    """
    epsilons = [each.epsilon for each in transform.transforms]
    stays = tf.zeros([images.shape[0]])
    for number in range(count):
        key = draws.seed_for(seed, start, f"stability{number}")
        found = adversary.search(
            transform,
            lambda moved, iteration: logits(moved),
            images,
            clean_logits,
            transform.random_direction(images.shape[0], images.shape[1:], key),
            epsilons,
            xi=XI,
            power_iterations=number % 2,
            ascent="steepest",
        )
        moved = logits(transform.apply(images, found.offsets))
        same = tf.argmax(moved, axis=-1) == tf.argmax(clean_logits, axis=-1)
        stays += tf.cast(same, tf.float32)
    return stays / count
