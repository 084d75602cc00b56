"""SIGINT and SIGTERM: a run stops where nothing is lost. Without TensorFlow: it begins before."""

from __future__ import annotations

import contextlib
import signal

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """SIGINT or SIGTERM; all state that there is has been saved."""


@contextlib.contextmanager
def raised():
    """Raises `Interrupted` at once: for start-up and evaluation, which have nothing to save.

    While it trains, `Checkpoints` has handlers of its own. Signals that the parent process has
    switched off, as nohup does, stay so.
    """

    def stop(number, frame):
        raise Interrupted(signal.Signals(number).name)

    before = {}
    for number in NUMBERS:
        if signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
