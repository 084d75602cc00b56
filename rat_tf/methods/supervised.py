"""Supervised baseline: cross entropy on the labelled images alone."""

import tensorflow as tf

from rat_tf.methods import base
from rat_tf.methods.options import baselines


class Supervised(base.Method):
    defaults = baselines.Supervised
    observations = ("cross_entropy",)

    def objective(self, labeled, labels, unlabeled, step, tape):
        (logits,) = self.forward(step, "clean", labeled, update_stats=True)
        loss = tf.reduce_mean(self.label_loss(labels, logits))
        return loss, {"cross_entropy": loss}
