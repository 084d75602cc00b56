"""rat_tf.evaluate: the command on a real run."""

import csv
import json
import shutil

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import errors, evaluate, train
from tests import runs


def test_the_command_on_a_run(finished_run, tmp_path, capsys, monkeypatch):
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    trained = json.loads((tmp_path / "result.json").read_text())
    noise, both = {"noise": 3.0}, {"noise": 3.0, "affine": 0.8}
    for weights, error, largest in (
        ("best", "test_error", noise),
        ("ema", "ema_test_error", both),
    ):
        monkeypatch.setattr(evaluate.training.evaluation, "MAX_EPSILON", largest)
        report = evaluate.main(str(tmp_path), weights, images=100)
        assert report["error"] == pytest.approx(trained[error], abs=1e-6)
    assert "95 % interval" in capsys.readouterr().out
    with open(tmp_path / "evaluation" / "robustness.csv", newline="") as file:
        curves = list(csv.DictReader(file))

    def kl(transform, offsets):
        found = [r for r in curves if (r["transform"], r["offsets"]) == (transform, offsets)]
        return np.array([float(row["kl"]) for row in found])

    for transform in ("noise", "affine"):
        adversarial, random = kl(transform, "adversarial"), kl(transform, "random")
        assert adversarial[0] == pytest.approx(0, abs=1e-5) == random[0]
        assert (adversarial[1:] > random[1:]).all()
    for name in ("confusion.png", "calibration.png", "robustness.png"):
        assert (tmp_path / "evaluation" / name).read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(errors.UserError, match="--run_dir.*flags.cfg"):
        evaluate.main(str(tmp_path), "best", images=1)


def test_averaged_weights_of_a_run_without_them_are_refused(tmp_path):
    flags = {**runs.TINY, "ema_decay": 0.0, "iterations": 2, "validate_every": 2}
    # Every label there is: the fully supervised baseline has no unlabelled images at all.
    flags |= {"method": "supervised", "labels": 0, "consistency_rampup": None, "tensorboard": False}
    train.main(config_lib.Config(**flags, run_dir=str(tmp_path)))
    assert json.loads((tmp_path / "result.json").read_text())["labels"] > 1000
    for weights in ("ema", "teacher"):
        with pytest.raises(errors.UserError, match=f"--weights={weights}.*--ema_decay"):
            evaluate.main(str(tmp_path), weights, images=1)
