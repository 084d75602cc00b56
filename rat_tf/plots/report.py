"""The figures of a report: error against labels (Figure 2 of the paper), training curves."""

from __future__ import annotations

import textwrap

import numpy as np

from rat_tf.plots import canvas

MOST = 12  # curves in a figure; more cannot be told apart


@canvas.styled
def against_labels(path: str, ours: dict, theirs: dict, title: str) -> None:
    """Figure 2 of the paper: error against labels, one standard deviation shaded.

    Both are lists of (labels, mean, std or None) by name; the paper's are dashed, in the colour of
    ours of the same name.
    """
    figure, axis = canvas.subplots(figsize=(8, 6))
    handles = {}
    for name in dict.fromkeys([*ours, *theirs]):
        colour = f"C{len(handles) % len(canvas.COLOURS)}"
        style = {
            "color": colour,
            "marker": "os^Dv"[len(handles) // len(canvas.COLOURS) % 5],
            "markersize": 4,
        }
        if name in theirs:
            _band(axis, theirs[name], 0.08, color=colour, linestyle="--")
        handles[name] = _band(axis, ours.get(name, []), 0.2, **style)
    if theirs:
        (handles["the paper"],) = axis.plot([], [], "--", color="grey")
    ticks = sorted(
        {p[0] for series in (ours, theirs) for points in series.values() for p in points}
    )
    axis.set_xscale("log")
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="labelled images", ylabel="test error, %")
    axis.set_title(textwrap.fill(title, 75))
    axis.set_ylim(bottom=0)
    _legend(figure, handles)
    canvas.save(figure, path)


def _band(axis, points, shade: float, **style):
    """A line through (x, mean, std or None) with one standard deviation shaded."""
    x, mean, std = (np.array(column, float) for column in zip(*points)) if points else [[]] * 3
    (line,) = axis.plot(x, mean, **style)
    std = np.nan_to_num(std)
    axis.fill_between(x, mean - std, mean + std, color=style["color"], alpha=shade, linewidth=0)
    return line


def _legend(figure, handles: dict) -> None:
    # As many columns as fit the longest name, at 11 letters per inch.
    room = 11 * figure.get_figwidth() // (6 + max(map(len, handles)))
    columns = int(max(1, min(3, room, len(handles))))
    place = {"loc": "outside lower center", "ncols": columns}
    figure.legend(handles.values(), handles, **place)


@canvas.styled
def training_curves(path: str, panels: dict, title: str) -> None:
    """Validation error against steps: {labels: {name: (steps, mean, std)}}, a panel each."""
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    shown = _lowest(panels, names)
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = canvas.subplots(
        lines, columns, figsize=(max(8, 4.5 * columns), 1 + 4 * lines + 0.2 * len(shown) / 2),
        sharey=True, squeeze=False,
    )  # fmt: skip
    handles = {}
    for axis, (labels, series) in zip(axes.flat, sorted(panels.items())):
        for name, (steps, mean, std) in series.items():
            if name not in shown:
                continue
            number = shown.index(name)
            style = {
                "color": f"C{number % len(canvas.COLOURS)}",
                "linestyle": ("-", "--", ":")[number // len(canvas.COLOURS) % 3],
            }
            handles[name] = _band(axis, list(zip(steps, mean, std)), 0.2, **style)
        axis.set(title=f"{labels:,} labels", xlabel="step")
        axis.set_ylim(bottom=0)
        canvas.steps(axis)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for line in axes:
        line[0].set_ylabel("validation error, %")
    more = len(names) - len(shown)
    if more:
        title += f"; the {MOST} lowest, {more} more are in the table"
    figure.suptitle(textwrap.fill(title, int(9 * figure.get_figwidth())))
    _legend(figure, {name: handles[name] for name in shown})
    canvas.save(figure, path)


def _lowest(panels: dict, names: list[str]) -> list[str]:
    """The names whose curves end lowest, in their order."""
    ends = {
        name: min(series[name][1][-1] for series in panels.values() if name in series)
        for name in names
    }
    kept = sorted(names, key=ends.get)[:MOST]
    return [name for name in names if name in kept]
