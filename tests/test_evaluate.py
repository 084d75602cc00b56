"""rat_tf.evaluate: the command on a real run."""

import csv
import json
import shutil

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors, evaluate, train
from rat_tf.training import run_folder
from rat_tf.training import weights as weights_lib
from tests import runs
from tests.data import make


def test_the_command_on_a_run(finished_run, tmp_path, capsys, monkeypatch):
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "evaluation"
    folder.mkdir()
    for name in ("report.json.0f.tmp", "confusion.png.1e.tmp"):  # of one that was killed
        (folder / name).touch()
    trained = json.loads((tmp_path / "result.json").read_text())
    noise, both = {"noise": 3.0}, {"noise": 3.0, "affine": 0.8}
    for weights, error, largest in (
        ("best", "test_error", noise),
        ("ema", "ema_test_error", both),
    ):
        monkeypatch.setattr(evaluate.training.evaluation, "MAX_EPSILON", largest)
        report = evaluate.main(str(tmp_path), weights, images=100)
        assert report["error"] == pytest.approx(trained[error], abs=1e-6)
    said = capsys.readouterr().out
    assert "95 % interval" in said and "360 test images" in said
    assert {path.name for path in folder.iterdir()} == set(evaluate.FILES)
    with open(folder / "robustness.csv", newline="") as file:
        curves = list(csv.DictReader(file))

    def kl(transform, offsets):
        found = [r for r in curves if (r["transform"], r["offsets"]) == (transform, offsets)]
        return np.array([float(row["kl"]) for row in found])

    loaded = data_lib.load(run_folder.Run(str(tmp_path)).config())
    sample = loaded.test.take(data_lib.strata.sample(loaded.test.labels, 100))
    trained = weights_lib.load(run_folder.Run(str(tmp_path)), "ema")
    wrong = np.mean(trained.logits(sample.images).numpy().argmax(-1) != sample.labels)
    at_zero = {float(row["error"]) for row in curves if float(row["epsilon"]) == 0}
    assert at_zero == {wrong} and np.ptp(np.bincount(sample.labels)) <= 1
    for transform in ("noise", "affine"):
        adversarial, random = kl(transform, "adversarial"), kl(transform, "random")
        assert adversarial[0] == pytest.approx(0, abs=1e-5) == random[0]
        assert (adversarial[1:] > random[1:]).all()
    for name in ("confusion.png", "calibration.png", "robustness.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


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


def test_a_folder_without_test_images_says_what_was_used(tmp_path, capsys, monkeypatch):
    make.folder(tmp_path / "set", labeled=20, test=0, shape=(8, 8, 1))
    flags = {**runs.TINY, "dataset": f"folder:{tmp_path}/set", "ema_decay": 0.0, "channels": 1}
    flags |= {"method": "supervised", "labels": 0, "consistency_rampup": None, "validation": 0.25}
    flags |= {"iterations": 2, "validate_every": 2, "tensorboard": False}
    flags |= {"class_weights": "balanced", "augment_crop": 0.5, "augment_color": 0.3}
    run_dir = str(tmp_path / "run")
    train.main(config_lib.Config(**flags, run_dir=run_dir))
    said = capsys.readouterr()
    assert "warning: 10 validation images choose the best step" in said.err
    assert ", 10 images) at step 2; no test images" in said.out
    split = json.loads((tmp_path / "run" / "split.json").read_text())
    assert len(split["validation"]) == 10  # files 0 to 19 are one class, 20 to 39 the other
    assert sum(index < 20 for index in split["validation"]) == 5
    monkeypatch.setattr(evaluate.plots.evaluation, "robustness", lambda *_: None)
    monkeypatch.setattr(
        evaluate.training.evaluation, "robustness", lambda *_: [{"epsilon": 0.0, "error": 0.5}]
    )
    report = evaluate.main(run_dir, "best", images=4)
    assert report["part"] == "validation" and report["images"] == 10
    said = capsys.readouterr().out
    assert "10 validation images\nthe set has no test images; validation images have also" in said
