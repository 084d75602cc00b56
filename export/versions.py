"""The numbered versions of a model in its folder, as TF Serving expects them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator

from rat_tf import errors
from rat_tf.storage import files

LAST_VERSION = 2**63 - 1  # TF Serving's version numbers have 64 bits
TEMPORARY = ".export-"  # not a number, so that servers ignore it


@contextlib.contextmanager
def new_version(output: str, version: int, failures=(OSError,)) -> Iterator[tuple[str, str]]:
    """A temporary folder, which gets its final name on success and is removed on failure.

    `failures` are the exceptions that writing there can raise. The kernel releases the lock when
    the process ends, so temporary folders found under the lock were left by killed exports.
    """
    existed = os.path.isdir(output)
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as error:
        raise errors.UserError(f"--output: cannot write to {output}: {error.strerror}") from None
    try:
        with files.locked(output) as held:
            if held is False:
                raise errors.UserError(
                    f"--output: another export is writing to {output}; wait until it has finished"
                )
            number = version or max(versions(output), default=0) + 1
            if number > LAST_VERSION:
                raise errors.UserError(f"--version: must be at most {LAST_VERSION}, got {number}")
            final = os.path.join(output, str(number))
            if os.path.exists(final):
                raise errors.UserError(
                    f"--version: {final} exists; use another number, or 0 for the next one"
                )
            for leftover in os.listdir(output):
                if leftover.startswith(TEMPORARY):
                    _remove(os.path.join(output, leftover))
            # The name is random, so that nobody can put a link there.
            temporary = os.path.join(output, f"{TEMPORARY}{number}-{uuid.uuid4().hex}")
            try:
                yield temporary, final
                os.rename(temporary, final)
            except failures as error:
                reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
                raise errors.UserError(
                    f"--output: {final} cannot be written: {reason}; nothing was left there"
                ) from None
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    finally:
        if not existed and not os.listdir(output):
            os.rmdir(output)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def versions(model_dir: str) -> list[int]:
    """The versions in the folder of a model, in order: the folders that TF Serving reads."""
    if not os.path.isdir(model_dir):
        return []
    numbers = (name for name in os.listdir(model_dir) if re.fullmatch("0|[1-9][0-9]*", name))
    return sorted(number for number in map(int, numbers) if number <= LAST_VERSION)
