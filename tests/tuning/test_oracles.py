"""Which trial is next: all of a grid, numbers in their ranges, and no trial lost or repeated."""

import itertools
import os
import socket

import numpy as np
import pytest

from rat_tf import errors
from rat_tf.tuning import oracles, search_settings
from tests.tuning import searches


def make(name, space, folder, limit=None):
    oracle = oracles.make(name, space, limit)
    oracle._set_project_dir(str(folder), "oracle")
    oracle.resume()
    return oracle


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


def test_a_grid_is_the_product(tmp_path):
    text = "epsilon.affine=0.1:0.3:0.1, xi=1e-6|1e-2, consistency=0.1:10:log:3"
    space = searches.parse(text, tuner="grid")
    configs = [space.config(values) for _, values in drive(make("grid", space, tmp_path))]
    found = [(str(c.transforms), c.xi.value, c.consistency) for c in configs]
    epsilons = [f"noise:1,affine:{e}" for e in (0.1, 0.2, 0.3)]
    assert found == list(itertools.product(epsilons, [1e-6, 1e-2], [0.1, 1.0, 10.0]))
    assert space.size() == 18


@pytest.mark.parametrize("tuner", ["random", "bayesian"])
def test_continuous_parameters_stay_in_their_ranges(tuner, tmp_path):
    space = searches.parse(
        "consistency=0.01:1:log, epsilon.noise=1:3, consistency_rampup=10:1000:log"
    )
    configs = [space.config(v) for _, v in drive(make(tuner, space, tmp_path, 10))]
    values = np.array([(c.consistency, c.consistency_rampup) for c in configs])
    assert len(configs) == 10 and len(np.unique(values[:, 0])) > 6
    assert np.all((0.01 <= values[:, 0]) & (values[:, 0] <= 1))
    assert all(isinstance(c.consistency_rampup, int) for c in configs)
    for config in configs:
        epsilons = config.transforms.epsilons
        assert 1 <= epsilons["noise"] <= 3 and epsilons["affine"] == 0.6


@pytest.mark.parametrize("tuner", search_settings.TUNERS)
def test_a_crash_at_any_moment_changes_nothing(tuner, tmp_path):
    """A new oracle from the file before every question: no trial is lost, none is there twice."""
    space = searches.parse("epsilon.affine=0.1:1:0.1, consistency=0.1:1:0.1", iterations=18)
    limit = 8 if tuner in ("random", "bayesian") else None

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
    space = searches.parse("consistency=0.01:1:log", iterations=18)  # nine validations
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


def test_the_environment_says_who_a_process_is(monkeypatch):
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert search_settings.role() == "alone"
    for name, value in zip(names, ("chief", "127.0.0.1", "8000")):
        monkeypatch.setenv(name, value)
    assert search_settings.role() == "chief"
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "worker1")
    assert search_settings.role() == "worker"
    monkeypatch.delenv("KERASTUNER_ORACLE_IP")
    assert search_settings.role() == "worker"
    assert os.environ["KERASTUNER_ORACLE_IP"] == "127.0.0.1"  # nobody else, unless told
    monkeypatch.delenv("KERASTUNER_ORACLE_PORT")
    with pytest.raises(errors.UserError, match="is set, but not KERASTUNER_ORACLE_PORT"):
        search_settings.role()


def test_a_chief_says_where_it_cannot_listen(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
        monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(taken.getsockname()[1]))
        with pytest.raises(errors.UserError, match="cannot listen at 127.0.0.1"):
            oracles.serve(None)
        monkeypatch.setenv("KERASTUNER_ORACLE_PORT", "http")
        with pytest.raises(errors.UserError, match="cannot listen at 127.0.0.1:http"):
            oracles.serve(None)


def test_a_worker_that_is_silent_loses_its_trial(tmp_path, monkeypatch, capsys):
    """Its trial goes to the next one that asks; the search is not over before."""
    clock = [0.0]
    monkeypatch.setattr(oracles.time, "monotonic", lambda: clock[0])
    oracle = make("grid", searches.parse("consistency=0.1|1", tuner="grid"), tmp_path)
    lost, kept = oracle.create_trial("a"), oracle.create_trial("b")
    assert oracle.create_trial("c").status == "IDLE"  # one of the two may die
    clock[0] = oracles.TIMEOUT + 1
    oracle.get_trial(kept.trial_id)  # a sign of life of b
    oracle.dismiss_silent_workers()
    assert f"trial {lost.trial_id} goes to the next free worker" in capsys.readouterr().out
    assert oracle.create_trial("d").trial_id == lost.trial_id
    assert oracle.tuner_ids == {"b", "d"}
