"""Small files: written whole or not at all, locked, and tables as CSV."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import os
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping

TEMPORARY = ".tmp"  # how unfinished files end


def write(path: str, text: str) -> None:
    """Writes a whole file or nothing: a reader or a crash never sees half of it."""
    with writing(path) as temporary, open(temporary, "x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def writing(path: str) -> Iterator[str]:
    """A temporary name; the file there becomes `path` at the end, or is removed on an error.

    The name is random: several processes may write the same file, and nobody can foresee it.
    """
    temporary = f"{path}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def csv_text(rows: Iterable[Mapping], columns: Iterable[str], header: bool = True) -> str:
    """Rows as CSV; blank where a row has no such column, and without its other entries."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), extrasaction="ignore", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@contextlib.contextmanager
def locked(path: str, wait: bool = False) -> Iterator[bool | None]:
    """Keeps out other processes that lock the same file or folder; the kernel drops that of a
    dead one. A file is created if it is not there.

    Yields True with the lock, False if another process has it and we do not wait, None on a file
    system without locks.
    """
    # For NFS a file has to be open for writing.
    mode = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, mode, 0o666)
    try:
        yield _lock(descriptor, path, wait)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: str, wait: bool) -> bool | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if wait:
            print(f"waiting for the process that has locked {path}", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return wait
    except OSError:
        return None
    return True
