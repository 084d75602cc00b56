"""export.savedmodel: what is written, that it answers as the run does, and how it fails."""

import fcntl
import os
import pathlib
import resource
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from export import classifier, protocol, savedmodel, warmup
from rat_tf import config as config_lib
from rat_tf import data, errors, train
from rat_tf.training import build, checkpoints, run_folder
from tests import processes, runs

SHORT = {**runs.TINY, "iterations": 4, "validate_every": 4, "tensorboard": False}


def contents(folder):
    """Every file below a folder with its bytes."""
    files = (path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


def answers(version_dir, images, signature="serving_default"):
    found = tf.saved_model.load(str(version_dir)).signatures[signature](tf.constant(images))
    return {name: value.numpy() for name, value in found.items()}


@pytest.fixture(scope="module")
def trained(finished_run):
    """The model that trained, its checkpoints and images."""
    run = run_folder.Run(str(finished_run))
    config = run.config()
    images = data.load(config)
    model = build.build(config, images)
    return run, model, checkpoints.Checkpoints(model, run, config.interval), images


@pytest.mark.parametrize("weights", config_lib.WEIGHTS)
def test_answers_are_those_of_the_run(run_dir, tmp_path, weights, trained):
    """Against the model that trained, restored with its optimiser and all as a resumed run does."""
    version_dir = savedmodel.main(str(run_dir), str(tmp_path / "m"), weights)
    run, model, checkpoint, images = trained
    config = run.config()
    checkpoint.restore()
    monitor = config.monitor(weights)
    if weights != "last":
        checkpoint.restore_best(monitor)
    network = model.candidates[monitor]
    logits = network(model.preprocessing(images.test.images), training=False).numpy()
    found = answers(version_dir, images.test.images)
    np.testing.assert_allclose(found["logits"], logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"].sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(found["classes"], logits.argmax(1))
    names = np.array(images.class_names)[logits.argmax(1)]
    np.testing.assert_array_equal(found["labels"].astype(str), names)
    error = np.mean(found["classes"] != images.test.labels)
    recorded = {
        "best": "test_error",
        "last": "last_test_error",
        "student": "student_test_error",
        "ema": "ema_test_error",
        "teacher": "ema_test_error",
    }
    assert error == pytest.approx(run.finished()[recorded[weights]], abs=1e-6)


def test_a_mean_teacher_is_exported_as_what_it_is_judged_by(tmp_path):
    """The teacher by default, with its own test error on the card."""
    config = config_lib.Config(**SHORT, method="mean_teacher", run_dir=str(tmp_path / "run"))
    train.main(config)
    found = run_folder.Run(config.run_dir).finished()
    assert found["test_error"] == found["ema_test_error"]
    logits = {}
    images = data.load(config).test.images[:20]
    for weights in ("best", "teacher", "student"):
        version_dir = savedmodel.main(config.run_dir, str(tmp_path / weights), weights)
        logits[weights] = answers(version_dir, images)["logits"]
    np.testing.assert_array_equal(logits["best"], logits["teacher"])
    assert np.abs(logits["best"] - logits["student"]).max() > 1e-4


def test_zca_is_a_variable_and_needs_no_data(tmp_path, monkeypatch, capsys):
    changes = {"preprocessing": "gcn_zca", "cache_dir": str(tmp_path / "cache")}
    changes |= {"method": "supervised", "consistency_rampup": None}
    config = config_lib.Config(**{**SHORT, **changes}, run_dir=str(tmp_path / "run"))
    train.main(config)
    images = data.load(config)
    expected = build.build(config, images).preprocessing(images.test.images[:5]).numpy()

    def unavailable(*_):
        raise errors.UserError("--data_dir: not there")

    monkeypatch.setattr(data, "held_out", unavailable)
    shutil.rmtree(tmp_path / "cache")
    version_dir = savedmodel.main(config.run_dir, str(tmp_path / "m"))
    assert "64 images of noise" in capsys.readouterr().out
    loaded = tf.saved_model.load(version_dir)
    mean, matrix = (variable.numpy() for variable in loaded.weights[:2])
    assert matrix.shape == (64, 64)
    flat = images.test.images[:5].reshape(5, -1).astype(np.float64)
    flat -= flat.mean(1, keepdims=True)
    flat *= 55 / np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose((flat - mean) @ matrix, expected.reshape(5, -1), atol=1e-3)


def test_assets_and_warm_up(model_dir, run_dir):
    version = model_dir / "1"
    assert sorted(os.listdir(model_dir)) == ["1"]
    assert (version / "assets/class_names.txt").read_text() == "".join(f"{i}\n" for i in range(10))
    assert (version / "assets/flags.cfg").read_text() == (run_dir / "flags.cfg").read_text()
    card = (version / "assets/model_card.md").read_text()
    result = run_folder.Run(str(run_dir)).finished()
    for text in ("20 labeled", result["split_hash"], "noise:1,affine:0.6", "95 % interval", "rat"):
        assert text in card
    assert f"{result['test_error']:.2%}" in card
    requests = list(warmup.read(str(version)))
    found = [
        (request.model_spec.signature_name, tf.make_ndarray(value).shape[0])
        for request in requests
        for value in request.inputs.values()
    ]
    both = ("serving_default", "serving_bytes")
    assert found == [(signature, size) for size in protocol.BATCH_SIZES for signature in both]
    signatures = tf.saved_model.load(str(version)).signatures
    assert warmup.replay(signatures, str(version)) == len(found)


def test_versions_count_on_and_none_is_overwritten(run_dir, tmp_path):
    for name in ("3", "serving", "old-7"):
        (tmp_path / name).mkdir()
    assert savedmodel.main(str(run_dir), str(tmp_path)) == str(tmp_path / "4")
    assert savedmodel.main(str(run_dir), str(tmp_path), version=11) == str(tmp_path / "11")
    before = contents(tmp_path)
    with pytest.raises(errors.UserError, match="--version: .*/4 exists"):
        savedmodel.main(str(run_dir), str(tmp_path), version=4)
    with pytest.raises(errors.UserError, match="--output: .*/4 is one of its versions"):
        savedmodel.main(str(run_dir), str(tmp_path / "4"))
    assert contents(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == ["11", "3", "4", "old-7", "serving"]


#: An export that sends itself a signal when the model is half written.
STOPPED = """
import os, runpy
from export import warmup
warmup.write = lambda *args: os.kill(os.getpid(), {number})
runpy.run_module("export.savedmodel", run_name="__main__")
"""


def test_a_stopped_export_leaves_nothing_behind(run_dir, tmp_path):
    """Killed, it cannot clean up, and the next export does; then that one is terminated."""
    flags = f"--run_dir={run_dir}", f"--output={tmp_path}"

    def stopped(number):
        return processes.Process(("-c", STOPPED.format(number=int(number))), *flags).finish()

    status, _, err = stopped(signal.SIGKILL)
    assert status == -signal.SIGKILL, err
    (leftover,) = os.listdir(tmp_path)
    assert leftover.startswith(".export-1-")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".export-2").symlink_to(tmp_path / "elsewhere")  # removed, not followed
    status, _, err = stopped(signal.SIGTERM)
    assert status == 143, err
    assert os.listdir(tmp_path) == ["elsewhere"]
    assert "nothing was exported" in err and "Traceback" not in err


def test_a_full_disk_is_told_and_damages_nothing(run_dir, model_dir, tmp_path):
    """A limit on the size of files, which the graph exceeds, stands for the disk."""
    shutil.copytree(model_dir, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    try:
        with pytest.raises(errors.UserError, match="--output: .*/2 cannot be written: .*large"):
            savedmodel.main(str(run_dir), str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(tmp_path) == before and os.listdir(tmp_path) == ["1"]


def test_a_model_that_answers_otherwise_is_not_exported(run_dir, tmp_path, monkeypatch):
    classify = classifier.Classifier.classify

    def wrong(self, images):
        found = classify(self, images)
        return {**found, "logits": found["logits"] + 1e-2}

    monkeypatch.setattr(classifier.Classifier, "classify", wrong)
    with pytest.raises(errors.UserError, match="differs from the run by 1.0e-02"):
        savedmodel.main(str(run_dir), str(tmp_path / "m"))
    assert os.listdir(tmp_path) == []


def test_two_exports_at_once_do_not_meet(run_dir, tmp_path):
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with pytest.raises(errors.UserError, match="another export"):
            savedmodel.main(str(run_dir), str(tmp_path))
    finally:
        os.close(other)


def test_runs_that_cannot_be_exported(run_dir, tmp_path):
    with pytest.raises(errors.UserError, match="--run_dir.*flags.cfg"):
        savedmodel.main(str(tmp_path / "nothing"), str(tmp_path / "m"))
    started = tmp_path / "started"
    shutil.copytree(run_dir, started, ignore=shutil.ignore_patterns("checkpoints", "best"))
    with pytest.raises(errors.UserError, match="no validated checkpoint"):
        savedmodel.main(str(started), str(tmp_path / "m"))
    damaged = tmp_path / "damaged"
    shutil.copytree(run_dir, damaged)
    for weights in [*damaged.glob("best/*.data*"), *damaged.glob("checkpoints/*.data*")]:
        weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(errors.UserError, match="no checkpoint of .*damaged can be read"):
        savedmodel.main(str(damaged), str(tmp_path / "m"))
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(errors.UserError, match="--output: cannot write to"):
        savedmodel.main(str(run_dir), str(file))
    assert not (tmp_path / "m").exists() and file.read_text() == "mine"
