"""Supervised baseline: cross entropy on the labelled images alone."""

import tensorflow as tf

from rat_tf.methods import base


class Supervised(base.Method):
    observations = ("cross_entropy",)

    def objective(self, labeled, labels, unlabeled, step, tape):
        (logits,) = self.forward(step, "clean", labeled, update_stats=True)
        loss = tf.reduce_mean(base.cross_entropy(labels, logits))
        return loss, {"cross_entropy": loss}
