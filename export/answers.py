"""Answers of any server: within a time, and one error for all that are not TF Serving's."""

from __future__ import annotations

import contextlib
import threading

from rat_tf import errors

MAX_TEXT = 1000  # characters of an error that are shown


class ServerError(errors.UserError):
    """An error of the server; `transient` if a retry may succeed."""

    def __init__(self, message: str, transient: bool = False):
        super().__init__(message)
        self.transient = transient


def within(seconds: float, ask):
    """ask(), or a TimeoutError after so many seconds.

    A socket's timeout is that of one read: a server that sends a byte now and then would never end.
    The thread that still waits is a daemon, which ends with the process.
    """
    found: dict[str, object] = {}

    def run():
        try:
            found["answer"] = ask()
        except Exception as error:
            found["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in found:
        raise found["error"]
    if "answer" not in found:
        raise TimeoutError
    return found["answer"]


@contextlib.contextmanager
def understood(server: str):
    """Turns what an unexpected answer raises into a `ServerError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise unlike_serving(server, error) from None


def unlike_serving(server: str, error) -> ServerError:
    found = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else error
    return ServerError(f"{server} does not answer like TF Serving ({found[:MAX_TEXT]})")


def timed_out(server: str, timeout: float) -> str:
    return f"{server} did not answer within {timeout:g} s; try a longer --timeout"
