"""Run folders of version 0.1.0 keep working: loaded, evaluated, exported and resumed."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from export import savedmodel
from rat_tf import data, evaluate, train
from rat_tf.training import run_folder, weights

GOLDEN = pathlib.Path(__file__).parent / "golden"
TOLERANCE = 1e-4  # CPUs round differently


@pytest.fixture
def folder(tmp_path):
    """Copies a golden run, as commands write into run folders."""
    return lambda name: shutil.copytree(GOLDEN / name, tmp_path / name)


@pytest.fixture
def logits():
    return {name: np.array(rows) for name, rows in json.loads(_read("logits.json")).items()}


def _read(name: str) -> str:
    return (GOLDEN / name).read_text()


def _images():
    return data.load(run_folder.Run(str(GOLDEN / "finished")).config()).test.images[:16]


@pytest.mark.parametrize("which", ["best", "ema"])
def test_weights_are_loaded_with_their_logits(which, logits):
    run = run_folder.Run(str(GOLDEN / "finished"))
    found = weights.load(run, which).logits(_images())
    np.testing.assert_allclose(found, logits[which], atol=TOLERANCE)


def test_the_finished_run_is_evaluated_with_its_error(folder, monkeypatch):
    monkeypatch.setattr(evaluate.training.evaluation, "MAX_EPSILON", {"noise": 3.0})
    report = evaluate.main(str(folder("finished")), "best", images=10)
    recorded = json.loads(_read("finished/result.json"))
    assert report["error"] == pytest.approx(recorded["test_error"], abs=1.5 / 360)


def test_the_finished_run_is_exported_with_its_logits(folder, logits, tmp_path):
    version = savedmodel.main(str(folder("finished")), str(tmp_path / "model"))
    served = tf.saved_model.load(version).signatures["serving_default"]
    found = served(images=tf.constant(_images()))["logits"]
    np.testing.assert_allclose(found, logits["best"], atol=TOLERANCE)


def test_the_stopped_run_resumes_to_the_curves_of_the_finished_one(folder):
    run = run_folder.Run(str(folder("stopped")))
    train.main(run.config())
    expected = run_folder.Run(str(GOLDEN / "finished")).rows()
    assert [row["step"] for row in run.rows()] == [5, 10, 15, 20]
    for found, wanted in zip(run.rows(), expected):
        assert set(found) == set(wanted)
        for name in ("loss", "cross_entropy", "entropy", "lambda", "epsilon_affine"):
            assert found[name] == pytest.approx(wanted[name], rel=5e-3), (found["step"], name)
    result, recorded = run.finished(), json.loads(_read("finished/result.json"))
    assert set(result) >= set(recorded)
    assert result["best_step"] == recorded["best_step"]
    assert result["test_error"] == pytest.approx(recorded["test_error"], abs=5.5 / 360)


# ---- between the stacks (docs/stacks.md): all of these run on both


MODERN = GOLDEN / "modern"


@pytest.fixture
def modern_logits():
    return json.loads((MODERN / "logits.json").read_text())


@pytest.mark.parametrize("which", ["best", "ema"])
def test_weights_of_the_modern_stack_are_loaded_with_their_logits(which, modern_logits):
    found = weights.load(run_folder.Run(str(MODERN / "run")), which).logits(_images())
    np.testing.assert_allclose(found, modern_logits[which], atol=TOLERANCE)


@pytest.mark.parametrize("tensorflow", ["2.15", "2.21"])
def test_an_export_of_either_stack_is_served_with_the_logits_of_its_run(tensorflow, modern_logits):
    served = tf.saved_model.load(str(MODERN / f"exported-{tensorflow}")).signatures
    found = served["serving_default"](images=tf.constant(_images()))["logits"]
    np.testing.assert_allclose(found, modern_logits["best"], atol=TOLERANCE)
    files = tf.stack([tf.io.encode_png(image) for image in _images()])
    found = served["serving_bytes"](image_bytes=files)["logits"]
    np.testing.assert_allclose(found, modern_logits["best"], atol=TOLERANCE)


def test_a_run_of_the_modern_stack_is_resumed(tmp_path):
    run = run_folder.Run(str(shutil.copytree(MODERN / "run", tmp_path / "run")))
    expected = run.rows()
    pathlib.Path(run.result).unlink()
    train.main(run.config())
    assert [row["step"] for row in run.rows()] == [5, 10, 15, 20]
    for name in ("loss", "cross_entropy", "entropy", "lambda", "epsilon_affine"):
        assert run.rows()[-1][name] == pytest.approx(expected[-1][name], rel=5e-3), name
