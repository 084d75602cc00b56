"""Cost of a training step, as ratios measured in one process: `python -m benchmarks.step`.

Every method's step runs through `model.fit` as a user runs it (augmentation, metrics, optimiser,
Keras' loop), on random pixels of SVHN's size and the paper's batch of 50 + 50. It is compared with

  passes       the bare passes that the step is made of, each on its own: same network and batch
               sizes, no transformation, no optimiser, no metrics, no loop; RAT, for one, needs a
               forward and backward over 100 images, a forward and input gradient over 50, and a
               forward and backward over 50
  supervised   the supervised step on 100 labelled images

All of them take turns, and medians over the turns are compared, so that whatever else the machine
does falls on all alike. Two more steps have a network that costs next to nothing: what remains of
a supervised step is the loop, metrics, optimiser and augmentation ("loop"); what a RAT step has on
top of that are the transformations and the search ("search"). Both are shown as shares of the real
RAT step. The first step of each model (tracing and all) is shown in seconds, the graph of the step
by its number of operations, and the memory as the largest resident size of a process that does
nothing else, less what it had before its first step.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import time

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from rat_tf import config as config_lib
from rat_tf import flag_values, methods, networks, train
from rat_tf.data import preprocess

METHODS = ("supervised", "random", "mean_teacher", "vat", "rat", "mixmatch")
#: (kind, images as a multiple of the unlabelled batch): forward, input gradient, weight gradients.
PASSES = {
    "supervised": [("weights", 2)],
    "random": [("weights", 2), ("weights", 1)],
    "mean_teacher": [("weights", 2), ("forward", 1)],
    "vat": [("weights", 2), ("input", 1), ("weights", 1)],
    "rat": [("weights", 2), ("input", 1), ("weights", 1)],
    "mixmatch": [("forward", 1), ("forward", 1), *[("weights", 1)] * 3],
}

_NETWORKS = flags.DEFINE_list("networks", ["wrn-28-2", "wrn-10-1"], "Networks to measure.")
_ROUNDS = flags.DEFINE_integer("rounds", 12, "Turns of each; medians count.", lower_bound=3)
_BATCH = flags.DEFINE_integer("batch", 50, "Labelled images, and as many unlabelled ones.")
_SIZE = flags.DEFINE_integer("size", 32, "Height and width of the images.")
_OUTPUT = flags.DEFINE_string("output", "", "Also write <output>.csv and <output>.json.")
_PROFILE = flags.DEFINE_string("profile", "", "Write a TensorBoard trace of RAT's step here.")
_JIT = flags.DEFINE_boolean("jit_compile", False, "Compile the steps with XLA.")
_VARIANTS = flags.DEFINE_multi_string(
    "variant",
    [],
    "Also RAT with these flags: sampler=gather or steps_per_execution=10,….",
)
_MEMORY = flags.DEFINE_boolean("memory", True, "Measure memory, each in a process of its own.")


class Pooled(tf.keras.Model):
    """A network in name: the mean pixel and a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = tf.keras.layers.Dense(10)

    def call(self, images, training=False, update_stats=True):
        return self.linear(tf.reduce_mean(images, axis=[1, 2]))


def batch_of(method: str, size: int, batch: int):
    """((images, labels), unlabelled images) as the streams give them; supervised: all labelled."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2 * batch, size, size, 3), np.uint8)
    labels = rng.integers(0, 10, 2 * batch)
    cut = 2 * batch if method == "supervised" else batch
    return (images[:cut], labels[:cut]), images[cut:]


def model_of(method: str, network: str, size: int, **changes):
    """The compiled model of a run with the paper's flags; network "pooled" costs nothing."""
    config = config_lib.Config(
        method=method,
        network="wrn-10-1" if network == "pooled" else network,
        **changes,
    )
    layer = preprocess.Scale()
    model = methods.build(config, 10, layer)
    if network == "pooled":
        model.network = Pooled()
    return train.compiled(model, config, layer(tf.zeros([1, size, size, 3], tf.uint8)))


class Clock(tf.keras.callbacks.Callback):
    """Seconds from the end of one step to the end of the next."""

    def __init__(self):
        super().__init__()
        self._supports_tf_logs = True
        self.seconds, self._last = [], None

    def on_train_begin(self, logs=None):
        self._last = None

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._last is not None:  # the first step also pays for the start of `fit`
            self.seconds.append(now - self._last)
        self._last = now


class Step:
    """A method's step in `model.fit`; `strategy` shares the batch among its replicas."""

    def __init__(self, method: str, network: str, size: int, batch: int, strategy=None, **changes):
        began = time.perf_counter()
        strategy = strategy or tf.distribute.get_strategy()
        with strategy.scope():
            self.model = model_of(method, network, size, **changes)
        share = batch_of(method, size, batch // strategy.num_replicas_in_sync)
        data = tf.data.Dataset.from_tensors(share).cache().repeat().prefetch(2)
        self._data = strategy.distribute_datasets_from_function(lambda context: data)
        self._clock = Clock()
        self._at_once = changes.get("steps_per_execution", 1)
        self.run(1)
        self.first = time.perf_counter() - began

    def run(self, count: int = 2) -> None:
        """`count` calls, the first of which is not counted."""
        steps = count * self._at_once
        self.model.fit(self._data, steps_per_epoch=steps, verbose=0, callbacks=[self._clock])

    @property
    def seconds(self) -> list[float]:
        return [seconds / self._at_once for seconds in self._clock.seconds]

    def operations(self) -> dict[str, int]:
        """How often each kind of operation is in the graph of a step, loops included."""
        function = self.model.train_function
        graphs = [c.graph.as_graph_def() for c in function._list_all_concrete_functions()]
        nodes = [n for g in graphs for f in g.library.function for n in f.node_def]
        nodes += [n for g in graphs for n in g.node]
        return {op: sum(n.op == op for n in nodes) for op in sorted({n.op for n in nodes})}

    def traces(self) -> int:
        return self.model.train_function.experimental_get_tracing_count()


class Pass:
    """One bare pass over `images` images: forward alone, or with one kind of gradient."""

    def __init__(self, kind: str, network: str, size: int, images: int, jit: bool = False):
        rng = np.random.default_rng(1)
        x = tf.constant(rng.normal(size=(images, size, size, 3)), tf.float32)
        y = tf.constant(rng.integers(0, 10, images))
        net = networks.build(network, 10, seed=0)
        net(x[:1])
        self.seconds = []

        def loss(inputs):
            logits = net(inputs, training=True, update_stats=False)
            return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

        @tf.function(jit_compile=jit)
        def run():
            if kind == "forward":
                return loss(x)
            watched = x if kind == "input" else net.trainable_variables
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(watched)
                value = loss(x)
            return value, tape.gradient(value, watched)

        self._run = run
        run()

    def run(self) -> None:
        began = time.perf_counter()
        tf.nest.flatten(self._run())[0].numpy()
        self.seconds.append(time.perf_counter() - began)


def peak_memory(method: str, network: str, size: int, batch: int) -> float:
    """Megabytes that three steps add to the process."""

    def largest():
        # Not getrusage: its maximum is inherited from the process that has started this one.
        with open("/proc/self/status") as file:
            (line,) = (line for line in file if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    model = model_of(method, network, size, jit_compile=False)
    data = tf.data.Dataset.from_tensors(batch_of(method, size, batch)).cache().repeat()
    before = largest()
    model.fit(data, steps_per_epoch=3, verbose=0)
    return largest() - before


def in_a_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def variant(text: str) -> dict:
    """The flags of a --variant as fields of a `Config`."""
    values = flag_values.of_arguments([f"--{flag}" for flag in text.split(",")])
    return {name: values[name] for name in (flag.partition("=")[0] for flag in text.split(","))}


def measure(
    network: str, size: int, batch: int, rounds: int, jit: bool = False, variants=()
) -> list[dict]:
    """A row for each method and variant."""
    steps = {m: Step(m, network, size, batch, jit_compile=jit) for m in METHODS}
    for text in variants:
        steps[f"rat {text}"] = Step("rat", network, size, batch, **variant(text))
    idle = {m: Step(m, "pooled", size, batch, jit_compile=jit) for m in ("supervised", "rat")}
    kinds = sorted({p for passes in PASSES.values() for p in passes})
    passes = {(k, n): Pass(k, network, size, n * batch, jit) for k, n in kinds}
    everything = [*steps.values(), *idle.values(), *passes.values()]
    for _ in range(rounds):
        for each in everything:
            each.run()
    retraced = [m for m, step in steps.items() if step.traces() > 1]
    assert not retraced, f"traced more than once: {retraced}"
    seconds = {m: float(np.median(step.seconds)) for m, step in steps.items()}
    bare = {p: float(np.median(each.seconds)) for p, each in passes.items()}
    loop, search = (float(np.median(idle[m].seconds)) for m in ("supervised", "rat"))
    rows = []
    for method, step in steps.items():
        operations = step.operations()
        python = [op for op in operations if "PyFunc" in op]
        assert not python, f"{method} calls Python in its step: {python}"
        passing = sum(bare[p] for p in PASSES[method.partition(" ")[0]])
        rows.append(
            {
                "network": network,
                "method": method,
                "ms": 1e3 * seconds[method],
                "passes_ms": 1e3 * passing,
                "per_passes": seconds[method] / passing,
                "per_supervised": seconds[method] / seconds["supervised"],
                "first_step_s": step.first,
                "operations": sum(operations.values()),
            }
        )
    shares = {"loop": loop / seconds["rat"], "search": (search - loop) / seconds["rat"]}
    print(
        f"{network}: loop, metrics, optimiser, augmentation {shares['loop']:.1%} of a RAT step, "
        f"transformations and search {shares['search']:.1%}"
    )
    for row in rows:
        row.update({f"{name}_share": value for name, value in shares.items()})
    return rows


def show(rows: list[dict]) -> None:
    print(
        f"{'network':10}{'method':30}{'ms':>8}{'passes':>8}{'/passes':>9}{'/superv.':>9}"
        f"{'first s':>9}{'ops':>7}{'MB':>8}"
    )
    for row in rows:
        memory = f"{row['megabytes']:8.0f}" if "megabytes" in row else f"{'-':>8}"
        print(
            "{network:10}{method:30}{ms:8.1f}{passes_ms:8.1f}{per_passes:9.2f}"
            "{per_supervised:9.2f}{first_step_s:9.1f}{operations:7}".format(**row)
            + memory
        )


def main(argv) -> None:
    del argv
    # Keras makes a function per model, which TensorFlow takes for one that is traced again; that
    # none of them is traced twice is asserted below.
    tf.get_logger().setLevel("ERROR")
    rows = []
    for network in _NETWORKS.value:
        found = measure(
            network, _SIZE.value, _BATCH.value, _ROUNDS.value, _JIT.value, _VARIANTS.value
        )
        if _MEMORY.value:
            for row in found[: len(METHODS)]:
                row["megabytes"] = in_a_process(
                    peak_memory, row["method"], network, _SIZE.value, _BATCH.value
                )
        show(found)
        rows += found
    if _OUTPUT.value:
        with open(f"{_OUTPUT.value}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], restval="")
            writer.writeheader()
            writer.writerows(rows)
        with open(f"{_OUTPUT.value}.json", "w") as file:
            json.dump(rows, file, indent=2)
    if _PROFILE.value:
        step = Step("rat", _NETWORKS.value[0], _SIZE.value, _BATCH.value)
        step.run(2)
        with tf.profiler.experimental.Profile(_PROFILE.value):
            step.run(3)
        print(f"trace: tensorboard --logdir={_PROFILE.value}")


if __name__ == "__main__":
    app.run(main)
