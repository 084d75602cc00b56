"""What a user is told during a run: warnings, progress, curves cut back after a resume."""

import csv

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.training import callbacks, checkpoints, run_folder

HEALTHY = {
    "loss": 1.0,
    "step": 10,
    "kl": 0.2,
    "fallback": 0.0,
    "top_class": 0.2,
    "adversarial_kl": 0.3,
    "random_kl": 0.1,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kl": 1e-9}, "flat at zero"),
        ({"fallback": 0.9}, "no gradient for 90%"),
        ({"top_class": 0.99}, "collapsed"),
        ({"adversarial_kl": 0.05}, "no stronger than random"),
    ],
)
def test_each_illness_has_a_warning_of_its_own(capsys, changes, words):
    health = callbacks.Health("--xi=0.1eps")
    if not changes.keys().isdisjoint(("kl", "top_class", "adversarial_kl")):
        health.on_epoch_end(0, {**HEALTHY, **changes})  # once may be chance
        assert capsys.readouterr().err == ""
    health.on_epoch_end(0, {**HEALTHY, **changes})
    err = capsys.readouterr().err
    assert err.count("warning:") == 1 and words in err and "--" in err


def test_a_noisy_illness_is_reported_once(capsys):
    health = callbacks.Health("--xi=0.1eps")
    for weak in (True, True, True, False, True, True):
        health.on_epoch_end(0, {**HEALTHY, "adversarial_kl": 0.05 if weak else 1.0})
    assert capsys.readouterr().err.count("no stronger than random") == 1


def test_a_lost_gradient_is_reported_once(capsys):
    health = callbacks.Health("--xi=0.1eps")
    for _ in range(3):
        health.on_epoch_end(0, {**HEALTHY, "fallback": 0.9})
    assert capsys.readouterr().err.count("no gradient for 90%") == 1


def test_a_healthy_run_has_none(capsys):
    callbacks.Health().on_epoch_end(0, dict(HEALTHY))
    random, young = callbacks.Health(), callbacks.Health(settled=10)
    for _ in range(2):
        random.on_epoch_end(0, {**HEALTHY, "adversarial_kl": 0.05})
        young.on_epoch_end(0, {**HEALTHY, "top_class": 0.99, "kl": 0.0})
    callbacks.Health().on_epoch_end(0, {"loss": 1.0, "step": 10})  # supervised, no validation
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        ({}, "--xi=0.1eps or --ascent=steepest"),
        ({"xi": "0.1eps"}, "--ascent=steepest"),
        ({"xi": "0.1eps", "ascent": "steepest"}, "--power_iterations=2 or larger ε"),
        ({"adversary": "worst_of"}, "--adversary=both or --candidates=8"),
        ({"method": "random"}, ""),
    ],
)
def test_only_flags_that_are_not_set_are_advised(flags, advice):
    remedies = config_lib.Config(**flags).options.remedies
    assert remedies.startswith(advice) and bool(remedies) == bool(advice)


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_lost_run_is_ended(loss):
    with pytest.raises(errors.UserError, match="step 10.*--learning_rate"):
        callbacks.Health().on_epoch_end(0, {**HEALTHY, "loss": loss})


def _steps(run):
    with open(run.metrics, newline="") as file:
        return [row["step"] for row in csv.DictReader(file)]


def _events(run):
    return sorted(
        event.step
        for name in tf.io.gfile.glob(run.tensorboard + "/*")
        for event in map(
            tf.compat.v1.Event.FromString, tf.data.TFRecordDataset(name).as_numpy_iterator()
        )
        if event.summary.value
    )


STOPWATCH = checkpoints.Stopwatch()


def _write(run, start, steps):
    curves = callbacks.Curves(run, ["loss"], start, tensorboard=True, stopwatch=STOPWATCH)
    for step in steps:
        curves.model = tf.keras.Sequential()
        curves.model.optimizer = tf.keras.optimizers.SGD()
        curves.model.optimizer.iterations.assign(step)
        curves.on_epoch_end(0, {"loss": 0.5})


def test_curves_are_cut_back_to_the_step_a_run_goes_on_from(tmp_path):
    run = run_folder.Run(str(tmp_path))
    _write(run, 0, [2, 4, 6])
    with open(run.metrics, "a") as file:
        file.write("4")  # a crash in the middle of the line of step 40
    before = run.rows()
    _write(run, 4, [6, 8])
    assert _steps(run) == ["2", "4", "6", "8"]
    assert _events(run) == [2, 2, 4, 4, 6, 6, 8, 8]  # seconds and loss at each
    after = run.rows()
    assert after[:2] == before[:2]
    assert after[2]["seconds"] >= after[1]["seconds"]
