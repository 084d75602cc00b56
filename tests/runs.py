"""Short runs of the smallest network, as processes of their own and as files; commands."""

import contextlib
import csv
import importlib.util
import io
import locale
import os
import runpy
import sys
from unittest import mock

from tests import processes

TINY = {
    "dataset": "digits",
    "labels": 20,
    "network": "tiny",
    "labeled_batch": 10,
    "unlabeled_batch": 10,
    "iterations": 24,
    "validate_every": 8,
    "checkpoint_every": 4,
    "consistency_rampup": 10,
    "decay_at": 16,
    "ema_decay": 0.9,
}

#: Training that may send itself a signal in the middle of the interval from step 8 to 12.
TRAINING = """
import os
from rat_tf import train
from rat_tf.config import cli
from rat_tf.training import loop, progress
loop.plots.summary = lambda *_: None  # as in tests/conftest.py
shown = progress.Progress.on_train_batch_end
def signalled(self, batch, logs=None):
    shown(self, batch, logs)
    if {number} and self.model.optimizer.iterations == 10:
        os.kill(os.getpid(), {number})
progress.Progress.on_train_batch_end = signalled
cli.command(lambda parsed: train.main(parsed.config), training=True)
"""


def start(run_dir, signalled=None, **changes):
    """A process that trains; with `signalled` it sends itself that signal at step 10."""
    script = "-c", TRAINING.format(number=int(signalled or 0))
    flags = {**TINY, "run_dir": str(run_dir), **changes}
    return processes.Process(script, *(f"--{name}={value}" for name, value in flags.items()))


def command(module, *arguments):
    """`python -m module` in this process, which has TensorFlow: exit status, stdout and stderr."""
    path = importlib.util.find_spec(module).origin
    out, err, status = io.StringIO(), io.StringIO(), 0
    before = locale.setlocale(locale.LC_CTYPE)  # commands set that of their process
    with mock.patch.object(sys, "argv", [path, *map(str, arguments)]):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(path, run_name="__main__")
            except SystemExit as ended:
                status = ended.code
            finally:
                locale.setlocale(locale.LC_CTYPE, before)
    return status, out.getvalue(), err.getvalue()


def rows(run_dir):
    """metrics.csv without the seconds, which no two runs share."""
    with open(os.path.join(run_dir, "metrics.csv"), newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
