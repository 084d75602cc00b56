"""Figure 1 of the paper: two moons and the decision boundaries of classifiers."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib import colors, figure, legend_handler

EXTENT = (-1.6, 2.6, -1.1, 1.6)  # of the picture

# Blue and orange, which colour-blind readers can distinguish, dark for labelled and light for
# unlabelled points. The marker shapes distinguish the moons in greyscale, too.
MARKERS, DARK, LIGHT = ("o", "s"), ("#003a5d", "#7a2e00"), ("#2a8ac4", "#e9761f")
CONFIDENCE = colors.LinearSegmentedColormap.from_list("p", ["#8cc4e8", "white", "#f6b588"])


def grid() -> np.ndarray:
    """The points whose colours `draw` shows, float32 [N, 2]."""
    return np.stack([axis.ravel() for axis in _mesh()], axis=1).astype(np.float32)


def _mesh() -> list[np.ndarray]:
    return np.meshgrid(np.linspace(*EXTENT[:2], 421), np.linspace(*EXTENT[2:], 271))


def draw(labeled, unlabeled, centres, panels: dict[str, np.ndarray]) -> figure.Figure:
    """Two by two: the data, then p(y|x) as colour with the decision boundary at 1/2.

    Points are pairs of [N, 2] and their moons, [N]; `centres` [2, 2] are those of the semicircles;
    `panels` have p of the lower moon at every point of `grid`, by title.
    """
    x, y = _mesh()
    with matplotlib.rc_context({"font.size": 13, "axes.titlesize": 14.5}):
        result = figure.Figure(figsize=(9, 7.2), layout="compressed")
        bare = {"xticks": [], "yticks": [], "xlim": EXTENT[:2], "ylim": EXTENT[2:]}
        axes = result.subplots(2, 2, subplot_kw={**bare, "aspect": "equal"})
        points = [_draw_points(axis, labeled, unlabeled, centres) for axis in axes.flat]
        axes[0, 0].set_title("(a) data")
        pairs = {tuple: legend_handler.HandlerTuple(ndivide=None)}
        axes[0, 0].legend(
            points[0].values(), points[0], handler_map=pairs, loc="upper right", frameon=False
        )
        for axis, letter, (title, p) in zip(axes.flat[1:], "bcd", panels.items()):
            axis.set_title(f"({letter}) {title}")
            p = p.reshape(x.shape)
            image = axis.imshow(p, CONFIDENCE, extent=EXTENT, origin="lower", vmin=0, vmax=1)
            axis.contour(x, y, p, [0.5], colors="black", linewidths=2.2)
        bar = {"location": "bottom", "shrink": 0.4, "aspect": 30, "ticks": [0, 0.5, 1]}
        result.colorbar(image, ax=axes, **bar).set_label("p(lower moon | x)")
    return result


def _draw_points(axis, labeled, unlabeled, centres) -> dict[str, tuple]:
    """Semicircles and points; returns the points' artists by name, one of each moon."""
    angle = np.linspace(0, np.pi, 200)
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    artists = {"labelled": (), "unlabelled": ()}
    for moon, side in enumerate((1, -1)):
        axis.plot(*(centres[moon] + side * arc).T, color=LIGHT[moon], linewidth=2.2)
        style = {"marker": MARKERS[moon], "edgecolors": "white", "linewidths": 0.7, "zorder": 3}
        drawn = (unlabeled, LIGHT[moon], 26), (labeled, DARK[moon], 52)
        for name, ((points, labels), color, size) in zip(("unlabelled", "labelled"), drawn):
            artists[name] += (axis.scatter(*points[labels == moon].T, size, color, **style),)
    return artists
