"""Flags: what is refused and in which words, who wins, and what a run folder keeps of them."""

import dataclasses
import subprocess
import sys

import pytest

from rat_tf import cli, transforms
from rat_tf import config as config_lib


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "rta"}, ["--method", "'rta'", "did you mean 'rat'"]),
        ({"dataset": "svnh"}, ["--dataset", "'svnh'", "did you mean 'svhn'"]),
        ({"transforms": "noise:1,afine:0.6"}, ["--transforms", "afine:0.6", "'affine'"]),
        ({"transforms": "affine:0"}, ["--transforms", "affine:0", "> 0"]),
        ({"transforms": "affine:-1"}, ["--transforms", "affine:-1", "> 0"]),
        ({"method": "vat", "transforms": "affine:1"}, ["--transforms", "vat", "noise"]),
        ({"xi": "small"}, ["--xi", "'small'", "0.5eps"]),
        ({"xi": "-1e-6"}, ["--xi", "'-1e-6'"]),
        ({"network": "wrn-27-2"}, ["--network", "wrn-28-2", "'wrn-27-2'"]),
        ({"labels": -1}, ["--labels", "-1"]),
        ({"learning_rate": 0.0}, ["--learning_rate", "> 0", "0.0"]),
        ({"learning_rate": float("nan")}, ["--learning_rate", "nan"]),
        ({"seed": -1}, ["--seed", "-1"]),
        ({"seed": 2**40}, ["--seed", str(2**40)]),
        ({"unlabeled_batch": 0}, ["--unlabeled_batch", "rat", "> 0"]),
        ({"power_iterations": 0}, ["--power_iterations", ">= 1"]),
        ({"ema_decay": 1.0}, ["--ema_decay", "1.0"]),
        ({"validate_every": 30_000}, ["--validate_every", "--iterations=500000", "30000"]),
        ({"checkpoint_every": 4_000}, ["--checkpoint_every", "--validate_every=25000", "4000"]),
        ({"method": "supervised", "transforms": "noise:1"}, ["--transforms", "supervised", "rat"]),
        ({"method": "random", "ascent": "steepest"}, ["--ascent", "random", "rat, vat"]),
        ({"method": "pi_model", "kl_direction": "clean_adversarial"}, ["--kl_direction"]),
        ({"method": "mean_teacher", "epsilon_rampup": 5}, ["--epsilon_rampup", "mean_teacher"]),
        ({"method": "pseudo_label", "mixup": True}, ["--mixup", "pseudo_label", "mixmatch"]),
        ({"method": "vat", "padding": "edge"}, ["--padding", "vat"]),
        ({"mixup_alpha": 2.0}, ["--mixup_alpha", "without --mixup"]),
        ({"method": "mixmatch", "power_iterations": 1}, ["--power_iterations", "mixmatch"]),
        ({"method": "mean_teacher", "ema_decay": 0.0}, ["--ema_decay", "teacher", "> 0"]),
        ({"evaluate": "teacher"}, ["--ema_decay", "teacher", "> 0"]),
        ({"jit_compile": True, "sampler": "resampler"}, ["--sampler", "gather"]),
    ],
)
def test_a_mistake_is_named_with_what_was_expected_and_found(changes, words):
    with pytest.raises(config_lib.UserError) as error:
        config_lib.Config(**changes)
    assert [word for word in words if word not in str(error.value)] == [], error.value


def test_defaults_are_the_papers():
    """Table 2 of the paper and its section on experiments, for SVHN."""
    config = config_lib.Config()
    assert (config.consistency, config.entropy_multiplier, float(config.xi)) == (0.3, 0.06, 1e-6)
    assert (config.learning_rate, config.decay, config.decay_at) == (0.003, 0.2, 400_000)
    assert (config.iterations, config.consistency_rampup) == (500_000, 200_000)
    assert (config.validate_every, config.network) == (25_000, "wrn-28-2")
    epsilons = {t.name: t.epsilon for t in config.transform().transforms}
    assert epsilons == {"noise": 1.0, "affine": 0.6}
    assert (config.power_iterations, config.ascent) == (1, "paper")
    assert config.kl_direction == "clean_adversarial"


@pytest.mark.parametrize(
    ("method", "learning_rate", "consistency", "ema_decay"),
    [
        ("supervised", 0.003, None, 0),
        ("pi_model", 0.0003, 20, 0),
        ("mean_teacher", 0.0004, 8, 0.95),
        ("pseudo_label", 0.003, 1, 0),
        ("vat", 0.003, 0.3, 0),
    ],
)
def test_defaults_of_the_baselines_are_the_papers(method, learning_rate, consistency, ema_decay):
    """The table of hyper-parameters in the paper's appendix."""
    config = config_lib.Config(method=method)
    assert config.learning_rate == learning_rate
    assert config.consistency == consistency
    assert config.ema_decay == ema_decay
    assert config_lib.Config(method="pseudo_label").pseudo_label_threshold == 0.95


def test_a_flagfile_serves_other_methods_but_a_flag_given_for_nothing_is_refused(tmp_path):
    path = tmp_path / "rat.cfg"
    path.write_text("--transforms=noise:2,affine:0.3\n--xi=1e-2\n--consistency=0.7\n")
    random = config_lib.from_file(str(path), method="random")
    assert (random.transforms, random.xi, random.consistency) == ("noise:2,affine:0.3", None, 0.7)
    supervised = config_lib.from_file(str(path), method="supervised")
    assert (supervised.transforms, supervised.consistency) == (None, None)
    assert config_lib.Config(method="supervised") == supervised
    with pytest.raises(config_lib.UserError, match="--xi.*supervised"):
        config_lib.from_file(str(path), method="supervised", xi="1e-3")


def test_another_method_takes_its_own_defaults_and_keeps_what_was_chosen():
    config = config_lib.Config(consistency=0.7, xi="1e-2", labels=250)
    pi_model = config_lib.changed(config, method="pi_model", seed=4)
    expected = config_lib.Config(method="pi_model", consistency=0.7, labels=250, seed=4)
    assert pi_model == expected and pi_model.learning_rate == 0.0003
    assert config_lib.changed(config, seed=4) == dataclasses.replace(config, seed=4)


def test_vat_is_the_noise_alone():
    config = config_lib.Config(method="vat", transforms="affine:0.6,noise:2")
    (noise,) = config.transform().transforms
    assert isinstance(noise, transforms.Noise) and noise.epsilon == 2


def test_xla_gets_the_sampler_it_can_compile():
    sampler = lambda **flags: config_lib.Config(**flags).transform().transforms[1].sampler  # noqa: E731
    assert sampler() == "resampler"
    assert sampler(jit_compile=True) == "gather"
    assert sampler(sampler="gather") == "gather"


def test_a_flagfile_makes_the_same_config_again(tmp_path):
    config = config_lib.Config(
        method="random", labels=50, transforms="tps:0.5", sync_batch_norm=True, mixed_precision=""
    )
    path = tmp_path / "flags.cfg"
    path.write_text(config.flagfile())
    assert config_lib.from_file(str(path)) == config
    assert config_lib.from_file(str(path), seed=7) == dataclasses.replace(config, seed=7)


def test_a_broken_flagfile_is_named(tmp_path):
    path = tmp_path / "flags.cfg"
    path.write_text("--labels=many\n")
    with pytest.raises(config_lib.UserError, match="flags.cfg.*labels"):
        config_lib.from_file(str(path))


def test_differences_name_what_changes_the_result_and_nothing_else():
    here = config_lib.Config(seed=1, run_dir="a", data_dir="b", steps_per_execution=5)
    (line,) = here.differences(config_lib.Config(seed=2, run_dir="c"))
    assert "--seed=1" in line and "--seed=2" in line


def _print(folder, *arguments):
    """What a command prints of its config."""
    code = "from rat_tf import cli;cli.run(lambda c: print(c.labels, c.seed, c.network, c.run_dir))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Flagfiles that nest, in a folder from which rat_tf can be imported."""
    (tmp_path / "base.cfg").write_text("--labels=70\n--seed=5\n--network=wrn-10-1\n")
    (tmp_path / "top.cfg").write_text("# a comment\n--flagfile=base.cfg\n--seed=6\n")
    monkeypatch.setenv("PYTHONPATH", str(config_lib.__file__).rsplit("/rat_tf/", 1)[0])
    return tmp_path


def test_flagfiles_nest_and_the_command_line_wins_wherever_it_stands(folder):
    expected = "70 7 wrn-10-1 runs/top/rat-seed7"
    assert _print(folder, "--seed=7", "--flagfile=top.cfg") == (0, expected, "")
    assert _print(folder, "--flagfile", "top.cfg", "--seed", "7") == (0, expected, "")


@pytest.mark.parametrize(
    ("flagfile", "changes", "expected"),
    [
        ("configs/a.cfg", {}, "runs/a/rat-seed5"),
        ("configs/paper/svhn/a.cfg", {}, "runs/paper/svhn/a/rat-seed5"),
        ("./configs/paper/b/a.cfg", {"labels": 250}, "runs/paper/b/a/rat-labels250-seed5"),
        ("configs/a.cfg", {"labels": 70, "method": "vat"}, "runs/a/vat-seed5"),
        ("elsewhere/configs.cfg", {}, "runs/configs/rat-seed5"),
    ],
)
def test_run_folders_of_different_flagfiles_and_label_counts_differ(
    folder, monkeypatch, flagfile, changes, expected
):
    monkeypatch.chdir(folder)
    path = folder / flagfile
    path.parent.mkdir(parents=True)
    path.write_text("--flagfile=base.cfg\n")
    config = config_lib.from_file(flagfile, **changes)
    assert cli.default_run_dir(config, flagfile) == expected


def test_run_folders_without_a_flagfile_are_named_after_the_data():
    config = config_lib.Config(labels=40, dataset="folder:my/pets", seed=2)
    assert cli.default_run_dir(config) == "runs/folder-my-pets40/rat-seed2"
    varied = cli.default_run_dir(
        config, "", {"transforms": "noise:1,affine:0.6", "xi": "1e-6"}, "r"
    )
    assert varied == "r/folder-my-pets40/rat-transformsnoise_1_affine_0.6-xi1e_6-seed2"


def test_mistakes_on_the_command_line_end_with_one_line_and_status_2(folder):
    for arguments, words in (
        (["--metod=rat"], "method"),
        (["--flagfile=missing.cfg"], "missing.cfg"),
        (["--labels=many"], "labels"),
        (["stray"], "stray"),
        (["--method=supervised", "--xi=1e-2"], "--xi: method supervised has no use for it"),
    ):
        status, out, err = _print(folder, *arguments)
        assert (status, out) == (2, "") and words in err
        assert err.startswith("error: ") and "Traceback" not in err


def test_help_shows_every_flag_with_its_default_in_groups():
    text = cli.help_text("What it does.")
    for field in dataclasses.fields(config_lib.Config):
        assert f"--{field.name}\n" in text
    for group in ("Method:", "Data:", "Training:", "Machine:"):
        assert f"\n{group}\n" in text
    assert "[0.1]" in text and text.startswith("What it does.")
    flat = " ".join(text.split())
    assert "pi_model: 0.0003; mean_teacher: 0.0004" in flat
