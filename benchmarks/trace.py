"""Where the time of a step goes, by TensorBoard traces: `python -m benchmarks.step --profile=…`."""

from __future__ import annotations

import collections
import glob
import os
import re

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks import steps as lib

METHODS = ("supervised", "rat")
STEPS = 5
KINDS = {
    "convolutions, forward": r"Conv2D$",
    "convolutions, input gradient": r"Conv2DBackpropInput",
    "convolutions, weight gradient": r"Conv2DBackpropFilter",
    "batch normalisation": r"FusedBatchNorm",
    "activations": r"LeakyRelu",
    "additions": r"^_?(Mkl)?Add",
    "padding": r"Pad",
    "optimiser": r"ResourceApply",
    "warps": r"Resampler|Gather|UnsortedSegment",
}


def kind_of(operation: str) -> str:
    return next((name for name, what in KINDS.items() if re.search(what, operation)), "all others")


def seconds_by_kind(folder: str) -> collections.Counter:
    """Seconds in operations, over all threads, by the names of `KINDS`."""
    path = max(glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb")))  # newest
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    found = collections.Counter()
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            # An operation is "<name in the graph>:<type>"; all else is what happens around them.
            name, colon, operation = plane.event_metadata[event.metadata_id].name.rpartition(":")
            if colon and re.fullmatch(r"[\w>]+", operation) and not re.search(r" |:$", name):
                found[kind_of(operation)] += event.duration_ps / 1e12
    return found


def show(folder: str, network: str, size: int, batch: int) -> None:
    """Writes a trace of each of `METHODS` and prints the shares of the kinds of operations.

    `tensorboard --logdir=<folder>` shows the traces once tensorboard-plugin-profile is installed.
    """
    found = {}
    for method in METHODS:
        step = lib.Step(method, network, size, batch)
        step.run(3)
        with tf.profiler.experimental.Profile(os.path.join(folder, method)):
            step.run(STEPS)
        found[method] = seconds_by_kind(os.path.join(folder, method))
    print(f"{network}, share of the time that all threads spend in operations; traces in {folder}")
    print(f"{'':32}" + "".join(f"{method:>12}" for method in METHODS))
    for name in [*KINDS, "all others"]:
        shares = (found[method][name] / sum(found[method].values()) for method in METHODS)
        print(f"{name:32}" + "".join(f"{share:12.1%}" for share in shares))
