"""Names of classes in any script."""

import warnings

import numpy as np
import pytest

from rat_tf.plots import canvas, evaluation


def test_names_that_the_font_lacks_are_numbered():
    assert canvas.drawable(["cat", "Äpfel", "猫", "кот", "5$"]) == [
        *("cat", "Äpfel", "#3", "кот", r"5\$")
    ]
    assert canvas.legend(["cat", "猫"]).startswith("#: class 2 in the table of rat_tf.evaluate")
    assert canvas.legend(["猫", "cat", "いぬ"]).startswith("#: classes 1, 3 in")
    assert canvas.legend(["cat", "#2"]).startswith("#: class 2")  # better than a doubt
    assert canvas.legend(["cat", "dog"]) == ""


def test_long_names_lose_their_middle_and_leave_room_for_the_figure(monkeypatch):
    names = ["american_bulldog", "american_pit_bull_terrier", "a" * 24, "$" * 30]
    assert canvas.drawable(names, most=9) == [
        "ameri…dog",
        "ameri…ier",
        "aaaaa…aaa",
        r"\$" * 5 + "…" + r"\$" * 3,
    ]
    assert canvas.drawable(names)[:3] == ["american_bulldog", "american_pit_bu…_terrier", "a" * 24]
    drawn = []
    monkeypatch.setattr(canvas, "save", lambda figure, path: drawn.append(figure))
    evaluation.confusion("c.png", np.eye(3, dtype=int), [letter * 60 for letter in "abc"], "title")
    drawn[0].draw_without_rendering()
    assert drawn[0].axes[0].get_position().height > 0.4  # of the figure


@pytest.mark.parametrize("names", [["猫", "いぬ"], ["$a$", "$$\\frac{$"]])
def test_a_figure_of_any_names_is_drawn_without_a_warning(tmp_path, names):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        evaluation.confusion(str(tmp_path / "c.png"), np.array([[3, 1], [0, 2]]), names)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
