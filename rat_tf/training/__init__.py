"""Training: run folder, loop, checkpoints, callbacks, evaluation.

Modules are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "build",
        "calibration",
        "checkpoints",
        "choice",
        "devices",
        "evaluation",
        "footprint",
        "initial",
        "loop",
        "network",
        "network_files",
        "opening",
        "preview",
        "progress",
        "run_folder",
        "signals",
        "weights",
    ],
)
