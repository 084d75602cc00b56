"""Reports the results of many runs: tables, curves and one HTML page that opens offline.

    python -m rat_tf.report runs/digits50 --output=report
    python -m rat_tf.report runs/paper --paper=table5 --output=report

Reads all runs in the folders and their subfolders and writes to --output: report.html, tables.md,
tables.csv, tables.tex, and the figures: error against the number of labels (Figure 2 of the paper)
and the training curves. Where a run is one of the paper's rows, the paper's number is shown next to
it. --paper shows only the rows of that table, including those without runs. Runs in one row differ
only in their seeds; runs that cannot be used are listed in the report and on stderr.
"""

from __future__ import annotations

import dataclasses
import os
import sys

from rat_tf import errors, experiments, fields
from rat_tf.config import cli
from rat_tf.experiments import paper
from rat_tf.storage import escapes


@dataclasses.dataclass(frozen=True)
class Flags:
    paper: str = fields.flag("", f"Show only this table of the paper: {', '.join(paper.TABLES)}.")
    output: str = fields.path("report", "Folder for the report.")


def main(folders: list[str], table: str, output: str) -> None:
    # What was asked for.
    if not folders:
        raise errors.UserError("expected run folders, or folders that contain them")
    whole = paper.table(table) if table else None
    if os.path.exists(output) and not os.path.isdir(output):
        raise errors.UserError(f"--output: expected a folder, but {output} is a file")

    # Results, grouped by protocol and compared.
    results = experiments.results
    found, problems = results.read(results.find(folders))
    groups, odd = results.group(found)
    sections, left_out = experiments.comparison.sections(groups, table)
    problems += odd + left_out
    for problem in problems:
        print(f"warning: {escapes.printable(problem)}", file=sys.stderr)
    if not any(line.group for section in sections for line in section.lines):
        raise errors.UserError(f"no results to report in {', '.join(folders)}")

    # The report.
    experiments.page.write(output, sections, problems, whole)


if __name__ == "__main__":
    cli.command(lambda f: main(list(f.rest), f.paper, f.output), Flags, positional=True)
