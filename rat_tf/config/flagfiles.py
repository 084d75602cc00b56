"""Flagfiles: finds them and expands nested ones.

absl also reads flagfiles, but searches only the current folder.
"""

from __future__ import annotations

import os
import re

from rat_tf import errors

#: Flags of earlier versions, and the values with which they did nothing: flags.cfg has these.
DROPPED = {"epsilon_draw": "fixed", "entropy_rampup": "0", "kl_cap": "0.0"}
MAX_DEPTH = 50  # of flagfiles that include each other


def root() -> str:
    """The folder that contains the project's configs/.

    configs/ here is a link to the checkout's; in a wheel it is a copy.
    """
    return os.path.dirname(os.path.abspath(__file__))


def names(folder: str = "") -> list[str]:
    """All flagfiles in a folder's configs/ (default: the project's), as given to --flagfile."""
    folder = folder or root()
    found = []
    for path, _, files in os.walk(os.path.join(folder, "configs")):
        found += [os.path.join(os.path.relpath(path, folder), name) for name in files]
    return sorted(name for name in found if name.endswith(".cfg"))


def find(path: str) -> str:
    """The path of a flagfile: in the current folder or, for configs/…, in the package."""
    path = os.path.expanduser(path)
    if os.path.exists(path):
        return path
    ours = os.path.join(root(), os.path.normpath(path))
    if os.path.normpath(path).startswith("configs" + os.sep) and os.path.exists(ours):
        return ours
    hint = errors.did_you_mean(os.path.normpath(path), names())
    raise errors.UserError(f"no such file: {path}{hint}")


def expand(arguments) -> tuple[list[str], list[str], list[str]]:
    """Returns the flags in the flagfiles, the other arguments, and the names of the flagfiles.

    Parsed in this order, the command line overrides flagfiles. Arguments after -- are unchanged.
    """
    flags, rest, named = [], [], []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif re.match(r"--?flagfile(=|$)", argument):
            _, equals, value = argument.partition("=")
            named.append(value if equals else next(remaining, ""))
            flags += _include(named[-1], ())
        else:
            rest.append(argument)
    return flags, rest, named


def _include(name: str, including: tuple[str, ...]) -> list[str]:
    """The flags in one flagfile; `including` are the files that include it, outermost first."""
    try:
        if not name.strip() or name.startswith("-"):
            raise errors.UserError(f"expected the name of a file, got {name!r}")
        path = find(name.strip())
        if any(os.path.samefile(path, outer) for outer in including):
            raise errors.UserError(f"{path} includes itself")
        if len(including) == MAX_DEPTH:
            raise errors.UserError(f"more than {MAX_DEPTH} flagfiles include each other")
        lines = _lines(path)
    except errors.UserError as error:
        where = f"{including[-1]}: " if including else ""
        raise errors.UserError(f"{where}--flagfile: {error}") from None
    flags = []
    for number, line in lines:
        if line.startswith(("--flagfile=", "-flagfile=")):
            flags += _include(line.partition("=")[2], (*including, path))
        elif re.match(r"--?(?!flagfile(\s|$))\w", line):
            flags += [line] if _is_known(line, path) else []
        else:
            expected = "a flag such as --seed=1 or --flagfile=<file>"
            raise errors.UserError(f"{path}, line {number}: expected {expected}, got {line!r}")
    return flags


def _is_known(line: str, path: str) -> bool:
    """False for a flag of an earlier version that did nothing; one that did is an error."""
    name, _, value = line.lstrip("-").partition("=")
    if name in DROPPED and value != DROPPED[name]:
        raise errors.UserError(
            f"{path}: --{name}: this version has no such flag (0.2.0 has), got {value!r}"
        )
    return name not in DROPPED


def _lines(path: str) -> list[tuple[int, str]]:
    """The numbered lines of a file, without comments and blank lines."""
    # A pipe or a device could block for ever; /dev/fd/63 is what a shell makes of <(command).
    if not os.path.isfile(path) and not path.startswith(("/dev/fd/", "/dev/stdin")):
        raise errors.UserError(f"cannot read {path}: expected a file, found a folder or a device")
    try:
        with open(path, encoding="utf-8-sig") as file:
            stripped = [line.strip() for line in file]
        if any("\0" in line for line in stripped):
            raise ValueError
    except ValueError:  # of the encoding, too
        raise errors.UserError(f"{path} is not a text file (UTF-8)") from None
    except OSError as error:
        raise errors.UserError(f"cannot read {path}: {error.strerror}") from None
    return [
        (number, line)
        for number, line in enumerate(stripped, 1)
        if line and not line.startswith(("#", "//"))
    ]
