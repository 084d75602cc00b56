"""Pseudo-Label (Lee, 2013)."""

import tensorflow as tf

from rat_tf.methods import base


class PseudoLabel(base.SemiSupervised):
    """L(x_l, y) + λ(t) · 1[max_y p(y|x_u) > threshold] · L(x_u, argmax_y p(y|x_u)).

    The mean is over all unlabelled images; those below the threshold contribute nothing. Labels
    come from the clean pass; the pass that learns them redraws its augmentation and does not update
    the running statistics.
    """

    observations = ("cross_entropy", "consistency", "lambda", "confident")

    def __init__(self, *args, threshold: float = 0.95, **kwargs):
        super().__init__(*args, **kwargs)
        self.threshold = threshold

    def objective(self, labeled, labels, unlabeled, step, tape):
        labeled_logits, clean = self.forward(step, "clean", labeled, unlabeled, update_stats=True)
        (again,) = self.forward(step, "second", unlabeled, update_stats=False)
        confident = tf.reduce_max(base.softmax(clean), axis=-1) > self.threshold
        confident = tf.stop_gradient(tf.cast(confident, tf.float32))
        losses = confident * base.cross_entropy(tf.argmax(clean, axis=-1), again)
        return self.total(
            tf.reduce_mean(base.cross_entropy(labels, labeled_logits)),
            tf.reduce_mean(losses),
            self.weight(step),
            confident=tf.reduce_mean(confident),
        )
