"""The figures of `benchmarks.evidence`."""

from __future__ import annotations

import numpy as np

from benchmarks import evidence_arms as lib
from rat_tf.plots import canvas

COLOURS = {"Supervised": "0.5", "MixMatch": "C6", lib.RANDOM: "C0"}
OTHERS = ("C1", "C3", "C2", "C4", "C5", "tab:brown", "tab:olive", "tab:purple", "tab:pink")


def _colours(made: dict) -> dict[str, str]:
    """A colour for each method, the same in all panels."""
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
            order = sorted(arms, key=lambda method: method != lib.RANDOM)
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
    """Validation error against steps at the chosen ε: of the compared seeds, else of the tuning."""
    panels = [
        (title, names, shown)
        for title in made
        for names, arms in made[title].items()
        if names and (shown := {m: arm for m, arm in arms.items() if _curves(arm)})
    ]
    if not panels:
        return
    colours = _colours(made)
    figure, panels = _grid(panels)
    for axis, arms in panels:
        for method, arm in arms.items():
            curves, colour = _curves(arm), colours[method]
            steps = sorted(set.intersection(*map(set, curves)))
            errors = np.array([[curve[step] for step in steps] for curve in curves])
            mean = errors.mean(axis=0)
            label = f"{method}, ε {lib.joined(arm.epsilon)}, seeds: {len(curves)}"
            axis.plot(steps, mean, color=colour, label=label)
            if len(curves) > 1:
                std = errors.std(axis=0, ddof=1)
                axis.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.15)
        axis.set(xlabel="step", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.tick_params(axis="y", which="both", labelsize=7)
        axis.legend(fontsize=7)
    canvas.save(figure, path)


def _curves(arm: lib.Arm) -> list[dict[int, float]]:
    """Validation errors by step of the runs whose curves were kept, the compared ones first."""
    for by_epsilon in (arm.compared, arm.tuning):
        runs = [run for run in by_epsilon.get(arm.epsilon, ()) if run.steps]
        if runs:
            return [dict(zip(run.steps, run.validation)) for run in runs]
    return []
