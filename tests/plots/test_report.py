"""The pictures of a report: what is drawn where, and in whose colour."""

import numpy as np
import pytest

from rat_tf.plots import canvas
from rat_tf.plots import report as pictures


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would be saved."""
    found = []
    monkeypatch.setattr(canvas, "save", lambda figure, path: found.append(figure))
    return found


def legend(figure):
    (found,) = figure.legends
    return [text.get_text() for text in found.get_texts()]


def test_the_papers_line_is_dashed_in_the_colour_of_ours(drawn):
    ours = {"RAT": [(250, 4.0, 0.5), (1000, 3.0, None)]}
    theirs = {
        "VAT": [(250, 8.0, 1.0), (1000, 6.0, 1.0)],
        "RAT": [(250, 3.5, 0.1), (1000, 2.9, 0.1)],
    }
    pictures.against_labels("labels.png", ours, theirs, "SVHN")
    (axis,) = drawn[0].axes
    lines = [
        (line.get_color(), line.get_linestyle(), line.get_xydata().tolist())
        for line in axis.lines
        if len(line.get_xdata())
    ]
    assert lines == [
        ("C0", "--", [[250, 3.5], [1000, 2.9]]),
        ("C0", "-", [[250, 4], [1000, 3]]),
        ("C1", "--", [[250, 8], [1000, 6]]),
    ]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["250", "1,000"]
    assert legend(drawn[0]) == ["RAT", "VAT", "the paper"]


def test_one_standard_deviation_is_shaded(drawn):
    pictures.against_labels("labels.png", {"RAT": [(250, 4.0, 0.5), (1000, 3.0, None)]}, {}, "SVHN")
    (axis,) = drawn[0].axes
    (band,) = axis.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices}
    assert corners == {(250, 3.5), (250, 4.5), (1000, 3)}  # one seed: no band
    assert legend(drawn[0]) == ["RAT"]


def test_training_curves_have_a_panel_for_each_number_of_labels(drawn):
    """A method has its colour in all of them; panels without labels are not seen."""
    curve = ([10, 20], np.array([8.0, 4.0]), np.array([1.0, 0.5]))
    panels = {
        4000: {"VAT": curve},
        250: {"RAT": curve, "VAT": curve},
        **{labels: {"RAT": curve} for labels in (500, 1000)},
    }
    pictures.training_curves("curves.png", panels, "SVHN")
    axes = drawn[0].axes
    assert [axis.get_title() for axis in axes if axis.get_visible()] == [
        *("250 labels", "500 labels", "1,000 labels", "4,000 labels")
    ]
    colours = {(axis.get_title(), line.get_color()) for axis in axes[:4] for line in axis.lines}
    assert {colour for title, colour in colours if title == "4,000 labels"} == {"C0"}
    assert {colour for title, colour in colours if title == "250 labels"} == {"C0", "C1"}
    assert {colour for title, colour in colours if title == "500 labels"} == {"C1"}
    assert legend(drawn[0]) == ["VAT", "RAT"]


def test_of_many_curves_the_lowest_are_drawn(drawn):
    steps = [10, 20]
    series = {f"row {i}": (steps, np.array([50.0, i]), np.zeros(2)) for i in range(15)}
    pictures.training_curves("curves.png", {50: series}, "digits")
    assert legend(drawn[0]) == [f"row {i}" for i in range(pictures.MOST)]
    assert "the 12 lowest, 3 more are in the table" in drawn[0].get_suptitle().replace("\n", " ")
