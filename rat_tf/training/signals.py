"""SIGINT and SIGTERM: a run stops where nothing is lost. Without TensorFlow: it begins before."""

from __future__ import annotations

import contextlib
import signal

NUMBERS = (signal.SIGINT, signal.SIGTERM)


_received: list[str] = []  # since `raised` began


class Interrupted(BaseException):
    """SIGINT or SIGTERM; all state that there is has been saved.

    Like KeyboardInterrupt no Exception: whoever takes any of these for a damaged file must not take
    a signal for one.
    """


def switched_on() -> list[int]:
    """Those that the parent process has not switched off, as nohup does: they stay off."""
    return [number for number in NUMBERS if signal.getsignal(number) != signal.SIG_IGN]


@contextlib.contextmanager
def raised():
    """Raises `Interrupted` at once: for start-up and evaluation, which have nothing to save.

    While it trains, `Checkpoints` has handlers of its own.
    """

    def stop(number, frame):
        _received.append(signal.Signals(number).name)
        check()

    before = {number: signal.signal(number, stop) for number in switched_on()}
    try:
        yield
    except Exception:
        check()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _received.clear()


def check() -> None:
    """Raises `Interrupted` if there was a signal.

    Where TensorFlow's C++ calls Python, what a handler raises becomes another error: an error after
    a signal is that signal.
    """
    if _received:
        raise Interrupted(_received[-1])
