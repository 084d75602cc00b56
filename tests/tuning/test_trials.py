"""The trials in a search's folder: the median rule, the ranking and what is left of it."""

import csv
import json
import os

import pytest

from rat_tf.storage import files
from rat_tf.training import run_folder
from rat_tf.tuning import trials
from tests.tuning import searches


def test_the_median_rule():
    """Against the medians and means of the definition, computed by hand."""
    others = [{2: 0.8, 4: 0.4}, {2: 0.6, 4: 0.2}, {2: 0.4, 4: 0.2}]  # means up to 4: 0.6, 0.4, 0.3
    assert trials.hopeless({2: 0.9, 4: 0.41}, others)
    assert not trials.hopeless({2: 0.9, 4: 0.4}, others)
    assert not trials.hopeless({2: 0.1, 4: 0.9}, others)  # its lowest counts
    assert trials.hopeless({2: 0.61}, others) and not trials.hopeless({2: 0.6}, others)
    assert not trials.hopeless({2: 0.9, 4: 0.9}, others[:2])  # too few
    assert not trials.hopeless({6: 0.9}, others)  # none came as far
    assert not trials.hopeless({2: 0.9}, others, first=3)  # too young


def write(folder, number, error, status="finished", **values):
    """A trial that has ended, as the runner leaves it."""
    run = run_folder.Run(trials.path(str(folder), str(number)))
    os.makedirs(run.folder)
    files.write(run.flags, searches.BASE.flagfile())
    result = {"trial": str(number), "validation_error": error, "best_step": 4, "steps": 6}
    result |= {"seconds": 1.25, "status": status, "values": values}
    files.write(os.path.join(run.folder, "trial.json"), json.dumps(result))
    described = {"class_names": ["a", "b"], "image_shape": [8, 8, 1]}
    described["counts"] = {"labeled": 20, "unlabeled": 80, "validation": 100, "test": 0}
    files.write(run.data, json.dumps(described))


def test_of_equal_trials_the_earlier_is_better(tmp_path):
    """By number: 10 comes after 9."""
    for number, error in ((10, 0.25), (9, 0.25), (2, 0.5), (11, 0.125)):
        write(tmp_path, number, error)
    assert [trial["trial"] for trial in trials.finished(str(tmp_path))] == ["11", "9", "10", "2"]


def test_a_long_table_is_cut_and_the_file_is_not(tmp_path):
    for number in range(trials.TABLE_ROWS + 3):
        write(tmp_path, number, number / 100, xi=f"{number}eps")
    write(tmp_path, 99, 1.0, "diverged", xi="99eps")
    text = trials.report(str(tmp_path), "grid: xi", searches.BASE)
    lines = text.splitlines()
    assert len(lines) == 1 + trials.TABLE_ROWS + 1 and lines[-1] == "… and 4 more in trials.csv"
    assert lines[1].split() == ["1", "0", "0.00%", "4", "6", "0eps"]
    with open(tmp_path / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == [str(i) for i in range(1, trials.TABLE_ROWS + 5)]
    assert (rows[-1]["trial"], rows[-1]["status"], rows[-1]["xi"]) == ("99", "diverged", "99eps")


def test_where_all_trials_have_failed_there_is_no_best(tmp_path):
    write(tmp_path, 0, 1.0, "diverged", xi="1")
    write(tmp_path, 1, 1.0, "invalid", xi="2")
    text = trials.report(str(tmp_path), "grid: xi", searches.BASE)
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["1", "0", "-", "4", "6", "1", "diverged"],
        ["2", "1", "-", "4", "6", "2", "invalid"],
    ]
    assert sorted(os.listdir(tmp_path)) == ["trials", "trials.csv"]


def test_intervals_are_wilsons(tmp_path):
    """(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), with the n of the validation images."""
    write(tmp_path, 0, 0.1)
    (trial,) = trials.with_intervals(str(tmp_path), trials.finished(str(tmp_path)))
    p, n, z = 0.1, 100, 1.959964
    middle, spread = p + z**2 / (2 * n), z * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    expected = [(middle + side * spread) / (1 + z**2 / n) for side in (-1, 1)]
    assert [trial["low"], trial["high"]] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kept, best", [((4, 6), 6), ((2, 4), 4), ((), 4)])
def test_the_best_step_is_the_one_whose_weights_are_kept(tmp_path, kept, best):
    """With few validation images a run keeps the last of steps with the same error."""
    run = run_folder.Run(str(tmp_path))
    files.write(run.flags, searches.BASE.flagfile())
    name = searches.BASE.monitor()
    errors = {2: 0.5, 4: 0.25, 6: 0.25, 8: 0.5}
    lines = [f"{step},{step},{error}" for step, error in errors.items()]
    (tmp_path / "metrics.csv").write_text(f"step,seconds,val_{name}\n" + "\n".join(lines) + "\n")
    os.makedirs(run.best)
    for step in kept:
        files.write(os.path.join(run.best, f"{name}-{step}.index"), "")
    assert trials.outcome(run, "finished")["best_step"] == best
