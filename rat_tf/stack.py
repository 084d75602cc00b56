"""What differs between the stacks on which rat_tf runs; docs/stacks.md describes them.

The default stack is TensorFlow 2.15 with its own Keras 2 and TensorFlow Addons, the modern one is
today's TensorFlow with Keras 2 as the package tf_keras, without TensorFlow Addons. Nothing asks for
a version of TensorFlow: what is installed decides. No TensorFlow here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys

#: The packages whose versions a run records, if they are installed.
PACKAGES = (
    "tensorflow",
    "tensorflow-addons",
    "tensorflow-datasets",
    "keras",
    "tf-keras",
    "numpy",
)
NO_RESAMPLER = (
    "resampler is the kernel of TensorFlow Addons, which is not installed; use gather, or auto"
)


def has(module: str) -> bool:
    """Whether a package is installed, by the name under which it is imported."""
    return importlib.util.find_spec(module) is not None


def choose_keras() -> None:
    """Makes tf.keras Keras 2; TensorFlow reads this at its import and at the first tf.keras.

    Only with tf_keras: TensorFlow 2.15 has no Keras at all if it is told to use a package that is
    not there.
    """
    if has("tf_keras"):
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    if "tensorflow" in sys.modules:
        check_keras()


def check_keras() -> None:
    """Refuses Keras 3; TensorFlow has been imported."""
    keras = sys.modules["tensorflow"].keras
    if not hasattr(keras, "version"):  # only Keras 3 has that
        return
    advice = "import rat_tf first, or set TF_USE_LEGACY_KERAS=1"
    chosen = os.environ.get("TF_USE_LEGACY_KERAS", "1")
    if chosen != "1":
        advice = f"set TF_USE_LEGACY_KERAS=1, it is {chosen}"
    if not has("tf_keras"):
        advice = "pip install tf_keras, of the same version as TensorFlow"
    raise ImportError(f"rat_tf needs Keras 2, but tf.keras is Keras {keras.version()}: {advice}")


def server() -> str:
    """The version of TF Serving that was released for this TensorFlow; the tag of its image, too.

    A server loads what its own and earlier versions of TensorFlow have exported.
    """
    return importlib.metadata.version("tensorflow-serving-api")


def versions() -> dict[str, str]:
    """The versions of those of `PACKAGES` that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
