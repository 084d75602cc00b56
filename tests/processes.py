"""Processes that begin with TensorFlow imported: they are forked from one that did nothing else.

To import TensorFlow and what training needs takes three seconds, more than most of their work.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import time

_fork_server = multiprocessing.get_context("forkserver")
_fork_server.set_forkserver_preload(["tests.preloaded"])


class Process:
    """Much like `subprocess.Popen`: `script` is ("-m", module) or ("-c", code)."""

    def __init__(self, script, *arguments, env=None):
        self._files = [tempfile.NamedTemporaryFile("r+") for _ in range(2)]
        descriptors = [file.name for file in self._files]
        environment = {**os.environ, **(env or {})}
        given = script, [str(a) for a in arguments], environment, os.getcwd(), descriptors
        self._process = _fork_server.Process(target=_run, args=given, daemon=True)
        self._process.start()

    def poll(self):
        """The exit status; minus the number of the signal that ended the process; None."""
        return self._process.exitcode

    def send_signal(self, number) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def finish(self, timeout: float = 300) -> tuple[int, str, str]:
        """Waits for the end: exit status, stdout and stderr."""
        self._process.join(timeout)
        assert self.poll() is not None, f"not finished after {timeout} s"
        return self.poll(), *(file.read() for file in self._files)

    def wait_for(self, condition, timeout: float = 90) -> None:
        deadline = time.time() + timeout
        while time.time() < deadline and self.poll() is None:
            if condition():
                return
            time.sleep(0.01)
        if self.poll() is None:
            self.kill()
        raise AssertionError(f"waited in vain: {self.finish()}")


def _run(script, arguments, environment, folder, outputs) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for descriptor, path in zip((1, 2), outputs):
        os.dup2(os.open(path, os.O_WRONLY), descriptor)
    kind, text = script
    sys.argv = [text if kind == "-m" else kind, *arguments]
    if kind == "-m":
        runpy.run_module(text, run_name="__main__", alter_sys=True)
    else:
        exec(text, {"__name__": "__main__"})
