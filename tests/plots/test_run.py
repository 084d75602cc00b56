"""The picture of a run: words, marks and images."""

import numpy as np
import pytest

from rat_tf.plots import canvas
from rat_tf.plots import run as pictures

ROWS = [
    {"step": 10, "val_error": 0.5, "loss": 2.0, "lambda": 0.1, "epsilon_affine": 0.01, "kl": 1.0},
    {"step": 20, "val_error": 0.2, "loss": 0.01, "lambda": 0.3, "epsilon_affine": 0.3, "kl": 0.5},
]


@pytest.fixture
def drawn(monkeypatch):
    found = []
    monkeypatch.setattr(canvas, "save", lambda figure, path: found.append(figure))
    return found


def axes(figure):
    return {axis.get_title(): axis for axis in figure.axes if axis.get_title()}


def test_curves_have_words_and_the_best_step_is_marked(drawn):
    pictures.summary("s.png", ROWS, None, "RAT", best=(20, 0.2))
    validation = axes(drawn[0])["Validation error, %"]
    texts = [text.get_text() for text in validation.get_legend().get_texts()]
    assert texts == ["trained weights", "best: 20"]
    np.testing.assert_allclose(validation.lines[0].get_xydata(), [(10, 50), (20, 20)])
    np.testing.assert_allclose(validation.lines[1].get_xydata(), [(20, 20)])


def test_lambda_and_epsilon_have_axes_of_their_own_and_losses_a_logarithmic_one(drawn):
    pictures.summary("s.png", ROWS, None, "RAT")
    named = axes(drawn[0])
    weight = named["Weight λ and radius ε"]
    (other,) = (
        axis
        for axis in drawn[0].axes
        if axis.bbox.bounds == weight.bbox.bounds and axis is not weight
    )
    assert [line.get_label() for line in weight.lines] == ["λ (left)"]
    assert [line.get_label() for line in other.lines] == ["ε of affine (right)"]
    scales = {title: axis.get_yscale() for title, axis in named.items()}
    assert scales["Loss"] == "log" and scales["Validation error, %"] == "linear"


def test_a_changed_class_is_shown_as_a_change(drawn):
    images = np.zeros([3, 4, 4, 1])
    examined = {"images": images, "transformed": images + 0.5}
    examined |= {"before": ["cat", "dog", "a long name"], "after": ["cat", "cat", "dog"]}
    pictures.summary("s.png", ROWS, examined, "RAT")
    texts = [text.get_text() for axis in drawn[0].axes for text in axis.texts]
    texts += [t.get_text() for f in drawn[0].subfigs for axis in f.axes for t in axis.texts]
    assert [text for text in dict.fromkeys(texts) if text] == [
        "cat",
        "dog → cat",
        "a long name\n→ dog",
    ]


def test_the_picture_of_a_run_that_examines_nothing_is_written(tmp_path):
    rows = [{"step": row["step"], "val_error": row["val_error"], "loss": 1.0} for row in ROWS]
    pictures.summary(str(tmp_path / "s.png"), rows, None, "supervised", best=(20, 0.2))
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
