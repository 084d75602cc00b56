"""The figures of `benchmarks.evidence`."""

from __future__ import annotations

import re

import numpy as np

from benchmarks import evidence_arms as lib
from rat_tf.plots import canvas

COLOURS = {
    lib.RANDOM: "C0",
    f"{lib.RANDOM}, steepest": "C5",
    "gradient, steepest, ξ = 0.1ε": "C1",
    "gradient, steepest, ξ = ε": "C3",
    "worst of 4, steepest": "C2",
    "worst of 8, steepest": "C4",
    "MixMatch": "C6",
    "Supervised": "0.5",
}
TICKS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50, 60, 80)  # of errors, %
STYLES = ("-", "--", ":", "-.")  # of the lengths of runs
OTHERS = ("tab:brown", "tab:olive", "tab:purple", "tab:pink", "C1", "C2", "C3", "C4", "C5")


def _colours(made: dict) -> dict[str, str]:
    """A colour for each method, the same in all panels; those of COLOURS in all figures."""
    found = {
        method for transforms in made.values() for arms in transforms.values() for method in arms
    }
    others = sorted(found - set(COLOURS))
    return COLOURS | {name: OTHERS[i % len(OTHERS)] for i, name in enumerate(others)}


def _grid(panels: list[tuple[str, lib.Names, dict[str, lib.Arm]]]) -> tuple:
    """A figure of validation errors, and (axis, arms) of every experiment and transformation."""
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    size = (max(9, 3.2 * columns), 3 * rows) if len(panels) > 2 else (9, 4)
    figure, axes = canvas.subplots(rows, columns, figsize=size, squeeze=False)
    for axis, (title, names, _) in zip(axes.flat, panels):
        axis.set_title(f"{lib.joined(names)}\n{_lines(title)}", fontsize="small")
    for line in axes:
        line[0].set_ylabel("validation error, %")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    return figure, [(axis, arms) for axis, (_, _, arms) in zip(axes.flat, panels)]


def _lines(title: str) -> str:
    """The title of an experiment in two lines, as panels are narrow."""
    start, *end = title.rsplit(", ", maxsplit=2)
    return f"{start},\n{', '.join(end)}"


@canvas.styled
def epsilon_figure(path: str, made: dict) -> None:
    """Validation error of the tuning runs against ε, with the chosen one marked.

    Of single transformations: several have no one ε to draw against.
    """
    panels = [
        (title, names, arms)
        for title, transforms in made.items()
        for names, arms in transforms.items()
        if len(names) == 1 and any(len(arm.tuning) > 1 for arm in arms.values())
    ]
    if not panels:
        return
    colours = _colours(made)
    figure, panels = _grid(panels)
    for axis, arms in panels:
        for method, arm in arms.items():
            points = sorted((epsilon[0], arm.validation(epsilon)) for epsilon in arm.tuning)
            if points:
                colour = colours[method]
                axis.semilogx(*zip(*points), "o-", markersize=3, color=colour, label=method)
                chosen = arm.epsilon
                place = chosen[0], arm.validation(chosen)
                axis.plot(*place, "o", markersize=9, mfc="none", c=colour)
        ticks = sorted({epsilon[0] for arm in arms.values() for epsilon in arm.tuning})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
        axis.set_xticks([], minor=True)
        axis.set(xlabel="ε")
        axis.legend()
    canvas.save(figure, path)


@canvas.styled
def errors_figure(path: str, made: dict) -> None:
    """Test errors of all seeds at the chosen ε; a line joins what shares seed and split.

    Of experiments that compare: with one arm there is nothing to see.
    """
    shown = {
        title: [n for n, arms in found.items() if any(a.errors for a in arms.values())]
        for title, found in made.items()
        if sum(bool(arm.errors) for arms in found.values() for arm in arms.values()) > 1
    }
    if not shown:
        return
    colours = _colours(made)
    widths = [len(names) for names in shown.values()]
    figure, axes = canvas.subplots(
        1,
        len(shown),
        figsize=(2 + sum(max(1.3 * width, 2.4) for width in widths), 4.5),
        squeeze=False,
        width_ratios=[max(1.3 * width, 2.4) for width in widths],
    )
    for axis, (title, names) in zip(axes[0], shown.items()):
        for place, name in enumerate(names):
            arms = {method: arm for method, arm in made[title][name].items() if arm.errors}
            order = sorted(arms, key=list(colours).index)
            points = {m: place + 0.6 * i / max(2, len(order)) for i, m in enumerate(order)}
            for seed in sorted(set().union(*(arms[m].errors for m in order))):
                line = [
                    (x, arms[m].errors[seed]) for m, x in points.items() if seed in arms[m].errors
                ]
                axis.plot(*zip(*line), "-", color="0.8", linewidth=0.8, zorder=0)
            for method, x in points.items():
                errors, colour = list(arms[method].errors.values()), colours[method]
                axis.plot([x] * len(errors), errors, "o", markersize=3, color=colour)
                axis.plot([x - 0.1, x + 0.1], [np.mean(errors)] * 2, color=colour, label=method)
        labels = [" +\n".join(each) or "no consistency" for each in names]
        axis.set_xticks(np.arange(len(names)) + 0.12, labels, fontsize=8)
        axis.set(ylabel="test error, %")
        axis.set_title(_lines(title), fontsize=8)
        axis.set_ylim(bottom=0)
        axis.grid(visible=False, axis="x")
        axis.legend(*_once(axis))
    canvas.save(figure, path)


def _once(axis) -> tuple[list, list]:
    """Handles and labels of a legend, each label once."""
    found = dict(zip(*reversed(axis.get_legend_handles_labels())))
    return list(found.values()), list(found)


@canvas.styled
def steps_figure(path: str, made: dict) -> None:
    """Validation error at the chosen ε against steps and, where they were counted, image passes.

    A panel for the runs of all lengths of an experiment: of the arms with the curves of several
    seeds, else of all. Curves are those of the compared seeds, else of the tuning. A colour is a
    method, the style of a line the length of the runs.
    """
    panels: dict[tuple, list[tuple[int, str, str, list]]] = {}
    for title, transforms in made.items():
        length = next(iter(re.findall(r", ([\d,]+) steps", title)), "")
        shared = title.replace(f", {length} steps", "") if length else title
        for names, arms in transforms.items():
            for method, arm in arms.items() if names else ():
                if curves := _curves(arm):
                    words = [method, f"ε {lib.joined(arm.epsilon)}"]
                    words += [f"{length} steps"] if length else []
                    line = int(length.replace(",", "") or 0), method, ", ".join(words), curves
                    panels.setdefault((shared, names), []).append(line)
    if not panels:
        return
    for place, lines in panels.items():
        panels[place] = [line for line in lines if len(line[-1]) > 2] or lines
    colours = _colours(made)
    size = 9, 3.6 * len(panels)
    figure, axes = canvas.subplots(len(panels), 2, figsize=size, squeeze=False, sharey="row")
    for (steps_axis, passes_axis), ((title, names), lines) in zip(axes, panels.items()):
        lengths = sorted({length for length, *_ in lines})
        for length, method, label, runs in sorted(lines, key=lambda line: line[:2]):
            label += f", {len(runs)} seeds" if len(runs) > 1 else ""
            style = STYLES[lengths.index(length) % len(STYLES)]
            look = {"color": colours[method], "linestyle": style}
            _draw(steps_axis, runs, lambda run, step: step, label=label, **look)
            if all(run.passes for run in runs):
                _draw(passes_axis, runs, lambda run, step: step * run.passes / 1e6, **look)
        for axis in (steps_axis, passes_axis):
            axis.set(yscale="log")
            low, high = axis.get_ylim()
            axis.set_yticks([tick for tick in TICKS if low < tick < high])
            axis.set_yticks([], minor=True)
            axis.yaxis.set_major_formatter("{x:g}")
            axis.tick_params(axis="y", labelsize=7)
        steps_axis.set(xlabel="step", ylabel="validation error, %")
        steps_axis.set_title(f"{lib.joined(names)}\n{title}", fontsize="small")
        passes_axis.set(xlabel="passes of images, in millions", visible=passes_axis.has_data())
        steps_axis.legend(fontsize=6)
    canvas.save(figure, path)


def _draw(axis, runs: list[lib.Record], place, **look) -> None:
    """The mean of the runs' validation errors with a band of one standard deviation."""
    curves = [dict(zip(run.steps, run.validation)) for run in runs]
    steps = sorted(set.intersection(*map(set, curves)))
    errors = np.array([[curve[step] for step in steps] for curve in curves])
    across, mean = [place(runs[0], step) for step in steps], errors.mean(axis=0)
    axis.plot(across, mean, **look)
    if len(curves) > 1:
        std = errors.std(axis=0, ddof=1)
        axis.fill_between(across, mean - std, mean + std, color=look["color"], alpha=0.15)


def _curves(arm: lib.Arm) -> list[lib.Record]:
    """The runs whose curves were kept, the compared ones first."""
    for by_epsilon in (arm.compared, arm.tuning):
        if runs := [run for run in by_epsilon.get(arm.epsilon, ()) if run.steps]:
            return runs
    return []
