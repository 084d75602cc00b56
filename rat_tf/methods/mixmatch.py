"""MixMatch (Berthelot et al., 2019), and the ablation without Mixup of the paper's appendix."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rat_tf import draws, schedules
from rat_tf.methods import base, mixup, supervision
from rat_tf.methods.options import mixmatch as options


class MixMatch(base.SemiSupervised):
    """L(x', p') + λ(t) · mean_y (q' - p(y|u'))² on images and targets after Mixup.

    K augmented copies of each unlabelled image share one guessed label q: the mean of their
    predictions, sharpened to q^(1/T) / Σ q^(1/T). Labelled and unlabelled images are then mixed
    with each other (algorithm 1 of MixMatch), and interleaved into K + 1 batches that each hold
    all kinds in proportion; only the first moves the running statistics. λ ramps up linearly.
    """

    defaults = options.MixMatch
    weighs_labels = False
    observations = ("cross_entropy", "consistency", "lambda", "confidence")

    def __init__(
        self,
        *args,
        sharpening: float = options.MixMatch.sharpening,
        augmentations: int = options.MixMatch.augmentations,
        mixup_alpha: float | None = options.MixMatch.mixup_alpha,
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        self.sharpening = self.default("sharpening", sharpening)
        self.augmentations = self.default("augmentations", augmentations)
        if mixup_alpha is not None:  # None: no Mixup
            mixup_alpha = self.default("mixup_alpha", mixup_alpha)
        self.mixup_alpha = mixup_alpha

    def objective(self, labeled, labels, unlabeled, step, tape):
        with tape.stop_recording():
            images, targets = self.batch(labeled, labels, unlabeled, step)
        logits = self.interleaved(images)
        count = labeled.shape[0]
        self.measure(labels, logits[:count])  # a mixture's larger part has that label
        cross_entropy = self.supervision.per_image(targets[:count], logits[:count])
        distance = base.squared_distance(targets[count:], base.softmax(logits[count:]))
        return self.total(
            tf.reduce_mean(cross_entropy),
            tf.reduce_mean(distance),
            self.weight(step),
            confidence=tf.reduce_mean(tf.reduce_max(targets[count:], axis=-1)),
        )

    def batch(self, labeled, labels, unlabeled, step) -> tuple[tf.Tensor, tf.Tensor]:
        """The labelled images and K copies of the unlabelled ones with their targets, mixed."""
        ours = self.augment(step, "labeled", labeled)
        copies = [self.augment(step, f"unlabeled{k}", unlabeled) for k in range(self.augmentations)]
        logits = [self.logits(copy, update_stats=False) for copy in copies]
        guesses = [base.softmax(each) for each in logits]
        guess = sharpen(tf.add_n(guesses) / self.augmentations, self.sharpening)
        images = tf.concat([ours, *copies], axis=0)
        truth = supervision.one_hot(labels, guess.shape[-1])
        targets = tf.concat([truth, *[guess] * self.augmentations], axis=0)
        if self.mixup_alpha is None:
            return images, targets
        rows = draws.Rows(labeled.shape[0], *[unlabeled.shape[0]] * self.augmentations)
        seed = draws.seed_for(self.seed, step, "mixup")
        return mixup.mix(images, targets, self.mixup_alpha, seed, rows)

    def interleaved(self, images) -> tf.Tensor:
        """Logits [B, classes] in float32: every (K+1)-th image makes a batch of its own."""
        order = np.arange(images.shape[0])
        groups = [order[first :: self.augmentations + 1] for first in range(self.augmentations + 1)]
        logits = [
            self.logits(tf.gather(images, group), update_stats=number == 0)
            for number, group in enumerate(groups)
        ]
        logits = tf.cast(tf.concat(logits, axis=0), tf.float32)
        # Back to their places by a scatter: a gather's gradient would be sparse, of unknown shape.
        places = np.concatenate(groups)[:, np.newaxis]
        return tf.scatter_nd(places, logits, np.array(logits.shape))

    def weight(self, step):
        return self.consistency * schedules.linear_rampup(step, self.consistency_rampup)


def sharpen(probabilities, temperature: float) -> tf.Tensor:
    """p^(1/T) / Σ_y p^(1/T)."""
    # By logarithms: the powers themselves would underflow for a small T.
    return tf.nn.softmax(tf.math.log(probabilities) / temperature)
