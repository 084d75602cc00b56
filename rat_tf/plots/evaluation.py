"""The figures of an evaluation: confusion, calibration, robustness."""

from __future__ import annotations

import numpy as np

from rat_tf.plots import canvas


def confusion(path: str, counts, class_names) -> None:
    """Rows are the true classes, columns the predicted ones; colour is the share of the row."""
    size = min(20, 3 + 0.5 * len(class_names))
    figure, axis = canvas.subplots(figsize=(size + 1, size))
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
    canvas.save(figure, path)


def calibration(path: str, bins: list[dict]) -> None:
    """Accuracy against confidence; dots are as large as their share of the images."""
    figure, axis = canvas.subplots(figsize=(5, 5))
    axis.plot([0, 1], [0, 1], color="grey", linestyle="--", label="calibrated")
    sizes = [20 + 600 * b["share"] for b in bins]
    axis.scatter([b["confidence"] for b in bins], [b["accuracy"] for b in bins], s=sizes, alpha=0.7)
    axis.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="confidence", ylabel="accuracy")
    axis.set_title("Calibration")
    axis.legend(frameon=False, loc="upper left")
    axis.grid(alpha=0.3)
    canvas.save(figure, path)


def robustness(path: str, rows: list[dict]) -> None:
    """Error (upper row) and KL (lower row) against ε, a column for every transformation."""
    names = list(dict.fromkeys(row["transform"] for row in rows))
    figure, axes = canvas.subplots(
        2, len(names), figsize=(3.2 * len(names), 6), sharey="row",
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
    canvas.save(figure, path)
