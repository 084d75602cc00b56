"""The picture of a run: its curves, and images as the adversary transforms them."""

from __future__ import annotations

import fnmatch
import textwrap

import numpy as np
from matplotlib import figure as figure_lib
from matplotlib import ticker

from rat_tf.plots import canvas

#: Titles, columns of metrics.csv, and the factor to the unit of the title.
PANELS = (
    ("Validation error, %", ("val_error", "val_ema_error"), 100),
    ("Loss", ("loss", "cross_entropy", "entropy"), 1),
    ("KL under transformations, nats", ("kl", "adversarial_kl", "random_kl"), 1),
    ("Inconsistency of predictions", ("consistency",), 1),
    ("Weight λ and radius ε", ("lambda", "epsilon_*"), 1),
)
WORDS = {
    "val_error": "trained weights",
    "val_ema_error": "averaged weights",
    "loss": "whole loss",
    "cross_entropy": "cross entropy, labelled",
    "entropy": "entropy, unlabelled",
    "kl": "trained on",
    "adversarial_kl": "worst found, sample",
    "random_kl": "random, sample",
    "consistency": "mean over unlabelled images",
    "lambda": "λ (left)",
}
SHOWN = 12  # images
NAME = 9  # letters of a class that fit below an image
WIDTH = 190  # letters of a title
DECADES = 30  # from the smallest to the largest value: from there on the axis is logarithmic


@canvas.styled
def summary(path: str, rows: list[dict], examined: dict | None, title: str, best=None) -> None:
    """Curves over the steps, and a grid of images, their transformations and the difference.

    `best` are the step and the validation error that the run is judged by. `examined` has, besides
    the images, the classes `before` and `after` the transformation, as texts, and their `legend`.
    """
    figure = figure_lib.Figure(figsize=(14, 8.6 if examined else 5.5), layout="constrained")
    lines = [textwrap.fill(line, WIDTH) for line in title.splitlines()]
    figure.suptitle("\n".join(lines), fontsize="medium")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 0.8]) if examined else (figure, None)
    known = [name for row in rows for name in row]
    shown = [panel for panel in PANELS if any(fnmatch.filter(known, name) for name in panel[1])]
    axes = upper.subplots(1, len(shown)) if examined else upper.subplots(-(-len(shown) // 2), 2)
    for axis, (name, series, scale) in zip(np.ravel(axes), shown):
        _curves(axis, rows, series, scale)
        axis.set(title=name, xlabel="step")
    if best:
        _mark(np.ravel(axes)[0], *best)
    for axis in np.ravel(axes)[len(shown) :]:
        axis.set_visible(False)
    if examined:
        _images(lower, examined)
        lower.supxlabel(examined.get("legend", ""), fontsize="small")
    canvas.save(figure, path)


def _curves(axis, rows, series, scale) -> None:
    columns = sorted({column for row in rows for column in row})
    values, other = [], None
    for pattern in series:
        for column in fnmatch.filter(columns, pattern):
            points = [(row["step"], scale * row[column]) for row in rows if column in row]
            target = axis
            if column.startswith("epsilon_"):  # λ and ε have no common unit
                other = other or _second(axis)
                target = other
            marker = "." if len(points) < 30 else ""
            colour = f"C{len(axis.lines) + (len(other.lines) if other else 0)}"
            target.plot(*zip(*points), marker=marker, label=_word(column), color=colour)
            values += [value for _, value in points]
    canvas.steps(axis)
    positive = [value for value in values if value > 0]
    if not other and len(positive) == len(values) > 0 and max(values) > DECADES * min(values):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axis.set_ylim(bottom=0)
    handles = [*axis.lines, *(other.lines if other else ())]
    if other:
        other.set_ylim(bottom=0)
    axis.legend(handles=handles)


def _second(axis):
    other = axis.twinx()
    other.grid(False)
    other.spines["right"].set_visible(True)
    return other


def _word(column: str) -> str:
    if column.startswith("epsilon_"):
        name = column.removeprefix("epsilon_").replace("_", " ")
        return f"ε of {name} (right)"
    return WORDS.get(column, column)


def _mark(axis, step: int, error: float) -> None:
    """The step with the lowest validation error."""
    axis.plot(
        [step], [100 * error], "*", color="C3", markersize=13, zorder=4, label=f"best: {step:,}"
    )
    axis.legend()


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


def _images(figure, examined: dict) -> None:
    """Two mosaics, as axes for every image would take seconds: images, and differences."""
    rows = panels(examined)
    difference = rows.pop("difference").mean(axis=-1, keepdims=True)
    upper, lower = figure.subplots(2, 1, height_ratios=[2, 1])
    _mosaic(upper, rows, cmap="gray", vmin=0, vmax=1)
    changes = {"difference": 2 * difference - 1}  # in units of the range of the originals
    drawn = _mosaic(lower, changes, cmap="RdBu_r", vmin=-1, vmax=1)
    bar = figure.colorbar(drawn, ax=[upper, lower], ticks=[-1, 0, 1], shrink=0.5, pad=0.01)
    bar.set_label("difference / range of the originals", fontsize="small")
    height, width = rows["original"].shape[1:3]
    names = zip(examined.get("before", ())[:SHOWN], examined.get("after", ()))
    for column, (before, after) in enumerate(names):
        same = before == after
        text = before if same else _change(before, after)
        place = (_gap(height) + width) * (column + 0.5) + _gap(height) / 2
        colour = "black" if same else "#d55e00"
        lower.text(place, lower.get_ylim()[0] * 1.12, text, ha="center", va="top", color=colour)


def _change(before: str, after: str) -> str:
    """Long names on two lines: a column has room for a dozen letters."""
    return f"{before} → {after}" if len(before + after) <= 8 else f"{before}\n→ {after}"


def _gap(height: int) -> int:
    return 1 + height // 32


def _mosaic(axis, rows: dict[str, np.ndarray], **colours):
    """A line of images for each name."""
    gap = _gap(next(iter(rows.values())).shape[1])
    edges = ((0, 0), (gap, 0), (gap, 0), (0, 0))
    empty = 1 if colours["vmin"] == 0 else 0  # white in either colour map
    padded = [np.pad(images[:SHOWN], edges, constant_values=empty) for images in rows.values()]
    lines = [np.concatenate(list(images), axis=1) for images in padded]
    drawn = axis.imshow(np.concatenate(lines), interpolation="nearest", **colours)
    height = lines[0].shape[0]
    places = [height * (i + 0.5) for i in range(len(rows))]
    axis.set_yticks(places, labels=rows, rotation=90, va="center")
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.grid(False)
    return drawn
