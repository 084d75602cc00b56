"""What the figures of a report show."""

import pytest

from rat_tf.experiments import comparison, curves
from tests.experiments import run_folders

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")


def test_curves(tmp_path):
    run_folders.write(tmp_path / "a", 0.1, steps=[10, 20, 40])
    run_folders.write(tmp_path / "b", 0.2, steps=[10, 20], seed=1)
    run_folders.write(tmp_path / "c", 0.3, labels=20)
    (section,), _ = comparison.sections(run_folders.read(tmp_path)[0])
    ours, theirs = curves.against_labels(section.lines)
    assert ours == {
        "RAT": [(20, pytest.approx(30), None), (50, pytest.approx(15), pytest.approx(50**0.5))]
    }
    assert theirs == {}
    assert curves.against_labels(section.lines[:1]) == ({}, {})  # a point is no line
    panels = curves.training(section.lines)
    assert list(panels) == [50]  # the other has no validation yet
    steps, mean, std = panels[50]["RAT"]
    assert steps == [10, 20] and mean == pytest.approx([10, 5]) and std == pytest.approx([0, 0])
