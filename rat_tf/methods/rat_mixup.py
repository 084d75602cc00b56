"""RAT with Mixup: the combination that the paper leaves as future work."""

from __future__ import annotations

import tensorflow as tf

from rat_tf import divergences, draws
from rat_tf.methods import base, mixup, rat, supervision
from rat_tf.methods.options import rat as options


class RATMixup(rat.RAT):
    """L(x_l', y') + λ(t) KL[p' ‖ p(y|f_φ(x_u)')] + entropy_multiplier · H[p(y|x_u)].

    The labelled images with their labels and the adversarially transformed ones with the constant
    predictions on their originals are one pool; the primes mark mixtures within it. Where Mixup's
    λ' is 1 this is RAT, up to batch statistics over other batches. The pass over the unmixed
    unlabelled images gives the targets and updates the running statistics, which must describe
    unmixed images.
    The threshold is for the nearer image of a mixture. `kl_direction` and `separate_statistics`
    stay as they are: a target with classes of probability 0 has no reverse KL, and a mixture is of
    labelled and unlabelled images.
    """

    weighs_labels = False
    mixes = True

    def __init__(self, *args, mixup_alpha: float = options.MIXUP_ALPHA, **kwargs):
        super().__init__(*args, **kwargs)
        self.mixup_alpha = self.default("mixup_alpha", mixup_alpha)

    def objective(self, labeled, labels, unlabeled, step, tape):
        (clean,) = self.forward(step, "clean", unlabeled, update_stats=True)
        with tape.stop_recording():
            predicted = self.target_logits(unlabeled, clean, step)
            transformed, found = self.transformed(unlabeled, predicted, step)
            truth = supervision.one_hot(labels, clean.shape[-1])
            images, targets = mixup.mix(
                tf.concat([labeled, transformed], axis=0),
                tf.concat([truth, base.softmax(self.sharpened(predicted))], axis=0),
                self.mixup_alpha,
                draws.seed_for(self.seed, step, "mixup"),
                draws.Rows(labeled.shape[0], unlabeled.shape[0]),
            )
            count = labeled.shape[0]
            # Mixed labels leave some classes at zero, which contribute nothing to the KL.
            log_targets = tf.math.log(tf.maximum(targets[count:], 1e-30))
        ours, moved = self.forward(
            step, "adversarial", images[:count], images[count:], update_stats=False
        )
        self.measure(labels, ours)  # a mixture's larger part has that label
        cross_entropy = self.supervision.per_image(targets[:count], ours)
        kl = self.limited(divergences.kl_divergence(log_targets, moved), predicted)
        return self.observed(step, cross_entropy, kl, clean, log_targets, moved, found)
