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

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import steps as lib
from rat_tf import flag_values
from rat_tf.data import examples

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


def peak_memory(method: str, network: str, size: int, batch: int) -> float:
    """Megabytes that three steps add to the process."""

    def largest():
        # Not getrusage: its maximum is inherited from the process that has started this one.
        with open("/proc/self/status") as file:
            (line,) = (line for line in file if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    model = lib.model_of(method, network, size, jit_compile=False)
    data = tf.data.Dataset.from_tensors(lib.batch_of(method, size, batch)).cache().repeat()
    data = data.with_options(examples.options())
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
    steps = {m: lib.Step(m, network, size, batch, jit_compile=jit) for m in lib.METHODS}
    for text in variants:
        steps[f"rat {text}"] = lib.Step("rat", network, size, batch, **variant(text))
    idle = {m: lib.Step(m, "pooled", size, batch, jit_compile=jit) for m in ("supervised", "rat")}
    kinds = sorted({p for passes in lib.PASSES.values() for p in passes})
    passes = {(k, n): lib.Pass(k, network, size, n * batch, jit) for k, n in kinds}
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
        passing = sum(bare[p] for p in lib.PASSES[method.partition(" ")[0]])
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
            for row in found[: len(lib.METHODS)]:
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
        step = lib.Step("rat", _NETWORKS.value[0], _SIZE.value, _BATCH.value)
        step.run(2)
        with tf.profiler.experimental.Profile(_PROFILE.value):
            step.run(3)
        print(f"trace: tensorboard --logdir={_PROFILE.value}")


if __name__ == "__main__":
    app.run(main)
