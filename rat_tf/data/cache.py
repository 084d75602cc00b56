"""Files of --cache_dir, which several processes and users may share.

Their permissions follow the umask.
"""

from __future__ import annotations

import contextlib
import os

from rat_tf import errors
from rat_tf.data import options


@contextlib.contextmanager
def user_errors(cache_dir: str):
    """Turns an OSError in the cache into a `UserError`."""
    try:
        yield
    except OSError as error:
        raise errors.UserError(
            f"--cache_dir: cannot use {error.filename or cache_dir}: {error.strerror or error}; "
            "use another folder"
        ) from error


def is_refusal(error: Exception) -> bool:
    """Whether a file cannot be accessed, as opposed to being damaged."""
    return isinstance(error, OSError) and error.errno is not None


def existing(path: str) -> str:
    """The path itself, or the closest folder above it that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    return path


def folder(config: options.DataOptions) -> str:
    if config.cache_dir:
        return config.cache_dir
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "rat_tf")
