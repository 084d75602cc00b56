"""Speed of an exported classifier against Keras: `python -m benchmarks.serving`.

Random pixels of SVHN's size through WRN-28-2 (--network) in one process, the same images for all:

  exported   the SavedModel's signature, from uint8 to the four answers: what a server runs
  network    the bare network in a tf.function, preprocessing left out
  predict    `keras.Model.predict` on the uint8 images, what one would call without an export
  bytes      the SavedModel's other signature, from PNG files

Latency is the median and the 99th percentile over single calls, in turn, so that a busy machine
affects all alike. Goals: batch-1 median at least 5 times faster than predict; at batch 64 at least
the images per second of the bare network.

--soak=20000 instead sends 20,000 requests, good and bad ones mixed: see benchmarks/soak.py.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags, logging

from benchmarks import soak
from export import classifier, warmup
from rat_tf import networks
from rat_tf.data import preprocess
from rat_tf.training import weights

BATCHES = (1, 8, 64)
SHAPE = (32, 32, 3)

_NETWORK = flags.DEFINE_string("network", "wrn-28-2", "Wide ResNet to serve.")
_SECONDS = flags.DEFINE_float("seconds", 20.0, "Seconds for each batch size.")
_SOAK = flags.DEFINE_integer(
    "soak", 0, "Send this many good and bad requests instead.", lower_bound=0
)


class Batch(NamedTuple):
    """The same images in three forms."""

    images: tf.Tensor  # uint8
    prepared: tf.Tensor  # as the network sees them
    files: tf.Tensor  # PNG


def exported() -> tuple[dict, weights.Trained]:
    """The signatures of the saved and loaded model, and what it was made of."""
    network, layer = networks.build(_NETWORK.value, 10), preprocess.Scale()
    network(layer(np.zeros((1, *SHAPE), np.uint8)))
    trained = weights.Trained(layer, network, tuple("0123456789"), SHAPE, step=0)
    module = classifier.Classifier(trained)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, module.signatures())
        return tf.saved_model.load(folder).signatures, trained


def contestants() -> dict[str, Callable[[Batch], np.ndarray]]:
    loaded, trained = exported()
    network, layer = trained.network, trained.preprocessing
    keras = tf.keras.Sequential([layer, network])
    free = tf.TensorSpec([None, *SHAPE])
    bare = tf.function(lambda images: network(images, training=False), input_signature=[free])
    return {
        "exported": lambda batch: loaded["serving_default"](batch.images)["logits"].numpy(),
        "network": lambda batch: bare(batch.prepared).numpy(),
        "predict": lambda batch: keras.predict(batch.images, verbose=0),
        "bytes": lambda batch: loaded["serving_bytes"](batch.files)["logits"].numpy(),
    }


def measure(runs: dict, batch: Batch) -> dict[str, np.ndarray]:
    """Seconds of every call of each contestant, in turn, after two calls to warm up."""
    seconds = {name: [] for name in runs}
    for run in [*runs.values()] * 2:
        run(batch)
    end = time.perf_counter() + _SECONDS.value
    while time.perf_counter() < end or len(seconds["exported"]) < 10:
        for name, run in runs.items():
            start = time.perf_counter()
            run(batch)
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def main(_) -> None:
    logging.set_verbosity(logging.WARNING)
    if _SOAK.value:
        soak.run(*exported(), _SOAK.value)
        return
    runs = contestants()
    print(f"{_NETWORK.value}, {SHAPE}, milliseconds of a call")
    print(f"{'batch':>5} {'':<9} {'p50':>8} {'p99':>8} {'images/s':>9} {'calls':>6}")
    for size in BATCHES:
        pixels = np.random.default_rng(0).integers(256, size=(size, *SHAPE), dtype=np.uint8)
        prepared = preprocess.Scale()(pixels)
        batch = Batch(tf.constant(pixels), prepared, tf.constant(warmup.encode(pixels)))
        found = measure(runs, batch)
        median = {name: np.median(values) for name, values in found.items()}
        for name, values in found.items():
            p50, p99 = 1e3 * np.percentile(values, [50, 99])
            print(
                f"{size:>5} {name:<9} {p50:>8.2f} {p99:>8.2f} {size / median[name]:>9.0f} "
                f"{len(values):>6}"
            )
        print(
            f"      exported is {median['predict'] / median['exported']:.1f} times as fast as "
            f"predict, {median['network'] / median['exported']:.2f} times as the bare network"
        )


if __name__ == "__main__":
    app.run(main)
