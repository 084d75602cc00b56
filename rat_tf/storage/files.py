"""Small files: atomic writes, locks, CSV."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import os
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping

from rat_tf import errors
from rat_tf.storage import escapes

TEMPORARY = ".tmp"  # suffix of unfinished files


def write(path: str, text: str) -> None:
    """Writes a file atomically: readers and crashes never see half of it.

    It is always UTF-8: of names of files that are not, the odd bytes become escapes.
    """
    options = {"encoding": "utf-8", "errors": "backslashreplace"}
    with writing(path) as temporary, open(temporary, "x", **options) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def writing(path: str) -> Iterator[str]:
    """Yields a temporary name; the file becomes `path` at the end, or is removed on an error.

    The name is random: several processes may write the same file, and nobody can predict it.
    Devices and pipes are refused, which would become files: root may replace /dev/stdout.
    """
    special = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    if special or os.path.dirname(os.path.abspath(path)) == "/dev":
        raise errors.UserError(f"{path}: expected the name of a file, found a device or pipe")
    temporary = f"{path}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or path  # a full disk says only that it is full
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def check_writable(folder: str, flag: str) -> None:
    """Refuses a folder in which nothing can be written, or that cannot be made; leaves nothing."""
    place = os.path.abspath(folder)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise errors.UserError(f"--{flag}: cannot write to {folder}: {error.strerror}") from None


def csv_text(rows: Iterable[Mapping], columns: Iterable[str], header: bool = True) -> str:
    """Rows as CSV, without formulas. Missing columns are blank, other entries are ignored."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), extrasaction="ignore", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows({name: escapes.cell(row[name]) for name in row} for row in rows)
    return text.getvalue()


@contextlib.contextmanager
def locked(path: str, wait: bool = False) -> Iterator[bool | None]:
    """Locks a file or folder. A missing file is created; the kernel drops the locks of dead
    processes.

    Yields True if the lock is held, False if another process holds it and `wait` is false, None
    on a file system without locks.
    """
    # NFS needs the file to be open for writing.
    mode = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, mode, 0o666)
    try:
        yield _lock(descriptor, path, wait)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Makes a folder, waits for a process that writes to it, removes what killed ones left."""
    os.makedirs(folder, exist_ok=True)
    with locked(folder, wait=True) as held:
        for name in os.listdir(folder) if held else ():
            path = os.path.join(folder, name)
            if name.endswith(TEMPORARY) and not os.path.isdir(path):
                os.remove(path)
        yield


def _lock(descriptor: int, path: str, wait: bool) -> bool | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if wait:
            print(f"waiting for another process to unlock {path}", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return wait
    except OSError:
        return None
    return True
