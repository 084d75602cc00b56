"""Figures in one style, without pyplot: no display is needed, and no global state changes."""

from __future__ import annotations

import functools

import matplotlib
from matplotlib import figure

from rat_tf import files

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
STYLE = {
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.titlesize": "medium",
    "figure.titlesize": "large",
    "grid.alpha": 0.3,
    "legend.fontsize": "small",
    "legend.frameon": False,
}


def styled(draw):
    """Decorator: what a function draws and saves has the style of all figures."""

    @functools.wraps(draw)
    def drawing(*args, **kwargs):
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawing


def subplots(rows: int = 1, columns: int = 1, figsize=None, **options):
    """A figure and its axes, as pyplot.subplots returns them."""
    made = figure.Figure(figsize=figsize, layout="constrained")
    return made, made.subplots(rows, columns, **options)


def save(made: figure.Figure, path: str, format: str = "png", dpi: int = 100) -> None:
    """Writes the figure atomically."""
    with files.writing(path) as temporary:
        made.savefig(temporary, format=format, dpi=dpi)


def formats() -> set[str]:
    """The supported file extensions."""
    return set(figure.Figure().canvas.get_supported_filetypes())
