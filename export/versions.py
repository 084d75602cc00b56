"""The numbered versions of a model in its folder, as TF Serving looks for them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator

from rat_tf import errors, files

LAST_VERSION = 2**63 - 1  # TF Serving's numbers have 64 bits
TEMPORARY = ".export-"  # not a number: servers look at numbers only


@contextlib.contextmanager
def new_version(output: str, version: int, failures=(OSError,)) -> Iterator[tuple[str, str]]:
    """A temporary folder, which gets its name if all goes well and is removed if it does not.

    `failures` are the exceptions of writing there. The lock is the kernel's and ends with the
    process, however that ends: what is found under it and has a temporary name was left by an
    export that was killed.
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
                    f"--output: another export is writing to {output}; wait for its end"
                )
            number = version or max(versions(output), default=0) + 1
            if number > LAST_VERSION:
                raise errors.UserError(f"--version: must be at most {LAST_VERSION}, got {number}")
            final = os.path.join(output, str(number))
            if os.path.exists(final):
                raise errors.UserError(
                    f"--version: {final} exists; take another number, or none for the next"
                )
            for leftover in os.listdir(output):
                if leftover.startswith(TEMPORARY):
                    shutil.rmtree(os.path.join(output, leftover))
            temporary = os.path.join(output, f"{TEMPORARY}{os.path.basename(final)}")
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


def versions(model_dir: str) -> list[int]:
    """The versions in the folder of a model, in order: folders that TF Serving looks at."""
    if not os.path.isdir(model_dir):
        return []
    numbers = (name for name in os.listdir(model_dir) if re.fullmatch("0|[1-9][0-9]*", name))
    return sorted(number for number in map(int, numbers) if number <= LAST_VERSION)
