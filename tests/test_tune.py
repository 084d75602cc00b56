"""The command: a search survives any end, tells mistakes before any work, and what it leaves."""

import contextlib
import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from rat_tf import config as config_lib
from rat_tf import errors, train, tune
from rat_tf.config import cli, flag_values
from rat_tf.training import loop, run_folder
from rat_tf.tuning import search_settings, trial_runner
from tests import processes
from tests.tuning import searches


def arguments(output, *more, **changes):
    flags = {**searches.TINY, "output": str(output), **changes}
    return [*(f"--{k}={v}" for k, v in flags.items()), *more]


def call(*line):
    """The command in this process, from its arguments to its exit status."""
    return tune.main(cli.parse(line, search_settings.Settings, training=True))


SEARCH = {
    "method": "supervised",
    "search": "learning_rate=0.001|0.1",
    "tensorboard": "false",
    "iterations": 12,
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search of two trials that was killed in the second and started again."""
    output = tmp_path_factory.mktemp("search") / "out"
    process = processes.Process(("-m", "rat_tf.tune"), *arguments(output, **SEARCH))
    second = run_folder.Run(str(output / "trials" / "0001"))
    process.wait_for(lambda: len(second.rows()) >= 2)
    process.kill()
    killed = process.finish()
    before = (output / "trials" / "0000" / "trial.json").stat().st_mtime_ns
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert call(*arguments(output, **SEARCH)) == 0
    return output, killed, out.getvalue(), before


def test_no_trial_is_repeated_after_kill_9(searched):
    output, (killed, first, _), second, before = searched
    assert killed == -signal.SIGKILL
    assert (first.count("trial 0000: learning"), second.count("trial 0000:")) == (1, 0)
    assert "resuming from step" in second.partition("trial 0001: learning")[2]
    assert (output / "trials" / "0000" / "trial.json").stat().st_mtime_ns == before
    for i in range(2):
        rows = run_folder.Run(str(output / "trials" / f"000{i}")).rows()
        assert [row["step"] for row in rows] == [2, 4, 6, 8, 10, 12]


def test_results_are_ranked(searched):
    output, _, out, _ = searched
    with open(output / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = {}
    for i in range(2):
        run = run_folder.Run(str(output / "trials" / f"000{i}"))
        errors[f"000{i}"] = min(row["val_error"] for row in run.rows())
        assert not os.path.exists(run.result)  # nothing was tested
    expected = sorted(errors, key=lambda trial: (errors[trial], trial))
    assert [row["trial"] for row in rows] == expected
    assert [float(row["validation_error"]) for row in rows] == pytest.approx(
        sorted(errors.values())
    )
    assert {row["learning_rate"] for row in rows} == {"0.001", "0.1"}
    assert f"{errors[expected[0]]:.2%}" in out and "validation error" in out
    assert (output / "trials.png").read_bytes().startswith(b"\x89PNG")


def test_best_cfg_is_a_flagfile_of_train(searched, tmp_path):
    output, _, _, _ = searched
    text = (output / "best.cfg").read_text()
    with open(output / "trials.csv", newline="") as file:
        best = next(csv.DictReader(file))
    assert text.startswith(f"# Trial {best['trial']}, the best of 2")
    assert f"validation error {float(best['validation_error']):.2%}" in text
    config = flag_values.config_of_file(str(output / "best.cfg"), run_dir=str(tmp_path / "run"))
    assert config.learning_rate == float(best["learning_rate"])
    given = config_lib.Config(**{**searches.TINY, "method": "supervised", "iterations": 12})
    (difference,) = config.differences(given)
    assert "--learning_rate" in difference
    train.main(config)
    found = run_folder.Run(config.run_dir).finished()
    assert found["best_validation_error"] == pytest.approx(
        float(best["validation_error"]), abs=1e-5
    )


def test_other_flags_in_the_same_folder_are_refused(searched):
    with pytest.raises(errors.UserError, match="expected --seed=0, got --seed=1"):
        call(*arguments(searched[0], "--seed=1", **SEARCH))


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--tuner=grids"], "--tuner.*did you mean 'grid'"),
        (["--method=supervised"], "the paper has a grid for.*learning_rate"),
        (["--tuner=hyperband", "--search=iterations=6|12"], "by --tuner=hyperband"),
        (["--run_dir=x"], "--run_dir"),
    ],
)
def test_wrong_settings_are_told_before_any_work(flags, message, tmp_path):
    with pytest.raises(errors.UserError, match=message):
        call(*arguments(tmp_path / "out", *flags))
    assert not os.path.exists(tmp_path / "out")


def test_flags_are_checked_before_tensorflow_and_kerastuner_are_imported():
    code = (
        "import sys; from rat_tf import errors, tune, tuning; from rat_tf.config import cli\n"
        "try:\n"
        "    parsed = cli.parse(sys.argv[1:], tuning.search_settings.Settings, training=True)\n"
        "    tune.main(parsed)\n"
        "except errors.UserError as error:\n"
        "    print(error, {'tensorflow', 'keras_tuner', 'grpc', 'sklearn'} & set(sys.modules))"
    )
    line = [sys.executable, "-c", code, "--search=epsilon.afine=0.1:1:0.1"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("did you mean 'affine'? set()\n"), done.stdout


def test_a_folder_of_something_else_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(errors.UserError, match="--output.*search.json"):
        call(*arguments(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_sigterm_leaves_a_search_that_goes_on(tmp_path, monkeypatch, capsys):
    calls = []
    fit = searches.fake_fit(lambda config, step: 0.25, calls)

    def signalled(*args, **kwargs):
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        fit(*args, **kwargs)

    monkeypatch.setattr(loop, "fit", signalled)
    same = arguments(tmp_path / "out")
    assert call(*same) == cli.STOPPED
    assert "interrupted; the same command" in capsys.readouterr().err
    monkeypatch.setattr(loop, "fit", fit)
    call(*same)
    out = capsys.readouterr().out
    assert "resuming after 2 trials" in out and "results in" in out
    assert len(calls) == 10 and len({str(c.transforms) for c, _ in calls}) == 10
    # More of a grid than there is changes nothing; the table is shown again.
    call(*same, "--max_trials=20")
    assert len(calls) == 10 and "results in" in capsys.readouterr().out


# ---- several machines

MACHINE = """
from rat_tf import tune
from rat_tf.config import cli
from rat_tf.tuning import oracles, search_settings, trial_runner
from tests.tuning import searches
oracles.HEARTBEAT, oracles.TIMEOUT = 0.3, 2.0
trial_runner.Runner._train = searches.fake_train
cli.command(tune.main, search_settings.Settings, training=True)
"""


def test_a_chief_and_two_workers_of_which_one_dies(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))

    def machine(name):
        script, env = ("-c", MACHINE), {"KERASTUNER_TUNER_ID": name}
        return processes.Process(script, *arguments(tmp_path / "out"), env=env)

    chief, doomed = machine("chief"), machine("doomed")
    folder = tmp_path / "out" / "trials"
    doomed.wait_for(lambda: list(folder.glob("*/hangs")))
    doomed.kill()
    doomed.finish()
    # The other worker is this process.
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker")
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setattr(trial_runner.Runner, "_train", searches.fake_train)
    monkeypatch.setattr(trial_runner, "POLL", 0.05)
    assert call(*arguments(tmp_path / "out")) == 0
    status, out, err = chief.finish()
    assert status == 0 and "Traceback" not in err, err
    assert f"127.0.0.1:{port} (no authentication)" in out
    assert "no heartbeat from doomed" in out and "results in" in out
    by = {path.parent.name: path.read_text() for path in folder.glob("*/by")}
    (lost,) = [path.parent.name for path in folder.glob("*/hangs")]
    assert len(by) == 10 and by[lost] == "worker" and "doomed" in by.values()
    epsilons = [
        json.loads(p.read_text())["values"]["epsilon.affine"] for p in folder.glob("*/trial.json")
    ]
    assert sorted(epsilons) == [round(0.1 * i, 1) for i in range(1, 11)]
    assert "affine:0.4" in (tmp_path / "out" / "best.cfg").read_text()
