"""RAT, VAT (noise only) and Random (no search): one family of methods."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from rat_tf import fields
from rat_tf.methods.options import base
from rat_tf.transforms import spec

KL_DIRECTIONS = ("clean_adversarial", "adversarial_clean")
MIXUP_ALPHA = 0.75


@dataclasses.dataclass(frozen=True)
class Mixing(base.Options):
    """Options of Mixup."""

    mixup: bool = fields.flag(False, "Train on mixtures of images and their targets.")
    mixup_alpha: float = fields.flag(MIXUP_ALPHA, "α of Mixup's Beta(α, α).", fields.positive)

    def clashes(self):
        yield from super().clashes()
        if not self.mixup and self.mixup_alpha not in (None, MIXUP_ALPHA):
            yield f"--mixup_alpha: not used without --mixup, got {self.mixup_alpha}"


@dataclasses.dataclass(frozen=True)
class Transforming(Mixing, base.SemiSupervised):
    """Options of a KL under transformations with norm ε."""

    transforms: spec.Spec = fields.flag(
        "noise:1.0,affine:0.6",
        f"Transformations with their ε, in the order of application: {', '.join(spec.NAMES)}.",
        parse=spec.Spec.parse,
    )
    epsilon_rampup: int = fields.flag(
        0, "Steps over which ε ramps up (paper: 400000); 0: no ε-rampup.", fields.at_least(0)
    )
    entropy_multiplier: float = fields.flag(
        0.06, "Weight of the entropy of unlabelled predictions.", fields.at_least(0)
    )
    kl_direction: str = fields.flag(
        KL_DIRECTIONS[0],
        "KL[clean ‖ adversarial], the paper's, or the reverse.",
        choices=KL_DIRECTIONS,
    )

    def clashes(self):
        yield from super().clashes()
        if self.mixup and self.kl_direction != KL_DIRECTIONS[0]:
            yield (
                "--kl_direction: with --mixup targets may have classes of probability 0, for which "
                f"only KL[clean ‖ adversarial] is finite; got {self.kl_direction}"
            )

    @property
    def used_transforms(self) -> spec.Spec:
        """The transformations that training applies."""
        return self.transforms

    def arguments(self):
        options = {
            **super().arguments(),
            "search": self.searches,
            "epsilon_rampup": self.epsilon_rampup,
            "entropy_multiplier": self.entropy_multiplier,
            "kl_direction": self.kl_direction,
        }
        return {**options, "mixup_alpha": self.mixup_alpha} if self.mixup else options

    @property
    def model_path(self):
        return "rat_mixup:RATMixup" if self.mixup else self.model


@dataclasses.dataclass(frozen=True)
class Searching(Transforming):
    """Options of Algorithm 1; the defaults are those of the paper's Table 2."""

    searches: ClassVar[bool] = True

    xi: spec.Xi = fields.flag(
        "1e-6",
        "ξ, the step of the finite difference: a number, or a multiple of ε such as 0.5eps.",
        parse=spec.Xi.parse,
    )
    power_iterations: int = fields.flag(1, "Inner gradients per step.", fields.at_least(1))
    ascent: str = fields.flag(
        "paper",
        "How a gradient becomes a direction: normalised (paper), or the maximiser in the "
        "transformation's own norm (steepest).",
        choices=spec.ASCENTS,
    )

    def arguments(self):
        return {
            **super().arguments(),
            "xi": self.xi,
            "power_iterations": self.power_iterations,
            "ascent": self.ascent,
        }


@dataclasses.dataclass(frozen=True)
class Warping(base.Options):
    """An option of warps."""

    padding: str = fields.flag(
        "zeros", "Pixels outside the image, as warps see them.", choices=spec.PADDINGS
    )


@base.register("rat", "rat:RAT")
class RAT(Warping, Searching):
    """the worst transformations, found by Algorithm 1"""


@base.register("vat", "rat:RAT")
class VAT(Searching):
    """RAT with the noise of --transforms alone"""

    def clashes(self):
        yield from super().clashes()
        if not self.used_transforms.parts:
            yield f"--transforms: --method=vat needs noise:<ε>, got {str(self.transforms)!r}"

    @property
    def used_transforms(self):
        return self.transforms.only("noise")


@base.register("random", "rat:RAT")
class Random(Warping, Transforming):
    """the same transformations and ε without the search"""
