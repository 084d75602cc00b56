"""Mistakes of users, and the nearest right name. It imports nothing; every room may use it."""

import difflib


class UserError(Exception):
    """A mistake in what the user gave us: shown as one message, without a traceback."""


def did_you_mean(name: str, known, cutoff: float = 0.6) -> str:
    """The tail of an error message: the nearest of the `known` names, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""
