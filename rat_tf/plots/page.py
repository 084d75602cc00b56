"""One HTML page that opens offline: style, frame and embedded pictures."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable

STYLE = """
:root { color-scheme: light dark; --text: #222; --soft: #555; --page: #fff; --line: #ccc;
  --card: #f6f6f6; --bad: #a00; --bar: #2f6fb2 }
@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --soft: #aaa; --page: #181818;
  --line: #444; --card: #242424; --bad: #ff8080; --bar: #6aa8e8 } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page) }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line) }
table { display: block; overflow-x: auto; border-collapse: collapse;
  font-variant-numeric: tabular-nums }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid var(--line) }
th:not(:first-child), td:not(:first-child) { white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { border-bottom: 2px solid var(--soft) }
img { max-width: 100%; height: auto; margin: .5rem 0 }
.figure:target { overflow-x: auto } .figure:target img { max-width: none }
.note { color: var(--soft); font-size: .87em; max-width: 60rem } .bad { color: var(--bad) }
code { font-size: .9em; overflow-wrap: anywhere }
"""


def document(title: str, body: Iterable[str], style: str = "") -> str:
    """A page; the parts of its body are HTML, the title is text."""
    newline = "\n"  # before Python 3.12 braces cannot contain a backslash
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{STYLE}{style}</style></head><body>
<h1>{html.escape(title)}</h1>
{newline.join(body)}
</body></html>
"""


def picture(data: bytes, text: str, kind: str = "image/png") -> str:
    """An image inside the page, so that it can be sent as one file."""
    coded = base64.b64encode(data).decode()
    return f'<img alt="{html.escape(text)}" src="data:{kind};base64,{coded}">'
