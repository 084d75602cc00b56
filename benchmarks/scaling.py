"""How the cost of a RAT step grows: `python -m benchmarks.scaling --picture=docs/scaling.png`.

Milliseconds of a step in `model.fit`, and of the bare passes that it is made of (see
benchmarks.step), against the batch size, the image size, the number of transformations and the
number of replicas (logical devices on the same cores, the same global batch). A step should grow no
faster than its passes. Transformations add none; n replicas make each pass n times, over an n-th of
the images.
"""

from __future__ import annotations

import os

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import steps as lib
from rat_tf.plots import canvas

TRANSFORMS = (
    "noise:1",
    "affine:0.6",
    "channel_weight:0.001",
    "thin_plate_spline:1",
    "flow_field:0.01",
)
BATCHES, SIZES, REPLICAS = (10, 20, 50, 100), (16, 24, 32, 48), (1, 2, 4)

_NETWORK = flags.DEFINE_string("of_network", "wrn-10-1", "Network to measure.")
_TURNS = flags.DEFINE_integer("turns", 8, "Turns of each; medians count.", lower_bound=3)
_PICTURE = flags.DEFINE_string("picture", "scaling.png", "File of the picture.")


def strategy(replicas: int):
    if replicas == 1:
        return None
    # All strategies in a process number their collectives alike: keep them distinct.
    tf.distribute.MirroredStrategy._collective_key_base += 100_000
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def points(network: str) -> dict[str, dict]:
    """For each panel the steps by the number on its axis, and (replicas, size, batch of each)."""

    def rat(size=32, batch=40, replicas=1, **options):
        step = lib.Step("rat", network, size, batch, strategy(replicas), **options)
        return step, (replicas, size, batch // replicas)

    def transforming(n):
        return rat(transforms=",".join(TRANSFORMS[:n]))

    common = rat()  # the one point that is in three panels: two transformations, one replica
    return {
        "unlabelled images per step": {b: rat(batch=b) for b in BATCHES},
        "height and width of the images": {s: common if s == 32 else rat(size=s) for s in SIZES},
        "transformations": {n: common if n == 2 else transforming(n) for n in (1, 2, 3, 4, 5)},
        "replicas": {n: common if n == 1 else rat(replicas=n) for n in REPLICAS},
    }


def main(argv) -> None:
    del argv
    tf.get_logger().setLevel("ERROR")
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * max(REPLICAS)
    )
    panels = points(_NETWORK.value)
    images = {seen[1:] for steps in panels.values() for _, seen in steps.values()}
    passes = {
        (kind, multiple, size, batch): lib.Pass(kind, _NETWORK.value, size, multiple * batch)
        for size, batch in images
        for kind, multiple in lib.PASSES["rat"]
    }
    steps = {step for found in panels.values() for step, _ in found.values()}
    for _ in range(_TURNS.value):
        for each in [*steps, *passes.values()]:
            each.run()

    def bare(replicas, size, batch):
        kinds = lib.PASSES["rat"]
        return replicas * sum(np.median(passes[k, n, size, batch].seconds) for k, n in kinds)

    measured = {
        name: {
            number: (1e3 * np.median(step.seconds), 1e3 * bare(*seen))
            for number, (step, seen) in found.items()
        }
        for name, found in panels.items()
    }
    for name, found in measured.items():
        for number, (step_ms, passes_ms) in found.items():
            print(
                f"{name:32}{number:5}{step_ms:9.1f} ms{passes_ms:9.1f} ms{step_ms / passes_ms:7.2f}"
            )
    picture(_PICTURE.value, measured)
    print(f"picture in {_PICTURE.value}")


@canvas.styled
def picture(path: str, measured: dict[str, dict]) -> None:
    """A panel each: (ms of the step, of its passes) by the number on the axis."""
    figure, axes = canvas.subplots(2, 2, figsize=(9, 7))
    for axis, (name, found) in zip(axes.flat, measured.items()):
        numbers, (whole, parts) = list(found), zip(*found.values())
        axis.plot(numbers, whole, "o-", label="RAT step")
        axis.plot(numbers, parts, "s--", label="its bare passes")
        axis.set(xlabel=name, ylabel="ms", ylim=(0, 1.1 * max(whole + parts)), xticks=numbers)
        axis.legend(loc="lower right")
    figure.suptitle(f"{_NETWORK.value}, {os.cpu_count()} cores")
    canvas.save(figure, path)


if __name__ == "__main__":
    app.run(main)
