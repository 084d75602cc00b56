"""Real commands in processes of their own, which are killed in a chosen stage; see faults.py.

Processes are forked from one that has imported TensorFlow and done nothing else, or begin with a
new interpreter. A thread of the process sends it the signal, some time after the stage has begun.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["benchmarks.fault_preloaded"])

#: Where a stage of a command begins: module, and the function that is called then.
STAGES = {
    "start-up": ("rat_tf.training.run_folder", "Run.check"),
    "creation": ("rat_tf.training.run_folder", "Run.create"),
    "step": ("rat_tf.training.checkpoints", "Checkpoints.on_train_batch_end"),
    "validation": ("rat_tf.training.callbacks", "Examination.on_test_begin"),
    "save": ("rat_tf.training.checkpoints", "Checkpoints._write"),
    "end": ("rat_tf.training.loop", "evaluate"),
    "export": ("rat_tf.training.weights", "load"),
    "search": ("rat_tf.tuning.trial_runner", "search"),
    "sweep": ("rat_tf.experiments.execution", "execute"),
}


class Kill(NamedTuple):
    stage: str
    number: int  # of the signal
    delay: float  # seconds after the stage has begun
    skipped: int = 0  # times that the stage begins before


class Ended(NamedTuple):
    status: int
    output: str
    seconds: float


def run(module: str, arguments, log: str, kill: Kill | None = None, limit: int = 0) -> Ended:
    """`python -m module`; `limit` is the largest size of a file in bytes. Waits for its end."""
    began = time.monotonic()
    process = _forks.Process(
        target=_child, args=(module, list(map(str, arguments)), log, kill, limit)
    )
    process.start()
    process.join(600)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise RuntimeError(f"{module} did not end within ten minutes, see {log}")
    with open(log, encoding="utf-8", errors="replace") as file:
        return Ended(process.exitcode, file.read(), time.monotonic() - began)


def run_new(module: str, arguments, log: str, number: int, delay: float) -> Ended:
    """The same with a new interpreter, killed after `delay` seconds, wherever it is then."""
    began = time.monotonic()
    with open(log, "wb") as file:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            process.wait(600)
    with open(log, encoding="utf-8", errors="replace") as file:
        return Ended(process.returncode, file.read(), time.monotonic() - began)


def _child(module: str, arguments, log: str, kill: Kill | None, limit: int) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if kill:
        _arm(kill)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _arm(kill: Kill) -> None:
    """Lets the chosen stage of this process start the thread that ends it."""
    module, path = STAGES[kill.stage]
    where = sys.modules.get(module) or __import__(module, fromlist=["_"])
    *outer, name = path.split(".")
    for part in outer:
        where = getattr(where, part)
    before, calls = getattr(where, name), []

    def send():
        time.sleep(kill.delay)
        os.kill(os.getpid(), kill.number)

    @functools.wraps(before)
    def armed(*args, **kwargs):
        calls.append(None)
        if len(calls) == kill.skipped + 1:
            threading.Thread(target=send, daemon=True).start()
        return before(*args, **kwargs)

    setattr(where, name, armed)
