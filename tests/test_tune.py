"""Searches: what they try, that they survive any end, and what they leave.

Where only the order of trials matters, the trial is a sum instead of a training.
"""

import csv
import dataclasses
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import checkpoints, cli, flag_values, runs, train, transforms, tune, watching
from rat_tf import config as config_lib
from rat_tf.tuning import oracles, search_settings, search_space, trial_runner, trials

TINY = {
    "dataset": "digits",
    "labels": 20,
    "image_size": 8,
    "network": "wrn-10-1",
    "labeled_batch": 10,
    "unlabeled_batch": 10,
    "iterations": 6,
    "validate_every": 2,
}
BASE = config_lib.Config(**TINY)


def parse(text, grid=False, composition=False, **changes):
    return search_space.parse(text, flag_values.changed_config(BASE, **changes), grid, composition)


def drive(oracle, score=lambda values: 0.5, count=10_000, crash=lambda oracle: oracle):
    """Runs trials one after the other; `crash` may put another oracle in the place of this one."""
    found = []
    while len(found) < count:
        oracle = crash(oracle)
        trial = oracle.create_trial("tuner0")
        if trial.status == "STOPPED":
            break
        oracle = crash(oracle)
        trial = oracle.create_trial("tuner0")  # the same one again
        values = trial.hyperparameters.values
        found.append((trial.trial_id, dict(values)))
        oracle.update_trial(trial.trial_id, {"val_error": score(values)})
        trial.status = "COMPLETED"
        oracle.end_trial(trial)
    return found


def make(name, space, folder, max_trials=0, rungs=9):
    oracle = oracles.make(name, space.hyperparameters(), 0, max_trials, rungs)
    oracle._set_project_dir(str(folder), "oracle")
    oracle.reload()
    return oracle


# ---- what is searched


PAPER = {"channel_weight": 0.001, "affine": 0.1, "thin_plate_spline": 0.1, "flow_field": 0.01}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_grid(name, tmp_path):
    """Ten steps from the step size on, and nothing else is changed."""
    space = parse("", grid=True, transforms=f"noise:6,{name}:0.5")
    found = [space.config(values).transforms for _, values in drive(make("grid", space, tmp_path))]
    step = PAPER[name]
    assert found == [f"noise:6,{name}:{i * step:.6g}" for i in range(1, 11)]


def test_a_grid_is_the_product(tmp_path):
    text = "epsilon.affine=0.1:0.3:0.1, xi=1e-6|1e-2, consistency=0.1:10:log:3"
    space = parse(text, grid=True)
    configs = [space.config(values) for _, values in drive(make("grid", space, tmp_path))]
    found = [(c.transforms, c.xi, c.consistency) for c in configs]
    epsilons = [f"noise:1,affine:{e}" for e in (0.1, 0.2, 0.3)]
    assert found == list(itertools.product(epsilons, ["1e-6", "1e-2"], [0.1, 1.0, 10.0]))
    assert space.size() == 18


@pytest.mark.parametrize("tuner", ["random", "bayesian"])
def test_continuous_parameters_stay_in_their_ranges(tuner, tmp_path):
    space = parse("consistency=0.01:1:log, epsilon.noise=1:3, consistency_rampup=10:1000:log")
    configs = [space.config(v) for _, v in drive(make(tuner, space, tmp_path, 10))]
    values = np.array([(c.consistency, c.consistency_rampup) for c in configs])
    assert len(configs) == 10 and len(np.unique(values[:, 0])) > 6
    assert np.all((0.01 <= values[:, 0]) & (values[:, 0] <= 1))
    assert all(isinstance(c.consistency_rampup, int) for c in configs)
    for config in configs:
        noise, affine = config.transform().transforms
        assert 1 <= noise.epsilon <= 3 and affine.epsilon == 0.6


def test_every_point_is_a_composition():
    space = parse("epsilon.noise=0.5:2:log, xi=1e-6|1e-2", composition=True)
    found = space.hyperparameters().space
    points = [
        {hp.name: hp.random_sample(99 * i + k) for k, hp in enumerate(found)} for i in range(200)
    ]
    configs = [space.config(point) for point in points]
    orders = [tuple(t.name for t in c.transform().transforms) for c in configs]
    assert all(len(set(order)) == len(order) >= 1 for order in orders)
    assert {len(order) for order in orders} == {1, 2, 3, 4, 5}
    assert {order[0] for order in orders} == set(transforms.REGISTRY)  # each may come first
    ranges = {"noise": (0.5, 2), **{name: (step, 10 * step) for name, step in PAPER.items()}}
    for config in configs:
        for transform in config.transform().transforms:
            low, high = ranges[transform.name]
            assert 0.999 * low <= transform.epsilon <= 1.001 * high


def test_the_place_says_the_order():
    space = parse("", composition=True)
    values = {f"epsilon.{name}": 0.5 for name in transforms.REGISTRY}
    places = {"noise": 0.9, "affine": 0.1, "flow_field": -0.1, "channel_weight": -1}
    values |= {f"place.{name}": places.get(name, -0.5) for name in transforms.REGISTRY}
    assert space.config(values).transforms == "affine:0.5,noise:0.5"
    values |= {"place.noise": -0.9, "place.affine": -0.8}
    assert space.config(values).transforms == "flow_field:0.5"


@pytest.mark.parametrize(
    "text, message",
    [
        ("consistancy=1|2", "no flag 'consistancy'; did you mean 'consistency'"),
        ("epsilon.afine=0.1:1:0.1", "got epsilon.afine; did you mean 'affine'"),
        ("epsilon.flow_field=0.1:1:0.1", "one of noise, affine"),
        ("data_dir=a|b", "data_dir says where"),
        ("run_dir=a|b", "run_dir says where"),
        ("consistency=0.1:1:log", "write consistency=0.1:1:log:5"),
        ("consistency=0.1:1", "write consistency=0.1:1:<step>"),
        ("consistency=1:0.1:0.1", "start < stop"),
        ("consistency=0:1:log:3", "start > 0"),
        ("consistency=0.3", "expected consistency=<start>:<stop>:<step>"),
        ("consistency=0.1|high", "consistency takes numbers, got 'high'"),
        ("labels=10:11:0.5", "labels takes whole numbers, got '10.5'"),
        ("augment_flip=true|maybe", "takes true or false"),
        ("method=rat|rats", "method=rats: --method.*did you mean 'rat'"),
        ("xi=1e-6|small", "xi=small: --xi: expected a number"),
        ("iterations=4:8:3", "iterations=7: --validate_every"),
        ("learning_rate=-1:1:0.5", "--learning_rate: expected a number > 0"),
        ("xi=1|2, xi=3|4", "twice"),
        ("transforms=noise:1|noise:2,affine:0.1, epsilon.affine=0.1|0.2", "the same ε twice"),
    ],
)
def test_mistakes_are_told_before_any_work(text, message):
    with pytest.raises(config_lib.UserError, match=message):
        parse(text, grid=True)


def test_whole_compositions_may_be_given():
    space = parse("transforms=noise:1|noise:2,affine:0.1, xi=1|2", grid=True)
    assert [c.transforms for c in space.probes()][::2] == ["noise:1", "noise:2,affine:0.1"]


# ---- the oracles


@pytest.mark.parametrize("tuner", search_settings.TUNERS)
def test_a_crash_at_any_moment_changes_nothing(tuner, tmp_path):
    """A new oracle from the file before every question: no trial is lost, none is there twice."""
    space = parse("epsilon.affine=0.1:1:0.1, consistency=0.1:1:0.1")
    limit = 8 if tuner in ("random", "bayesian") else 0

    def crash(oracle):
        return make(tuner, space, tmp_path / "crashed", limit)

    score = lambda values: float(values["epsilon.affine"])  # noqa: E731
    whole = drive(make(tuner, space, tmp_path / "whole", limit), score, 20)
    crashed = drive(crash(None), score, 20, crash)
    assert [trial for trial, _ in crashed] == [
        f"{i:0{len(whole[0][0])}d}" for i in range(len(whole))
    ]
    # Bayesian search draws the starts of its optimisation anew: from there on it may differ.
    same = 6 if tuner == "bayesian" else len(whole)
    assert crashed[:same] == whole[:same]


def test_hyperband_counts_in_validations(tmp_path):
    space = parse("consistency=0.01:1:log")
    found = drive(make("hyperband", space, tmp_path), lambda values: values["consistency"])
    rungs = [values["tuner/epochs"] for _, values in found]
    assert set(rungs) == {1, 3, 9}
    by_id = dict(found)
    for _, values in found:
        if values["tuner/round"]:
            parent = by_id[values["tuner/trial_id"]]
            assert parent["consistency"] == values["consistency"]
            assert parent["tuner/epochs"] == values["tuner/initial_epoch"]
    first = [v["consistency"] for _, v in found if v["tuner/bracket"] == 2 and not v["tuner/round"]]
    second = [
        v["consistency"] for _, v in found if v["tuner/bracket"] == 2 and v["tuner/round"] == 1
    ]
    assert second == sorted(first)[: len(second)]  # a lower error is better


# ---- trials


class Untouchable:
    """A test set that may be counted, and nothing else."""

    def __len__(self):
        return 1

    def __getattr__(self, name):
        raise AssertionError("the test set was looked at")


@pytest.fixture
def runner(tmp_path, monkeypatch):
    def make_runner(space, stop_hopeless=False):
        made = trial_runner.Runner(
            space, tf.distribute.get_strategy(), str(tmp_path), stop_hopeless
        )
        made._images = dataclasses.replace(made._images, test=Untouchable())
        return made

    return make_runner


def fake_fit(error, calls):
    """In the place of a training: two steps an interval, `error`(config, step) the error."""

    def fit(config, run, images, strategy, callbacks=()):
        rows = run.rows()
        calls.append((config, len(rows)))
        model = type("Model", (), {"stop_training": False})()
        for step in range(2 * len(rows) + 2, config.iterations + 1, 2):
            rows.append({"step": step, "seconds": step / 10, "val_error": error(config, step)})
            text = "".join(f"{','.join(str(v) for v in row.values())}\n" for row in rows)
            runs.write(run.metrics, "step,seconds,val_error\n" + text)
            for callback in callbacks:
                callback.set_model(model)
                callback.on_epoch_end(0, rows[-1])
            if model.stop_training:
                break

    return fit


def test_a_trial_is_a_run_that_never_sees_the_test_set(runner, tmp_path):
    space = parse("learning_rate=0.1|0.2", iterations=2, method="supervised")
    result = runner(space).run("0", {"learning_rate": "0.2"})
    folder = tmp_path / "trials" / "0"
    with open(folder / "metrics.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert result["validation_error"] == pytest.approx(float(row["val_error"]))
    assert (result["status"], result["best_step"], result["steps"]) == ("finished", 2, 2)
    assert runs.Run(str(folder)).config().learning_rate == 0.2
    # What rat_tf.train finds there it only has to evaluate.
    train.main(runs.Run(str(folder)).config())
    tested = runs.Run(str(folder)).finished()
    assert tested["best_validation_error"] == pytest.approx(result["validation_error"])
    assert 0 <= tested["test_error"] <= 1


def test_the_same_flags_are_trained_once(runner, monkeypatch):
    calls = []
    monkeypatch.setattr(train, "fit", fake_fit(lambda config, step: 0.25, calls))
    some = runner(parse("consistency=0.1:1"))
    some.run("0", {"consistency": 0.30001})
    again = some.run("1", {"consistency": 0.30002})  # rounded to four digits
    assert len(calls) == 1
    assert (again["validation_error"], again["same_as"]) == (0.25, "0")
    some.run("2", {"consistency": 0.4})
    some.run("2", {"consistency": 0.4})  # ended before: not again
    assert len(calls) == 2


def test_a_trial_that_diverges_is_an_answer(runner, monkeypatch):
    def diverge(*_, **__):
        raise watching.Diverged("the loss is nan")

    monkeypatch.setattr(train, "fit", diverge)
    result = runner(parse("consistency=0.1|1")).run("0", {"consistency": "1"})
    assert (result["status"], result["validation_error"]) == ("diverged", 1.0)


def test_data_are_read_again_only_where_their_flags_change(runner, monkeypatch):
    calls, loads = [], []
    monkeypatch.setattr(train, "fit", fake_fit(lambda config, step: 0.25, calls))
    some = runner(parse("labels=20|30, consistency=0.1|1"))
    load = trial_runner.data.load
    monkeypatch.setattr(trial_runner.data, "load", lambda c: loads.append(c.labels) or load(c))
    for i, (labels, weight) in enumerate(itertools.product(["20", "30"], ["0.1", "1"])):
        some.run(str(i), {"labels": labels, "consistency": weight})
    assert loads == [30] and len(calls) == 4


def test_hyperband_goes_on_where_the_shorter_trial_ended(runner, monkeypatch):
    calls = []
    monkeypatch.setattr(train, "fit", fake_fit(lambda config, step: 1 / step, calls))
    some = runner(parse("consistency=0.1|1"))
    some.run("0", {"consistency": "1", "tuner/epochs": 1})
    values = {"consistency": "1", "tuner/epochs": 3, "tuner/trial_id": "0"}
    result = some.run("1", values)
    assert [(c.iterations, rows) for c, rows in calls] == [(2, 0), (6, 1)]
    assert (result["steps"], result["validation_error"]) == (6, pytest.approx(1 / 6))


def test_the_median_rule():
    """Against the medians and means of the definition, computed by hand."""
    others = [{2: 0.8, 4: 0.4}, {2: 0.6, 4: 0.2}, {2: 0.4, 4: 0.2}]  # means up to 4: 0.6, 0.4, 0.3
    assert trials.hopeless({2: 0.9, 4: 0.41}, others)
    assert not trials.hopeless({2: 0.9, 4: 0.4}, others)
    assert not trials.hopeless({2: 0.1, 4: 0.9}, others)  # its lowest counts
    assert trials.hopeless({2: 0.61}, others) and not trials.hopeless({2: 0.6}, others)
    assert not trials.hopeless({2: 0.9, 4: 0.9}, others[:2])  # too few
    assert not trials.hopeless({6: 0.9}, others)  # none came as far
    assert not trials.hopeless({2: 0.9}, others, first=3)  # too young


def test_a_hopeless_trial_is_stopped(runner, monkeypatch):
    calls = []
    error = lambda config, step: 0.2 + 0.1 * (config.consistency > 0.5)  # noqa: E731
    monkeypatch.setattr(train, "fit", fake_fit(error, calls))
    some = runner(parse("consistency=0.1|0.2|0.3|1"), stop_hopeless=True)
    results = [
        some.run(str(i), {"consistency": v}) for i, v in enumerate(["0.1", "0.2", "0.3", "1"])
    ]
    assert [r["status"] for r in results] == ["finished"] * 3 + ["stopped"]
    assert [r["steps"] for r in results] == [6, 6, 6, 2]


# ---- the command


def command(output, *more, script=("-m", "rat_tf.tune"), **changes):
    flags = {**TINY, "output": str(output), **changes}
    return [sys.executable, *script, *(f"--{k}={v}" for k, v in flags.items()), *more]


def start(*args, env=None, **kwargs):
    pipe = subprocess.PIPE
    environment = {**os.environ, **(env or {})}
    line = command(*args, **kwargs)
    return subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def wait_for(condition, process):
    deadline = time.time() + 90
    while time.time() < deadline and process.poll() is None:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"waited in vain: {finish(process)}")


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
    process = start(output, **SEARCH)
    second = runs.Run(str(output / "trials" / "0001"))
    wait_for(lambda: len(second.rows()) >= 2, process)
    process.kill()
    killed = finish(process)
    before = (output / "trials" / "0000" / "trial.json").stat().st_mtime_ns
    status, out, err = finish(start(output, **SEARCH))
    assert status == 0 and "Traceback" not in err, err
    return output, killed, out, before


def test_no_trial_is_repeated_after_kill_9(searched):
    output, (killed, first, _), second, before = searched
    assert killed == -signal.SIGKILL
    assert (first.count("trial 0000: learning"), second.count("trial 0000:")) == (1, 0)
    assert "going on from step" in second.partition("trial 0001: learning")[2]
    assert (output / "trials" / "0000" / "trial.json").stat().st_mtime_ns == before
    for i in range(2):
        rows = runs.Run(str(output / "trials" / f"000{i}")).rows()
        assert [row["step"] for row in rows] == [2, 4, 6, 8, 10, 12]


def test_results_are_ranked(searched):
    output, _, out, _ = searched
    with open(output / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = {}
    for i in range(2):
        run = runs.Run(str(output / "trials" / f"000{i}"))
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
    given = config_lib.Config(**{**TINY, "method": "supervised", "iterations": 12})
    assert [line.partition("=")[0] for line in config.differences(given)] == ["--learning_rate"]
    train.main(config)
    found = runs.Run(config.run_dir).finished()
    assert found["best_validation_error"] == pytest.approx(
        float(best["validation_error"]), abs=1e-5
    )


@pytest.fixture
def in_process(monkeypatch):
    """The command in this process, with flags of its own."""

    def call(*arguments):
        registry = search_settings.flags.FlagValues()
        monkeypatch.setattr(search_settings.flags, "FLAGS", registry)
        flag_values.define_flags(registry)
        search_settings.define_flags(registry)
        registry(["tune", *arguments])
        tune.main(config_lib.Config(**flag_values.of_flags(registry)))

    return call


def test_other_flags_in_the_same_folder_are_refused(searched, in_process):
    output = searched[0]
    same = [argument for argument in command(output, **SEARCH)[3:]]
    with pytest.raises(config_lib.UserError, match="--seed=0 there, --seed=1 here"):
        in_process(*same, "--seed=1")
    with pytest.raises(config_lib.UserError, match="there, --search=decay=0.1.0.2 here"):
        in_process(*same, "--search=decay=0.1|0.2")
    with pytest.raises(config_lib.UserError, match="--tuner=grid there, --tuner=random here"):
        in_process(*same, "--tuner=random")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--tuner=grids"], "--tuner.*did you mean 'grid'"),
        (["--search_composition", "--tuner=grid"], "too many compositions"),
        (["--search_composition", "--method=mean_teacher"], "not mean_teacher"),
        (["--method=supervised"], "the paper has a grid for.*learning_rate"),
        (["--method=vat"], "the paper has a grid for.*epsilon.noise"),
        (["--tuner=hyperband", "--iterations=4"], "three validations"),
        (["--tuner=hyperband", "--max_trials=3"], "brackets decide"),
        (["--tuner=hyperband", "--search=iterations=6|12"], "hyperband itself"),
        (["--max_trials=-1"], "--max_trials"),
        (["--run_dir=x"], "--run_dir"),
        (["--strategy=multi_worker"], "--strategy"),
    ],
)
def test_wrong_settings_are_told_before_any_work(arguments, message, tmp_path, in_process):
    with pytest.raises(config_lib.UserError, match=message):
        in_process(*command(tmp_path / "out")[3:], *arguments)
    assert not os.path.exists(tmp_path / "out")


def test_a_folder_of_something_else_is_not_touched(tmp_path, in_process):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(config_lib.UserError, match="--output.*search.json"):
        in_process(*command(tmp_path)[3:])
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_sigterm_leaves_a_search_that_goes_on(tmp_path, in_process, monkeypatch, capsys):
    calls = []
    fit = fake_fit(lambda config, step: 0.25, calls)

    def signalled(*args, **kwargs):
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        fit(*args, **kwargs)

    monkeypatch.setattr(train, "fit", signalled)
    same = command(tmp_path / "out")[3:]
    with pytest.raises(SystemExit) as ended:
        in_process(*same)
    assert ended.value.code == checkpoints.STOPPED and "SIGTERM: saved" in capsys.readouterr().err
    monkeypatch.setattr(train, "fit", fit)
    in_process(*same)
    out = capsys.readouterr().out
    assert "going on after 2 trials" in out and "results in" in out
    assert len(calls) == 10 and len({c.transforms for c, _ in calls}) == 10
    # More of a grid than there is changes nothing; the table is shown again.
    in_process(*same, "--max_trials=20")
    assert len(calls) == 10 and "results in" in capsys.readouterr().out


def test_help_has_all_flags():
    text = cli.help_text("") + search_settings.help_text()
    for name in [*search_settings.HELP, "learning_rate", "transforms"]:
        assert f"  --{name}\n" in text


# ---- several machines

# A trial is half a second and an error; the worker called "doomed" hangs in its second one.
MACHINES = """
import os, time
from rat_tf import cli, runs, tune
from rat_tf.tuning import oracles, search_settings, trial_runner
oracles.BEAT, oracles.SILENCE = 0.3, 2.0
done = []
def train(self, config, run):
    run.create(config, self._images)
    done.append(run)
    if os.environ["KERASTUNER_TUNER_ID"] == "doomed" and len(done) == 2:
        open(os.path.join(run.folder, "hangs"), "w").close()
        time.sleep(1000)
    time.sleep(0.5)
    error = abs(config.transform().transforms[1].epsilon - 0.4)
    runs.write(run.metrics, f"step,seconds,val_error\\n2,0.5,{error}\\n")
    runs.write(os.path.join(run.folder, "by"), os.environ["KERASTUNER_TUNER_ID"])
    return "finished"
trial_runner.Runner._train = train
search_settings.define_flags()
cli.run(tune.main)
"""


def test_a_chief_and_two_workers_of_which_one_dies(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def machine(name):
        address = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": str(port)}
        env = {**address, "KERASTUNER_TUNER_ID": name}
        return start(tmp_path / "out", script=("-c", MACHINES), env=env)

    chief, worker, doomed = map(machine, ("chief", "worker", "doomed"))
    folder = tmp_path / "out" / "trials"
    wait_for(lambda: list(folder.glob("*/hangs")), doomed)
    doomed.kill()
    doomed.communicate()
    status, _, err = finish(worker)
    assert status == 0, err
    status, out, err = finish(chief)
    assert status == 0 and "Traceback" not in err, err
    assert "doomed has not been heard of" in out and "results in" in out
    by = {path.parent.name: path.read_text() for path in folder.glob("*/by")}
    (lost,) = [path.parent.name for path in folder.glob("*/hangs")]
    assert len(by) == 10 and by[lost] == "worker" and "doomed" in by.values()
    epsilons = [
        json.loads(p.read_text())["values"]["epsilon.affine"] for p in folder.glob("*/trial.json")
    ]
    assert sorted(epsilons) == [round(0.1 * i, 1) for i in range(1, 11)]
    assert "affine:0.4" in (tmp_path / "out" / "best.cfg").read_text()
