"""The label-preserving transformations f_φ of the paper and their compositions."""

from __future__ import annotations

from rat_tf import errors
from rat_tf.transforms import sampling
from rat_tf.transforms.affine import Affine
from rat_tf.transforms.base import SpatialTransform, Transform
from rat_tf.transforms.channel_weight import ChannelWeight
from rat_tf.transforms.composite import Composite
from rat_tf.transforms.flow_field import FlowField
from rat_tf.transforms.noise import Noise
from rat_tf.transforms.thin_plate_spline import ThinPlateSpline

__all__ = [
    "Affine",
    "ChannelWeight",
    "Composite",
    "FlowField",
    "Noise",
    "SpatialTransform",
    "ThinPlateSpline",
    "Transform",
    "parse",
]

REGISTRY = {t.name: t for t in (Noise, ChannelWeight, Affine, ThinPlateSpline, FlowField)}
ALIASES = {"channel": "channel_weight", "tps": "thin_plate_spline", "flow": "flow_field"}


def parse(text: str, padding: str = "zeros", sampler: str | None = None) -> Composite:
    """Composite from "noise:1.0,affine:0.6": names with their ε, in the order of application.

    Without a `sampler`, warps have the one that is fastest on this machine without XLA.
    """
    sampler = sampler or sampling.fastest(compiled=False)
    try:
        return Composite([_parse_one(part.strip(), padding, sampler) for part in text.split(",")])
    except ValueError as error:
        raise ValueError(f"{error} (in {text!r})") from None


def _parse_one(part: str, padding: str, sampler: str) -> Transform:
    name, _, epsilon = (piece.strip() for piece in part.partition(":"))
    name = ALIASES.get(name, name)
    if name not in REGISTRY:
        hint = errors.did_you_mean(name, [*REGISTRY, *ALIASES])
        raise ValueError(
            f"expected <name>:<epsilon>, <name> one of {list(REGISTRY)}, got {part!r}{hint}"
        )
    try:
        value = float(epsilon)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise ValueError(f"expected {name}:<epsilon> with a number epsilon > 0, got {part!r}")
    if not issubclass(REGISTRY[name], SpatialTransform):
        return REGISTRY[name](value)
    return REGISTRY[name](value, padding=padding, sampler=sampler)
