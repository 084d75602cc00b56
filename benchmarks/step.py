"""Cost of a training step, as ratios measured in one process: `python -m benchmarks.step`.

Every method's step runs through `model.fit` as a user runs it (augmentation, metrics, optimiser,
Keras' loop), on random pixels of SVHN's size and the paper's batch of 50 + 50. It is compared with

  passes       the bare passes that the step is made of, each on its own: same network and batch
               sizes, no transformation, no optimiser, no metrics, no loop; RAT, for one, needs a
               forward and backward over 100 images, a forward and input gradient over 50, and a
               forward and backward over 50
  supervised   the supervised step on 100 labelled images

All of them take turns in random order. Ratios are taken within a turn, so that other load on the
machine affects all alike. The median over the turns is shown, for ratios also the distance of the
quartiles. Two more steps have a network that costs almost nothing: such a supervised step is the
loop, metrics and augmentation, to which the optimiser's time for the real network is added
("loop"); what a RAT step adds to it is the transformations and the search ("search"). Both are
shown as shares of the real RAT step.

The time to the end of the first step (building, tracing and all) and the memory are those of a
process that does nothing else; memory is its largest resident size less what it had before its
first step. The graph of a step is shown by its number of operations.
"""

from __future__ import annotations

import csv
import json
import os

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import steps as lib
from benchmarks import trace
from rat_tf.config import flag_values

_NETWORKS = flags.DEFINE_list(
    "networks",
    ["wrn-28-2", "wrn-10-1"],
    "Networks to measure, as --network of rat_tf.train: also keras:MobileNetV2.",
)
_METHODS = flags.DEFINE_multi_enum(
    "methods", lib.METHODS, lib.METHODS, "Methods to measure besides supervised and rat."
)
_ROUNDS = flags.DEFINE_integer("rounds", 12, "Turns of each; medians count.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 50, "Labelled images, and as many unlabelled ones.")
_SIZE = flags.DEFINE_integer("size", 32, "Height and width of the images.")
_OUTPUT = flags.DEFINE_string("output", "", "Also write <output>.csv and <output>.json.")
_PROFILE = flags.DEFINE_string(
    "profile", "", "Write TensorBoard traces to this folder, and show where the time goes."
)
_JIT = flags.DEFINE_boolean("jit_compile", False, "Compile the steps with XLA.")
_VARIANTS = flags.DEFINE_multi_string(
    "variant",
    [],
    "Also RAT with these flags: sampler=gather or steps_per_execution=10,….",
)
_MEMORY = flags.DEFINE_boolean(
    "memory", True, "Measure memory and the first step, each in its own process."
)


def variant(text: str) -> dict:
    """The flags of a --variant as fields of a `Config`."""
    arguments = [f"--{flag}" for flag in text.split(",")]
    values, defaults = flag_values.of_arguments(arguments), flag_values.of_arguments([])
    return {name: value for name, value in values.items() if value != defaults[name]}


def measure(
    network: str, size: int, batch: int, rounds: int, jit: bool, methods, variants=()
) -> list[dict]:
    """A row for each method and variant."""
    methods = [m for m in lib.METHODS if m in ("supervised", "rat", *methods)]
    changes = {method: {"jit_compile": jit} for method in methods}
    changes |= {f"rat {text}": {"jit_compile": jit, **variant(text)} for text in variants}
    method_of = {name: name.partition(" ")[0] for name in changes}
    steps = {n: lib.Step(method_of[n], network, size, batch, **changes[n]) for n in changes}
    idle = {m: lib.Step(m, "pooled", size, batch, jit_compile=jit) for m in ("supervised", "rat")}
    kinds = sorted({p for method in method_of.values() for p in lib.PASSES[method]})
    passes = {(k, n): lib.Pass(k, network, size, n * batch, jit) for k, n in kinds}
    update = lib.Update(network, size)
    everything = [*steps.values(), *idle.values(), *passes.values(), update]
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        for i in rng.permutation(len(everything)):
            everything[i].run()
    retraced = [name for name, step in steps.items() if step.traces() > 1]
    assert not retraced, f"traced more than once: {retraced}"
    rows = []
    for name, step in steps.items():
        operations = step.operations()
        python = [op for op in operations if "PyFunc" in op]
        assert not python, f"{name} calls Python in its step: {python}"
        seconds = np.array(step.seconds)
        passes_seconds = sum(np.array(passes[p].seconds) for p in lib.PASSES[method_of[name]])
        row = {
            "network": network,
            "method": name,
            "ms": 1e3 * np.median(seconds),
            "passes_ms": 1e3 * np.median(passes_seconds),
            **lib.quartiles("per_passes", seconds / passes_seconds),
            **lib.quartiles("per_supervised", seconds / np.array(steps["supervised"].seconds)),
            "operations": sum(operations.values()),
        }
        if _MEMORY.value:
            row |= lib.in_a_process(lib.alone, method_of[name], network, size, batch, changes[name])
        rows.append(row)
    loop, search, rest = (np.median(t.seconds) for t in (*idle.values(), update))
    whole = np.median(steps["rat"].seconds)
    shares = {"loop_share": (loop + rest) / whole, "search_share": (search - loop) / whole}
    print(
        f"{network}: loop, metrics, augmentation and optimiser {shares['loop_share']:.1%} of a "
        f"RAT step, transformations and search {shares['search_share']:.1%}"
    )
    return [{**row, **shares} for row in rows]


def show(rows: list[dict]) -> None:
    print(
        f"{'network':10}{'method':30}{'ms':>8}{'passes':>8}{'/passes':>14}{'/superv.':>14}"
        f"{'ops':>7}{'first s':>9}{'MB':>7}"
    )
    for row in rows:
        text = (
            "{network:10}{method:30}{ms:8.1f}{passes_ms:8.1f}"
            "{per_passes:8.2f} ±{per_passes_spread:4.2f}"
            "{per_supervised:8.2f} ±{per_supervised_spread:4.2f}{operations:7}"
        ).format(**row)
        if _MEMORY.value:
            text += "{first_step_s:9.1f}{megabytes:7.0f}".format(**row)
        print(text)


def main(argv) -> None:
    del argv
    # Keras makes a function per model, which TensorFlow takes for one that is traced again; that
    # none of them is traced twice is asserted below.
    tf.get_logger().setLevel("ERROR")
    rows = []
    for network in _NETWORKS.value:
        found = measure(
            network,
            _SIZE.value,
            _BATCH.value,
            _ROUNDS.value,
            _JIT.value,
            _METHODS.value,
            _VARIANTS.value,
        )
        show(found)
        rows += found
    if _OUTPUT.value:
        with open(f"{_OUTPUT.value}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], restval="")
            writer.writeheader()
            writer.writerows(rows)
        with open(f"{_OUTPUT.value}.json", "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)
    if _PROFILE.value:
        for network in _NETWORKS.value:
            trace.show(os.path.join(_PROFILE.value, network), network, _SIZE.value, _BATCH.value)


if __name__ == "__main__":
    app.run(main)
