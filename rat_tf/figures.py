"""The pictures of a run and of its evaluation."""

from __future__ import annotations

import fnmatch
import os

import matplotlib

matplotlib.use("Agg")  # files only: no display is needed, or looked for

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib import ticker  # noqa: E402

PANELS = (
    ("Validation error, %", ("val_error", "val_ema_error"), 100),
    ("Loss", ("loss", "cross_entropy", "entropy"), 1),
    ("KL under the transformations, nats", ("kl", "adversarial_kl", "random_kl"), 1),
    ("λ and ε", ("lambda", "epsilon_*"), 1),
)


def summary(path: str, rows: list[dict], examined: dict | None, title: str) -> None:
    """Curves over the steps, and a grid of images, their transformations and the difference."""
    figure = plt.figure(figsize=(14, 8.5 if examined else 5.5), layout="constrained")
    figure.suptitle(title)
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 0.75]) if examined else (figure, None)
    axes = upper.subplots(2, 2) if lower is None else upper.subplots(1, 4)
    for axis, (name, series, scale) in zip(np.ravel(axes), PANELS):
        _curves(axis, rows, series, scale)
        axis.set(title=name, xlabel="step")
    if examined:
        _images(lower, panels(examined))
    _save(figure, path)


def confusion(path: str, counts, class_names) -> None:
    """Rows are the true classes, columns the predicted ones; colour is the share of the row."""
    size = min(20, 3 + 0.5 * len(class_names))
    figure, axis = plt.subplots(figsize=(size + 1, size), layout="constrained")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(class_names) <= 30:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                colour = "white" if shares[row, column] > 0.5 else "black"
                axis.text(column, row, count, ha="center", va="center", color=colour, fontsize=8)
    ticks = range(len(class_names))
    axis.set(xticks=ticks, yticks=ticks, xlabel="predicted", ylabel="true", title="Confusion")
    axis.set_xticklabels(class_names, rotation=90 if max(map(len, class_names)) > 2 else 0)
    axis.set_yticklabels(class_names)
    figure.colorbar(image, label="share of the true class")
    _save(figure, path)


def calibration(path: str, bins: list[dict]) -> None:
    """Accuracy against confidence; dots are as large as their share of the images."""
    figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
    axis.plot([0, 1], [0, 1], color="grey", linestyle="--", label="calibrated")
    sizes = [20 + 600 * b["share"] for b in bins]
    axis.scatter([b["confidence"] for b in bins], [b["accuracy"] for b in bins], s=sizes, alpha=0.7)
    axis.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="confidence", ylabel="accuracy")
    axis.set_title("Calibration")
    axis.legend(frameon=False, loc="upper left")
    axis.grid(alpha=0.3)
    _save(figure, path)


def robustness(path: str, rows: list[dict]) -> None:
    """Error (upper row) and KL (lower row) against ε, a column for every transformation."""
    names = list(dict.fromkeys(row["transform"] for row in rows))
    figure, axes = plt.subplots(
        2, len(names), figsize=(3.2 * len(names), 6), layout="constrained", sharey="row",
        squeeze=False,
    )  # fmt: skip
    for column, name in enumerate(names):
        for line, (measure, scale) in enumerate((("error", 100), ("kl", 1))):
            axis = axes[line, column]
            for offsets, style in (("random", "--"), ("adversarial", "-")):
                points = [
                    (row["epsilon"], scale * row[measure])
                    for row in rows
                    if (row["transform"], row["offsets"]) == (name, offsets)
                ]
                axis.plot(*zip(*points), style, marker=".", label=offsets)
            axis.grid(alpha=0.3)
            axis.set_ylim(bottom=0)
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("ε")
    axes[0, 0].set_ylabel("error, %")
    axes[1, 0].set_ylabel("KL, nats")
    axes[0, 0].legend(frameon=False)
    _save(figure, path)


def trials(path: str, ranked: list[dict]) -> None:
    """Validation error against the one searched parameter, or parallel coordinates of many.

    A composition has an axis for the ε of each of its transformations. Trials that diverged are
    left out: they have no error to show.
    """
    ranked = [trial for trial in ranked if trial["status"] not in ("diverged", "invalid")]
    points = [_coordinates(trial["values"]) for trial in ranked]
    errors = np.array([100 * trial["validation_error"] for trial in ranked])
    names = sorted({name for point in points for name in point}, key=_place_in(points))
    whole = np.array([not trial["status"].startswith("stopped") for trial in ranked], bool)
    if len(names) == 1:
        figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
        _one_parameter(axis, names[0], [point[names[0]] for point in points], errors, whole)
    else:
        size = max(7, 1.7 * (len(names) + 1))
        figure, axis = plt.subplots(figsize=(size, 5), layout="constrained")
        _parallel(figure, axis, names, points, errors)
    best = ", ".join(f"{name} = {value}" for name, value in ranked[0]["values"].items())
    figure.suptitle(f"{len(errors)} trials, best {errors[0]:.2f} % with {best}", fontsize="medium")
    _save(figure, path)


def _coordinates(values: dict) -> dict:
    """Parameters by axis, --transforms taken apart into its ε."""
    apart = {}
    for name, value in values.items():
        if name == "transforms":
            pairs = (part.split(":") for part in value.split(","))
            apart |= {f"ε {transform}": float(epsilon) for transform, epsilon in pairs}
        else:
            apart[name.replace("epsilon.", "ε ")] = value
    return apart


def _place_in(points):
    order = list(dict.fromkeys(name for point in points for name in point))
    return lambda name: (not name.startswith("ε "), order.index(name))


def _one_parameter(axis, name, values, errors, whole) -> None:
    place, ticks = _scale(values)
    x = np.array([place(value) for value in values])
    order = np.argsort(x[whole])
    axis.plot(x[whole][order], errors[whole][order], marker="o", label="trained to the end")
    if not whole.all():
        label = "stopped early, lowest until then"
        axis.plot(x[~whole], errors[~whole], "o", color="C0", markerfacecolor="white", label=label)
    axis.plot(x[0], errors[0], "*", color="C3", markersize=16, label="best")
    axis.set_xticks(*zip(*ticks))
    axis.set(xlabel=name, ylabel="validation error, %")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)


def _parallel(figure, axis, names, points, errors) -> None:
    """One vertical axis per parameter and one for the error; a line for every trial."""
    span = np.ptp(errors) or 1.0
    colour = plt.cm.ScalarMappable(plt.Normalize(errors.min(), errors.min() + span), "viridis")
    scales = {name: _scale([p[name] for p in points if name in p]) for name in names}
    for rank, (point, error) in reversed(list(enumerate(zip(points, errors)))):
        # What a composition has left out lies below its axis.
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


def against_labels(path: str, ours: dict, theirs: dict, title: str) -> None:
    """Figure 2 of the paper: error against labels, one standard deviation shaded.

    Both are lists of (labels, mean, std or None) by name; the paper's are dashed, in the colour of
    ours of the same name.
    """
    figure, axis = plt.subplots(figsize=(8, 6), layout="constrained")
    handles = {}
    for name in dict.fromkeys([*ours, *theirs]):
        colour = f"C{len(handles) % 10}"
        style = {"color": colour, "marker": "os^Dv"[len(handles) // 10 % 5], "markersize": 4}
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
    axis.set(xlabel="labelled images", ylabel="test error, %", title=title)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    _legend(figure, handles)
    _save(figure, path)


def _band(axis, points, shade: float, **style):
    """A line through (x, mean, std or None) with one standard deviation shaded."""
    x, mean, std = (np.array(column, float) for column in zip(*points)) if points else [[]] * 3
    (line,) = axis.plot(x, mean, **style)
    std = np.nan_to_num(std)
    axis.fill_between(x, mean - std, mean + std, color=style["color"], alpha=shade, linewidth=0)
    return line


def _legend(figure, handles: dict) -> None:
    columns = min(3, len(handles))
    place = {"loc": "outside lower center", "ncols": columns, "frameon": False}
    figure.legend(handles.values(), handles, **place)


def training_curves(path: str, panels: dict, title: str) -> None:
    """Validation error against steps: {labels: {name: (steps, mean, std)}}, a panel each."""
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(max(8, 4.5 * columns), 1 + 4 * lines), layout="constrained",
        sharey=True, squeeze=False,
    )  # fmt: skip
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    handles = {}
    for axis, (labels, series) in zip(axes.flat, sorted(panels.items())):
        for name, (steps, mean, std) in series.items():
            number = names.index(name)
            style = {"color": f"C{number % 10}", "linestyle": ("-", "--", ":")[number // 10 % 3]}
            handles[name] = _band(axis, list(zip(steps, mean, std)), 0.2, **style)
        axis.set(title=f"{labels:,} labels", xlabel="step")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for line in axes:
        line[0].set_ylabel("validation error, %")
    figure.suptitle(title)
    _legend(figure, {name: handles[name] for name in names})
    _save(figure, path)


def _save(figure, path: str) -> None:
    figure.savefig(path + ".tmp", format="png", dpi=100)
    plt.close(figure)
    os.replace(path + ".tmp", path)


def _curves(axis, rows, series, scale) -> None:
    columns = sorted({column for row in rows for column in row})
    for pattern in series:
        for column in fnmatch.filter(columns, pattern):
            points = [(row["step"], scale * row[column]) for row in rows if column in row]
            axis.plot(*zip(*points), marker="." if len(points) < 30 else "", label=column)
    if axis.lines:
        axis.legend(fontsize="small", frameon=False)
    axis.grid(alpha=0.3)
    axis.set_ylim(bottom=0)


def panels(examined: dict) -> dict[str, np.ndarray]:
    """Original, transformed and difference, for the eye: [0, 1], one range for all of them."""
    original, transformed = (np.asarray(examined[name]) for name in ("images", "transformed"))
    low, span = original.min(), np.ptp(original) or 1
    shown = {
        "original": (original - low) / span,
        "transformed": (transformed - low) / span,
        "difference": 0.5 + (transformed - original) / span / 2,
    }
    depth = 3 if original.shape[-1] == 3 else 1
    return {name: np.clip(images[..., :depth], 0, 1) for name, images in shown.items()}


def _images(figure, rows: dict[str, np.ndarray], count: int = 12) -> None:
    axes = figure.subplots(len(rows), min(count, len(rows["original"])), squeeze=False)
    for line, (name, images) in zip(axes, rows.items()):
        line[0].set_ylabel(name)
        for axis, image in zip(line, images):
            axis.imshow(image, cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
