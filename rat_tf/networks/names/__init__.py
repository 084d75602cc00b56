"""The networks as flags. No TensorFlow here.

Every module in this folder except `base` describes one family of networks: its `FAMILY`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

from rat_tf.networks.names import base

_MODULES = sorted(module.name for module in pkgutil.iter_modules(__path__))
FAMILIES = tuple(
    importlib.import_module(f"{__name__}.{name}").FAMILY for name in _MODULES if name != "base"
)


def parse(name: str) -> tuple[base.Family, tuple[int | str, ...]]:
    """The family of a network, and the numbers and words in its name."""
    for family in FAMILIES:
        match = re.fullmatch(family.pattern, name)
        if match:
            problem = family.check(*match.groups())
            if problem:
                raise ValueError(problem)
            return family, tuple(int(g) if g.isdigit() else g for g in match.groups())
    expected = ", or ".join(family.expected for family in FAMILIES)
    raise ValueError(f"expected {expected}, got {name!r}")


def check(name: str) -> str | None:
    """What is wrong with the name of a network: expected and found; None if it is valid."""
    try:
        parse(name)
    except ValueError as error:
        return str(error)
    return None
