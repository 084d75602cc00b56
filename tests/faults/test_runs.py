"""Faults of run folders: whatever happens to one, the run goes on, or one message tells what to do.

`python -m benchmarks.faults` does the same at random moments and compares bit by bit.
"""

import os
import shutil
import signal
import threading
import time

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors, train
from rat_tf.config import cli
from rat_tf.experiments import execution, plan
from rat_tf.storage import files
from rat_tf.training import callbacks, checkpoints, loop, run_folder, signals, weights
from tests import processes, runs, test_train

TINY = runs.TINY
#: The method whose step is traced soonest.
SUPERVISED = {"method": "supervised", "consistency_rampup": None}


def config_of(folder, **changes):
    return config_lib.Config(**{**TINY, **changes}, run_dir=str(folder))


# ---- creation


@pytest.mark.parametrize(
    "names",
    [
        ["environment.json.0f.tmp"],
        ["lock", "environment.json", "data.json", "split.json.a1.tmp"],
        ["environment.json", "data.json", "split.json", "flags.cfg.b2.tmp", "worker-1"],
    ],
)
def test_a_folder_with_only_what_creation_writes_is_a_run_that_has_not_begun(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text('{"cut')
    run = run_folder.Run(str(tmp_path))
    config = config_of(tmp_path)
    run.check(config)
    with run.locked():
        run.create(config, run.load(config))
    assert run.config() == config and run.described()["counts"]["labeled"] == 20
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    "names", [["data.json"], ["lock", "thesis.tex"], ["environment.json", "x"]]
)
def test_other_folders_are_refused_still(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(errors.UserError, match="not empty and has no flags.cfg"):
        run_folder.Run(str(tmp_path)).check(config_of(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        names, "mine"
    )


# ---- checkpoints


def test_damaged_best_weights_are_replaced_by_the_last_ones(copy, capsys):
    (copy / "result.json").unlink()
    for path in copy.glob("best/error-*.data*"):
        path.write_bytes(path.read_bytes()[:100])
    for path in copy.glob("best/ema_error-*"):
        path.unlink()
    train.main(config_of(copy))
    err = capsys.readouterr().err
    assert err.count("testing the weights of step 24") == 2
    result, last = run_folder.Run(str(copy)).finished(), run_folder.Run(str(copy)).rows()[-1]
    for prefix in ("", "ema_"):
        assert result[f"{prefix}best_step"] == 24
        recorded = last[f"val_{prefix}error"]
        assert result[f"{prefix}best_validation_error"] == pytest.approx(recorded, abs=1e-6)
        assert result[f"{prefix}test_error"] == result[f"{prefix}last_test_error"]
    for which in ("best", "ema"):
        assert weights.load(run_folder.Run(str(copy)), which).step == 24
    assert capsys.readouterr().err.count("using the weights of step 24") == 2


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_checkpoints_are_found_without_tensorflows_list(copy, content):
    (copy / "checkpoints" / "checkpoint").unlink()
    if content is not None:
        (copy / "checkpoints" / "checkpoint").write_bytes(content)
    assert weights.load(run_folder.Run(str(copy)), "last").step == 24


def test_weights_of_another_shape_are_not_called_damaged(copy):
    (copy / "result.json").unlink()
    flags = (copy / "flags.cfg").read_text()
    (copy / "flags.cfg").write_text(flags.replace("--network=tiny", "--network=mlp-8"))
    for call in (
        lambda: train.main(config_of(copy, network="mlp-8")),
        lambda: weights.load(run_folder.Run(str(copy)), "best"),
        lambda: weights.load(run_folder.Run(str(copy)), "last"),
    ):
        with pytest.raises(errors.UserError, match="is intact, but does not fit the network"):
            call()


def test_the_next_start_removes_leftovers_and_nothing_else(copy):
    before = {path for path in copy.rglob("*") if path.is_file()}
    for name in ("checkpoints/step-28_temp", "best/error-24_temp"):
        (copy / name).mkdir()
        (copy / name / "part-00000-of-00001.data-00000-of-00001").touch()
    left = ("best/error-23.data-00000-of-00001", "checkpoints/checkpoint.tmp0f", "a.json.1c.tmp")
    for name in left:
        (copy / name).touch()
    (copy / "tensorboard-copy").mkdir()
    with run_folder.Run(str(copy)).locked():
        pass
    assert {path for path in copy.rglob("*") if path.is_file()} == before
    assert (copy / "tensorboard-copy").exists()


# ---- signals


def kill_once(monkeypatch, where, name, ready=lambda *_: True, number=signal.SIGTERM):
    """Sends this process a signal the first time that a function is called and `ready`."""
    before, sent = getattr(where, name), []

    def patched(*args, **kwargs):
        if not sent and ready(*args):
            sent.append(os.kill(os.getpid(), number))
        return before(*args, **kwargs)

    monkeypatch.setattr(where, name, patched)


def is_at(step):
    def ready(callback, *_):
        model = getattr(callback, "model", None) or callback._model
        return int(model.optimizer.iterations) == step

    return ready


def test_signals_in_a_step_validation_save_and_the_end_lose_nothing(tmp_path, monkeypatch, capsys):
    whole = config_of(tmp_path / "whole", **SUPERVISED)
    train.main(whole)
    config, seconds = config_of(tmp_path / "run", **SUPERVISED), [0.0]
    places = [
        (run_folder.Run, "load", lambda *_: True),
        (checkpoints.Checkpoints, "on_train_batch_end", is_at(10)),
        (callbacks.Examination, "on_epoch_end", is_at(16)),
        (checkpoints.Checkpoints, "save", is_at(20)),
        (loop, "evaluate", lambda *_: True),
    ]
    for where, name, ready in places:
        with monkeypatch.context() as patch:
            kill_once(patch, where, name, ready)
            with pytest.raises(SystemExit) as ended:
                train.main(config)
        assert ended.value.code == cli.STOPPED
        begun = name != "load"
        assert ("state saved" if begun else "nothing had begun") in capsys.readouterr().err
        if begun:
            (newest, *_) = weights.newest_first(str(tmp_path / "run" / "checkpoints"))
            seconds.append(float(tf.train.load_checkpoint(newest).get_tensor(checkpoints.SECONDS)))
    train.main(config)
    test_train.assert_same_run(config.run_dir, whole.run_dir)
    # Step 10 is in the middle of an interval: what it took is not in metrics.csv, but counts.
    rows = run_folder.Run(config.run_dir).rows()
    assert seconds == sorted(seconds) and rows[1]["seconds"] < seconds[1] < rows[2]["seconds"]


def test_a_signal_is_not_taken_for_a_damaged_checkpoint(copy, monkeypatch, capsys):
    (copy / "result.json").unlink()
    with monkeypatch.context() as patch:
        kill_once(patch, tf.train.Checkpoint, "read")
        with pytest.raises(SystemExit) as ended:
            train.main(config_of(copy))
    assert ended.value.code == cli.STOPPED
    err = capsys.readouterr().err
    assert "SIGTERM: state saved" in err and "cannot be read" not in err


def test_an_error_that_a_signal_was_turned_into_is_that_signal():
    with pytest.raises(signals.Interrupted, match="SIGTERM"), signals.raised():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException as error:  # as bindings of C++ do
            raise RuntimeError("in a callback") from error
    signals.check()  # forgotten with the run that it ended


def test_a_folder_that_is_removed_while_it_trains_is_named(tmp_path, monkeypatch):
    examined = callbacks.Examination.on_epoch_end

    def removing(self, epoch, logs=None):
        examined(self, epoch, logs)
        shutil.rmtree(tmp_path / "run")

    monkeypatch.setattr(callbacks.Examination, "on_epoch_end", removing)
    flags = {"iterations": 8, "checkpoint_every": 8, "tensorboard": False, **SUPERVISED}
    config = config_of(tmp_path / "run", **flags)
    with pytest.raises(errors.UserError, match="--run_dir: .*run was removed or renamed"):
        train.main(config)
    assert not (tmp_path / "run").exists()


TRAINER = """
import pathlib, signal, sys, time
folder = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:])["run_dir"]
def save(*_):
    pathlib.Path(folder + ".saved").touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
pathlib.Path(folder + ".waiting").touch()
time.sleep(60)
"""
SWEEP = """
from rat_tf.experiments import execution, plan
execution.TRAIN = ({trainer!r},)
planned = plan.plan(["configs/digits50.cfg"], {{"method": "rat"}}, {{"seed": ["0"]}}, {root!r})
execution.execute(planned[0])
"""


@pytest.mark.usefixtures("in_the_projects_folder")
def test_a_run_ends_with_the_sweep_that_was_killed(tmp_path):
    (tmp_path / "trainer.py").write_text(TRAINER)
    code = SWEEP.format(trainer=str(tmp_path / "trainer.py"), root=str(tmp_path))
    process = processes.Process(("-c", code))
    folder = tmp_path / "digits50"
    process.wait_for((folder / "rat-seed0.waiting").exists)
    process.kill()
    deadline = time.time() + 10
    while not (folder / "rat-seed0.saved").exists() and time.time() < deadline:
        time.sleep(0.01)
    assert (folder / "rat-seed0.saved").exists()


@pytest.mark.usefixtures("in_the_projects_folder")
def test_a_sweep_waits_for_a_run_that_is_still_saving(tmp_path, monkeypatch):
    (run,) = plan.plan(["configs/digits50.cfg"], {"method": "rat"}, {"seed": ["0"]}, str(tmp_path))
    os.makedirs(run.config.run_dir)
    monkeypatch.setattr(execution, "TRAIN", ("-c", ""))  # ends at once
    order, held = [], threading.Event()

    def hold():
        with files.locked(os.path.join(run.config.run_dir, "lock")):
            held.set()
            time.sleep(0.3)
            order.append("saved")

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    execution.execute(run)
    order.append("executed")
    thread.join()
    assert order == ["saved", "executed"]
