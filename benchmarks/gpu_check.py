"""One command for the first person with a GPU: `python -m benchmarks.gpu_check`.

Prints a Markdown table to paste into an issue. It checks that

  samplers      both ways of bilinear sampling, and CPU and GPU, give the same pixels and gradients
  replicas      a run on two devices has the weights of the run on one: with two GPUs on these, else
                on two logical CPUs
  precision     float16, bfloat16 and XLA train to a loss near that of float32
  host          no step waits for the host: the traced graph calls no Python, and a profile of some
                steps has no copies from the device beyond those of a single number
  speed         a RAT step beside the bare passes that it is made of (see benchmarks.step)

On a CPU it runs as far as that goes, and says what was left out. Exit status: 0 if nothing failed.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import traceback

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf
from absl import app, flags
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks import steps as lib
from rat_tf.training import run_folder
from rat_tf.transforms import sampling

_NETWORK = flags.DEFINE_string("of_network", "", "Network to time; wrn-28-2, on CPUs wrn-10-1.")
_TURNS = flags.DEFINE_integer("turns", 5, "Turns of each timed step; medians count.", lower_bound=1)

GPUS = tf.config.list_physical_devices("GPU")
STEPS = 40  # of the small runs
FEW = 4  # of those whose weights are compared: each step multiplies the differences of rounding
SMALL = "wrn-10-1" if GPUS else "tiny"  # CPUs compute float16 very slowly
SMALL_COPY = 1024  # bytes; Keras reads the step and the loss now and then
RUN = (
    *("--dataset=digits", "--labels=20", f"--network={SMALL}", "--labeled_batch=20"),
    *("--unlabeled_batch=20", "--validate_every=40", "--checkpoint_every=40", "--decay_at=100"),
    *("--consistency_rampup=10", "--sync_batch_norm", "--notensorboard", f"--iterations={STEPS}"),
)


def devices() -> str:
    details = tf.config.experimental.get_device_details
    named = [str(details(gpu).get("device_name", gpu.name)) for gpu in GPUS]
    return (
        f"{', '.join(named) or 'no GPU'}; {os.cpu_count()} CPU cores; TensorFlow {tf.__version__}"
    )


# ---- samplers


def samplers() -> tuple[bool | None, str]:
    """The largest differences between all samplers and devices, relative to the largest value."""
    places = [("gather", "CPU:0")] + [("gather", "GPU:0")] * bool(GPUS)
    places += [("resampler", "CPU:0")] if sampling.tfa else []
    if len(places) < 2:
        return None, "no GPU and no TensorFlow Addons: nothing to compare"
    rng = np.random.default_rng(0)
    images = rng.normal(size=(8, 32, 32, 3)).astype(np.float32)
    shift = rng.normal(0, 0.2, (8, 32, 32, 2)).astype(np.float32)
    found = [_sampled(images, shift, *place) for place in places]
    worst = [
        max(np.abs(a - b).max() / np.abs(a).max() for a in some for b in some)
        for some in zip(*found)
    ]
    text = ", ".join(f"{name} on {device.partition(':')[0]}" for name, device in places)
    return max(worst) < 1e-4, f"{text}: pixels {worst[0]:.1e}, gradients {worst[1]:.1e}"


def _sampled(images, shift, sampler: str, device: str) -> tuple[np.ndarray, np.ndarray]:
    with tf.device(device):
        displacement = tf.constant(shift)
        with tf.GradientTape() as tape:
            tape.watch(displacement)
            warped = sampling.warp(tf.constant(images), displacement, sampler=sampler)
            value = tf.reduce_sum(warped**2)
        return warped.numpy(), tape.gradient(value, displacement).numpy()


# ---- small runs of the command


def train(folder: str, *arguments: str, visible: str | None = None) -> run_folder.Run:
    """A run that has ended; a RuntimeError with its last words if it fails."""
    environment = dict(os.environ) | ({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    run_dir = os.path.join(folder, str(len(os.listdir(folder))))
    command = [sys.executable, "-m", "rat_tf.train", *RUN, f"--run_dir={run_dir}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip().splitlines()[-1]}")
    return run_folder.Run(run_dir)


def replicas(folder: str) -> tuple[bool, str]:
    """With the tolerance of tests/methods/test_rat.py: rtol 1e-3 and atol 1e-4 of every weight."""
    if len(GPUS) > 1:
        where, places = "two GPUs", {"--strategy=one_device": "0", "--strategy=mirrored": "0,1"}
    else:
        where, places = "two logical CPUs", {"--strategy=one_device": "", "--logical_devices=2": ""}
    # At the kinks of bilinear sampling the last bit decides a gradient: a larger ξ is off them.
    some = ["--xi=0.1eps", "--sampler=gather"]
    some += [f"--{name}={FEW}" for name in ("iterations", "validate_every", "checkpoint_every")]
    one, two = (_weights(train(folder, *some, flag, visible=gpus)) for flag, gpus in places.items())
    worst = max(np.abs(two[name] - value).max() for name, value in one.items())
    same = all(np.allclose(two[name], value, rtol=1e-3, atol=1e-4) for name, value in one.items())
    return same, f"{where}, {FEW} steps: weights differ by {worst:.1e} at most"


def _weights(run: run_folder.Run) -> dict[str, np.ndarray]:
    """Weights and statistics of the network after the last step."""
    path = tf.train.latest_checkpoint(os.path.join(run.folder, "checkpoints"))
    reader = tf.train.load_checkpoint(path)
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.startswith("model/network/")
    }


@functools.cache
def mean_loss(folder: str, *arguments: str) -> float:
    return train(folder, *arguments).rows()[-1]["loss"]


def precision(folder: str, *arguments: str) -> tuple[bool, str]:
    plain, other = mean_loss(folder), mean_loss(folder, *arguments)
    return abs(plain - other) < 0.2 * abs(plain), (
        f"mean loss over {STEPS} steps {other:.4f}, float32 {plain:.4f}"
    )


# ---- the step


def host(step: lib.Step) -> tuple[bool | None, str]:
    python = [name for name in step.operations() if "PyFunc" in name]
    if python:
        return False, f"the step calls Python: {python}"
    if not GPUS:
        return None, "the step calls no Python; copies from the device need a GPU to be seen"
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            step.run(10)
        copies = _copies(folder)
    large = [size for size in copies if size > SMALL_COPY]
    return not large, f"10 steps: {len(copies)} copies to the host, {len(large)} of them large"


def _copies(folder: str) -> list[int]:
    """Bytes of each copy from a GPU to the host in the newest profile of a folder."""
    path = max(glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb")))
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    found = []
    for plane in space.planes:
        if "GPU" not in plane.name:
            continue
        for event in (event for line in plane.lines for event in line.events):
            if "MemcpyD2H" not in plane.event_metadata[event.metadata_id].name:
                continue
            texts = " ".join(stat.str_value for stat in event.stats)
            found.append(max(map(int, re.findall(r"size:(\d+)", texts)), default=0))
    return found


def speed(step: lib.Step, network: str) -> tuple[None, str]:
    passes = [lib.Pass(kind, network, 32, 50 * n) for kind, n in lib.PASSES["rat"]]
    for _ in range(_TURNS.value):
        for each in (step, *passes):
            each.run()
    whole = np.median(step.seconds)
    bare = sum(np.median(each.seconds) for each in passes)
    return None, (
        f"{network}, 50 + 50 images: step {1e3 * whole:.1f} ms, its passes {1e3 * bare:.1f} ms, "
        f"ratio {whole / bare:.2f}; {100 / whole:,.0f} images/s"
    )


def main(argv) -> int:
    del argv
    tf.get_logger().setLevel("ERROR")
    network = _NETWORK.value or ("wrn-28-2" if GPUS else "wrn-10-1")
    step = lib.Step("rat", network, 32, 50)
    failed = 0
    print(f"{devices()}\n\n| check | result | |\n| --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        checks = {
            "samplers agree": samplers,
            "two replicas equal one": lambda: replicas(folder),
            "float16 trains": lambda: precision(folder, "--mixed_precision=float16"),
            "bfloat16 trains": lambda: precision(folder, "--mixed_precision=bfloat16"),
            "XLA trains": lambda: precision(folder, "--jit_compile"),
            "nothing waits for the host": lambda: host(step),
            "speed": lambda: speed(step, network),
        }
        for name, check in checks.items():
            try:
                passed, text = check()
            except Exception as error:  # the other checks are still of use
                traceback.print_exc()
                passed, text = False, f"{type(error).__name__}: {error}"
            failed += passed is False
            result = {True: "yes", False: "NO", None: "–"}[passed]
            print(f"| {name} | {result} | {' '.join(text.split())} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    app.run(main)
