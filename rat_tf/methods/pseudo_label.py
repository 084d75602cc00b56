"""Pseudo-Label (Lee, 2013)."""

from __future__ import annotations

import tensorflow as tf

from rat_tf.methods import base, supervision
from rat_tf.methods.options import baselines


class PseudoLabel(base.SemiSupervised):
    """L(x_l, y) + λ(t) · 1[max_y p(y|x_u) > threshold] · L(x_u, argmax_y p(y|x_u)).

    The mean is over all unlabelled images; those below the threshold contribute nothing. Labels
    come from the clean pass; the pass that learns them redraws its augmentation and does not update
    the running statistics.
    """

    defaults = baselines.PseudoLabel
    observations = ("cross_entropy", "consistency", "lambda", "confident")

    def __init__(self, *args, threshold: float | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self.threshold = self.default("pseudo_label_threshold", threshold)

    def objective(self, labeled, labels, unlabeled, step, tape):
        labeled_logits, clean = self.forward(step, "clean", labeled, unlabeled, update_stats=True)
        (again,) = self.forward(step, "second", unlabeled, update_stats=False)
        confident = tf.reduce_max(base.softmax(clean), axis=-1) > self.threshold
        confident = tf.stop_gradient(tf.cast(confident, tf.float32))
        losses = confident * supervision.cross_entropy(tf.argmax(clean, axis=-1), again)
        return self.total(
            tf.reduce_mean(self.label_loss(labels, labeled_logits)),
            tf.reduce_mean(losses),
            self.weight(step),
            confident=tf.reduce_mean(confident),
        )
