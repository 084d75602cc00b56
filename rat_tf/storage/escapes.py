"""Names that come from elsewhere (folders, flags, servers), made harmless where they are shown."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """For a terminal: control characters, which could steer it, become escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def markdown(text: str) -> str:
    """For a line of Markdown: without tags, links, cells and lines of its own."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()))
    return text.replace("](", "]\\(").replace("|", "\\|")


def cell(value):
    """For a spreadsheet, which takes a text that begins with =, +, - or @ for a formula."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
        return value
    except ValueError:
        return "'" + value
