"""Trials as runs: never the test set, never twice, from where a shorter one ended."""

import csv
import dataclasses
import itertools

import pytest
import tensorflow as tf

from rat_tf import errors, train
from rat_tf.data import splits
from rat_tf.training import callbacks, loop, run_folder
from rat_tf.tuning import trial_runner
from tests.tuning import searches


class Untouchable:
    """A test set that may be counted and recognised, and nothing else."""

    def __init__(self, found):
        self.hash = found.hash

    def __len__(self):
        return 1

    def __getattr__(self, name):
        raise AssertionError("the test set was looked at")


@pytest.fixture
def runner(tmp_path, monkeypatch):
    def make_runner(space, stop_hopeless=False):
        made = trial_runner.Runner(
            space, tf.distribute.get_strategy(), str(tmp_path), stop_hopeless
        )
        made._images = dataclasses.replace(made._images, test=Untouchable(made._images.test))
        return made

    return make_runner


def test_a_trial_is_a_run_that_never_sees_the_test_set(runner, tmp_path):
    space = searches.parse("learning_rate=0.1|0.2", iterations=2, method="supervised")
    result = runner(space).run("0", {"learning_rate": "0.2"})
    folder = tmp_path / "trials" / "0"
    with open(folder / "metrics.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert result["validation_error"] == pytest.approx(float(row["val_error"]))
    assert (result["status"], result["best_step"], result["steps"]) == ("finished", 2, 2)
    assert run_folder.Run(str(folder)).config().learning_rate == 0.2
    # What rat_tf.train finds there it only has to evaluate.
    train.main(run_folder.Run(str(folder)).config())
    tested = run_folder.Run(str(folder)).finished()
    assert tested["best_validation_error"] == pytest.approx(result["validation_error"])
    assert 0 <= tested["test_error"] <= 1


def test_the_same_flags_are_trained_once(runner, monkeypatch):
    calls = []
    monkeypatch.setattr(loop, "fit", searches.fake_fit(lambda config, step: 0.25, calls))
    some = runner(searches.parse("consistency=0.1:1"))
    some.run("0", {"consistency": 0.30001})
    again = some.run("1", {"consistency": 0.30002})  # rounded to four digits
    assert len(calls) == 1
    assert (again["validation_error"], again["same_as"]) == (0.25, "0")
    some.run("2", {"consistency": 0.4})
    some.run("2", {"consistency": 0.4})  # ended before: not again
    assert len(calls) == 2


def test_a_trial_that_diverges_is_an_answer(runner, monkeypatch):
    def diverge(*_, **__):
        raise callbacks.Diverged("the loss is nan")

    monkeypatch.setattr(loop, "fit", diverge)
    result = runner(searches.parse("consistency=0.1|1")).run("0", {"consistency": "1"})
    assert (result["status"], result["validation_error"]) == ("diverged", 1.0)


def test_data_are_read_again_only_where_their_flags_change(runner, monkeypatch):
    calls, loads = [], []
    monkeypatch.setattr(loop, "fit", searches.fake_fit(lambda config, step: 0.25, calls))
    some = runner(searches.parse("labels=20|30, consistency=0.1|1"))
    load = trial_runner.data.load
    monkeypatch.setattr(trial_runner.data, "load", lambda c: loads.append(c.labels) or load(c))
    for i, (labels, weight) in enumerate(itertools.product(["20", "30"], ["0.1", "1"])):
        some.run(str(i), {"labels": labels, "consistency": weight})
    assert loads == [30] and len(calls) == 4


def test_a_trial_that_was_begun_with_other_images_is_refused(runner, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(loop, "fit", searches.fake_fit(lambda config, step: 0.25, calls))
    runner(searches.parse("consistency=0.1|1")).run("0", {"consistency": "1"})
    folder = tmp_path / "trials" / "0"
    (folder / "trial.json").unlink()  # as if interrupted
    split = splits.read(str(folder / "split.json"))
    dataclasses.replace(split, hash="0" * 64).save(str(folder / "split.json"))
    with pytest.raises(errors.UserError, match="trials/0 was started with other images"):
        runner(searches.parse("consistency=0.1|1")).run("0", {"consistency": "1"})
    assert len(calls) == 1


def test_hyperband_goes_on_where_the_shorter_trial_ended(runner, monkeypatch):
    calls = []
    monkeypatch.setattr(loop, "fit", searches.fake_fit(lambda config, step: 1 / step, calls))
    some = runner(searches.parse("consistency=0.1|1"))
    some.run("0", {"consistency": "1", "tuner/epochs": 1})
    values = {"consistency": "1", "tuner/epochs": 3, "tuner/trial_id": "0"}
    result = some.run("1", values)
    assert [(c.iterations, rows) for c, rows in calls] == [(2, 0), (6, 1)]
    assert (result["steps"], result["validation_error"]) == (6, pytest.approx(1 / 6))


def test_a_hopeless_trial_is_stopped(runner, monkeypatch):
    calls = []
    error = lambda config, step: 0.2 + 0.1 * (config.consistency > 0.5)  # noqa: E731
    monkeypatch.setattr(loop, "fit", searches.fake_fit(error, calls))
    some = runner(searches.parse("consistency=0.1|0.2|0.3|1"), stop_hopeless=True)
    results = [
        some.run(str(i), {"consistency": v}) for i, v in enumerate(["0.1", "0.2", "0.3", "1"])
    ]
    assert [r["status"] for r in results] == ["finished"] * 3 + ["stopped"]
    assert [r["steps"] for r in results] == [6, 6, 6, 2]
