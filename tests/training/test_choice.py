"""Run folders that nobody named, and runs whose flags and steps were chosen."""

import dataclasses
import json
import os
import time
import types

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import errors, train
from rat_tf.config import cli, recipe
from rat_tf.training import calibration, choice, run_folder
from tests import runs

FLAGS = [f"--{name}={value}" for name, value in runs.TINY.items()]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, config, given=None):
    os.makedirs(folder)
    run = run_folder.Run(folder)
    with open(run.flags, "w") as file:
        file.write(config.flagfile())
    with open(run.environment, "w") as file:
        json.dump({} if given is None else {"given": given}, file)


def chosen(*arguments):
    return choice.of(cli.parse([*FLAGS, *arguments], training=True)).config.run_dir


def test_a_default_folder_gets_a_suffix_when_flags_differ_and_each_command_finds_its_own(
    here, capsys
):
    folder = chosen()
    assert folder == "runs/digits20/rat-seed0" and capsys.readouterr().out == ""
    write(folder, config_lib.Config(**runs.TINY))
    assert chosen() == folder and capsys.readouterr().out == ""
    second = chosen("--decay=0.5")
    assert second == f"{folder}-2"
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "expected --decay=0.2, got --decay=0.5" in said
    write(second, config_lib.Config(**runs.TINY, decay=0.5))
    assert chosen("--decay=0.7") == f"{folder}-3"
    assert (chosen(), chosen("--decay=0.5"), chosen("--tensorboard=false")) == (
        *(folder, second, folder),
    )
    assert chosen("--decay=0.7", f"--run_dir={folder}") == folder
    with pytest.raises(errors.UserError, match="expected --decay=0.2, got --decay=0.7"):
        train.main(config_lib.Config(**runs.TINY, decay=0.7, run_dir=folder))


def test_folders_of_something_else_are_left_alone(here, capsys):
    os.makedirs("runs/digits20/rat-seed0/mine")
    os.makedirs("runs/digits20/rat-seed0-2")
    assert chosen() == "runs/digits20/rat-seed0-2"  # empty
    assert "it is not a run folder" in capsys.readouterr().out


def test_the_reason_for_another_folder_is_short(here, capsys):
    write("runs/digits20/rat-seed0", config_lib.Config(dataset="digits", labels=20), {})
    more = [f"--{name}" for name in ("budget=2h", "seed=0", "ascent=paper", "augment_shift=1")]
    found = choice.of(cli.parse(["--dataset=digits", "--labels=20", *more], training=True))
    assert found.config.run_dir == "runs/digits20/rat-seed0-2"
    out = capsys.readouterr().out
    assert out.count("expected") == 2 and "; and 4 more); this one is" in out


def test_a_run_of_a_recipe_is_found_by_the_flags_that_were_given(here):
    pets = ["--dataset=folder:pets", "--labels=4"]
    of = lambda *more: choice.of(cli.parse([*pets, *more], training=True))  # noqa: E731
    folder = of().config.run_dir
    recorded = config_lib.Config(dataset="folder:pets", labels=4, iterations=4200, decay_at="80%",
                                 validate_every="5%")  # fmt: skip
    write(folder, recorded, of().given)
    again = of("--tensorboard=false").config
    assert (again.run_dir, again.iterations, again.tensorboard) == (folder, 4200, False)
    assert of("--budget=2h").config.run_dir == of("--seed=0").config.run_dir == f"{folder}-2"
    with pytest.raises(errors.UserError, match="expected no --budget, got --budget=2h"):
        of("--budget=2h", f"--run_dir={folder}")
    assert of(f"--run_dir={folder}").config.iterations == 4200


def test_a_run_from_before_the_recipe_is_found_by_all_its_flags(here):
    command = ["--dataset=folder:pets", "--labels=4", "--iterations=50000"]
    old = config_lib.Config(dataset="folder:pets", labels=4, iterations=50_000)
    write("runs/folder-pets4/rat-seed0", old)
    found = choice.of(cli.parse(command, training=True)).config
    assert (found.run_dir, found.network) == ("runs/folder-pets4/rat-seed0", "wrn-28-2")


def test_the_number_of_steps_fits_the_time_as_well_as_a_round_number_can():
    """Compared with all numbers of steps."""
    sizes = {"labeled": 10, "unlabeled": 100, "validation": 40, "test": 30}
    images = types.SimpleNamespace(**{name: range(size) for name, size in sizes.items()})
    config = config_lib.Config(
        iterations=1000, validate_every="5%", decay_at="80%", ema_decay=0.9, budget="10m"
    )
    speed = calibration.Speed(step=0.1, evaluated=0.01, setup=20.0)
    found = calibration.fit_to(config, images, speed, 600.0, bounded=False)
    # 20 + steps / 10 + 20 · 40 / 100 + 3 · 30 / 100 = 600 s: 5,711 steps
    assert found.iterations == 5700 and found.decay_at == 4560 and found.validate_every == 285
    assert speed.total(found, images) == pytest.approx(20 + 570 + 8 + 0.9)
    fixed = config_lib.Config(iterations=400, validate_every=400, decay_at=400, budget="10m")
    found = calibration.fit_to(fixed, images, speed, 600.0, bounded=False)
    assert found.iterations == 5600 and speed.total(found, images) < 600
    looking = dataclasses.replace(speed, examined=10.0)  # at the adversary, 20 times
    found = calibration.fit_to(config, images, looking, 600.0, bounded=False)
    assert found.iterations == 3700  # 2,000 steps fewer
    assert looking.total(found, images) == pytest.approx(20 + 370 + 8 + 0.9 + 200)
    found = calibration.fit_to(fixed, images, looking, 600.0, bounded=False)
    assert found.iterations == 4400 and looking.total(found, images) < 600
    fewer = calibration.fit_to(config, images, speed, 3600.0, bounded=True)
    assert fewer.iterations == 2000  # 300 passes over 100 images would be 600
    with pytest.raises(errors.UserError, match="--budget=10m: too short; 20 steps .* 2 s"):
        calibration.fit_to(config, images, speed, 25.0, bounded=False)
    # 20 s before the first step, 40 s of steps, 0.4 s of validation, two tests of 0.3 s.
    exact = 20 + 40 + 0.4 + 0.6
    assert calibration.fit_to(fixed, images, speed, exact + 0.1, bounded=False).iterations == 400
    with pytest.raises(errors.UserError, match="400 steps .* 40 s.*at least --validate_every=400"):
        calibration.fit_to(fixed, images, speed, exact - 0.1, bounded=False)


def test_the_time_of_a_test_set_does_not_follow_from_two_validation_images(monkeypatch):
    """A call takes 0.3 s, an image 1 ms, and tracing 2 s: 150 images take 0.45 s, not 23."""
    clock = [0.0]

    def evaluate(count, verbose):
        clock[0] += 0.3 + 0.001 * count + (2.0 if clock[0] == 0 else 0.0)

    monkeypatch.setattr(calibration.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(calibration.loop, "evaluation", lambda some, strategy: len(some))
    model = types.SimpleNamespace(evaluate=evaluate, distribute_strategy=None)
    call, image, traced = calibration.evaluation(model, np.arange(3))
    assert traced == pytest.approx(2.0)
    speed = calibration.Speed(step=1.0, evaluated=image, setup=0.0, call=call)
    assert speed.evaluation(range(150)) == pytest.approx(0.45, rel=0.01)
    assert speed.evaluation(range(2)) == pytest.approx(0.302, rel=0.01)
    assert speed.evaluation(()) == 0


@pytest.mark.parametrize(
    ("flags", "preset", "found"),
    [
        # 600 s of 0.1 s a step; the strong search takes 0.25 s.
        (["--budget=10m"], 5000, (1, "paper", "affine:0.3")),
        (["--budget=1h"], 35_000, (8, "steepest", "affine:0.15")),
        (["--budget=1h", "--transforms=noise:1"], 35_000, (8, "steepest", "noise:1")),
        (["--budget=1h", "--candidates=3"], 35_000, (3, "steepest", "affine:0.15")),
        (["--budget=1h", "--method=random"], 35_000, (None, None, "affine:0.3")),
    ],
)
def test_a_long_run_has_the_strong_search(flags, preset, found, here, capsys, monkeypatch):
    measured = []

    def measure(config, images, strategy):
        measured.append(config)
        return calibration.Speed(
            step=0.25 if config.ascent == "steepest" else 0.1, evaluated=0.0, setup=0.0
        )

    monkeypatch.setattr(calibration, "measure", measure)
    images = types.SimpleNamespace(labeled=range(10), unlabeled=range(9), validation=(), test=())
    run = choice.of(cli.parse(["--dataset=digits", "--labels=20", *flags], training=True))
    config, _ = run.fit_to_time(run.fit_to_images(), images, None, time.monotonic())
    assert (config.candidates, config.ascent, str(config.transforms)) == found
    long = preset >= recipe.LONG_STEPS and config.method == "rat"
    assert len(measured) == 1 + long and config.run_dir == run.config.run_dir
    assert ("configs/folder/long.cfg, too" in capsys.readouterr().out) == long
    assert preset * (0.4 if long else 1) == pytest.approx(config.iterations, rel=0.2)


def test_a_run_with_a_budget_is_the_run_that_its_flags_describe(here, capsys, monkeypatch):
    """The timed steps leave no trace in it: trained again from flags.cfg, it is bit-identical."""
    monkeypatch.setattr(calibration, "TIMED", 0.01)
    slow = calibration.Speed(step=1.0, evaluated=0.0, setup=0.0)
    measure, fit_to = calibration.measure, calibration.fit_to
    monkeypatch.setattr(calibration, "measure", lambda *args: measure(*args) and slow)
    # However long this machine took so far, 29 seconds are left.
    monkeypatch.setattr(calibration, "fit_to", lambda c, i, s, _, b: fit_to(c, i, s, 29.0, b))
    flags = [flag for flag in FLAGS if "iterations" not in flag]
    flags.append("--method=mean_teacher")  # its step is traced soon, and that is done three times
    shares = ["--validate_every=50%", "--consistency_rampup=40%", "--decay_at=80%"]
    command = [*flags, *shares, "--budget=29s", "--image_size=8", "--augment_shift=1"]
    train.start(cli.parse(command, training=True))
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[:9]] == [
        *("reading", "preset", "data", "method", "augment", "network", "device", "run", "time"),
    ]
    assert "augment  shift 1 px, crop 0.8, flip, color 0.3\n" in out
    assert " of the averaged weights, test error there " in out
    assert "time     about 20 seconds: 20 steps at 1 steps/s" in out
    folder = "runs/digits20/mean_teacher-seed0"
    again = run_folder.Run(folder).config(run_dir="again")
    assert (again.iterations, again.network, again.evaluate) == (20, "tiny", "teacher")
    train.main(again)
    assert runs.rows(folder) == runs.rows("again") != []
    capsys.readouterr()
    train.start(cli.parse(command, training=True))
    assert f"{folder} is finished" in capsys.readouterr().out
