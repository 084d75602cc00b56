"""Data sets: finds, checks, reads and splits them.

Modules are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "duplicates",
        "examples",
        "image_files",
        "preprocess",
        "sources",
        "splits",
        "strata",
        "streams",
    ],
    submod_attrs={"loading": ["Data", "find", "load"], "recorded": ["Recorded", "held_out"]},
)
