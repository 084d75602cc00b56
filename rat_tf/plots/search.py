"""The figure of a search: validation error against the searched parameters."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib import cm, colors

from rat_tf.plots import canvas


@canvas.styled
def trials(path: str, ranked: list[dict]) -> None:
    """Validation error against the one searched parameter, or parallel coordinates of many.

    A composition has an axis for the ε of each of its transformations. Trials that diverged have no
    error and are not shown. `low` and `high` of a trial are the interval of its error.
    """
    ranked = [trial for trial in ranked if trial["status"] not in ("diverged", "invalid")]
    points = [_coordinates(trial["values"]) for trial in ranked]
    errors = np.array([100 * trial["validation_error"] for trial in ranked])
    names = sorted({name for point in points for name in point}, key=_place_in(points))
    whole = np.array([not trial["status"].startswith("stopped") for trial in ranked], bool)
    if len(names) == 1:
        figure, axis = canvas.subplots(figsize=(7, 4.5))
        values = [point[names[0]] for point in points]
        _one_parameter(axis, names[0], values, errors, whole, _spreads(ranked, errors))
    else:
        size = max(7, 1.7 * (len(names) + 1))
        figure, axis = canvas.subplots(figsize=(size, 5))
        _parallel(figure, axis, names, points, errors)
    best = ", ".join(f"{_in_words(name)} = {value}" for name, value in ranked[0]["values"].items())
    spread = _spreads(ranked[:1], errors[:1])
    interval = (
        ""
        if spread is None
        else " (95 % interval {:.2f} to {:.2f})".format(*(errors[0] + [-1, 1] * spread[:, 0]))
    )
    title = f"{len(errors)} trials, best {errors[0]:.2f} %{interval} with {best}"
    figure.suptitle(textwrap.fill(title, int(12 * figure.get_figwidth())), fontsize="medium")
    canvas.save(figure, path)


def _coordinates(values: dict) -> dict:
    """Parameters by axis; --transforms is split into one ε per transformation."""
    axes = {}
    for name, value in values.items():
        if name == "transforms":
            pairs = (part.split(":") for part in value.split(","))
            axes |= {f"ε {_in_words(transform)}": float(epsilon) for transform, epsilon in pairs}
        else:
            axes[_in_words(name)] = _number(value)
    return axes


def _number(value):
    """1e-6 of a list of values is a number, too."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _in_words(name: str) -> str:
    """ε of affine, thin plate spline: not the names of flags."""
    return name.replace("epsilon.", "ε ").replace("_", " ")


def _place_in(points):
    order = list(dict.fromkeys(name for point in points for name in point))
    return lambda name: (not name.startswith("ε "), order.index(name))


def _spreads(ranked, errors) -> np.ndarray | None:
    """How far the intervals reach below and above the errors, [2, trials], in %."""
    if not all("low" in trial for trial in ranked):
        return None
    below = [error - 100 * trial["low"] for trial, error in zip(ranked, errors)]
    above = [100 * trial["high"] - error for trial, error in zip(ranked, errors)]
    return np.maximum([below, above], 0)


def _one_parameter(axis, name, values, errors, whole, spreads) -> None:
    place, ticks = _scale(values)
    x = np.array([place(value) for value in values])
    order = np.argsort(x[whole])
    axis.plot(x[whole][order], errors[whole][order], marker="o", label="trained to the end")
    if not whole.all():
        label = "stopped early, lowest so far"
        axis.plot(x[~whole], errors[~whole], "o", color="C0", markerfacecolor="white", label=label)
    if spreads is not None:
        style = {"fmt": "none", "ecolor": "C0", "alpha": 0.5, "capsize": 3, "zorder": 1}
        axis.errorbar(x, errors, spreads, label="95 % interval of the validation images", **style)
    axis.plot(x[0], errors[0], "*", color="C3", markersize=16, label="best")
    axis.set_xticks(*zip(*ticks))
    axis.set(xlabel=name, ylabel="validation error, %")
    axis.figure.legend(loc="outside lower center", ncols=4)  # points may be anywhere


def _parallel(figure, axis, names, points, errors) -> None:
    """One vertical axis per parameter and one for the error; a line for every trial."""
    span = np.ptp(errors) or 1.0
    colour = cm.ScalarMappable(colors.Normalize(errors.min(), errors.min() + span), "viridis")
    scales = {name: _scale([p[name] for p in points if name in p]) for name in names}
    for rank, (point, error) in reversed(list(enumerate(zip(points, errors)))):
        # Transformations absent from a composition are drawn below the axis.
        heights = [scales[n][0](point[n]) if n in point else -0.12 for n in names]
        style = {"linewidth": 3.5, "zorder": 3} if rank == 0 else {"linewidth": 1.2, "alpha": 0.8}
        axis.plot([*heights, (error - errors.min()) / span], color=colour.to_rgba(error), **style)
    absent = any(name not in point for point in points for name in names)
    for column, name in enumerate(names):
        axis.axvline(column, color="grey", linewidth=0.8)
        low = [(-0.12, "absent")] if absent and any(name not in p for p in points) else []
        for height, text in low + scales[name][1]:
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
            axis.text(column + 0.03, height, text, va="center", fontsize=8, bbox=box, zorder=4)
    axis.axvline(len(names), color="grey", linewidth=0.8)
    axis.set_xticks(range(len(names) + 1), [*names, "error"])
    axis.set(yticks=[], xlim=(-0.1, len(names) + 0.05), ylim=(-0.2 if absent else -0.06, 1.06))
    for side in axis.spines.values():
        side.set_visible(False)
    figure.colorbar(colour, ax=axis, label="validation error, % (thick: the best)")


def _scale(values) -> tuple:
    """Where on [0, 1] a value lies, and the ticks (position, text); logarithmic over decades."""
    if not all(isinstance(value, (int, float)) for value in values):
        known = sorted({str(value) for value in values})
        places = {text: i / max(len(known) - 1, 1) for i, text in enumerate(known)}
        return (lambda value: places[str(value)]), [(places[text], text) for text in known]
    low, high = min(values), max(values)
    change = np.log if low > 0 and high / low > 20 else float
    start, span = change(low), (change(high) - change(low)) or 1.0
    place = lambda value: float(change(value) - start) / span  # noqa: E731
    distinct = sorted(set(values))
    if len(distinct) > 10:
        distinct = [distinct[round(i * (len(distinct) - 1) / 5)] for i in range(6)]
    ticks = []
    for value in distinct:
        if not ticks or place(value) - ticks[-1][0] > 0.04:  # else the texts would overlap
            ticks.append((place(value), f"{value:g}"))
    return place, ticks
