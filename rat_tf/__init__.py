"""RAT, Regularization based on Adversarial Transformations (AAAI 2020), in TensorFlow/Keras.

Importing the package does not import TensorFlow.
"""

import os

# Both are read when TensorFlow's library is loaded, so they must be set before its import. oneDNN
# makes a step on a CPU 1.2 (AVX2) to 2.2 (AVX-512) times faster, see docs/performance.md; level 1
# hides INFO and keeps warnings.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
