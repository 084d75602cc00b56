"""The methods as flags: names, and options with defaults and help. No TensorFlow here.

Every module in this folder is imported; classes decorated with `base.register` are the methods.
"""

from __future__ import annotations

import importlib
import pkgutil

from rat_tf.methods.options import base, rat  # noqa: F401  (rat: first in every list)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

METHODS: dict[str, type[base.Options]] = base.REGISTRY
