"""The training command end to end: results, resuming after every kind of interruption, devices.

Runs are processes of their own where a process is what is tested; the others share this one.
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data, errors, train
from rat_tf.config import cli
from rat_tf.training import run_folder
from tests import runs
from tests.data import make

TINY = runs.TINY


@pytest.fixture
def whole(finished_run):
    """A run that nothing interrupts."""
    return finished_run


def result(run_dir):
    with open(os.path.join(run_dir, "result.json")) as file:
        found = json.load(file)
    return {k: v for k, v in found.items() if k not in ("seconds", "images_per_second")}


def last_state(run_dir):
    """Every tensor of the last checkpoint: weights, optimiser, averages, metrics, best so far."""
    reader = tf.train.load_checkpoint(os.path.join(run_dir, "checkpoints"))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if not name.startswith(("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter", "seconds"))
    }


def events(run_dir):
    """(step, tag) of every scalar in the TensorBoard logs."""
    found = []
    folder = os.path.join(run_dir, "tensorboard")
    for name in sorted(os.listdir(folder)):
        for record in tf.data.TFRecordDataset(os.path.join(folder, name)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            found += [(event.step, value.tag) for value in event.summary.value]
    return sorted(found)


def assert_same_run(run_dir, whole):
    """The curves, the result and the last state are the same bit for bit."""
    assert runs.rows(run_dir) == runs.rows(whole)
    assert result(run_dir) == result(whole)
    assert events(run_dir) == events(whole)
    mine, reference = last_state(run_dir), last_state(whole)
    assert mine.keys() == reference.keys()
    for name, value in reference.items():
        np.testing.assert_array_equal(mine[name], value, err_msg=name)


def test_results_say_what_was_done(whole):
    found = result(whole)
    expected = {"method": "rat", "dataset": "digits", "labels": 20, "seed": 0, "split_seed": 1}
    assert expected.items() <= found.items() and found["iterations"] == 24
    validated = [row for row in runs.rows(whole) if row["val_error"]]
    assert [row["step"] for row in runs.rows(whole)] == ["4", "8", "12", "16", "20", "24"]
    assert [row["step"] for row in validated] == ["8", "16", "24"]
    # The best step is the first of the lowest validation errors, of each set of weights its own.
    for prefix in ("", "ema_"):
        errors = [float(row[f"val_{prefix}error"]) for row in validated]
        assert found[f"{prefix}best_validation_error"] == pytest.approx(min(errors), abs=1e-7)
        assert found[f"{prefix}best_step"] == 8 * (1 + int(np.argmin(errors)))
        assert 0 <= found[f"{prefix}test_error"] <= 1
    for name in ("flags.cfg", "environment.json", "split.json", "data.json"):
        assert (whole / name).stat().st_size > 0
    assert (whole / "summary.png").read_bytes().startswith(b"\x89PNG")
    assert (8, "adversarial_kl") in events(whole) and (24, "loss") in events(whole)
    environment = json.loads((whole / "environment.json").read_text())
    assert environment["packages"]["tensorflow"] == tf.__version__


def test_a_finished_run_is_left_alone_and_other_flags_are_refused(whole, capsys):
    before = {name: (whole / name).stat().st_mtime_ns for name in os.listdir(whole)}
    train.main(config_lib.Config(**TINY, run_dir=str(whole)))
    assert "finished" in capsys.readouterr().out
    with pytest.raises(errors.UserError, match="expected --seed=0, got --seed=1"):
        train.main(config_lib.Config(**TINY, seed=1, run_dir=str(whole)))
    assert before == {name: (whole / name).stat().st_mtime_ns for name in os.listdir(whole)}


def test_a_machine_without_git_trains_all_the_same(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert run_folder._environment()["git_commit"] is None


def test_a_folder_of_something_else_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(errors.UserError, match="--run_dir.*flags.cfg"):
        train.main(config_lib.Config(**TINY, run_dir=str(tmp_path)))
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_run_goes_on_with_its_own_images_or_not_at_all(tmp_path):
    make.folder(tmp_path / "set")
    flags = {**TINY, "dataset": f"folder:{tmp_path}/set", "labels": 4, "image_size": 8}
    given = str(tmp_path / "given.json")
    first = data.load(config_lib.Config(**flags, split_seed=7))
    first.split.save(given)
    config = config_lib.Config(**flags, split_file=given, run_dir=str(tmp_path / "run"))
    run = run_folder.Run(config.run_dir)
    run.create(config, run.load(config))
    os.remove(given)  # no longer needed: the run has its own copy
    run.check(config)
    assert run.load(config).split.digest == first.split.digest
    make.png(str(tmp_path / "set/unlabeled/deep/0.png"), make.pixels(1, seed=77)[0])
    with pytest.raises(errors.UserError, match="--dataset=folder.*training images.* have changed"):
        train.main(config)


def test_interrupted_and_started_again_is_as_if_never_interrupted(whole, tmp_path, capsys):
    """Killed, a run has its last checkpoint; terminated, it saves in the middle of an interval."""
    status, _, err = runs.start(tmp_path, signal.SIGKILL).finish()
    assert status == -signal.SIGKILL and "state saved" not in err and "Traceback" not in err, err
    status, out, err = runs.start(tmp_path, signal.SIGTERM).finish()
    assert status == cli.STOPPED and "resuming from step 8\n" in out, err
    assert "SIGTERM: state saved" in err and "Traceback" not in err
    assert not os.path.exists(tmp_path / "result.json")
    train.main(config_lib.Config(**TINY, run_dir=str(tmp_path)))
    assert "resuming from step 10\n" in capsys.readouterr().out
    assert_same_run(tmp_path, whole)


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(whole, tmp_path, capsys):
    """The run as a crash at its very end would leave it, and then a bad disk."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / "result.json").unlink()
    data = tmp_path / "checkpoints" / "step-24.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    (tmp_path / "checkpoints" / "checkpoint").write_bytes(b"")  # TensorFlow's own list of them
    train.main(config_lib.Config(**TINY, run_dir=str(tmp_path)))
    out, err = capsys.readouterr()
    assert "step-24 cannot be read" in err and "resuming from step 20\n" in out
    assert_same_run(tmp_path, whole)


def test_the_command_and_flags_cfg_reproduce_the_run(whole, tmp_path):
    """In a process of its own, which prints nothing of its libraries.

    The ramp and the decay of the run are longer than its beginning.
    """
    again = [f"--flagfile={whole}/flags.cfg", f"--run_dir={tmp_path}", "--iterations=8"]
    command = [sys.executable, "-m", "rat_tf.train", *again]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ramp, decay = done.stderr.splitlines()
    assert ramp.startswith("warning: --consistency_rampup=10 is beyond the end of the run")
    assert decay.startswith("warning: --decay_at=16 is beyond")
    assert "step 8/8" in done.stdout and "test error" in done.stdout
    assert runs.rows(tmp_path) == runs.rows(whole)[:2]


def _losses(run_dir, columns=("loss", "cross_entropy", "entropy")):
    """Not the KL: at the kinks of bilinear sampling rounding turns the search."""
    return np.array([[float(row[name]) for name in columns] for row in runs.rows(run_dir)])


def _short(tmp_path, **changes):
    config = {**TINY, "ema_decay": 0.0, "iterations": 4, "validate_every": 4, "tensorboard": False}
    config |= {"checkpoint_every": 2}
    # At the kink of bilinear sampling the last bit decides a gradient: a larger ξ is off it.
    config |= {"xi": "0.1eps", "sampler": "gather", "sync_batch_norm": True}
    config |= {"augment_granularity": "image", "augment_noise": 0.1}
    config = config_lib.Config(**{**config, **changes}, run_dir=str(tmp_path))
    train.main(config)
    return _losses(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What other ways to compute the same are compared with."""
    return _short(tmp_path_factory.mktemp("plain") / "run")


def test_two_replicas_give_the_curves_of_one(tmp_path, plain):
    np.testing.assert_allclose(_short(tmp_path, logical_devices=2), plain, rtol=5e-3)


def test_xla_gives_the_same_curves(tmp_path, plain):
    np.testing.assert_allclose(_short(tmp_path, jit_compile=True), plain, rtol=5e-3)


def test_several_steps_per_execution_change_nothing(tmp_path, plain):
    np.testing.assert_array_equal(_short(tmp_path, steps_per_execution=2), plain)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_mixed_precision_trains(tmp_path, plain, precision):
    try:
        mixed = _short(tmp_path, mixed_precision=precision)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    np.testing.assert_allclose(mixed, plain, rtol=0.1)
    assert np.any(mixed != plain)
    assert float(runs.rows(tmp_path)[0]["fallback"]) < 0.2


def test_a_batch_that_does_not_divide_by_the_replicas_is_refused(tmp_path):
    with pytest.raises(errors.UserError, match="--labeled_batch.*2 replicas, got 9"):
        _short(tmp_path, labeled_batch=9, logical_devices=2)
    assert os.listdir(tmp_path) == []


def test_a_diverged_run_stops_and_says_what_to_try(tmp_path):
    with pytest.raises(errors.UserError, match="diverged.*--learning_rate"):
        _short(tmp_path, learning_rate=9e18)
    assert tf.train.latest_checkpoint(tmp_path / "checkpoints") is None


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    run = run_folder.Run(str(tmp_path))
    with run.locked():
        with pytest.raises(errors.UserError, match="another process is training in"):
            with run_folder.Run(str(tmp_path)).locked():
                pass
    with run.locked():  # free again
        pass
