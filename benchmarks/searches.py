"""The searches that `benchmarks.adversary` compares, by their flags, and what they cost."""

from __future__ import annotations

from rat_tf.config import flag_values
from rat_tf.methods.options import rat
from rat_tf.transforms import spec

#: Algorithm 1, the defaults: what a search does not say, whatever the run of the network had.
PAPER = {
    name: getattr(rat.RAT, name)
    for name in ("adversary", "ascent", "xi", "power_iterations", "candidates")
    + ("adversary_share", "adversary_scale", "separate_statistics")
}
RANDOM = {"method": "random", "separate_statistics": False}
WORST = {"adversary": "worst_of", "ascent": "steepest"}
STRONG = {"ascent": "steepest", "xi": "0.1eps"}
APART = {"separate_statistics": True, "entropy_multiplier": 0.0}
SEARCHES = {
    "random": RANDOM,
    "paper": {},
    "paper, ξ = 0.1ε": {"xi": "0.1eps"},
    "steepest, ξ = 0.1ε": STRONG,
    "steepest, ξ = 0.5ε": {**STRONG, "xi": "0.5eps"},
    "steepest, ξ = ε": {**STRONG, "xi": "1eps"},
    "steepest, two iterations": {**STRONG, "power_iterations": 2},
    **{f"worst of {k}": {"adversary": "worst_of", "candidates": k} for k in (2, 4, 8)},
    # Of one it is random, and shows what filling the ball of the norm does without a search.
    **{f"worst of {k}, steepest": {**WORST, "candidates": k} for k in (1, 2, 4, 8)},
    **{f"both, {k}": {**STRONG, "adversary": "both", "candidates": k} for k in (2, 4)},
    "share 0.5": {**STRONG, "adversary_share": 0.5},
    **{
        f"worst of {k}, steepest, share {share}": {
            **WORST,
            "candidates": k,
            "adversary_share": share,
        }
        for k, share in ((2, 0.4), (4, 0.2), (4, 0.5))
    },
}
POOLED = ("steepest, ξ = 0.1ε", "steepest, ξ = ε", "steepest, two iterations")
POOLED += ("worst of 4, steepest", "worst of 8, steepest", "both, 4")
SEARCHES |= {f"{name}, half size": {**SEARCHES[name], "adversary_scale": 0.5} for name in POOLED}
SEARCHES |= {
    f"{name}, quarter size": {**SEARCHES[name], "adversary_scale": 0.25}
    for name in ("steepest, ξ = 0.1ε", "worst of 8, steepest")
}
SEARCHES |= {
    "steepest, ξ = 0.1ε, halves apart": {**STRONG, **APART},
    "steepest, ξ = 0.1ε, half size, halves apart": {**STRONG, **APART, "adversary_scale": 0.5},
    "worst of 4, steepest, halves apart": {**SEARCHES["worst of 4, steepest"], **APART},
    "worst of 2, steepest, share 0.4, halves apart": {
        **SEARCHES["worst of 2, steepest, share 0.4"],
        **APART,
    },
}


def flags_of(search: dict, transforms: str) -> dict:
    """All flags of a search of `transforms`, without those that it does not use."""
    flags = search if search is RANDOM else {"method": "rat", **PAPER, **search}
    unused = flag_values.UNUSED_BY.get(flags.get("adversary"), ())
    return {"transforms": transforms, **{n: v for n, v in flags.items() if n not in unused}}


def image_passes(
    labeled: int,
    unlabeled: int,
    method: str = "rat",
    adversary: str = "gradient",
    candidates: int = 4,
    power_iterations: int = 1,
    adversary_share: float = 1.0,
    adversary_scale: float = 1.0,
    separate_statistics: bool = False,
    target: str = "student",
    transforms: str = "affine:0.3",
    **others,
) -> float:
    """The passes of a step of RAT, VAT or Random, by the flags of its search.

    A forward pass of an image, its input gradient and its weight gradient count 1 each. Of L
    labelled and U unlabelled images: the clean pass 3(L + U), or 3L + U if the unlabelled ones have
    a pass of their own without a gradient; a target of the averaged network U; the adversarial pass
    3U. Of the searched images: a gradient 2, a candidate 1, but the only one nothing: no pass is
    made to judge it. A search on pooled images counts in proportion to their pixels; noise, which
    cannot be pooled, is then searched besides.
    """
    del others  # they change no passes
    search = 0.0
    if method != "random":
        search += 2 * power_iterations * (adversary != "worst_of")
        search += candidates * (adversary != "gradient" and candidates > 1)
    if adversary_scale < 1:
        names = {name for name, _ in spec.Spec.parse(transforms).parts}
        search *= adversary_scale**2 * bool(names - {"noise"}) + ("noise" in names)
    clean = 3 * labeled + (1 if separate_statistics else 3) * unlabeled
    averaged = unlabeled * (target == "teacher")
    return clean + averaged + (3 + search * adversary_share) * unlabeled


def counted(**flags) -> float:
    """The passes of a step over those of the supervised step, with equal halves of a batch."""
    return image_passes(1, 1, **flags) / 6
