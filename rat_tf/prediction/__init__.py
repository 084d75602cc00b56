"""Predictions of trained classifiers: of a run with stability and features, of an export.

Modules are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["classifier", "exported", "inputs", "of_run", "pools", "stability", "table"],
    submod_attrs={"loading": ["load"]},
)
