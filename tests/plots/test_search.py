"""The picture of a search: where its trials are drawn."""

import numpy as np
import pytest

from rat_tf.plots import canvas, search


@pytest.fixture
def draw(monkeypatch):
    """The axis of a picture, instead of a file."""
    drawn = []
    monkeypatch.setattr(canvas, "save", lambda picture, path: drawn.append(picture))

    def call(*trials):
        ranked = [
            {"status": status, "validation_error": error, "values": values}
            for status, error, values in trials
        ]
        search.trials("trials.png", ranked)
        return drawn[-1].axes[0]

    return call


def test_one_parameter_is_a_line_in_its_order(draw):
    axis = draw(
        ("finished", 0.1, {"epsilon.affine": 0.4}),
        ("finished", 0.2, {"epsilon.affine": 0.6}),
        ("finished", 0.3, {"epsilon.affine": 0.2}),
        ("stopped", 0.4, {"epsilon.affine": 0.5}),
        ("diverged", 1.0, {"epsilon.affine": 0.9}),
    )
    whole, stopped, best = (line.get_xydata() for line in axis.lines)
    np.testing.assert_allclose(whole, [(0, 30), (0.5, 10), (1, 20)])
    np.testing.assert_allclose(stopped, [(0.75, 40)])
    np.testing.assert_allclose(best, [(0.5, 10)])
    assert axis.get_xlabel() == "ε affine"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0.2", "0.4", "0.5", "0.6"]
    assert axis.figure.get_suptitle() == "4 trials, best 10.00 % with ε affine = 0.4"


def test_a_parameter_over_decades_is_logarithmic(draw):
    values = ["1e-3", "1e-2", 0.1]  # values of a list are texts
    axis = draw(*(("finished", 0.1 * (i + 1), {"xi": value}) for i, value in enumerate(values)))
    np.testing.assert_allclose(axis.lines[0].get_xdata(), [0, 0.5, 1])


def test_many_parameters_are_parallel_axes(draw):
    """ε first; what a composition leaves out lies below its axis; the best is drawn last."""
    axis = draw(
        ("finished", 0.1, {"kl_direction": "b", "transforms": "noise:3,affine:0.5"}),
        ("finished", 0.2, {"kl_direction": "a", "transforms": "noise:2"}),
        ("finished", 0.3, {"kl_direction": "b", "transforms": "affine:0.7,noise:1"}),
    )
    names = [text.get_text() for text in axis.get_xticklabels()]
    assert names == ["ε noise", "ε affine", "kl direction", "error"]
    lines = [line.get_ydata() for line in axis.lines[:3]]
    np.testing.assert_allclose(lines, [(0, 1, 1, 1), (0.5, -0.12, 0, 0.5), (1, 0, 1, 0)])
    assert [text.get_text() for text in axis.texts].count("absent") == 1


def test_intervals_reach_from_low_to_high(draw, monkeypatch):
    drawn = []
    monkeypatch.setattr(canvas, "save", lambda picture, path: drawn.append(picture))
    trial = {"status": "finished", "validation_error": 0.1, "values": {"xi": 1}}
    other = {**trial, "validation_error": 0.2, "values": {"xi": 2}, "low": 0.15, "high": 0.3}
    search.trials("trials.png", [{**trial, "low": 0.05, "high": 0.2}, other])
    (axis,) = drawn[-1].axes
    (bars,) = (c for c in axis.collections if len(c.get_segments()) == 2)
    ends = sorted(sorted(y for _, y in segment) for segment in bars.get_segments())
    np.testing.assert_allclose(ends, [(5, 20), (15, 30)])
    assert "(95 % interval 5.00 to 20.00)" in axis.figure.get_suptitle()
