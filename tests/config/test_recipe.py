"""The recipe: which preset fits, what wins over it, and what is recorded of the command."""

import os

import pytest
from PIL import Image

from rat_tf import errors, sweep, tune
from rat_tf.config import cli, flag_values, flagfiles, recipe, training_flags
from rat_tf.tuning import search_settings

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")
PETS = "--dataset=folder:pets"
PRESET = "configs/folder/cpu-32.cfg"


def parse(*arguments):
    return cli.parse(arguments, training=True)


@pytest.mark.parametrize(
    ("arguments", "applies", "measures"),
    [
        ((PETS,), True, True),
        ((PETS, "--iterations=500"), True, False),
        ((PETS, "--budget=none"), False, False),
        (("--dataset=digits",), False, False),
        (("--dataset=digits", "--budget=2m"), True, True),
        (("--flagfile=configs/digits50.cfg",), False, False),
        (("--flagfile=configs/digits50.cfg", "--budget=2m"), False, True),
        (("--flagfile=configs/digits50.cfg", PETS), False, False),
        ((f"--flagfile={PRESET}",), False, False),  # its --budget chooses a preset, no more
    ],
)
def test_when_flags_are_chosen_and_steps_are_measured(arguments, applies, measures):
    parsed = parse(*arguments)
    assert (recipe.applies(parsed), recipe.measures(parsed)) == (applies, measures)


def test_steps_and_time_together_are_refused():
    with pytest.raises(errors.UserError, match="--budget: cannot be combined with --iterations"):
        recipe.measures(parse(PETS, "--budget=5m", "--iterations=5"))


def test_a_preset_as_flagfile_needs_a_time_or_steps():
    given = f"--flagfile={PRESET}"
    for enough in ("--budget=5m", "--budget=none", "--iterations=500"):
        recipe.check_steps(parse(given, enough))
    recipe.check_steps(parse("--flagfile=configs/digits50.cfg"))
    with pytest.raises(errors.UserError, match=f"{given}: .* preset .*or --iterations"):
        recipe.check_steps(parse(given, PETS))
    recipe.check_steps(parse(given), "--iterations=<steps>", varied=("seed", "iterations"))


def test_sweep_and_tune_measure_nothing_and_need_steps_with_a_preset():
    given = [f"--flagfile={PRESET}", "--dataset=digits", "--labels=50"]
    match = "expected --iterations=<steps> on the command line"
    with pytest.raises(errors.UserError, match=match):
        sweep.planned_runs(cli.parse(given, sweep.Flags, training=True))
    varied = cli.parse([*given, "--vary=iterations=500|1000"], sweep.Flags, training=True)
    assert [run.config.iterations for run in sweep.planned_runs(varied)] == [500, 1000]
    with pytest.raises(errors.UserError, match=match):
        tune.main(cli.parse(given, search_settings.Settings, training=True))


def test_the_flags_of_a_run_with_a_budget_are_enough(tmp_path):
    path = tmp_path / "flags.cfg"
    path.write_text("--dataset=digits\n--budget=5m\n--iterations=700\n")
    recipe.check_steps(parse(f"--flagfile={path}"))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172_800)]
)
def test_times(text, seconds):
    assert training_flags.seconds(text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "-1h", "0m", "1w", "10 m", "ten"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(errors.UserError, match="--budget: expected a time such as 10m or 2h"):
        recipe.config(parse(PETS, f"--budget={text}"), PRESET)


@pytest.mark.parametrize("given", [(PETS,), ("--flagfile=configs/digits50.cfg", "--budget=5m")])
@pytest.mark.parametrize(
    ("text", "words"),
    [("abc", "a share of --iterations such as 40%, got 'abc'"), ("0", "a number >= 1, got 0")],
)
def test_steps_between_validations_are_checked_before_the_run_is_measured(given, text, words):
    with pytest.raises(errors.UserError, match=f"--validate_every: expected .*{words}"):
        recipe.config(parse(*given, f"--validate_every={text}"), PRESET if PETS in given else "")


def test_flags_that_are_given_win_and_the_rest_are_the_presets():
    parsed = parse(PETS, "--labels=30", "--decay_at=50%", "--seed=4")
    config = recipe.config(parsed, PRESET, side=200)
    preset = flag_values.of_file(PRESET)
    assert (config.labels, str(config.decay_at), config.seed) == (30, "50%", 4)
    for name in ("network", "labeled_batch", "augment_flip", "image_size"):
        assert getattr(config, name) == preset[name]
    assert recipe.config(parsed, PRESET, side=21).image_size == 16  # smaller images
    assert recipe.config(parse(PETS, "--image_size=50"), PRESET, side=200).image_size == 50
    # Flags of the preset that another method does not use are dropped.
    assert recipe.config(parse(PETS, "--method=supervised"), PRESET).transforms is None


def test_a_flagfile_keeps_its_flags_and_gets_steps_that_its_validations_divide():
    parsed = parse("--flagfile=configs/cpu/svhn1000_small.cfg", "--budget=5m")
    config = recipe.config(parsed)
    assert (config.network, config.image_size, config.labels) == ("wrn-10-1", 16, 1000)
    assert config.iterations % config.validate_every == 0


def test_presets_fit_the_size_and_the_time():
    """For each: the images fit where the time permits, and the device is its own."""
    names = [n for n in flagfiles.names() if n.startswith("configs/folder/") and "-" in n]
    assert len(names) == 6
    for name in names:
        device, size = name.split("/")[-1].removesuffix(".cfg").split("-")
        values = flag_values.of_file(name)
        assert str(values["image_size"]) == size
        assert recipe.pick(device, int(size), values["budget"]) == name
    assert recipe.pick("cpu", 500, "2m") == "configs/folder/cpu-32.cfg"
    assert recipe.pick("cpu", 500, "") == "configs/folder/cpu-64.cfg"  # 30 minutes
    assert recipe.pick("cpu", 500, "10h") == "configs/folder/cpu-96.cfg"
    assert recipe.pick("gpu", 8, "2d") == "configs/folder/gpu-64.cfg"


def test_the_side_is_the_median_of_what_can_be_read(tmp_path):
    for number, (width, height) in enumerate([(60, 400), (300, 90), (120, 120)]):
        folder = tmp_path / f"train/{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, height)).save(folder / f"{number}.jpg")
    (tmp_path / "train/0/broken.png").write_bytes(b"no image")
    os.mkfifo(tmp_path / "train/0/pipe.png")  # would wait for a writer
    (tmp_path / "train/root").symlink_to("/")  # all files of the machine
    assert recipe.side_of_folder(f"folder:{tmp_path}") == 90
    assert recipe.side_of_folder(f"folder:{tmp_path}/nowhere") == 0


def test_a_command_is_known_by_the_flags_that_change_its_result():
    one = recipe.given(parse(PETS, "--budget=5m", "--cache_dir=x", "--run_dir=y", "--seed=0"))
    assert one == {"budget": "5m", "dataset": "folder:pets", "seed": "0"}
    flagfile = recipe.given(parse("--flagfile=configs/digits50.cfg", "--budget=5m"))
    assert flagfile == {"budget": "5m", "flagfile": "configs/digits50.cfg"}
