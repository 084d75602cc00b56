"""The pictures of a run and of its evaluation."""

from __future__ import annotations

import fnmatch
import os

import matplotlib

matplotlib.use("Agg")  # files only: no display is needed, or looked for

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

PANELS = (
    ("Validation error, %", ("val_error", "val_ema_error"), 100),
    ("Loss", ("loss", "cross_entropy", "entropy"), 1),
    ("KL under the transformations, nats", ("kl", "adversarial_kl", "random_kl"), 1),
    ("Inconsistency of predictions", ("consistency",), 1),
    ("λ and ε", ("lambda", "epsilon_*"), 1),
)


def summary(path: str, rows: list[dict], examined: dict | None, title: str) -> None:
    """Curves over the steps, and a grid of images, their transformations and the difference."""
    figure = plt.figure(figsize=(14, 8.5 if examined else 5.5), layout="constrained")
    figure.suptitle(title)
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 0.75]) if examined else (figure, None)
    known = [name for row in rows for name in row]
    shown = [panel for panel in PANELS if any(fnmatch.filter(known, name) for name in panel[1])]
    axes = upper.subplots(1, len(shown)) if examined else upper.subplots(-(-len(shown) // 2), 2)
    for axis, (name, series, scale) in zip(np.ravel(axes), shown):
        _curves(axis, rows, series, scale)
        axis.set(title=name, xlabel="step")
    if examined:
        _images(lower, panels(examined))
    save(figure, path)


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
    save(figure, path)


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
    save(figure, path)


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
    save(figure, path)


def save(figure, path: str) -> None:
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
