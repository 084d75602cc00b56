"""The adversarial transformation parameters φ_T-adv: Algorithm 1, and searches beyond the paper.

`search` is Algorithm 1, by inner gradients. `Search` can also use random candidates, search on
pooled images, and search only some of the images.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rat_tf import divergences
from rat_tf.transforms import composite, sampling, spec

Xi = spec.Xi
PAPER_XI = spec.PAPER_XI


class Found(NamedTuple):
    """Offsets of norm ε, one tensor per transformation, and where a gradient had no use, [B]."""

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
    its last direction, a random one unless an earlier iteration succeeded, and is one of
    `fallback`. An operation of the network without a gradient counts as one of zero.

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
            probe = _scaled(map(xi.at, epsilons), direction)
            moved = logits(transform.apply(images, probe), iteration)
            # The sum, not the mean: with it an image's gradient does not depend on the batch size.
            kl = tf.reduce_sum(divergences.kl_divergence(clean_logits, moved))
        try:
            gradients = tape.gradient(kl, direction, unconnected_gradients="zero")
        except LookupError:
            gradients = [tf.zeros_like(v) for v in direction]
        for i, (t, gradient) in enumerate(zip(transform.transforms, gradients)):
            ascended = t.steepest(gradient) if ascent == "steepest" else t.unit(gradient)
            size = t.norm(gradient)
            live = tf.math.is_finite(size) & (size > 0)
            # The older `where` selects whole rows; the newer one would broadcast, far slower.
            direction[i] = tf.compat.v1.where(live, ascended, direction[i])
            fallback |= ~live
    return Found([tf.stop_gradient(v) for v in _scaled(epsilons, direction)], fallback)


def random(direction: Sequence[tf.Tensor], epsilons: Sequence) -> Found:
    """Offsets of norm ε⁽ⁱ⁾ in a random unit `direction`, and no search."""
    offsets = [tf.stop_gradient(v) for v in _scaled(epsilons, direction)]
    return Found(offsets, tf.zeros([tf.shape(offsets[0])[0]], tf.bool))


@dataclasses.dataclass(frozen=True)
class Search:
    """How offsets are found; the defaults are Algorithm 1.

    `kind` "gradient" is Algorithm 1. "worst_of" takes of `candidates` random directions, for each
    image, the one with the largest KL; of "both" the gradient's direction is one of them. With
    `ascent="steepest"` random directions, too, fill the ball of the norm, as if they were
    gradients. They are judged by the pass that is called "adversarial", so that a method can give
    it the augmentation under which they are used.

    With a `scale` of 1/2 or 1/4 transformations are searched on images pooled to that size, at a
    quarter or a sixteenth of the cost; p(y|x) and the offsets stay those of the full size. Noise
    has another meaning for each pixel: it is searched on its own, at full size.

    With a `share` < 1 only that share of the images, evenly spread, is searched. The others have
    random offsets of the same shape; of fewer than 1/share images all may be others.
    """

    kind: str = "gradient"
    candidates: int = 4
    scale: float = 1.0
    share: float = 1.0
    xi: Xi = PAPER_XI
    power_iterations: int = 1
    ascent: str = "paper"

    def __post_init__(self):
        if self.kind not in spec.ADVERSARIES:
            raise ValueError(f"kind: expected one of {spec.ADVERSARIES}, got {self.kind!r}")

    def __call__(
        self,
        transform: composite.Composite,
        logits: Callable[[tf.Tensor, str], tf.Tensor],
        images: tf.Tensor,
        clean_logits: tf.Tensor,
        directions: Callable[[int], Sequence[tf.Tensor]],
        epsilons: Sequence,
    ) -> Found:
        """Offsets for `images`, as `search` returns them.

        Args:
          logits: maps (images, name of the pass) to logits; it must not update any state.
          directions: draws the directions of candidate i; the gradient starts from those of 0.
        """
        rows = searched(images.shape[0], self.share)
        if len(rows) == images.shape[0]:
            return self._pooled(transform, logits, images, clean_logits, directions, epsilons)
        others = random(self._shaped(transform, directions(0)), epsilons)
        if not len(rows):  # a network with batch norm takes no batch without images
            return others

        def some(values):
            return [tf.gather(v, rows) for v in values]

        found = self._pooled(
            transform, logits, *some([images, clean_logits]), lambda i: some(directions(i)),
            epsilons,
        )  # fmt: skip
        # Where each image's row is in those that were found, followed by random ones for all.
        place = len(rows) + np.arange(images.shape[0])
        place[rows] = np.arange(len(rows))
        return tf.nest.map_structure(
            lambda *both: tf.gather(tf.concat(both, axis=0), place),
            found,
            others,
        )

    def _shaped(self, transform, directions) -> Sequence[tf.Tensor]:
        """Random directions in the shape of the gradient's."""
        if self.ascent != "steepest":
            return directions
        return [t.steepest(v) for t, v in zip(transform.transforms, directions)]

    def _pooled(self, transform, logits, images, clean_logits, directions, epsilons) -> Found:
        """Transformations that can be pooled on pooled images, then the others as they are."""
        if self.scale == 1:
            return self._best(transform, logits, images, clean_logits, directions, epsilons)
        offsets, fallback = {}, False
        for pools, factor in ((True, round(1 / self.scale)), (False, 1)):
            which = [i for i, t in enumerate(transform.transforms) if t.pools == pools]
            if which:
                found = self._best(
                    composite.Composite([transform.transforms[i] for i in which]),
                    logits,
                    sampling.pool(images, factor),
                    clean_logits,
                    lambda c, which=which: [directions(c)[i] for i in which],
                    [epsilons[i] for i in which],
                )
                offsets.update(zip(which, found.offsets))
                fallback |= found.fallback
        return Found([offsets[i] for i in range(len(offsets))], fallback)

    def _best(self, transform, logits, images, clean_logits, directions, epsilons) -> Found:
        """The gradient's offsets, or for each image the best of the candidates."""

        def candidate(i):
            return random(self._shaped(transform, directions(i)), epsilons)

        if self.kind == "worst_of":
            found = candidate(0)
        else:
            found = search(
                transform, lambda x, iteration: logits(x, f"search{iteration}"), images,
                clean_logits, directions(0), epsilons, self.xi, self.power_iterations, self.ascent,
            )  # fmt: skip
        if self.kind == "gradient":
            return found

        def reached(offsets):
            moved = logits(transform.apply(images, offsets), "adversarial")
            return divergences.kl_divergence(clean_logits, moved)

        offsets, kl = found.offsets, reached(found.offsets)
        for i in range(1, self.candidates):
            others = candidate(i).offsets
            other_kl = reached(others)
            better = (other_kl > kl) | tf.math.is_nan(kl)
            offsets = [tf.compat.v1.where(better, v, u) for u, v in zip(offsets, others)]
            kl = tf.where(better, other_kl, kl)
        return Found(offsets, found.fallback)


def searched(count: int, share: float) -> np.ndarray:
    """The rows of a `share` of `count` images, evenly spread, int64.

    Batches are in random order, so that nothing has to be drawn. Where count · share is a whole
    number on every replica, any number of replicas searches the same images.
    """
    return np.flatnonzero(np.diff(np.floor(share * np.arange(count + 1) + 1e-9)))


def _scaled(factors, direction) -> list[tf.Tensor]:
    return [factor * v for factor, v in zip(factors, direction)]
