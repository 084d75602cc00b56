"""Executes a sweep: the state of each run, a check of the data, and training one by one."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

from rat_tf import config as config_lib
from rat_tf import data, errors, training
from rat_tf.experiments import plan
from rat_tf.storage import files

TRAIN = ("-m", "rat_tf.train")
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
RELAY = 1.0  # seconds between looks at the log of a run
FINISHED, PARTIAL, NEW = "finished", "partial", "new"


def state(run: plan.Planned) -> tuple[str, str]:
    """The state of a run with a detail; a `UserError` if its folder cannot be used."""
    folder = training.run_folder.Run(run.config.run_dir)
    folder.check(run.config)
    result = folder.finished()
    if result:
        error = result["test_error"]
        return FINISHED, "" if error is None else f"test error {error:.2%}"
    if not os.path.exists(folder.flags):
        return NEW, ""
    rows = folder.rows()
    step = int(rows[-1]["step"]) if rows else 0
    return PARTIAL, f"step {step:,} of {run.config.iterations:,}"


def check(planned: list[plan.Planned]) -> list[tuple[str, str]]:
    """The states of all runs; a `UserError` if the folder of one cannot be used."""
    found, wrong = [], []
    for run in planned:
        try:
            found.append(state(run))
        except errors.UserError as error:
            wrong.append(str(error))
    if wrong:
        raise errors.UserError(
            f"{len(wrong)} of {len(planned)} runs cannot be trained; another --runs may help\n"
            + "\n".join(wrong)
        )
    return found


def listing(planned: list[plan.Planned], states: list[tuple[str, str]]) -> str:
    """One line per run: state, folder, the flags in which the runs differ; then shared flags."""
    texts = collections.defaultdict(set)
    for run in planned:
        for flag, text in run.flags.items():
            texts[flag].add(text)
    shared = {flag: text for flag, (text, *others) in texts.items() if not others}
    width = max(len(run.config.run_dir) for run in planned)
    lines = []
    for run, (name, detail) in zip(planned, states):
        shown = " ".join(f"--{f}={text}" for f, text in run.flags.items() if f not in shared)
        lines.append(f"{name:<9} {run.config.run_dir:<{width}}  {shown}  {detail}".rstrip())
    if shared:
        flags_text = " ".join(f"--{flag}={text}" for flag, text in shared.items())
        lines.append(f"shared flags, where the method uses them: {flags_text}")
    counts = collections.Counter(name for name, _ in states)
    summary = ", ".join(f"{counts[name]} {name}" for name in (FINISHED, PARTIAL, NEW))
    return "\n".join([*lines, f"{len(planned)} runs: {summary}"])


def check_data(planned: list[plan.Planned]) -> None:
    """Finds every data set before the first run, except those to be downloaded."""
    seen = set()
    for run in planned:
        config = run.config
        given = [name for name, f in config_lib.FLAGS.items() if f.metadata["group"] == "Data"]
        key = tuple(getattr(config, name) for name in ("data_dir", *given))
        training.footprint.check(config)
        if key not in seen and not config.download:
            data.find(config)
        seen.add(key)


def log_of(run: plan.Planned) -> str:
    """Next to the run folder, which must be empty at first."""
    return run.config.run_dir + ".log"


def execute(run: plan.Planned) -> str | None:
    """Trains one run in its own process, with output to <run folder>.log; returns any error."""
    log = log_of(run)
    os.makedirs(os.path.dirname(log), exist_ok=True)
    lock = os.path.join(run.config.run_dir, "lock")
    if os.path.exists(lock):  # of a sweep that was killed, the run may still be saving its state
        with files.locked(lock, wait=True):
            pass
    command = [sys.executable, *TRAIN, *run.arguments()]
    with open(log, "ab") as file:
        start = file.tell()
        relay = _Relay(log, start)
        # In a new session: Ctrl-C reaches only this process, which asks the run to save and stop.
        process = subprocess.Popen(
            command, stdout=file, stderr=file, start_new_session=True, preexec_fn=_end_with_parent()
        )
        try:
            status = None
            while status is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(timeout=RELAY)
                relay.show()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        finally:
            relay.end()
    if status == 0:
        return None
    with open(log, "rb") as file:
        file.seek(start)
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    said = [line for line in lines if line.startswith("error: ")] or list(filter(None, lines))
    return f"exit status {status}: {said[-1] if said else 'no output'} (see {log})"


def _end_with_parent():
    """A function for a child process: it gets SIGTERM, and saves itself, if this process is killed.

    Only Linux can do that. Elsewhere the next sweep waits for the run.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return None
    parent = os.getpid()

    def prepare():
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before
            os._exit(128 + signal.SIGTERM)

    return prepare


class _Relay:
    """Shows the latest step line of a run's log: over the last one in a terminal, else below."""

    def __init__(self, log: str, start: int):
        self._log, self._position = log, start
        self._over = sys.stdout.isatty()
        self._width = 0

    def show(self) -> None:
        with open(self._log, "rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        lines = whole.decode(errors="replace").splitlines()
        for line in [line for line in lines if line.startswith("step ")][-1:]:
            if self._over:
                print(f"\r  {line}".ljust(self._width), end="", flush=True)
                self._width = len(line) + 3
            else:
                print(f"  {line}", flush=True)

    def end(self) -> None:
        if self._width:
            print("\r" + " " * self._width, end="\r", flush=True)


def execute_all(planned: list[plan.Planned], states: list[tuple[str, str]]) -> dict[str, str]:
    """Trains the unfinished runs; returns the failures by run folder."""
    waiting = [run for run, (name, _) in zip(planned, states) if name != FINISHED]
    failures = {}
    for number, run in enumerate(waiting, start=1):
        print(f"[{number}/{len(waiting)}] {run.config.run_dir}, log: {log_of(run)}", flush=True)
        start = time.monotonic()
        try:
            failure = execute(run)
            said = "FAILED" if failure else state(run)[1]
        except errors.UserError as error:
            said, failure = "FAILED", str(error)
        if failure:
            failures[run.config.run_dir] = failure
        print(f"  {said}, {time.monotonic() - start:.0f} s", flush=True)
    return failures
