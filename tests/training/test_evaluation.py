"""Measures of a classifier against their formulas."""

import numpy as np
import pytest

from rat_tf.training import evaluation


def _predictions(seed=0, size=200, classes=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=size)
    logits = rng.normal(size=(size, classes)) + 2.0 * np.eye(classes)[labels]
    return logits.astype(np.float32), labels


def test_error_and_wilson_interval():
    logits, labels = _predictions()
    report = evaluation.describe(logits, labels)
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
    assert evaluation.describe(logits, labels)["calibration_error"] == pytest.approx(expected)


def test_a_network_that_is_always_sure_and_right_is_calibrated():
    labels = np.arange(10) % 3
    report = evaluation.describe(100.0 * np.eye(3)[labels], labels)
    assert (report["error"], report["calibration_error"]) == (0, 0)
    assert report["log_loss"] == pytest.approx(0, abs=1e-9)


def test_per_class_errors_add_up_to_the_error():
    logits, labels = _predictions(seed=2)
    table = evaluation.per_class(logits, labels, "abcd")
    wrong = sum(row["images"] * row["error"] for row in table)
    assert wrong / len(labels) == pytest.approx(np.mean(logits.argmax(1) != labels))
