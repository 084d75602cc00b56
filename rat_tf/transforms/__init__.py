"""The label-preserving transformations f_φ of the paper and their compositions.

Classes are imported on first use, so that flags can be checked without TensorFlow.
"""

from __future__ import annotations

import importlib

from rat_tf.transforms import spec

_SHARED = {"Composite": "composite", "SpatialTransform": "base", "Transform": "base"}


def parse(text: str, padding: str = "zeros", sampler: str | None = None):
    """Composite from "noise:1.0,affine:0.6": names with their ε, in the order of application.

    By default, warps use the fastest `sampler` of this machine without XLA.
    """
    return build(spec.Spec.parse(text), padding, sampler)


def build(described: spec.Spec, padding: str = "zeros", sampler: str | None = None):
    """The Composite that a `Spec` describes."""
    from rat_tf.transforms import base, composite

    spatial = {"padding": padding, "sampler": sampler}
    made = []
    for name, epsilon in described.parts:
        kind = find(name)
        made.append(kind(epsilon, **(spatial if issubclass(kind, base.SpatialTransform) else {})))
    return composite.Composite(made)


def find(name: str) -> type:
    """The class of the transformation that flags call `name`."""
    module = importlib.import_module(f"{__name__}.{name}")
    return getattr(module, _class_name(name))


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def __getattr__(name: str):
    if name in _SHARED:
        return getattr(importlib.import_module(f"{__name__}.{_SHARED[name]}"), name)
    for known in spec.NAMES:
        if _class_name(known) == name:
            return find(known)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
