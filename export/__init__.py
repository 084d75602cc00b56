"""Exports and serves the classifier of a run: SavedModel, TF Serving, client.

Modules are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["card", "classifier", "transport", "verification", "warmup"]
)
