"""Schedules as shares of the run: their steps, what flags.cfg keeps, and what is the same run."""

import copy
import pickle

import pytest

from rat_tf import config as config_lib
from rat_tf import errors, fields
from rat_tf.config import flag_values, ranges
from rat_tf.experiments import plan
from rat_tf.tuning import search_space

SHARES = {"consistency_rampup": "40%", "epsilon_rampup": "80%", "decay_at": "80%"}


def shares(**changes):
    return config_lib.Config(**{"iterations": 1000, "validate_every": "10%", **SHARES, **changes})


def numbers(config):
    names = ("consistency_rampup", "epsilon_rampup", "decay_at", "validate_every")
    return tuple(int(getattr(config, name)) for name in names)


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [(1000, (400, 800, 800, 100)), (6000, (2400, 4800, 4800, 600)), (15, (6, 12, 12, 3))],
)
def test_steps_follow_the_length_of_the_run(iterations, expected):
    assert numbers(shares(iterations=iterations)) == expected
    changed = flag_values.changed_config(shares(), iterations=iterations)
    assert numbers(changed) == expected


@pytest.mark.parametrize(
    ("share", "iterations", "steps"),
    [("0.29%", 100_000, 290), ("12.5%", 1000, 125), ("50%", 3, 2), ("100%", 7, 7), ("0%", 9, 0)],
)
def test_shares_are_counted_exactly_and_rounded_half_up(share, iterations, steps):
    """0.29 * 100,000 / 100 is 290.0 in decimals, 28.999999999999996 * 10 in floats."""
    config = config_lib.Config(
        iterations=iterations, validate_every=iterations, epsilon_rampup=share
    )
    assert config.epsilon_rampup == steps


def test_validations_are_as_many_as_the_length_permits():
    """Of 1,210 = 2 · 5 · 11², 60.5 steps are 5 %; the nearest divisor is 55: 22 validations."""
    assert shares(iterations=1210, validate_every="5%").validate_every == 55
    with pytest.raises(errors.UserError, match="divisor of --iterations=1009, got 10%.* 101 steps"):
        shares(iterations=1009)


def test_checkpoints_come_at_a_divisor_of_the_steps_between_validations():
    assert shares(iterations=150_000, validate_every="5%").interval == 3750  # not 5,000
    with pytest.raises(errors.UserError, match="--checkpoint_every: .*=1009, got 50"):
        shares(iterations=2018, validate_every=1009, checkpoint_every=50)


@pytest.mark.parametrize("text", ["40 %", "-5%", "101%", "%", "half", "1e3", "0.4", "nan%", ""])
def test_what_is_no_share_and_no_number_is_refused(text):
    with pytest.raises(errors.UserError, match="--decay_at: .*a share of --iterations such as 40%"):
        shares(decay_at=text)


def test_a_share_that_is_no_step_is_refused_where_one_is_needed():
    with pytest.raises(errors.UserError, match="--decay_at: .*got 0, which is 0.01% of --iter"):
        shares(decay_at="0.01%")


@pytest.mark.parametrize("text", ["0", str(2**63)])
def test_a_number_in_a_text_is_checked_as_a_number_is(text):
    with pytest.raises(errors.UserError, match=f"--validate_every: expected a .*, got {text}"):
        shares(validate_every=text)


def test_flags_cfg_keeps_the_share_and_its_run_is_that_of_the_numbers(tmp_path):
    path = tmp_path / "flags.cfg"
    path.write_text(shares().flagfile())
    assert "--decay_at=80%\n" in path.read_text()
    again = flag_values.config_of_file(str(path))
    assert again == shares() and again.differences(shares()) == []
    old = flag_values.config_of_file(str(path), decay_at="800", consistency_rampup="400")
    assert old.differences(again) == again.differences(old) == [] and hash(old) == hash(again)
    assert "--decay_at=800\n" in old.flagfile()
    (line,) = flag_values.config_of_file(str(path), decay_at="70%").differences(again)
    assert line == "expected --decay_at=80%, got --decay_at=70%"
    longer = flag_values.config_of_file(str(path), iterations=2000)
    assert longer.differences(again) == ["expected --iterations=1000, got --iterations=2000"]
    assert longer.decay_at == 1600


@pytest.mark.parametrize(
    ("path", "expected"),
    [("configs/digits50.cfg", (400, 0, 800, 100)),
     ("configs/cpu/svhn1000_small.cfg", (2400, 4800, 4800, 500))],
)  # fmt: skip
def test_presets_have_the_steps_with_which_they_were_measured(
    in_the_projects_folder, path, expected
):
    assert numbers(flag_values.config_of_file(path)) == expected


def test_methods_and_copies_get_what_they_need():
    options = shares().options
    assert type(options.epsilon_rampup) is int and options.arguments()["epsilon_rampup"] == 800
    for same in (copy.deepcopy(shares()), pickle.loads(pickle.dumps(shares()))):
        assert fields.text_of(same.decay_at) == "80%" and same == shares()


def test_the_beginning_of_a_run_has_the_schedules_of_the_whole():
    """What hyperband trains of it."""
    short = shares().beginning(300)
    assert (short.iterations, *numbers(short)) == (300, 400, 800, 800, 100)
    assert "--decay_at=800\n" in short.flagfile()


def test_sweeps_and_searches_vary_shares(in_the_projects_folder):
    digits = "configs/digits50.cfg"
    axes = plan.axes(["decay_at=60%|800; iterations=1000|2000"])
    planned = plan.plan([digits], {}, axes, "runs")
    assert [int(run.config.decay_at) for run in planned] == [600, 1200, 800, 800]
    assert len({run.config.run_dir for run in planned}) == 4
    same = plan.plan([digits], {}, plan.axes(["decay_at=80%|800"]), "runs")
    assert len(same) == 1  # one run said twice
    base = flag_values.config_of_file(digits)
    space = search_space.parse("consistency_rampup=60%|20%", base, "random")
    assert space.parameters[0].values == ("20%", "60%")


def test_ranges_of_steps_are_whole():
    assert ranges.parse("--vary", "decay_at", "10:1000:log:3", ranges.STEPS).values == (
        *("10", "100", "1000"),
    )
    with pytest.raises(errors.UserError, match="whole numbers, or shares such as 40%"):
        ranges.parse("--vary", "decay_at", "0.5|1", ranges.STEPS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iterations": 1000, "validate_every": 100}, ["consistency_rampup=200000", "decay_at"]),
        ({"epsilon_rampup": 600_000}, ["ε stays below", "--epsilon_rampup=40%"]),
        ({}, []),
        ({"method": "supervised"}, []),
    ],
)
def test_a_schedule_beyond_the_end_is_said(changes, words):
    found = list(config_lib.Config(**changes).warnings())
    assert len(found) == (2 if "iterations" in changes else len(words) > 0)
    assert [word for word in words if word not in " ".join(found)] == []
