"""Figures in one style, without pyplot: no display is needed, and no global state changes."""

from __future__ import annotations

import functools

import matplotlib
from matplotlib import figure, font_manager, ticker

from rat_tf.storage import files

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


def drawable(names, most: int = 24) -> list[str]:
    """Names of classes as they can be drawn: #n for the n-th if the font lacks some of its letters.

    Where such numbers are shown, `legend` explains them. Names of more than `most` letters lose
    their middle: those of similar classes often begin alike.
    """
    font = font_manager.findfont(font_manager.FontProperties())
    known = font_manager.get_font(font).get_charmap()
    return [
        _short(name, most).replace("$", r"\$")
        if all(ord(letter) in known for letter in name)
        else f"#{number}"
        for number, name in enumerate(names, start=1)
    ]


def _short(name: str, most: int) -> str:
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def legend(names) -> str:
    """What the numbers of `drawable` mean; empty if all of the names can be drawn."""
    shown = enumerate(drawable(names), start=1)
    numbers = [str(number) for number, text in shown if text == f"#{number}"]
    if not numbers:
        return ""
    classes = f"class{'es' if numbers[1:] else ''} {', '.join(numbers)}"
    return f"#: {classes} in the table of rat_tf.evaluate; the font lacks letters of the name"


def subplots(rows: int = 1, columns: int = 1, figsize=None, **options):
    """A figure and its axes, as pyplot.subplots returns them."""
    made = figure.Figure(figsize=figsize, layout="constrained")
    return made, made.subplots(rows, columns, **options)


def steps(axis) -> None:
    """Ticks of an axis of steps: whole numbers, 100k for 100,000."""
    axis.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def save(made: figure.Figure, path: str, format: str = "png", dpi: int = 100) -> None:
    """Writes the figure atomically."""
    with files.writing(path) as temporary:
        made.savefig(temporary, format=format, dpi=dpi)


def formats() -> set[str]:
    """The supported file extensions."""
    return set(figure.Figure().canvas.get_supported_filetypes())
