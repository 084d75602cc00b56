"""Figures without pyplot: no display is needed, and no global state changes."""

from __future__ import annotations

from matplotlib import figure

from rat_tf import files


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
