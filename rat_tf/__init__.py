"""RAT, Regularization based on Adversarial Transformations (AAAI 2020), in TensorFlow/Keras.

Importing the package does not import TensorFlow. docs/api.md lists the names that stay.
"""

import os
import sys

import lazy_loader

from rat_tf import stack

__version__ = "0.2.0"

# Both are read when TensorFlow's library is loaded, so they must be set before its import. oneDNN
# makes a step on a CPU 1.2 (AVX2) to 2.2 (AVX-512) times faster, see docs/performance.md; level 1
# hides INFO and keeps warnings.
TENSORFLOW_FIRST = "tensorflow" in sys.modules and "TF_ENABLE_ONEDNN_OPTS" not in os.environ
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
stack.choose_keras()

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "data.pairing": ["pair"],
        "methods": [
            "MeanTeacher",
            "MixMatch",
            "PiModel",
            "PseudoLabel",
            "RAT",
            "Random",
            "Supervised",
            "VAT",
        ],
        "prediction": ["load"],
    },
)
