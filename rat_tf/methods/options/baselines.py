"""The baselines of the paper; their defaults are those of its Table 6."""

from __future__ import annotations

from rat_tf import fields
from rat_tf.methods.options import base


@base.register("supervised", "supervised:Supervised", "Supervised")
class Supervised(base.Options):
    """the labelled images alone"""

    unlabeled = False


@base.register("pi_model", "pi_model:PiModel", "Π-Model")
class PiModel(base.SemiSupervised):
    """the same prediction under two augmentations"""

    learning_rate: float = 0.0003
    consistency: float = 20.0


@base.register("pseudo_label", "pseudo_label:PseudoLabel", "Pseudo-Label")
class PseudoLabel(base.SemiSupervised):
    """confident predictions as labels"""

    consistency: float = 1.0
    pseudo_label_threshold: float = fields.flag(
        0.95, "Minimum confidence for a pseudo-label.", fields.fraction
    )

    def arguments(self):
        return {**super().arguments(), "threshold": self.pseudo_label_threshold}


@base.register("mean_teacher", "mean_teacher:MeanTeacher", "Mean Teacher")
class MeanTeacher(base.SemiSupervised):
    """the prediction of the averaged weights"""

    learning_rate: float = 0.0004
    consistency: float = 8.0
    ema_decay: float = 0.95
    evaluate: str = "teacher"

    def clashes(self):
        yield from super().clashes()
        if not self.ema_decay:
            yield "--ema_decay: must be > 0 for the teacher of --method=mean_teacher, got 0.0"
