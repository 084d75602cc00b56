"""The figures of an evaluation: confusion, calibration, robustness."""

from __future__ import annotations

import numpy as np
from matplotlib import colors

from rat_tf.plots import canvas

FEW = 10  # images in a bin; below, its accuracy says little


@canvas.styled
def confusion(path: str, counts, class_names, title: str = "") -> None:
    """Rows are the true classes, columns the predicted ones; colour is the share of the row.

    The scale is stretched at its lower end, so that few mistakes are seen, too.
    """
    names = canvas.drawable(class_names)
    room = 0.09 * max(map(len, names))  # inches that names take, which are written twice
    size = min(20, 2.6 + 0.5 * len(class_names)) + room
    figure, axis = canvas.subplots(figsize=(size + 1.2, size + 0.3))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    norm = colors.PowerNorm(0.4, vmin=0, vmax=1)
    image = axis.imshow(shares, cmap="Blues", norm=norm)
    if len(class_names) <= 30:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                colour = "white" if norm(shares[row, column]) > 0.6 else "black"
                weight = "normal" if row == column else "bold"
                style = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": weight}
                axis.text(column, row, count, color=colour, **style)
    ticks = range(len(class_names))
    axis.set(xticks=ticks, yticks=ticks, xlabel="predicted class", ylabel="true class")
    axis.set_xticklabels(names, rotation=90 if max(map(len, names)) > 2 else 0)
    axis.set_yticklabels(names)
    figure.supxlabel(canvas.legend(class_names), fontsize=8)
    axis.grid(False)
    axis.set_title(title, loc="left")
    bar = figure.colorbar(image, label="share of the true class", ticks=[0, 0.01, 0.1, 0.5, 1])
    bar.ax.set_yticklabels(["0", "1 %", "10 %", "50 %", "100 %"])
    canvas.save(figure, path)


@canvas.styled
def calibration(path: str, bins: list[dict], title: str = "") -> None:
    """Accuracy against confidence with 95 % intervals; below, the share of images in each bin."""
    figure, (axis, below) = canvas.subplots(
        2, 1, figsize=(5.5, 6.5), sharex=True, height_ratios=[4, 1]
    )
    axis.plot([0, 1], [0, 1], color="grey", linestyle="--", label="calibrated")
    for few in (True, False):
        some = [b for b in bins if (b["images"] < FEW) == few]
        if not some:
            continue
        x, y, low, high = (
            np.array([b[name] for b in some]) for name in ("confidence", "accuracy", "low", "high")
        )
        spread = np.maximum([y - low, high - y], 0)
        label = f"fewer than {FEW} images" if few else "accuracy, 95 % interval"
        style = {"fmt": "o", "color": "C0", "capsize": 2, "alpha": 0.25 if few else 1}
        axis.errorbar(x, y, spread, label=label, **style)
    axis.set(xlim=(0, 1.02), ylim=(-0.02, 1.02), ylabel="share of right predictions")
    axis.set_title(title, loc="left")
    axis.legend(loc="upper left")
    width = 0.9 / max(len(bins), 15)
    below.bar([b["confidence"] for b in bins], [100 * b["share"] for b in bins], width, color="C0")
    below.set(xlabel="confidence (probability of the predicted class)", ylabel="images, %")
    canvas.save(figure, path)


@canvas.styled
def robustness(path: str, rows: list[dict], trained: dict[str, float], title: str = "") -> None:
    """Error (upper row) and KL (lower row) against ε, a column for every transformation.

    `trained` has the ε of the transformations that training applied.
    """
    names = list(dict.fromkeys(row["transform"] for row in rows))
    figure, axes = canvas.subplots(
        2, len(names), figsize=(3.2 * len(names), 6.2), sharey="row", squeeze=False
    )
    # The wide line is seen on both sides of a narrow one that coincides with it.
    styles = {
        "random": {"color": "C5", "linewidth": 5, "alpha": 0.6},
        "adversarial": {"color": "C3", "linewidth": 1.5, "marker": "."},
    }
    for column, name in enumerate(names):
        for line, (measure, scale) in enumerate((("error", 100), ("kl", 1))):
            axis = axes[line, column]
            for offsets, style in styles.items():
                points = [
                    (row["epsilon"], scale * row[measure])
                    for row in rows
                    if (row["transform"], row["offsets"]) == (name, offsets)
                ]
                label = "random" if offsets == "random" else "worst found"
                axis.plot(*zip(*points), label=label, **style)
            if name in trained:
                axis.axvline(trained[name], color="black", linestyle=":", label="ε in training")
        axes[0, column].set_title(name.replace("_", " "))
        axes[1, column].set_xlabel("ε")
    for line, measure in enumerate(("error", "kl")):
        top = max(row[measure] for row in rows) * (100 if measure == "error" else 1)
        axes[line, 0].set_ylim(-0.02 * top, 1.08 * top or 1)  # shared by the row
    axes[0, 0].set_ylabel("error, %")
    axes[1, 0].set_ylabel("KL, nats")
    handles, labels = [], []
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle(title)
    canvas.save(figure, path)
