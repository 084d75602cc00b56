"""Reads the JSON and CSV files of run folders and search folders.

Whatever is wrong with such a file (it is missing, cut, no text, or has other content than expected)
is one `UserError` that names it. A check returns what is wrong with a value, or None.
"""

from __future__ import annotations

import csv
import json
import math
import os
import reprlib
import stat
from collections.abc import Callable, Mapping

from rat_tf import errors

Check = Callable[[object], "str | None"]


def text(path: str) -> str:
    """The text of a regular file: a pipe or a device could block for ever."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise errors.UserError(f"{path}: expected a file, found a folder, pipe or device")
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise errors.UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise errors.UserError(f"{path}: expected text (UTF-8), found {error.reason}") from None


def json_object(
    path: str,
    required: Mapping[str, Check],
    optional: Mapping[str, Check] | None = None,
    advice: str = "",
) -> dict:
    """The JSON object in a file. Fields without a check are kept as they are.

    `advice`, what to do about a damaged file, ends the message.
    """
    try:
        found = _parsed(path)
        for name, check in {**required, **(optional or {})}.items():
            if name not in found and name in required:
                raise errors.UserError(f"{path}: expected the field {name!r}, found {_some(found)}")
            problem = check(found[name]) if name in found else None
            if problem:
                raise errors.UserError(f"{path}: {name}: {problem}")
    except errors.UserError as error:
        raise errors.UserError(f"{error}; {advice}" if advice else str(error)) from None
    return found


def _parsed(path: str) -> dict:
    content = text(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise errors.UserError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(found, dict):
        raise errors.UserError(f"{path}: expected a JSON object, found {reprlib.repr(found)}")
    return found


def _some(found: dict) -> str:
    return reprlib.repr(list(found)) if found else "none"


def numbers(path: str, required: Mapping[str, Check], advice: str = "") -> list[dict[str, float]]:
    """The rows of a CSV file of numbers, without blanks and a last line that was cut off."""
    lines = text(path).splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        del lines[-1]  # by a crash
    rows, place = [], "its columns"
    try:
        table = csv.reader(lines, strict=True)
        header = next(table, list(required))
        missing = [name for name in required if name not in header]
        if missing:
            raise ValueError(f"expected {missing[0]!r}, found {reprlib.repr(header)}")
        for number, cells in enumerate(table, start=1):
            place = f"row {number}"
            rows.append(_row(header, cells, required))
    except (ValueError, csv.Error) as error:
        problem = f"{path}: not a table of numbers: {place}: {error}"
        raise errors.UserError(f"{problem}; {advice}" if advice else problem) from None
    return rows


def _row(header: list[str], cells: list[str], required: Mapping[str, Check]) -> dict[str, float]:
    if len(cells) != len(header):
        raise ValueError(f"expected {len(header)} cells, found {len(cells)}")
    row = {name: float(cell) for name, cell in zip(header, cells) if cell}
    for name, check in required.items():
        problem = check(row[name]) if name in row else "expected a number, found none"
        if problem:
            raise ValueError(f"{name}: {problem}")
    return row


# ---- checks


def expect(condition: Callable[[object], bool], expected: str) -> Check:
    return lambda value: (
        None if condition(value) else f"expected {expected}, found {reprlib.repr(value)}"
    )


def _is_number(value) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def _is_whole(value) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_share(value) -> bool:
    return _is_number(value) and 0 <= value <= 1


seconds = expect(lambda value: _is_number(value) and value >= 0, "a number >= 0")
whole = expect(_is_whole, "a whole number >= 0")
share = expect(_is_share, "a number in [0, 1]")
share_or_null = expect(
    lambda value: value is None or _is_share(value), "a number in [0, 1] or null"
)
string = expect(lambda value: isinstance(value, str), "a text")
flag = expect(lambda value: isinstance(value, bool), "true or false")
dictionary = expect(lambda value: isinstance(value, dict), "an object")


def list_of(check: Check, what: str) -> Check:
    """A list of at least one value; `what` names them in the message."""
    return expect(
        lambda value: isinstance(value, list) and bool(value) and not any(map(check, value)),
        f"a list of {what}",
    )
