"""Mean Teacher (Tarvainen & Valpola, 2017)."""

import tensorflow as tf

from rat_tf.methods import base
from rat_tf.methods.options import baselines


class MeanTeacher(base.SemiSupervised):
    """L(x_l, y) + λ(t) · mean_y (p(y|x_u) - p'(y|x_u'))², p' by the teacher.

    The teacher is `averaged`, the moving average of the student's weights. It sees its own
    augmentation, normalises with batch statistics as the student does, and receives no gradient.
    One student pass and one teacher pass, as in the Mean Teacher paper; the code behind the
    compared numbers makes a second student pass.
    """

    defaults = baselines.MeanTeacher
    observations = ("cross_entropy", "consistency", "lambda")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.averaged is None:
            raise ValueError("ema_decay: expected a number > 0 for the teacher, got 0")

    def objective(self, labeled, labels, unlabeled, step, tape):
        labeled_logits, student = self.forward(step, "clean", labeled, unlabeled, update_stats=True)
        with tape.stop_recording():
            (teacher,) = self.forward(
                step, "teacher", unlabeled, update_stats=False, network=self.averaged
            )
        distance = base.squared_distance(base.softmax(teacher), base.softmax(student))
        return self.total(
            tf.reduce_mean(self.label_loss(labels, labeled_logits)),
            tf.reduce_mean(distance),
            self.weight(step),
        )
