"""RAT, Regularization based on Adversarial Transformations (AAAI 2020), in TensorFlow/Keras.

Importing the package imports TensorFlow once, with oneDNN on and without its start-up noise.
"""

import os
import sys
import tempfile

if not (3, 10) <= sys.version_info[:2] <= (3, 11):
    sys.exit(
        "rat_tf needs Python 3.10 or 3.11 (TensorFlow Addons 0.23 supports no other); "
        f"this is {sys.version.split()[0]} at {sys.executable}."
    )

# Both are read when TensorFlow's library is loaded, so they must be set before the first import.
# oneDNN makes a step on a CPU 1.2 (AVX2) to 2.2 (AVX-512) times faster, see docs/performance.md;
# level 1 hides INFO, keeps warnings.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# What TensorFlow 2.15 logs as errors or warnings at every start although nothing is wrong.
_STARTUP_NOISE = (b"Unable to register cu", b"TF-TRT Warning: Could not find TensorRT")


def _import_tensorflow_quietly() -> None:
    """Imports TensorFlow; of what its C++ library prints meanwhile, all but the noise is shown."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            import tensorflow
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            for line in captured:
                if not any(noise in line for noise in _STARTUP_NOISE):
                    os.write(2, line)
    # Warnings once: absl, which the commands use, would print what TensorFlow logs a second time.
    tensorflow.get_logger().setLevel("WARNING")
    tensorflow.get_logger().propagate = False


_import_tensorflow_quietly()
