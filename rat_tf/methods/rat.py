"""RAT, and with it VAT (noise alone) and Random Transformation (the search switched off)."""

from __future__ import annotations

import tensorflow as tf

from rat_tf import adversary, divergences, draws, schedules
from rat_tf.methods import base
from rat_tf.methods.options import rat as options


class RAT(base.SemiSupervised):
    """L(x_l, y) + λ(t) KL[p(y|x_u) ‖ p(y|f_φ(x_u))] + entropy_multiplier · H[p(y|x_u)].

    φ is found by Algorithm 1 with ‖φ⁽ⁱ⁾ - φ_id⁽ⁱ⁾‖ = ε⁽ⁱ⁾(t), or drawn at random with that norm if
    `search` is false. p(y|x_u) in the KL is a constant. One clean pass serves labelled and
    unlabelled images; the search and the adversarial pass see the unlabelled ones only and leave
    the running statistics alone.
    """

    observations = ("cross_entropy", "kl", "entropy", "flipped", "fallback", "lambda")

    def __init__(
        self,
        *args,
        transform,
        search: bool = True,
        xi: adversary.Xi = adversary.PAPER_XI,
        power_iterations: int = 1,
        ascent: str = "paper",
        epsilon_rampup: int = 0,
        entropy_multiplier: float = 0.06,
        kl_direction: str = "clean_adversarial",
        **kwargs,
    ):
        super().__init__(*args, more_observations=_epsilon_names(transform), **kwargs)
        self.transform = transform
        self.search = search
        self.search_options = {"xi": xi, "power_iterations": power_iterations, "ascent": ascent}
        self.epsilon_rampup = epsilon_rampup
        self.entropy_multiplier = entropy_multiplier
        self.kl_direction = kl_direction

    def objective(self, labeled, labels, unlabeled, step, tape):
        labeled_logits, clean = self.forward(step, "clean", labeled, unlabeled, update_stats=True)
        target = tf.stop_gradient(clean)
        with tape.stop_recording():
            transformed, found = self.transformed(unlabeled, target, step)
        (moved,) = self.forward(step, "adversarial", transformed, update_stats=False)
        pair = (target, moved) if self.kl_direction == options.KL_DIRECTIONS[0] else (moved, target)
        kl = divergences.kl_divergence(*pair)
        cross_entropy = base.cross_entropy(labels, labeled_logits)
        return self.observed(step, cross_entropy, kl, clean, target, moved, found)

    def transformed(self, unlabeled, target, step) -> tuple[tf.Tensor, adversary.Found]:
        """f_φ(x_u) with the φ of this step, and how it was found."""
        found = self.offsets(unlabeled, target, self.epsilons(step), step, self.search)
        return self.transform.apply(unlabeled, found.offsets), found

    def observed(self, step, cross_entropy, kl, clean, target, moved, found):
        """What `objective` returns, from the losses of the images and the logits behind them."""
        cross_entropy, kl = tf.reduce_mean(cross_entropy), tf.reduce_mean(kl)
        entropy = tf.reduce_mean(divergences.entropy(clean))
        weight = self.weight(step)
        flipped = tf.argmax(moved, axis=-1) != tf.argmax(target, axis=-1)
        return cross_entropy + weight * kl + self.entropy_multiplier * entropy, {
            "cross_entropy": cross_entropy,
            "kl": kl,
            "entropy": entropy,
            "flipped": tf.reduce_mean(tf.cast(flipped, tf.float32)),
            "fallback": tf.reduce_mean(tf.cast(found.fallback, tf.float32)),
            "lambda": weight,
            **dict(zip(_epsilon_names(self.transform), self.epsilons(step))),
        }

    def epsilons(self, step) -> list[tf.Tensor]:
        """Rampup(ε⁽ⁱ⁾) of Algorithm 1 for every transformation."""
        ramp = schedules.rampup(step, self.epsilon_rampup)
        return [t.epsilon * ramp for t in self.transform.transforms]

    def offsets(self, images, clean_logits, epsilons, step, search: bool) -> adversary.Found:
        """The offsets of this step for `images` [B, H, W, C]: adversarial, or random."""
        rows = draws.Rows(images.shape[0])
        seed = draws.seed_for(self.seed, step, "direction")
        drawn = self.transform.random_direction(rows.total, images.shape[1:], seed)
        direction = [rows(v) for v in drawn]

        def logits(moved, iteration):
            return self.forward(step, f"search{iteration}", moved, update_stats=False)[0]

        options = self.search_options if search else {"power_iterations": 0}
        return adversary.search(
            self.transform, logits, images, clean_logits, direction, epsilons, **options
        )

    def examine(self, images, step):
        """What the adversary does to `images` (as stored) at `step`, and its strength.

        Returns the preprocessed `images`, the `transformed` ones, the `offsets` by name, and the
        KL reached per image, [B], by the search (`adversarial_kl`) and by the random direction it
        starts from (`random_kl`).
        """
        images = self.preprocessing(images)
        (clean,) = self.forward(step, "clean", images, update_stats=False)
        epsilons = self.epsilons(step)
        examined = {"images": images}
        for name, search in (("random_kl", False), ("adversarial_kl", True)):
            found = self.offsets(images, clean, epsilons, step, search)
            transformed = self.transform.apply(images, found.offsets)
            (moved,) = self.forward(step, "adversarial", transformed, update_stats=False)
            examined[name] = divergences.kl_divergence(clean, moved)
            if search == self.search:
                examined["transformed"] = transformed
                names = (t.name for t in self.transform.transforms)
                examined["offsets"] = dict(zip(names, found.offsets))
        return examined


def _epsilon_names(transform) -> list[str]:
    return [f"epsilon_{t.name}" for t in transform.transforms]
