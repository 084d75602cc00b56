"""Which images to label next, which labels to doubt, and the pages that show them.

Modules are imported on first use, so that flags can be checked without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["choice", "doubts", "layout", "page", "proposals", "scan", "thumbnails"]
)
