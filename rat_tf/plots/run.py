"""The picture of a run: its curves, and images as the adversary transforms them."""

from __future__ import annotations

import fnmatch

import numpy as np
from matplotlib import figure as figure_lib

from rat_tf.plots import canvas

PANELS = (
    ("Validation error, %", ("val_error", "val_ema_error"), 100),
    ("Loss", ("loss", "cross_entropy", "entropy"), 1),
    ("KL under the transformations, nats", ("kl", "adversarial_kl", "random_kl"), 1),
    ("Inconsistency of predictions", ("consistency",), 1),
    ("λ and ε", ("lambda", "epsilon_*"), 1),
)


def summary(path: str, rows: list[dict], examined: dict | None, title: str) -> None:
    """Curves over the steps, and a grid of images, their transformations and the difference."""
    figure = figure_lib.Figure(figsize=(14, 8.5 if examined else 5.5), layout="constrained")
    figure.suptitle(title)
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 0.75]) if examined else (figure, None)
    known = [name for row in rows for name in row]
    shown = [panel for panel in PANELS if any(fnmatch.filter(known, name) for name in panel[1])]
    axes = upper.subplots(1, len(shown)) if examined else upper.subplots(-(-len(shown) // 2), 2)
    for axis, (name, series, scale) in zip(np.ravel(axes), shown):
        _curves(axis, rows, series, scale)
        axis.set(title=name, xlabel="step")
    if examined:
        _images(lower.subplots(), panels(examined))
    canvas.save(figure, path)


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


def _images(axis, rows: dict[str, np.ndarray], count: int = 12) -> None:
    """One mosaic with a line of images for each name: axes for every image would take seconds."""
    gap = 1 + rows["original"].shape[1] // 32
    edges = ((0, 0), (gap, 0), (gap, 0), (0, 0))
    padded = [np.pad(images[:count], edges, constant_values=1) for images in rows.values()]
    lines = [np.concatenate(list(images), axis=1) for images in padded]
    axis.imshow(np.concatenate(lines), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    height = lines[0].shape[0]
    axis.set_yticks(
        [height * (i + 0.5) for i in range(len(rows))], labels=rows, rotation=90, va="center"
    )
    axis.set_xticks([])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
