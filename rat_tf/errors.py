"""User errors, and suggestions for misspelt names. It imports nothing; every room may use it."""

import difflib


class UserError(Exception):
    """Invalid input of the user: shown as one message, without a traceback."""


def did_you_mean(name: str, known, cutoff: float = 0.6) -> str:
    """The end of an error message: the closest of the `known` names, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""
