"""Π-Model (Laine & Aila, 2017; Sajjadi et al., 2016)."""

import tensorflow as tf

from rat_tf.methods import base
from rat_tf.methods.options import baselines


class PiModel(base.SemiSupervised):
    """L(x_l, y) + λ(t) · mean_y (p(y|x_u) - p(y|x_u'))² under two draws of the augmentation.

    p(y|x_u), from the clean pass over labelled and unlabelled images, is a constant; the second
    pass does not update the running statistics.
    """

    defaults = baselines.PiModel
    observations = ("cross_entropy", "consistency", "lambda")

    def objective(self, labeled, labels, unlabeled, step, tape):
        labeled_logits, clean = self.forward(step, "clean", labeled, unlabeled, update_stats=True)
        (again,) = self.forward(step, "second", unlabeled, update_stats=False)
        distance = base.squared_distance(tf.stop_gradient(base.softmax(clean)), base.softmax(again))
        return self.total(
            tf.reduce_mean(self.label_loss(labels, labeled_logits)),
            tf.reduce_mean(distance),
            self.weight(step),
        )
