"""MixMatch, with the defaults of its own paper and code."""

from __future__ import annotations

from rat_tf import fields
from rat_tf.methods.options import base, rat


@base.register("mixmatch", "mixmatch:MixMatch", "MixMatch")
class MixMatch(rat.Mixing, base.SemiSupervised):
    """sharpened mean predictions as labels, and Mixup"""

    learning_rate: float = 0.002
    weight_decay: float = 0.02
    ema_decay: float = 0.999
    evaluate: str = "teacher"
    consistency: float = 75.0
    consistency_rampup: fields.Steps = 16_384
    mixup: bool = True
    sharpening: float = fields.flag(
        0.5, "Temperature T that sharpens the guessed labels; 1: no sharpening.", fields.positive
    )
    augmentations: int = fields.flag(
        2,
        "K, the number of augmented copies of an unlabelled image to average over.",
        fields.between(1, base.MAX_PASSES),
    )

    def clashes(self):
        if self.class_weights != "none":
            yield f"--class_weights: not used with mixed labels, got {self.class_weights}"
        yield from super().clashes()

    def arguments(self):
        return {
            **super().arguments(),
            "mixup_alpha": self.mixup_alpha if self.mixup else None,
            "sharpening": self.sharpening,
            "augmentations": self.augmentations,
        }
