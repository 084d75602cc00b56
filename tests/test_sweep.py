"""Sweeps: the runs that a line asks for, what is refused, and what happens to runs that fail."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import pytest

from rat_tf import errors, sweep
from rat_tf.config import flag_values
from rat_tf.experiments import execution, paper
from rat_tf.experiments import plan as plan_lib
from rat_tf.training import run_folder

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")
DIGITS = "configs/digits50.cfg"

#: Stands in for training: seed 1 fails, seed 2 waits for SIGTERM, the others finish.
TRAINER = """
import json, os, signal, sys, time
flags = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:])
print("trained with", *sys.argv[1:])
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
json.dump({"test_error": 0.25}, open(os.path.join(flags["run_dir"], "result.json"), "w"))
open(os.path.join(flags["run_dir"], "flags.cfg"), "w").write(
    f"--flagfile={flags['flagfile']}\\n--seed={flags['seed']}\\n--method={flags['method']}\\n")
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


def test_all_combinations_with_folders_of_their_own():
    planned = plan(vary=["method=rat|vat; labels=20|50", "transforms=noise:1|noise:2,affine:2"])
    assert len(planned) == 8 and len({run.config.run_dir for run in planned}) == 8
    combinations = {(r.config.method, r.config.labels, str(r.config.transforms)) for r in planned}
    assert len(combinations) == 8 and ("vat", 20, "noise:2,affine:2") in combinations
    assert plan(seeds="2")[1].config.run_dir == "runs/digits50/rat-seed1"  # as training names it


@pytest.mark.parametrize(
    ("vary", "seeds", "expected"),
    [
        (["seed=0..2|7"], "", ["0", "1", "2", "7"]),
        ([], "3", ["0", "1", "2"]),
        ([], "2..4", ["2", "3", "4"]),
        (["seed=1|1"], "", ["1"]),
    ],
)
def test_seeds(vary, seeds, expected):
    assert plan_lib.axes(vary, seeds) == {"seed": expected}


def test_arguments_make_the_planned_config():
    """What training would make of the command is the config that was checked."""
    for run in plan(given={"iterations": "200", "tensorboard": "false"}, vary=["xi=1e-6|1e-2"]):
        values = flag_values.of_arguments(run.arguments())
        assert flag_values.to_config(values, given=run.flags) == run.config
        assert run.config.iterations == 200 and not run.config.tensorboard


def test_a_flag_that_one_method_has_no_use_for_is_left_out_there():
    planned = plan(given={"ascent": "steepest"}, vary=["method=rat|supervised; xi=1e-6|1e-2"])
    found = [(r.config.method, r.config.xi and str(r.config.xi), r.config.ascent) for r in planned]
    assert found == [
        ("rat", "1e-6", "steepest"),
        ("rat", "0.01", "steepest"),
        ("supervised", None, None),
    ]
    assert not {"xi", "ascent"} & planned[2].flags.keys()


def test_the_same_run_written_in_two_ways_is_one():
    assert len(plan(vary=["learning_rate=1e-3|0.001"])) == 1
    planned = plan(vary=["method=rat|vat; transforms=noise:1|noise:1,affine:0.3"])
    assert [run.config.method for run in planned] == ["rat", "rat", "vat"]


def test_one_split_for_all_seeds_unless_asked_otherwise():
    assert [run.config.split_seed for run in plan(seeds="3")] == [1, 1, 1]
    planned = plan(seeds="3", split_per_seed=True)
    assert [(run.config.seed, run.config.split_seed) for run in planned] == [(0, 1), (1, 2), (2, 3)]
    assert not {r.config.run_dir for r in planned} & {r.config.run_dir for r in plan(seeds="3")}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vary": ["metod=rat"]}, ["--vary", "'metod'", "'method'"]),
        ({"vary": ["method"]}, ["--vary", "'method'"]),
        ({"vary": ["method=rat||vat"]}, ["--vary", "<value>|<value>"]),
        ({"vary": ["method=rat|vta"]}, ["--method", "'vta'", "'vat'"]),
        ({"vary": ["labels=20|many"]}, ["labels", "many"]),
        ({"vary": ["seed=1"], "seeds": "2"}, ["--seed", "twice"]),
        ({"vary": ["consistency=0.1:1"]}, ["--vary", "a sweep", "write consistency=0.1:1:<step>"]),
        ({"seeds": "0"}, ["--seeds", "'0'"]),
        ({"seeds": "4..2"}, ["--seeds", "4..2"]),
        ({"given": {"seed": "1"}, "seeds": "2"}, ["--seed", "given and varied"]),
        ({"given": {"run_dir": "x"}}, ["--run_dir", "--runs"]),
        (
            {"given": {"xi": "1"}, "vary": ["method=supervised|random"]},
            ["--xi", "not used by any method"],
        ),
        ({"flagfiles": ("configs/missing.cfg",)}, ["missing.cfg"]),
        ({"given": {"iterations": "7"}}, ["--validate_every", "--iterations=7"]),
    ],
)
def test_mistakes_are_named_before_anything_runs(changes, words):
    with pytest.raises(errors.UserError) as error:
        plan(**changes)
    assert [word for word in words if word not in str(error.value)] == [], error.value


def test_beside_the_paper_a_flag_goes_to_the_methods_that_use_it():
    planned = plan_lib.plan_paper("table5", {"dataset": "svhn", "xi": "0.1eps"}, {}, "runs")
    found = {run.config.method: run.config.xi and str(run.config.xi) for run in planned}
    assert found["rat"] == found["vat"] == "0.1eps" and found["supervised"] is None
    with pytest.raises(errors.UserError, match="--sharpening: not used"):
        plan_lib.plan_paper("table5", {"sharpening": "0.1"}, {}, "runs")


def test_a_table_of_the_paper():
    seeds = plan_lib.axes([], "5")
    planned = plan_lib.plan_paper("table5", {"dataset": "svhn", "data_dir": "d"}, seeds, "runs")
    assert len(planned) == 9 * 5
    assert {run.config.dataset for run in planned} == {"svhn"}
    assert {run.config.data_dir for run in planned} == {"d"}
    everything = {
        run.config.run_dir
        for name in paper.TABLES
        for run in plan_lib.plan_paper(name, {}, {}, "runs")
    }
    assert len(everything) == len(paper.rows())  # no two rows share a folder
    few = plan_lib.plan_paper("figure2", {"labels": "250", "method": "rat"}, {}, "runs")
    assert [(r.config.dataset, r.config.labels, str(r.config.transforms)) for r in few] == [
        ("svhn", 250, "noise:5,affine:0.6"),
        ("cifar10", 250, "noise:6,affine:1"),
    ]


@pytest.mark.parametrize(
    ("name", "given", "vary", "words"),
    [
        ("tabel5", {}, [], ["--paper", "'tabel5'", "'table5'"]),
        ("table4", {"dataset": "svhn"}, [], ["table4", "no row", "--dataset=svhn"]),
        ("table5", {}, ["labels=1|2"], ["--labels", "--paper=table5"]),
    ],
)
def test_mistakes_with_the_paper(name, given, vary, words):
    with pytest.raises(errors.UserError) as error:
        plan_lib.plan_paper(name, given, plan_lib.axes(vary), "runs")
    assert [word for word in words if word not in str(error.value)] == [], error.value


def write(run: plan_lib.Planned, result=None, step=None):
    """The files of a run that got so far."""
    folder = run_folder.Run(run.config.run_dir)
    os.makedirs(folder.folder)
    pathlib.Path(folder.flags).write_text(run.config.flagfile())
    if step:
        pathlib.Path(folder.metrics).write_text(f"step,loss\n{step},0.5\n")
    if result:
        pathlib.Path(folder.result).write_text(result)


def test_states(tmp_path, capsys):
    planned = plan(tmp_path, seeds="3")
    write(planned[0], json.dumps({"test_error": 0.031}))
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
    assert "--iterations=100 there" in str(error.value) and "result.json: no JSON" in str(
        error.value
    )
    assert "2 of 3 runs" in str(error.value)
    assert not os.path.exists(plan(tmp_path, vary=["seed=3"])[0].config.run_dir)


def test_a_run_that_fails_does_not_stop_the_rest(tmp_path, trainer, capfd):
    planned = plan(tmp_path / "runs", vary=["method=rat; seed=0|1|3"])
    assert sweep.main(planned, run=True, print_commands=False) == 1
    out, err = capfd.readouterr()
    assert "[3/3]" in out and "test error 25.00%" in out
    (line,) = err.splitlines()
    assert "rat-seed1" in line and "exit status 1: error: --labels: too few" in line
    log = pathlib.Path(planned[1].config.run_dir + ".log")
    assert "--seed=1" in log.read_text() and str(log) in line
    trainer.write_text(TRAINER.replace('"1"', '"none"'))
    assert sweep.main(planned, run=True, print_commands=False) == 0
    assert "[1/1]" in capfd.readouterr().out  # the other two were finished


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
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "runs" / "digits50"
    for _ in range(600):
        if (folder / "rat-seed2.waiting").exists():
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 75 and "goes on" in err
    assert (folder / "rat-seed2.saved").exists() and not (folder / "rat-seed3").exists()


def test_from_the_command_line_to_real_results(tmp_path, capsys):
    """Two real runs, and then they are found to be finished."""
    given = {"iterations": "2", "validate_every": "2", "image_size": "8", "network": "tiny"}
    given |= {"labeled_batch": "10", "unlabeled_batch": "10", "tensorboard": "false", "xi": "1e-3"}
    command = [
        *(sys.executable, "-m", "rat_tf.sweep", f"--flagfile={DIGITS}", f"--runs={tmp_path}"),
        *("--vary=method=supervised|vat", "--run"),
        *(f"--{name}={value}" for name, value in given.items()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 runs: 0 finished, 0 partial, 2 new" in done.stdout
    planned = plan(tmp_path, given, ["method=supervised|vat"])
    assert sweep.main(planned, run=False, print_commands=False) == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 finished" in out and "nothing was run" in out
    config = run_folder.Run(str(tmp_path / "digits50" / "vat-seed0")).config()
    assert (config.method, str(config.xi), config.tensorboard) == ("vat", "0.001", False)
