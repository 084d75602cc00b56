"""RAT, VAT (noise only) and Random (no search): one family of methods."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from rat_tf import fields
from rat_tf.methods.options import base, targets
from rat_tf.transforms import spec

KL_DIRECTIONS = ("clean_adversarial", "adversarial_clean")
MIXUP_ALPHA = 0.75
CANDIDATES = 4
NO_SEARCH = "not used by --adversary=worst_of with --candidates=1, which is no search"


def share_problem(share: float, count: int, replicas: int = 1) -> str:
    """What is wrong with an --adversary_share of `count` images of each replica; or nothing.

    Only a share of whole images is the same images on any number of replicas.
    """
    searched = share * count
    if abs(searched - round(searched)) < 1e-6:
        return ""
    of_each = f" of each of {replicas} replicas" if replicas > 1 else ""
    return (
        f"expected a whole number of the {count} unlabelled images{of_each}, got {share}, which "
        f"makes {searched:g}"
    )


@dataclasses.dataclass(frozen=True)
class Mixing(base.Options):
    """Options of Mixup."""

    mixup: bool = fields.flag(False, "Train on mixtures of images and their targets.")
    mixup_alpha: float = fields.flag(MIXUP_ALPHA, "α of Mixup's Beta(α, α).", fields.positive)

    def clashes(self):
        yield from super().clashes()
        if not self.mixup and self.mixup_alpha not in (None, MIXUP_ALPHA):
            yield f"--mixup_alpha: not used without --mixup, got {self.mixup_alpha}"
        if self.mixup and self.class_weights != "none":
            yield f"--class_weights: not used with mixed labels, got {self.class_weights}"


@dataclasses.dataclass(frozen=True)
class Transforming(Mixing, targets.Targeting):
    """Options of a KL under transformations with norm ε."""

    transforms: spec.Spec = fields.flag(
        "noise:1.0,affine:0.6",
        f"Transformations with their ε, in the order of application: {', '.join(spec.NAMES)}.",
        parse=spec.Spec.parse,
    )
    epsilon_rampup: fields.Steps = fields.steps(
        0, "Steps over which ε ramps up (paper: 400000); 0: no ε-rampup."
    )
    entropy_multiplier: float = fields.flag(
        0.06, "Weight of the entropy of unlabelled predictions.", fields.at_least(0)
    )
    separate_statistics: bool = fields.flag(
        False,
        "Normalise labelled and unlabelled images with separate batch statistics. Only the "
        "unlabelled ones update the running statistics, and they need no backward pass besides "
        "that of the transformed ones. Needs --entropy_multiplier=0. Not in the paper.",
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
        if self.separate_statistics and self.entropy_multiplier:
            yield (
                "--entropy_multiplier: must be 0 with --separate_statistics, as the entropy needs "
                f"the backward pass that is left out; got {self.entropy_multiplier}"
            )
        if self.separate_statistics and self.mixup:
            yield (
                "--separate_statistics: not used with --mixup, where labelled images have a pass "
                "together with the transformed ones"
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
            "separate_statistics": self.separate_statistics,
            "kl_direction": self.kl_direction,
        }
        return {**options, "mixup_alpha": self.mixup_alpha} if self.mixup else options

    @property
    def model_path(self):
        return "rat_mixup:RATMixup" if self.mixup else self.model


@dataclasses.dataclass(frozen=True)
class Searching(Transforming):
    """Options of the search; the defaults are Algorithm 1 with the values of Table 2."""

    searches: ClassVar[bool] = True
    #: The share of their height and width at which images are searched.
    scale: ClassVar[float] = 1.0

    adversary: str = fields.flag(
        spec.ADVERSARIES[0],
        "How to search: gradient (the paper's Algorithm 1); worst_of: for each image the one of "
        "--candidates random transformations with the largest KL (does not use --xi and "
        "--power_iterations); both: the gradient's is one of the candidates. Candidates are the "
        "stronger search for channel_weight and affine, gradients for transformations with more "
        "parameters.",
        choices=spec.ADVERSARIES,
    )
    candidates: int = fields.flag(
        CANDIDATES,
        "Number of candidates of --adversary=worst_of and both; each costs a forward pass.",
        fields.between(1, base.MAX_PASSES),
    )
    adversary_share: float = fields.flag(
        1.0,
        "Share of the unlabelled images whose transformations are searched; the others get random "
        "ones of the same shape (--ascent). A whole number of those of a step. The paper searches "
        "all.",
        fields.expect(lambda share: 0 < share <= 1, "a number in (0, 1]"),
    )

    xi: spec.Xi = fields.flag(
        "1e-6",
        "ξ, the step of the finite difference: a number, or a multiple of ε such as 0.5eps.",
        parse=spec.Xi.parse,
    )
    power_iterations: int = fields.flag(
        1, "Inner gradients per step.", fields.between(1, base.MAX_PASSES)
    )
    ascent: str = fields.flag(
        "paper",
        "How a gradient becomes a direction: normalised (paper), or the maximiser in the "
        "transformation's own norm (steepest). Candidates become directions in the same way.",
        choices=spec.ASCENTS,
    )

    @property
    def remedies(self):
        if self.adversary == "worst_of":
            return f"--adversary=both or --candidates={2 * self.candidates}"
        flags = ["--xi=0.1eps"] if self.xi.value < 0.1 or not self.xi.relative else []
        flags += ["--ascent=steepest"] if self.ascent != "steepest" else []
        more = [f"--power_iterations={self.power_iterations + 1}", "larger ε in --transforms"]
        return " or ".join(flags or more)

    @property
    def finds(self) -> bool:
        """Whether there is anything to choose from: the only candidate is random."""
        return self.adversary != "worst_of" or self.candidates > 1

    @property
    def search_words(self):
        if not self.finds:
            return "no search"
        share, gradient = self.adversary_share, self.adversary == "gradient"
        words = "one gradient" if gradient else f"worst of {self.candidates}"
        words += ", the gradient's among them," if self.adversary == "both" else ""
        if share < 1:
            words += f" for {share:.0%} of the images"
        if self.scale < 1:
            words += f" at {self.scale:g} of their size"
        paper = gradient and share == self.scale == 1
        return "" if paper else words.rstrip(",")

    def clashes(self):
        yield from super().clashes()
        if self.adversary == "gradient" and self.candidates != CANDIDATES:
            yield f"--candidates: not used by --adversary=gradient, got {self.candidates}"
        if self.adversary == "both" and self.candidates < 2:
            yield (
                "--candidates: expected 2 or more with --adversary=both, of which the gradient's "
                f"is one; got {self.candidates}"
            )
        if self.adversary == "worst_of":
            if self.xi != spec.PAPER_XI:
                yield f"--xi: not used by --adversary=worst_of, got {self.xi}"
            if self.power_iterations != 1:
                found = self.power_iterations
                yield f"--power_iterations: not used by --adversary=worst_of, got {found}"
        if not self.finds and self.adversary_share < 1:
            yield f"--adversary_share: {NO_SEARCH}, got {self.adversary_share}"

    def arguments(self):
        return {
            **super().arguments(),
            "adversary_kind": self.adversary,
            "candidates": self.candidates,
            "adversary_share": self.adversary_share,
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


@base.register("rat", "rat:RAT", "RAT")
class RAT(Warping, Searching):
    """the worst transformations, found by Algorithm 1"""

    adversary_scale: float = fields.flag(
        1.0,
        "Search on images pooled to 0.5 or 0.25 of their height and width, at a quarter or a "
        "sixteenth of the cost. Noise needs the full size and is searched on its own there, which "
        "costs more than one search of everything. The paper searches at full size.",
        fields.expect(lambda scale: scale in (1, 0.5, 0.25), "1, 0.5 or 0.25"),
    )

    def clashes(self):
        yield from super().clashes()
        if not self.finds and self.adversary_scale < 1:
            yield f"--adversary_scale: {NO_SEARCH}, got {self.adversary_scale}"
        if self.adversary_scale < 1 and self.transforms == self.transforms.only("noise"):
            yield (
                "--adversary_scale: noise is searched at full size, and --transforms="
                f"{self.transforms} has nothing else; got {self.adversary_scale}"
            )

    @property
    def scale(self):
        return self.adversary_scale

    def arguments(self):
        return {**super().arguments(), "adversary_scale": self.adversary_scale}


@base.register("vat", "rat:RAT", "VAT")
class VAT(Searching):
    """RAT with the noise of --transforms alone"""

    def clashes(self):
        yield from super().clashes()
        if not self.used_transforms.parts:
            yield f"--transforms: --method=vat needs noise:<ε>, got {str(self.transforms)!r}"

    @property
    def used_transforms(self):
        return self.transforms.only("noise")


@base.register("random", "rat:RAT", "Random Transformation")
class Random(Warping, Transforming):
    """the same transformations and ε without the search"""
