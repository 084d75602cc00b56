"""The command line: who wins, where a run's folder is, mistakes in one line, and the help."""

import dataclasses
import importlib
import subprocess
import sys

import pytest

from rat_tf import config as config_lib
from rat_tf.config import cli, run_dirs
from rat_tf.experiments import plan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with flagfiles that nest."""
    (tmp_path / "base.cfg").write_text("--labels=70\n--seed=5\n--network=wrn-10-1\n")
    (tmp_path / "top.cfg").write_text("# a comment\n--flagfile=base.cfg\n--seed=6\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _print(parsed):
    config = parsed.config
    print(config.labels, config.seed, config.network, config.run_dir)


@pytest.fixture
def printed(folder, monkeypatch, capsys):
    """What a command prints of its config, in this process and with flags of its own."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["command", *arguments])
        status = 0
        try:
            cli.command(_print, training=True)
        except SystemExit as ended:
            status = ended.code
        found = capsys.readouterr()
        return status, found.out.strip(), found.err.strip()

    return run


def test_flagfiles_nest_and_the_command_line_wins_wherever_it_stands(printed):
    expected = "70 7 wrn-10-1 runs/top/rat-seed7"
    assert printed("--seed=7", "--flagfile=top.cfg") == (0, expected, "")
    assert printed("--flagfile", "top.cfg", "--seed", "7") == (0, expected, "")


#: The flags with a path, by the class that declares them.
PATHS = {
    "rat_tf.config:Config": "run_dir split_file init_from pretrained data_dir cache_dir",
    "rat_tf.evaluate:Flags": "run_dir data_dir",
    "rat_tf.label_next:Flags": "run_dir output copy_to data_dir",
    "rat_tf.moons:Flags": "output",
    "rat_tf.predict:Flags": "run_dir model_dir output data_dir",
    "rat_tf.report:Flags": "output",
    "rat_tf.sweep:Flags": "runs",
    "rat_tf.tuning.search_settings:Settings": "output",
    "export.savedmodel:Flags": "run_dir output data_dir",
    "export.serve:Flags": "model_dir",
}


@pytest.mark.parametrize("declared", PATHS)
def test_a_tilde_is_the_home_folder(declared, tmp_path, monkeypatch):
    """A shell leaves it as it is in --output=~/x, and flagfiles have no shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    module, _, name = declared.partition(":")
    kind, flags = getattr(importlib.import_module(module), name), PATHS[declared].split()
    given = {flag: f"--{flag}=~/{flag}" for flag in flags}
    if name == "Config":  # one by one, as some exclude each other
        for flag, line in given.items():
            (tmp_path / "some.cfg").write_text(f"--network=keras:MobileNetV2\n{line}\n")
            config = cli.parse([f"--flagfile={tmp_path}/some.cfg"], training=True).config
            assert getattr(config, flag) == str(tmp_path / flag)
            assert flag == "run_dir" or f"--{flag}={tmp_path}/{flag}\n" in config.flagfile()
    else:
        parsed = cli.parse(given.values(), kind)
        assert [getattr(parsed, flag) for flag in flags] == [str(tmp_path / f) for f in flags]
    others = {field.name for field in dataclasses.fields(kind)} - {*flags}
    assert not {"run_dir", "output", "model_dir", "data_dir"} & others


def test_a_run_folder_is_checked_as_any_text(printed):
    status, _, error = printed("--run_dir=~/a*b")
    assert status == 2 and "--run_dir: expected a path without" in error


def test_a_process_prints_nothing_of_its_libraries(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(cli.__file__).rsplit("/rat_tf/", 1)[0])
    main = "cli.command(lambda parsed: print(parsed.config.run_dir), training=True)"
    code = f"from rat_tf.config import cli; {main}"
    command = [sys.executable, "-c", code, "--flagfile=top.cfg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "runs/top/rat-seed6\n", "")


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
    folder, flagfile, changes, expected
):
    path = folder / flagfile
    path.parent.mkdir(parents=True)
    path.write_text("--flagfile=base.cfg\n")
    flags = [f"--{name}={value}" for name, value in changes.items()]
    parsed = cli.parse([f"--flagfile={flagfile}", *flags], training=True)
    assert parsed.config.run_dir == expected


def test_train_and_sweep_name_a_run_alike(folder):
    (folder / "other.cfg").write_text("--seed=8\n")  # without --labels
    files = ("top.cfg", "other.cfg")
    parsed = cli.parse([f"--flagfile={name}" for name in files], training=True)
    (planned,) = plan.plan(files, {}, {}, "runs")
    assert parsed.config.run_dir == planned.config.run_dir == "runs/other/rat-labels70-seed8"


def test_runs_with_the_flags_of_a_run_are_beside_it(tmp_path):
    run = tmp_path / "runs/folder-pets/rat-seed0"
    run.mkdir(parents=True)
    config = config_lib.Config(labels=0)
    (run / "flags.cfg").write_text(config.flagfile())
    flagfile = str(run / "flags.cfg")
    varied = run_dirs.default(config, flagfile, {"xi": "1e-6"})
    assert varied == "runs/folder-pets/rat-xi1e_6-seed0"


def test_run_folders_without_a_flagfile_are_named_after_the_data():
    config = config_lib.Config(labels=40, dataset="folder:my/pets", seed=2)
    assert run_dirs.default(config) == "runs/folder-my-pets40/rat-seed2"
    varied = run_dirs.default(config, "", {"transforms": "noise:1,affine:0.6", "xi": "1e-6"}, "r")
    assert varied == "r/folder-my-pets40/rat-transformsnoise_1_affine_0.6-xi1e_6-seed2"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metod=rat"], "method"),
        (["--flagfile=missing.cfg"], "missing.cfg"),
        (["--labels=many"], "labels"),
        (["stray"], "stray"),
        (["--method=supervised", "--xi=1e-2"], "--xi: not used by --method=supervised"),
    ],
)
def test_mistakes_on_the_command_line_end_with_one_line_and_status_2(arguments, words, printed):
    status, out, err = printed(*arguments)
    assert (status, out) == (2, "") and words in err
    assert err.startswith("error: ") and len(err.splitlines()) == 1


def test_help_shows_every_flag_with_its_default_in_groups():
    text = cli.help_text("What it does.", training=True)
    for field in dataclasses.fields(config_lib.Config):
        assert f"--{field.name}\n" in text
    for group in ("Method:", "Data:", "Training:", "Machine:"):
        assert f"\n{group}\n" in text
    assert "[0.1]" in text and text.startswith("What it does.")
    flat = " ".join(text.split())
    assert "pi_model: 0.0003; mean_teacher: 0.0004" in flat


@pytest.mark.parametrize("name", ["/some/where", None])
def test_a_refusal_of_the_system_names_the_file_whatever_was_done_with_it(name, capsys):
    with pytest.raises(SystemExit), cli.user_errors():
        raise PermissionError(13, "Permission denied", name)
    where = f"{name}: " if name else ""
    assert capsys.readouterr().err == f"error: {where}Permission denied\n"
