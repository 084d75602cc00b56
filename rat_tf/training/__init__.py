"""A run: its folder, its loop, what it saves and what a user sees of it.

Modules are loaded when they are asked for, so that flags can be checked without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "build",
        "checkpoints",
        "devices",
        "evaluation",
        "loop",
        "preview",
        "run_folder",
        "weights",
    ],
)
