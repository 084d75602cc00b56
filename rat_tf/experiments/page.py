"""The report of many runs as files: tables, figures, and one page that opens offline."""

from __future__ import annotations

import html
import os
import re
import zlib

from rat_tf import plots, training
from rat_tf.experiments import comparison, curves, paper, tables
from rat_tf.storage import escapes, files

EXAMPLES = 12  # runs whose adversarial examples are shown


def write(output: str, sections, problems, table: paper.Table | None) -> None:
    """Writes all files of the report."""
    os.makedirs(output, exist_ok=True)
    made = [tables.tables(section) for section in sections]
    flat = [one for several in made for one in several]
    texts = {
        "tables.md": "\n".join(map(tables.markdown, flat)),
        "tables.tex": "\n".join(map(tables.latex, flat)),
        "tables.csv": tables.csv_text(sections),
    }
    body = []
    for section, several in zip(sections, made):
        body += [f"<h2>{html.escape(section.title)}</h2>", *map(tables.html_table, several)]
        body += [_image(path, title) for path, title in _figures(output, section)]
    body += _examples(sections)
    title = table.title if table else "Report"
    remarks = f"{len(problems) or 'no'} remark{'' if len(problems) == 1 else 's'}"
    runs = _count(sections)
    counts = f"{runs} run{'' if runs == 1 else 's'}; {remarks}"
    if table and table.note:
        body.insert(0, f'<p class="note">{html.escape(table.note)}</p>')
    texts["report.html"] = _page(title, counts, problems, body)
    for name, text in texts.items():
        files.write(os.path.join(output, name), text)
    print(escapes.printable(texts["tables.md"]))
    print(f"{counts}; see {os.path.join(output, 'report.html')}")


def _count(sections) -> int:
    return sum(len(line.group.results) for s in sections for line in s.lines if line.group)


def _figures(output: str, section: comparison.Section) -> list[tuple[str, str]]:
    """Draws the figures of a section; returns paths and titles."""
    stem = re.sub(r"\W+", "-", section.title).strip("-")
    drawn = []
    ours, theirs = curves.against_labels(section.lines)
    if ours or theirs:
        path = os.path.join(output, f"labels-{stem}.png")
        plots.report.against_labels(path, ours, theirs, section.title)
        drawn.append((path, "Error against the number of labels"))
    panels = curves.training(section.lines)
    if panels:
        path = os.path.join(output, f"curves-{stem}.png")
        plots.report.training_curves(path, panels, section.title)
        drawn.append((path, "Validation error during training"))
    return drawn


def _examples(sections) -> list[str]:
    """The summary of one run of each group that transforms images."""
    shown = [
        line.group.results[0]
        for section in sections
        for line in section.lines
        if line.group and line.group.config.transforms is not None
    ]
    there = [r for r in shown if os.path.exists(training.run_folder.Run(r.folder).summary)]
    if not there:
        return []
    body = ["<h2>Adversarial examples</h2>"]
    for result in there[:EXAMPLES]:
        title = f"{result.config.title}: {result.part} error {result.error:.2f} %"
        body.append(_image(training.run_folder.Run(result.folder).summary, title))
    if there[EXAMPLES:]:
        body.append(
            f'<p class="note">and {len(there) - EXAMPLES} more, summary.png of each run</p>'
        )
    return body


def _image(path: str, title: str) -> str:
    with open(path, "rb") as file:
        picture = plots.page.picture(file.read(), title)
    # Fits the window; in full size, to be scrolled, after a click.
    key = f"figure-{zlib.crc32(path.encode()):x}"
    return (
        f'<p class="note">{html.escape(title)}</p>\n'
        f'<div class="figure" id="{key}"><a href="#{key}">{picture}</a></div>'
    )


def _page(title: str, counts: str, problems, body: list[str]) -> str:
    listed = "".join(f"<li><code>{html.escape(problem)}</code></li>" for problem in problems)
    remarks = [f'<h2 class="bad">Remarks</h2><ul>{listed}</ul>'] if problems else []
    return plots.page.document(title, [f"<p>{html.escape(counts)}</p>", *body, *remarks])
