"""Steps/s and memory of the presets for photos: `python -m benchmarks.photos`.

For every preset in configs/folder/ of this device and every size, one RAT step as a run makes it
(augmentation, search, metrics, optimiser, Keras' loop) on random pixels, with the preset's
network and batch. Each is measured in a process of its own: the first step is not counted, and
memory is the largest resident size less what the process had before its first step (on a GPU, the
peak of TensorFlow's allocator).
"""

from __future__ import annotations

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import time

import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import steps as lib
from rat_tf.config import flag_values, flagfiles
from rat_tf.data import examples, preprocess
from rat_tf.training import build
from rat_tf.training import network as network_lib

_SIZES = flags.DEFINE_list("sizes", ["96", "128", "160", "224"], "Heights and widths to measure.")
_STEPS = flags.DEFINE_integer("steps", 10, "Timed steps; the median counts.", lower_bound=1)
_PRESETS = flags.DEFINE_list("presets", [], "Flagfiles; default: those of this device.")


def measure(preset: str, size: int, count: int) -> dict:
    """Seconds per step and megabytes of one preset at one size."""
    config = flag_values.config_of_file(preset, image_size=size)
    rng = np.random.default_rng(0)
    labeled, unlabeled = config.batch_sizes

    def pixels(images):
        return tf.constant(rng.integers(0, 256, (images, size, size, 3), np.uint8))

    batch = ((pixels(labeled), tf.constant(rng.integers(0, 10, labeled))), pixels(unlabeled))
    layer = preprocess.Scale()
    network = network_lib.Source(config, (size, size, 3), 10)
    model = build.compiled(build.method(config, network, layer), config, layer(pixels(1)))
    data = tf.data.Dataset.from_tensors(batch).cache().repeat().with_options(examples.options())
    before, clock = lib.largest(), lib.Clock()
    began = time.perf_counter()
    model.fit(data, steps_per_epoch=1, verbose=0)
    first = time.perf_counter() - began
    model.fit(data, steps_per_epoch=count + 1, verbose=0, callbacks=[clock])
    memory = lib.largest() - before
    if tf.config.list_physical_devices("GPU"):
        memory = tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20
    rate = 1 / np.median(clock.seconds)
    return {
        "network": config.network,
        "batch": f"{labeled}+{unlabeled}",
        "rate": rate,
        "images": rate * (labeled + unlabeled),
        "first": first,
        "megabytes": memory,
    }


def main(argv) -> None:
    del argv
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    own = [n for n in flagfiles.names() if n.startswith(f"configs/folder/{device}-")]
    print(
        f"{'preset':30}{'network':>10}{'batch':>8}{'px':>5}{'steps/s':>9}{'images/s':>10}"
        f"{'first s':>9}{'MB':>8}"
    )
    for preset in _PRESETS.value or own:
        for size in map(int, _SIZES.value):
            row = lib.in_a_process(measure, preset, size, _STEPS.value)
            print(
                f"{preset:30}{row['network']:>10}{row['batch']:>8}{size:5}{row['rate']:9.3g}"
                f"{row['images']:10.3g}{row['first']:9.1f}{row['megabytes']:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
