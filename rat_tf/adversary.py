"""Algorithm 1: the adversarial transformation parameters φ_T-adv, by one inner gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from rat_tf import divergences
from rat_tf.transforms import composite, spec

Xi = spec.Xi
PAPER_XI = Xi(1e-6)


class Found(NamedTuple):
    """Offsets of norm ε, one tensor per transformation, and where they are only random, [B]."""

    offsets: list[tf.Tensor]
    fallback: tf.Tensor


def search(
    transform: composite.Composite,
    logits: Callable[[tf.Tensor, int], tf.Tensor],
    images: tf.Tensor,
    clean_logits: tf.Tensor,
    direction: Sequence[tf.Tensor],
    epsilons: Sequence,
    xi: Xi = PAPER_XI,
    power_iterations: int = 1,
    ascent: str = "paper",
) -> Found:
    """Approximates argmax of KL[p(y|x) ‖ p(y|f_φ(x))] over ‖φ⁽ⁱ⁾ - φ_id⁽ⁱ⁾‖ ≤ ε⁽ⁱ⁾.

    From the random unit `direction` v, each power iteration takes the joint gradient g of the KL
    with respect to all v⁽ⁱ⁾ at φ_id + ξv, which is proportional to the Hessian-vector product H̃ṽ,
    and normalises it in each transformation's own norm: v⁽ⁱ⁾ = g⁽ⁱ⁾/‖g⁽ⁱ⁾‖ (`ascent="paper"`), or
    the maximiser of ⟨g⁽ⁱ⁾, u⟩ over ‖u‖ ≤ 1 (`"steepest"`: the same under an L2 norm, the polar
    factor for affine, the sign for channel weights). The offsets are ε⁽ⁱ⁾v⁽ⁱ⁾.

    Where a gradient is zero or not finite (a saturated network, half precision) that image keeps
    its last direction, a random one unless an earlier iteration succeeded.

    Args:
      logits: maps (images, iteration) to logits; it must not update any state.
      images: [B, H, W, C]; these and the next two may be NumPy arrays.
      clean_logits: [B, classes], of p(y|x).
      direction: offsets of norm 1, as `transform.random_direction` draws them.
      epsilons: the current, ramped ε⁽ⁱ⁾.

    Returns: offsets that are constants to any outer tape.
    """
    if ascent not in spec.ASCENTS:
        raise ValueError(f"ascent: expected one of {spec.ASCENTS}, got {ascent!r}")
    clean_logits = tf.stop_gradient(clean_logits)
    direction = [tf.convert_to_tensor(v) for v in direction]
    fallback = tf.zeros([tf.shape(images)[0]], tf.bool)
    for iteration in range(power_iterations):
        # Only the offsets are watched: no weight gradient is computed to be thrown away.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(direction)
            probe = [xi.at(epsilon) * v for epsilon, v in zip(epsilons, direction)]
            moved = logits(transform.apply(images, probe), iteration)
            # The sum, not the mean: with it an image's gradient does not depend on the batch size.
            kl = tf.reduce_sum(divergences.kl_divergence(clean_logits, moved))
        gradients = tape.gradient(kl, direction, unconnected_gradients="zero")
        for i, (t, gradient) in enumerate(zip(transform.transforms, gradients)):
            ascended = t.steepest(gradient) if ascent == "steepest" else t.unit(gradient)
            size = t.norm(gradient)
            live = tf.math.is_finite(size) & (size > 0)
            # The older `where` selects whole rows; the newer one would broadcast, far slower.
            direction[i] = tf.compat.v1.where(live, ascended, direction[i])
            fallback |= ~live
    offsets = [tf.stop_gradient(epsilon * v) for epsilon, v in zip(epsilons, direction)]
    return Found(offsets, fallback)
