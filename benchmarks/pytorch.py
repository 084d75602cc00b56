"""Our training step against PyTorch's: `python -m benchmarks.pytorch --torch_python=<python>`.

RAT's step (noise and affine) and the supervised one on WRN-28-2 and 100 random images of SVHN's
size, ours through `model.fit` as a user runs it, with its metrics and schedules, and by hand in
PyTorch without them (benchmarks/pytorch_step.py): the same network, passes, transformations,
augmentation and optimiser, one clean pass over 100 images, no weight gradients in the search,
in-place activations, fused Adam, all cores. PyTorch runs as

  contiguous      its default memory format, NCHW
  channels_last   NHWC, which is also TensorFlow's
  compiled        channels_last with the network in torch.compile (--compiled; it needs a C++
                  compiler and takes minutes to start)

torch is not a dependency of this project: --torch_python names an interpreter that has it, in an
environment of its own. The two processes take turns, one waiting while the other computes; "ms" is
the median over the turns, "best" the fastest turn. "ours/theirs", of the medians, below 1 means
that we are faster; the number that counts is the one against the fastest variant.

Two numbers show whether the others are reliable. "waiting" is the largest share of a core that one
side used while it was the other's turn. "others" is how many cores everything else used, including
the host of a virtual machine: one busy core made PyTorch's step several times slower (its OpenMP
threads spin while they wait for the slowest of them), so that on a shared machine the ratios favour
us. Above 0.1, measure again.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import time

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import numpy as np
import tensorflow as tf

from benchmarks import steps
from rat_tf import errors, fields
from rat_tf.config import cli

METHODS = ("supervised", "rat")
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = pathlib.Path(__file__).with_name("pytorch_step.py")


@dataclasses.dataclass(frozen=True)
class Flags:
    torch_python: str = fields.flag("python3", "A Python interpreter that has torch.")
    turns: int = fields.flag(12, "Turns of each; medians count.", fields.at_least(3))
    compiled: bool = fields.flag(False, "Also torch.compile.")


class Torch:
    """The PyTorch process, which answers line by line."""

    def __init__(self, python: str, variants):
        # OMP_WAIT_POLICY stays as a user has it: the threads stop spinning soon after a step.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        try:
            self._process = subprocess.Popen([python, str(SCRIPT), *variants], bufsize=1, **pipes)
        except OSError as error:
            raise errors.UserError(f"--torch_python={python}: {error.strerror}") from None
        self.version = self._read()
        if not self.version.startswith("torch"):
            raise errors.UserError(
                f"--torch_python={python}: it cannot import torch ({self.version}); install it "
                "there with: pip install torch"
            )

    def _read(self) -> str:
        line = self._process.stdout.readline().strip()
        if not line:
            raise errors.UserError("the PyTorch process has ended; its message is above")
        return line

    def seconds(self, variant: str, method: str) -> float:
        self._process.stdin.write(f"{variant} {method}\n")
        return float(self._read())

    def cpu(self) -> float:
        """CPU seconds that the process has used so far."""
        fields = (
            pathlib.Path(f"/proc/{self._process.pid}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
        )
        return sum(map(int, fields.split()[11:13])) / TICKS

    def close(self) -> None:
        self._process.communicate()


def machine_cpu() -> float:
    """CPU seconds gone from this machine: user, nice and system time, and what its host took."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    return sum(int(fields[i]) for i in (1, 2, 3, 8)) / TICKS


def measure(torch: Torch, variants, turns: int) -> tuple[dict, float, float]:
    """Seconds of all turns by (method, implementation), "waiting" and "others"."""
    ours = {method: steps.Step(method, "wrn-28-2", 32, 50) for method in METHODS}
    theirs = [(method, variant) for method in METHODS for variant in variants]
    for method, variant in theirs:  # memory, oneDNN's and torch.compile's first steps
        torch.seconds(variant, method)
    for each in ours.values():
        each.run()
    seconds = {pair: [] for pair in theirs}
    # After every half of a turn: the time, and the CPU seconds of us, of PyTorch and of all.
    marks = []

    def mark():
        marks.append((time.perf_counter(), time.process_time(), torch.cpu(), machine_cpu()))

    mark()
    for _ in range(turns):
        for each in ours.values():
            each.run()
        mark()
        for method, variant in theirs:
            seconds[method, variant].append(torch.seconds(variant, method))
        mark()
    seconds |= {(method, "rat_tf"): each.seconds[-turns:] for method, each in ours.items()}
    spent = np.diff(marks, axis=0)
    our_turns, their_turns = spent[::2].sum(0), spent[1::2].sum(0)
    waiting = max(our_turns[2] / our_turns[0], their_turns[1] / their_turns[0])
    wall, us, them, everyone = spent.sum(0)
    return seconds, waiting, (everyone - us - them) / wall


def main(flags: cli.Parsed) -> None:
    tf.get_logger().setLevel("ERROR")  # a function per model is not one that is traced again
    variants = ["contiguous", "channels_last", *["compiled"] * flags.compiled]
    torch = Torch(flags.torch_python, variants)
    seconds, waiting, others = measure(torch, variants, flags.turns)
    torch.close()
    print(
        f"TensorFlow {tf.__version__}, {torch.version}; waiting {waiting:.2f}, others {others:.2f}"
    )
    print(f"{'method':12}{'implementation':16}{'ms':>9}{'best':>9}{'ours/theirs':>13}")
    for method in METHODS:
        ours = np.median(seconds[method, "rat_tf"])
        for implementation in ("rat_tf", *variants):
            turns = seconds[method, implementation]
            median, best = np.median(turns), min(turns)
            print(
                f"{method:12}{implementation:16}{1e3 * median:9.1f}{1e3 * best:9.1f}"
                f"{ours / median:13.2f}"
            )


if __name__ == "__main__":
    cli.command(main, Flags)
