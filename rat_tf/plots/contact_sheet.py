"""A contact sheet: images in titled rows."""

from __future__ import annotations

import numpy as np
from matplotlib import figure as figure_lib

from rat_tf.plots import canvas

COLUMNS = 10


@canvas.styled
def save(path: str, rows: list[tuple]) -> None:
    """Writes rows of (title, uint8 images, their names or None) as a PNG, ten images a line."""
    figure = figure_lib.Figure(figsize=(1.1 * COLUMNS, 1.45 * len(rows)))
    axes = figure.subplots(len(rows), COLUMNS, squeeze=False)
    for line, (title, images, names) in zip(axes, rows):
        for axis in line:
            axis.axis("off")
        line[0].set_title(title, loc="left", fontsize=9, pad=14 if names else 6)
        for axis, image, name in zip(line, images, names or [""] * len(images)):
            axis.imshow(np.squeeze(image), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            if name:
                axis.text(0.5, 1.02, name, transform=axis.transAxes, ha="center", fontsize=7)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.92, hspace=0.45)
    canvas.save(figure, path, dpi=120)
