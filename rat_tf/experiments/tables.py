"""Lines of a comparison as a table in Markdown, LaTeX, HTML, and as rows of CSV."""

from __future__ import annotations

import dataclasses
import html
import re

from rat_tf.experiments import comparison
from rat_tf.storage import escapes, files

SPREAD = ", mean ± standard deviation of the sample (n − 1) over the seeds"
BOLD = f" Bold: the lowest mean, if it is over at least {comparison.MIN_SEEDS} seeds."
BEHIND = (
    " Behind the best: the difference to the lowest mean over at least "
    f"{comparison.MIN_SEEDS} seeds."
)
WELCH = " p: Welch's t-test, two-sided, not corrected for the number of comparisons."
WITHOUT_TEST = (
    " The set has no test images: the error is that of the validation images at the best step, "
    "which they have chosen. That of new images is probably higher."
)
PAPER_NOTE = " The paper's numbers are over five seeds; it does not say whether n or n − 1."
_LATEX = {
    **{character: "\\" + character for character in "&%$#_{}"},
    **{"±": r"$\pm$", "−": "$-$", "ε": r"$\epsilon$", "Π": r"$\Pi$", "λ": r"$\lambda$"},
    **{"—": "---", "<": "$<$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"ξ": r"$\xi$", "α": r"$\alpha$", "\\": r"\textbackslash{}"},
}


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]]  # (row, column)
    notes: tuple[str, ...]


def table(section: comparison.Section) -> Table:
    """The cells of a section. Letters mark flags that differ from the paper's, see the notes."""
    with_paper = any(line.row for line in section.lines)
    header = ["Method", "Labels", "Error", "Seeds", "Behind the best"]
    header += ["Paper", "Ours − paper"] if with_paper else []
    letters: dict[tuple[str, ...], str] = {}
    rows, bold = [], set()
    for number, line in enumerate(section.lines):
        mark = ""
        if line.unlike:
            mark = f" [{letters.setdefault(line.unlike, _letter(len(letters)))}]"
        rows.append(tuple(_cells(line, mark, with_paper)))
        if line.best:
            bold.add((number, 2))
    kept = [
        column
        for column in range(len(header))
        if not rows or any(row[column] != "—" for row in rows)  # not one of dashes alone
    ]
    header = [header[column] for column in kept]
    rows = [tuple(row[column] for column in kept) for row in rows]
    bold = {(number, kept.index(column)) for number, column in bold}
    notes = [_note(section.part, header, rows, bold)]
    notes += [
        f"[{letter}] not the paper's protocol: {', '.join(flags)}"
        for flags, letter in letters.items()
    ]
    return Table(section.title, tuple(header), tuple(rows), frozenset(bold), tuple(notes))


def _note(part: str, header, rows, bold) -> str:
    """What the cells mean; nothing about cells that the table does not have."""
    text = " ".join(cell for row in rows for cell in row)
    return (
        f"{part.capitalize()} error in %"
        + (SPREAD if "±" in text else "")
        + "."
        + (BOLD if bold else "")
        + (BEHIND if "Behind the best" in header else "")
        + (WELCH if "(p " in text else "")
        + (PAPER_NOTE if "Paper" in header else "")
        + (WITHOUT_TEST if part == "validation" else "")
    )


def overview(section: comparison.Section) -> Table | None:
    """Methods against numbers of labels, as in Tables 9 and 10 of the paper, with its numbers."""
    labels = sorted({line.labels for line in section.lines})
    if len(labels) < 2:
        return None
    rows, bold = [], set()
    for name in dict.fromkeys(line.name for line in section.lines):
        lines = {line.labels: line for line in section.lines if line.name == name}
        ours = [name]
        theirs = [f"{name}, paper"]
        for column, count in enumerate(labels, start=1):
            line = lines.get(count)
            group, row = (line.group, line.row) if line else (None, None)
            ours.append(number(group.mean, group.std) if group else "—")
            theirs.append(row.shown if row else "—")
            if line and line.best:
                bold.add((len(rows), column))
        rows += [tuple(row) for row in (ours, theirs) if set(row[1:]) != {"—"}]
    header = ("Method", *(f"{count:,} labels" for count in labels))
    note = (
        f"{section.part.capitalize()} error in %; seeds, tests and flags unlike the paper's are in "
        "the table that follows."
    )
    return Table(section.title, header, tuple(rows), frozenset(bold), (note,))


def tables(section: comparison.Section) -> list[Table]:
    return list(filter(None, [overview(section), table(section)]))


def _cells(line: comparison.Line, mark: str, with_paper: bool) -> list[str]:
    group = line.group
    cells = [line.name + mark, str(line.labels), "—", "0", "—"]
    if group:
        cells[2] = number(group.mean, group.std)
        cells[3] = str(len(group.results))
        if line.behind is not None:
            cells[4] = f"{_signed(line.behind)}{_p(line.p_behind)}"
    if with_paper:
        difference = "—"
        if group and line.row:
            p = comparison.results.welch_paper(group.errors, line.row)
            difference = f"{_signed(group.mean - line.row.mean)}{_p(p)}"
        cells += [line.row.shown if line.row else "—", difference]
    return cells


def number(mean: float, std: float | None) -> str:
    return f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _p(p: float | None) -> str:
    if p is None:
        return ""
    return " (p < 0.001)" if p < 0.001 else f" (p = {p:.3f})"


def _letter(count: int) -> str:
    """a, b, … z, aa, ab, …"""
    return (_letter(count // 26 - 1) if count >= 26 else "") + chr(ord("a") + count % 26)


def markdown(one: Table) -> str:
    def cells(texts):
        return "| " + " | ".join(map(escapes.markdown, texts)) + " |"

    rows = [
        [f"**{text}**" if (i, j) in one.bold else text for j, text in enumerate(row)]
        for i, row in enumerate(one.rows)
    ]
    lines = [
        f"### {escapes.markdown(one.title)}",
        "",
        cells(one.header),
        cells(["---"] * len(one.header)),
    ]
    lines += [cells(row) for row in rows]
    return "\n".join([*lines, "", *(f"{escapes.markdown(note)}\n" for note in one.notes)])


def latex(one: Table) -> str:
    """A table that needs no LaTeX package."""

    def cells(texts):
        return "  " + " & ".join(texts) + r" \\"

    rows = [
        [rf"\textbf{{{_tex(t)}}}" if (i, j) in one.bold else _tex(t) for j, t in enumerate(row)]
        for i, row in enumerate(one.rows)
    ]
    caption = _tex(" ".join([one.title + ".", *one.notes]))
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(one.header) - 1)}}}", r"  \hline"]
    lines += [cells(map(_tex, one.header)), r"  \hline", *map(cells, rows), r"  \hline"]
    return "\n".join([*lines, r"\end{tabular}", r"\end{table}", ""])


def _tex(text: str) -> str:
    return re.sub(r"[^\w\s.,:;()\[\]+='/*-]|_|ε|Π|λ|ξ|α", lambda m: _LATEX.get(m[0], m[0]), text)


def html_table(one: Table) -> str:
    def cells(tag, texts):
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    rows = [
        [
            f"<b>{html.escape(text)}</b>" if (i, j) in one.bold else html.escape(text)
            for j, text in enumerate(row)
        ]
        for i, row in enumerate(one.rows)
    ]
    lines = ["<table>", cells("th", map(html.escape, one.header))]
    lines += [cells("td", row) for row in rows]
    notes = [f'<p class="note">{html.escape(note)}</p>' for note in one.notes]
    return "\n".join([*lines, "</table>", *notes])


CSV_COLUMNS = (
    *("table", "method", "dataset", "labels", "seeds", "error", "std", "errors", "best"),
    *("behind", "p_behind", "paper", "paper_std", "difference", "p_paper", "unlike", "folders"),
)


def csv_text(sections) -> str:
    """All sections in one table, with all digits."""
    rows = [
        {"table": section.title, **_record(line)} for section in sections for line in section.lines
    ]
    return files.csv_text(rows, CSV_COLUMNS)


def _record(line: comparison.Line) -> dict:
    group, row = line.group, line.row
    record = {"method": line.name, "labels": line.labels, "seeds": 0}
    if group:
        record |= {
            "dataset": group.config.dataset,
            "seeds": len(group.results),
            "error": group.mean,
            "std": group.std,
            "errors": " ".join(f"{error:.6g}" for error in group.errors),
            "best": "yes" if line.best else "",
            "behind": line.behind,
            "p_behind": line.p_behind,
            "unlike": "; ".join(line.unlike),
            "folders": "; ".join(result.folder for result in group.results),
        }
    if row:
        record |= {"dataset": row.dataset, "paper": row.mean, "paper_std": row.std}
    if group and row:
        record["difference"] = group.mean - row.mean
        record["p_paper"] = comparison.results.welch_paper(group.errors, row)
    return record
