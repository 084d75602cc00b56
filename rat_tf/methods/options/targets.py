"""What the KL on unlabelled images starts from, and how much of it counts. Not in the paper."""

from __future__ import annotations

import dataclasses

from rat_tf import fields
from rat_tf.methods.options import base

TARGETS = ("student", "teacher")


@dataclasses.dataclass(frozen=True)
class Targeting(base.SemiSupervised):
    """Options of the target of the KL; the defaults are the paper's, which has none of them."""

    target: str = fields.flag(
        TARGETS[0],
        "Whose predictions on the untransformed images the KL starts from: the trained network's "
        "(student, the paper's), or those of its moving average (teacher; needs --ema_decay).",
        choices=TARGETS,
    )
    target_temperature: float = fields.flag(
        1.0,
        "T: the KL starts from p^(1/T)/Σ p^(1/T), sharper than p for T < 1. Not in the paper.",
        fields.positive,
    )
    target_threshold: float = fields.flag(
        0.0,
        "Images whose most likely class has a lower probability are left out of the KL; 0: none. "
        "Not in the paper.",
        fields.fraction,
    )
    kl_cap: float = fields.flag(
        0.0,
        "The KL of an image counts up to this many nats, and has no gradient above; 0: no cap. "
        "Not in the paper.",
        fields.at_least(0),
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
            "kl_cap": self.kl_cap,
        }
