"""What a run says while it trains: a bar in a terminal, a line per interval, the expected time."""

from __future__ import annotations

import datetime
import shutil
import sys
import time

import tensorflow as tf

from rat_tf import config as config_lib

WIDTH = 80


class Progress(tf.keras.callbacks.Callback):
    """One line per interval and, in a terminal, a bar below them. Both fit 80 columns.

    There is one ETA, that of the whole run. The rate is that of the steps after the first, which
    is traced; validations count.
    """

    REFRESH = 0.5  # seconds between updates: each waits for the device to finish its step
    ESTIMATE = 5.0  # seconds after which the time of the run is estimated

    def __init__(self, config: config_lib.Config, start: int, said: bool = False):
        """`said`: the expected time is known to the user already."""
        super().__init__()
        self._supports_tf_logs = True  # avoids a device-to-host copy of the logs at every step
        self._total = config.iterations
        self._start = start
        self._began = None  # time and step at the end of the first step
        self._shown = 0.0
        self._said = said
        self._bar = sys.stdout.isatty()
        self._latest = {}

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if self._began is None:
            self._began = now, self._step()
        elif not self._said and now - self._began[0] >= self.ESTIMATE:
            self._said = True
            self._clear()
            print(expected(self._total - self._start, self._rate(self._step())), flush=True)
        if self._bar and now - self._shown >= self.REFRESH:
            self._latest = {name: float(value) for name, value in (logs or {}).items()}
            self._draw()

    def on_test_begin(self, logs=None):
        self._draw("validating")

    def on_epoch_end(self, epoch, logs=None):
        step = int(logs["step"])
        self._clear()
        print(line(step, self._total, logs, self._rate(step)), flush=True)

    def on_train_end(self, logs=None):
        self._clear()

    def _step(self) -> int:
        return int(self.model.optimizer.iterations.numpy())

    def _rate(self, step: int) -> float:
        """Steps per second so far; 0 before it is known."""
        began, first = self._began or (time.monotonic(), step)
        return (step - first) / max(time.monotonic() - began, 1e-9)

    def _draw(self, doing: str = "") -> None:
        if self._bar:
            step = self._step()
            print(f"\r{bar(step, self._total, self._latest, self._rate(step), doing)}", end="")
            sys.stdout.flush()
            self._shown = time.monotonic()

    def _clear(self) -> None:
        if self._bar:
            print("\r" + " " * (_columns() - 1), end="\r", flush=True)


def line(step: int, total: int, logs: dict, rate: float) -> str:
    """step 500/1000  loss 0.81  kl 0.12  error 12.3%, avg 11.9%  9.1/s  ETA 0:01:23

    avg: the error of the averaged weights.
    """
    parts = [f"step {step}/{total}", *_numbers(logs)]
    if rate:
        parts += [f"{rate:.1f}/s", f"ETA {_left(step, total, rate)}"]
    # What can be missed, in this order, where the line would be too long.
    for prefix in ("kl ", "consistency ", "loss "):
        if len("  ".join(parts)) >= WIDTH:
            parts = [part for part in parts if not part.startswith(prefix)]
    return "  ".join(parts)


def bar(step: int, total: int, logs: dict, rate: float, doing: str = "") -> str:
    """42% [=====>      ] 420/1000  loss 0.81  9.1 steps/s  ETA 0:01:23, padded to the width."""
    tail = [f"{step}/{total}", *([doing] if doing else _numbers(logs)[:1])]
    if rate:
        tail += [f"{rate:.1f} steps/s", f"ETA {_left(step, total, rate)}"]
    text = "  ".join(tail)
    width = _columns() - 1  # a full line would wrap in some terminals
    room = width - len(text) - len("100% [] ")
    full = round(max(room, 0) * step / total)
    drawn = f"[{('=' * full)[:-1]}{'>' if full else ''}{' ' * (room - full)}] " if room > 4 else ""
    return f"{step / total:4.0%} {drawn}{text}"[:width].ljust(width)


def expected(steps: int, rate: float, seconds: float | None = None) -> str:
    """time     about 12 minutes: 6,000 steps at 8.3 steps/s"""
    seconds = steps / max(rate, 1e-9) if seconds is None else seconds
    return f"time     about {duration(seconds)}: {steps:,} steps at {rate:.3g} steps/s"


def duration(seconds: float) -> str:
    """In words, to about a tenth: 40 seconds, 12 minutes, 3.5 hours, 2.5 days."""
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            amount = seconds / unit
            return f"{amount:.0f} {name}" if amount >= 10 else f"{amount:.2g} {name}"
    return f"{max(round(seconds), 1)} seconds"


def _numbers(logs: dict) -> list[str]:
    shown = [f"{name} {logs[name]:.2f}" for name in ("loss", "kl") if name in logs]
    if "kl" not in logs and "consistency" in logs:
        shown.append(f"consistency {logs['consistency']:.2f}")
    if "val_error" in logs:
        averaged = f", avg {logs['val_ema_error']:.1%}" if "val_ema_error" in logs else ""
        shown.append(f"error {logs['val_error']:.1%}{averaged}")
    return shown


def _left(step: int, total: int, rate: float) -> str:
    return str(datetime.timedelta(seconds=int((total - step) / rate)))


def _columns() -> int:
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
