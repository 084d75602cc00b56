"""Targets of the KL on unlabelled images: temperature and threshold. Not in the paper."""

from __future__ import annotations

import dataclasses

from rat_tf import fields
from rat_tf.methods.options import base

TARGETS = ("student", "teacher")


@dataclasses.dataclass(frozen=True)
class Targeting(base.SemiSupervised):
    """Options of the target of the KL; with the defaults it is the paper's."""

    target: str = fields.flag(
        TARGETS[0],
        "Target of the KL: the prediction on the untransformed image by the trained network "
        "(student, as in the paper) or by its moving average (teacher; needs --ema_decay).",
        choices=TARGETS,
    )
    target_temperature: float = fields.flag(
        1.0,
        "Temperature T: the target is p^(1/T)/Σ p^(1/T), sharper for T < 1. Not in the paper.",
        fields.positive,
    )
    target_threshold: float = fields.flag(
        0.0,
        "Minimum confidence of the target; images below do not contribute to the KL; 0: all do. "
        "Not in the paper.",
        fields.fraction,
    )

    def clashes(self):
        yield from super().clashes()
        if self.target == "teacher" and not self.ema_decay:
            yield "--ema_decay: must be > 0 with --target=teacher, got 0.0"

    def arguments(self):
        return {
            **super().arguments(),
            "target": self.target,
            "target_temperature": self.target_temperature,
            "target_threshold": self.target_threshold,
        }
