"""Sweeps: their states, what is refused, and what happens to runs that fail."""

import json
import os
import pathlib
import shlex
import signal
import sys

import pytest

from rat_tf import errors, sweep
from rat_tf.experiments import execution
from rat_tf.experiments import plan as plan_lib
from rat_tf.training import run_folder
from tests import processes, runs
from tests.experiments import run_folders

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")
DIGITS = "configs/digits50.cfg"

#: Stands in for training: seed 1 fails, seed 2 waits for SIGTERM, the others finish.
TRAINER = """
import json, os, signal, sys, time
flags = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:])
print("trained with", *sys.argv[1:])
print("step 500/1000  loss 0.5", flush=True)
if flags["seed"] == "1":
    sys.exit("error: --labels: too few\\nand more")
if flags["seed"] == "2":
    def save(*_):
        open(flags["run_dir"] + ".saved", "w").close()
        sys.exit(75)
    signal.signal(signal.SIGTERM, save)
    open(flags["run_dir"] + ".waiting", "w").close()
    time.sleep(60)
os.makedirs(flags["run_dir"])
result = {"test_error": 0.25, "best_validation_error": 0.2, "best_step": 9}
json.dump(result, open(os.path.join(flags["run_dir"], "result.json"), "w"))
open(os.path.join(flags["run_dir"], "flags.cfg"), "w").write(
    f"--flagfile={flags['flagfile']}\\n--seed={flags['seed']}\\n--method={flags['method']}\\n"
    "--split_seed=1\\n--learning_rate=0.003\\n--preprocessing=scale\\n"
    "--labeled_batch=50\\n--tensorboard=true\\n")
"""


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    path = tmp_path / "trainer.py"
    path.write_text(TRAINER)
    monkeypatch.setattr(execution, "TRAIN", (str(path),))
    return path


def plan(root="runs", given=None, vary=(), seeds="", split_per_seed=False, flagfiles=(DIGITS,)):
    return plan_lib.plan(
        flagfiles, given or {}, plan_lib.axes(vary, seeds), str(root), split_per_seed
    )


def write(run: plan_lib.Planned, result=None, step=None):
    """The files of a run that got so far."""
    folder = run_folder.Run(run.config.run_dir)
    os.makedirs(folder.folder)
    pathlib.Path(folder.flags).write_text(run.config.flagfile())
    if step:
        pathlib.Path(folder.metrics).write_text(f"step,seconds,loss\n{step},1,0.5\n")
    if result:
        pathlib.Path(folder.result).write_text(result)


def test_states(tmp_path, capsys):
    planned = plan(tmp_path, seeds="3")
    write(planned[0], run_folders.result(0.031))
    write(planned[1], step=400)
    assert sweep.main(planned, run=False, print_commands=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("finished ") and "3.10%" in lines[0] and "--seed=0" in lines[0]
    assert lines[1].startswith("partial ") and "step 400 of 1,000" in lines[1]
    assert lines[2].startswith("new ")
    assert "1 finished, 1 partial, 1 new" in lines[3]
    assert sweep.main(planned, run=False, print_commands=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2  # what is finished need not be done
    assert shlex.split(lines[0]) == ["python", "-m", "rat_tf.train", *planned[1].arguments()]


def test_a_folder_of_another_run_or_a_broken_result_is_refused_before_any_run(tmp_path, trainer):
    write(plan(tmp_path, given={"iterations": "100"})[0])
    write(plan(tmp_path, vary=["seed=1"])[0], result='{"test_err')
    with pytest.raises(errors.UserError) as error:
        sweep.main(plan(tmp_path, vary=["seed=0|1|3"]), run=True, print_commands=False)
    assert "expected --iterations=100" in str(error.value) and "result.json: not valid JSON" in str(
        error.value
    )
    assert "2 of 3 runs" in str(error.value)
    assert not os.path.exists(plan(tmp_path, vary=["seed=3"])[0].config.run_dir)


def test_a_run_that_fails_does_not_stop_the_rest(tmp_path, trainer, capfd):
    planned = plan(tmp_path / "runs", vary=["method=rat; seed=0|1|3"])
    assert sweep.main(planned, run=True, print_commands=False) == 1
    out, err = capfd.readouterr()
    assert "[3/3]" in out and "test error 25.00%" in out
    assert out.count("  step 500/1000  loss 0.5\n") == 3 and "trained with" not in out
    (line,) = err.splitlines()
    assert "rat-seed1" in line and "exit status 1: error: --labels: too few" in line
    log = pathlib.Path(planned[1].config.run_dir + ".log")
    assert "--seed=1" in log.read_text() and str(log) in line
    trainer.write_text(TRAINER.replace('"1"', '"none"'))
    assert sweep.main(planned, run=True, print_commands=False) == 0
    assert "[1/1]" in capfd.readouterr().out  # the other two were finished


def test_in_a_terminal_the_step_line_of_a_run_is_shown_in_one_place(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    log = tmp_path / "run.log"
    log.write_text("of an earlier start\n")
    relay = execution._Relay(str(log), log.stat().st_size)
    for text in ("reading\nstep 1/3 a\nstep 2/3 longer\nst", "ep 3/3 c\nhalf a li"):
        with log.open("a") as file:
            file.write(text)
        relay.show()
    relay.end()
    # Only whole lines, the last of them, each blanking what the one before has left.
    first, second, blank, end = capsys.readouterr().out.split("\r")[1:]
    assert first == "  step 2/3 longer" and second == "  step 3/3 c".ljust(len(first))
    assert blank.strip() == end == ""


def test_a_missing_data_set_is_named_before_the_first_run(tmp_path, trainer):
    given = {"dataset": "folder:nowhere", "method": "rat"}
    planned = plan(tmp_path / "runs", given, ["seed=0"], flagfiles=())
    with pytest.raises(errors.UserError, match="nowhere"):
        sweep.main(planned, run=True, print_commands=False)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ("split_file={good}|{good}.missing", "--split_file: .*missing"),
        ("svhn_extra=false|true", "--svhn_extra: expected --dataset=svhn"),
        ("image_size=16|2", "--augment_shift: expected less than the 2 pixels"),
        ("augment_shift=2|16", "--augment_shift: .*got 16"),
        ("preprocessing=gcn_zca; image_size=16|128; channels=1|3", "gcn_zca"),
    ],
)
def test_every_flag_of_the_data_is_checked_before_the_first_run(tmp_path, trainer, vary, words):
    """The first of the values is right."""
    split = {"hash": "", "validation": [], "labeled": list(range(50)), "unlabeled": []}
    (tmp_path / "split.json").write_text(json.dumps(split))
    planned = plan(tmp_path / "runs", vary=[vary.format(good=tmp_path / "split.json")])
    execution.check_data(planned[:1])
    with pytest.raises(errors.UserError, match=words):
        sweep.main(planned, run=True, print_commands=False)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_lets_the_run_save_itself(tmp_path, trainer, number):
    code = (
        # In the background a shell lets SIGINT be ignored, and the tests may run there.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from rat_tf import sweep\n"
        "from rat_tf.experiments import execution, plan\n"
        f"execution.TRAIN = ({str(trainer)!r},)\n"
        f"planned = plan.plan([{DIGITS!r}], {{'method': 'rat'}}, {{'seed': ['2', '3']}}, "
        f"{str(tmp_path / 'runs')!r})\n"
        "raise SystemExit(sweep.main(planned, run=True, print_commands=False))"
    )
    process = processes.Process(("-c", code))
    folder = tmp_path / "runs" / "digits50"
    process.wait_for((folder / "rat-seed2.waiting").exists)
    process.send_signal(number)
    status, _, err = process.finish()
    assert status == 75 and "resumes the sweep" in err
    assert (folder / "rat-seed2.saved").exists() and not (folder / "rat-seed3").exists()


def test_from_the_command_line_to_real_results(tmp_path, capsys):
    """Of two runs one is finished; the other is trained, in a process, and then it is, too."""
    given = {"iterations": "2", "validate_every": "2", "image_size": "8", "network": "tiny"}
    given |= {"labeled_batch": "10", "unlabeled_batch": "10", "tensorboard": "false", "xi": "1e-3"}
    given |= {"transforms": "noise:0.5", "adversary": "gradient"}
    command = [
        *("rat_tf.sweep", f"--flagfile={DIGITS}", f"--runs={tmp_path}"),
        *("--vary=method=supervised|vat", "--run"),
        *(f"--{name}={value}" for name, value in given.items()),
    ]
    planned = plan(tmp_path, given, ["method=supervised|vat"])
    write(planned[0], run_folders.result(0.031))
    status, out, err = runs.command(*command)
    assert (status, err) == (0, "")
    assert "2 runs: 1 finished, 0 partial, 1 new" in out
    assert sweep.main(planned, run=False, print_commands=False) == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 finished" in out and "nothing was trained" in out
    config = run_folder.Run(str(tmp_path / "digits50" / "vat-seed0")).config()
    assert (config.method, str(config.xi), config.tensorboard) == ("vat", "0.001", False)
