"""Speed of the input streams, as ratios: `python -m benchmarks.input`.

Random images of SVHN's size and the paper's batch of 50 + 50. Three readers of the same images,
each as fast as it can:

  numpy      indexing an array with shuffled indices, nothing else
  memory     rat_tf.data.streams from memory
  disk       rat_tf.data.streams from a mapped file in the page cache

and the consumer: one training step of WRN-28-2 on these 100 images, the minimum for any method.
Goal: under 2 % of a step. On a busy machine CPU seconds are more reliable than wall-clock seconds;
both are printed, the best of several rounds.
"""

from __future__ import annotations

import os
import tempfile
import time

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from rat_tf import networks
from rat_tf.data import examples, preprocess, streams

SIZE, LABELED, BATCH = 65_931, 1_000, 50

_BATCHES = flags.DEFINE_integer("batches", 5_000, "Batches per reader and round.")
_STEPS = flags.DEFINE_integer("steps", 3, "Training steps per round.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds; the best counts.")


def measure(runs: dict, counts: dict) -> dict[str, tuple[float, float]]:
    """Wall-clock and CPU seconds of one of `counts` of each, the best of rounds in turn."""
    times = {name: [] for name in runs}
    for _ in range(1 + _ROUNDS.value):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run(counts[name])
            spent = time.perf_counter() - wall, time.process_time() - cpu
            times[name].append([seconds / counts[name] for seconds in spent])
    # The first round warms up.
    return {name: tuple(np.min(found[1:], axis=0)) for name, found in times.items()}


def numpy_reader(whole: examples.Examples):
    rng = np.random.default_rng(0)
    order, labels = rng.permutation(SIZE), whole.labels

    def run(count):
        for step in range(count):
            place = np.arange(step * BATCH, (step + 1) * BATCH)
            ours = order[place % LABELED]
            theirs = order[LABELED + place % (SIZE - LABELED)]
            whole.pixels[ours], labels[ours], whole.pixels[theirs]

    return run


def stream_reader(whole: examples.Examples):
    order = np.random.default_rng(0).permutation(SIZE)
    labeled, unlabeled = whole.take(order[:LABELED]), whole.take(order[LABELED:])
    dataset = streams.training(labeled, unlabeled, BATCH, BATCH, seed=0)
    # Skipping makes every batch and drops it, without the cost of a loop around the stream.
    return lambda count: next(iter(dataset.skip(count)))


def training_step(images: np.ndarray):
    network, layer = networks.build("wrn-28-2", 10, seed=0), preprocess.Scale()
    optimizer = tf.keras.optimizers.Adam(0.003)
    batch = tf.constant(images)
    labels = tf.zeros([len(images)], tf.int64)
    network(layer(batch))
    optimizer.build(network.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = network(layer(batch), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))

    def run(count):
        for _ in range(count):
            step()

    return run


def main(argv) -> None:
    del argv
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pixels.npy")
        drawn = np.random.default_rng(0).integers(0, 256, (SIZE, 32, 32, 3), np.uint8)
        labels = drawn[:, 0, 0, 0].astype(np.int64) % 10
        part = examples.Part(SIZE, lambda: iter([(drawn, labels, drawn[:, 0, :8, 0])]), str)
        memory = examples.read([part], (32, 32, 3))
        np.save(path, drawn)
        disk = examples.Examples(
            np.load(path, mmap_mode="c"), labels, memory.rows, memory.fingerprints
        )
        runs = {
            "numpy": numpy_reader(memory),
            "memory": stream_reader(memory),
            "disk": stream_reader(disk),
            "step": training_step(memory.images[: 2 * BATCH]),
        }
        counts = {**dict.fromkeys(runs, _BATCHES.value), "step": _STEPS.value}
        results = measure(runs, counts)
    print(f"{'':10}{'images/s':>12}{'wall ms':>10}{'cpu ms':>10}{'vs numpy':>10}{'% of step':>11}")
    for name, (wall, cpu) in results.items():
        print(
            f"{name:10}{2 * BATCH / wall:12,.0f}{wall * 1e3:10.3f}{cpu * 1e3:10.3f}"
            f"{results['numpy'][0] / wall:10.2f}{100 * cpu / results['step'][1]:11.3f}"
        )


if __name__ == "__main__":
    app.run(main)
