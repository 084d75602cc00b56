"""The methods as flags know them: names, options with defaults and help. No TensorFlow here.

Every module of this folder is imported; a class there that `base.register` decorates is a method.
"""

from __future__ import annotations

import importlib
import pkgutil

from rat_tf.methods.options import base, rat  # noqa: F401  (rat: first in every list)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

METHODS: dict[str, type[base.Options]] = base.REGISTRY
