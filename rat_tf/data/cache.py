"""Files of --cache_dir, which several processes and users may share.

They are made with the permissions that the umask gives, under a temporary name first: no other
process ever sees half a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator

from absl import logging

from rat_tf import config as config_lib

TEMPORARY = ".tmp"  # how unfinished files end


@contextlib.contextmanager
def writing(path: str) -> Iterator[str]:
    """A temporary name; the file there becomes `path` at the end, or is removed on an error."""
    temporary = f"{path}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


@contextlib.contextmanager
def locked(folder: str, wait: bool = True) -> Iterator[bool]:
    """Keeps out other processes that ask for the same lock; the kernel drops that of a dead one.

    False if there is no lock: another process has it and we do not wait, or the file system has
    none.
    """
    with open(os.path.join(folder, "lock"), "a") as file:  # for NFS it has to be open for writing
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = wait
            if wait:
                logging.warning("waiting for the process that is writing to %s", folder)
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            held = False
        yield held


@contextlib.contextmanager
def user_errors(cache_dir: str):
    """A folder that cannot be made, read or written is the user's to change."""
    try:
        yield
    except OSError as error:
        raise config_lib.UserError(
            f"--cache_dir: cannot use {error.filename or cache_dir}: {error.strerror or error}; "
            "give another folder"
        ) from error


def is_refusal(error: Exception) -> bool:
    """Whether a file cannot be read, such as one of another user, rather than understood."""
    return isinstance(error, OSError) and error.errno is not None
