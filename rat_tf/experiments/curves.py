"""The data of a report's figures: error against labels, validation error against steps."""

from __future__ import annotations

import numpy as np


def against_labels(lines) -> tuple[dict, dict]:
    """Ours and the paper's (labels, mean, std) by name, as in Figure 2 of the paper.

    A method with a single number of labels has no line; it is only in the table.
    """
    ours: dict[str, list] = {}
    theirs: dict[str, list] = {}
    for line in sorted(lines, key=lambda line: line.labels):
        if line.group:
            ours.setdefault(line.name, []).append((line.labels, line.group.mean, line.group.std))
        if line.row:
            name = line.row.name
            theirs.setdefault(name, []).append((line.labels, line.row.mean, line.row.std))
    theirs = {name: list(dict.fromkeys(points)) for name, points in theirs.items()}
    lines = {
        name for series in (ours, theirs) for name, points in series.items() if len(points) > 1
    }
    return tuple(
        {name: points for name, points in series.items() if name in lines}
        for series in (ours, theirs)
    )


def training(lines) -> dict[int, dict[str, tuple]]:
    """By number of labels and name: steps, and mean and std of the validation error in %.

    The error is that of the weights that --evaluate names, at the steps that all seeds have. Runs
    without metrics.csv have no curve.
    """
    panels: dict[int, dict[str, tuple]] = {}
    for line in lines:
        found = [_validation(result) for result in line.group.results] if line.group else []
        found = [curve for curve in found if curve]
        steps = sorted(set.intersection(*(set(curve) for curve in found))) if found else []
        if steps:
            errors = np.array([[curve[step] for step in steps] for curve in found])
            std = errors.std(axis=0, ddof=1) if len(errors) > 1 else np.zeros(len(steps))
            panels.setdefault(line.labels, {})[line.name] = (steps, errors.mean(axis=0), std)
    return panels


def _validation(result) -> dict[int, float]:
    column = f"val_{result.config.monitor()}"
    return {int(row["step"]): 100 * row[column] for row in result.rows if column in row}
