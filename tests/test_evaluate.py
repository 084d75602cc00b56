"""rat_tf.evaluate: its numbers against formulas, and the command on a real run."""

import csv
import json

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import evaluate, train
from tests.test_train import TINY


def _predictions(seed=0, size=200, classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=size)
    logits = rng.normal(size=(size, classes)) + 2.0 * np.eye(classes)[labels]
    return logits.astype(np.float32), labels


def test_error_and_wilson_interval():
    logits, labels = _predictions()
    report = evaluate.describe(logits, labels)
    n = len(labels)
    p = sum(int(np.argmax(row)) != y for row, y in zip(logits, labels)) / n
    z = 1.959963984540054
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = [(centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)]
    assert report["error"] == p
    np.testing.assert_allclose(report["error_interval"], expected, rtol=1e-9)


def test_calibration_error_against_a_loop_over_bins():
    logits, labels = _predictions(seed=1)
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    confidence, correct = probabilities.max(1), probabilities.argmax(1) == labels
    expected = 0.0
    for low in np.arange(15) / 15:
        members = (confidence >= low) & (confidence < low + 1 / 15)
        if members.any():
            gap = abs(correct[members].mean() - confidence[members].mean())
            expected += members.mean() * gap
    assert evaluate.describe(logits, labels)["calibration_error"] == pytest.approx(expected)


def test_a_network_that_is_always_sure_and_right_is_calibrated():
    labels = np.arange(10) % 3
    report = evaluate.describe(100.0 * np.eye(3)[labels], labels)
    assert (report["error"], report["calibration_error"]) == (0, 0)
    assert report["log_loss"] == pytest.approx(0, abs=1e-9)


def test_per_class_errors_add_up_to_the_error():
    logits, labels = _predictions(seed=2)
    table = evaluate.per_class(logits, labels, "abcd")
    wrong = sum(row["images"] * row["error"] for row in table)
    assert wrong / len(labels) == pytest.approx(np.mean(logits.argmax(1) != labels))


def test_the_command_on_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "LARGEST", {"noise": 3.0, "affine": 0.8})
    flags = {**TINY, "labels": 100, "iterations": 40, "validate_every": 20, "augment_shift": 0}
    train.main(config_lib.Config(**flags, tensorboard=False, run_dir=str(tmp_path)))
    trained = json.loads((tmp_path / "result.json").read_text())
    for weights, error in (("best", "test_error"), ("ema", "ema_test_error")):
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
    with pytest.raises(config_lib.UserError, match="--run_dir.*flags.cfg"):
        evaluate.main(str(tmp_path), "best", images=1)


def test_averaged_weights_of_a_run_without_them_are_refused(tmp_path):
    flags = {**TINY, "ema_decay": 0.0, "iterations": 2, "validate_every": 2, "tensorboard": False}
    # Every label there is: the fully supervised baseline has no unlabelled images at all.
    flags |= {"method": "supervised", "labels": 0, "consistency_rampup": None}
    train.main(config_lib.Config(**flags, run_dir=str(tmp_path)))
    assert json.loads((tmp_path / "result.json").read_text())["labels"] > 1000
    with pytest.raises(config_lib.UserError, match="--weights=ema.*--ema_decay"):
        evaluate.main(str(tmp_path), "ema", images=1)
