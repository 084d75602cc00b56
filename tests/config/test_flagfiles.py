"""Flagfiles: where they are found, how they nest, and what is said about wrong ones."""

import os
import pathlib

import pytest
from absl import flags

from rat_tf import errors
from rat_tf.config import flagfiles

PROJECT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with flagfiles that nest; not the project's."""
    (tmp_path / "base.cfg").write_text("--labels=70\n--seed=5\n")
    (tmp_path / "top.cfg").write_text("# a comment\n\n  --flagfile=base.cfg \n// another\n--seed=6")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected", "named"),
    [
        ([], [], []),
        (["--seed=1", "run"], ["--seed=1", "run"], []),
        (
            ["--x=1", "--flagfile=top.cfg"],
            ["--labels=70", "--seed=5", "--seed=6", "--x=1"],
            ["top.cfg"],
        ),
        (["-flagfile", "base.cfg", "a"], ["--labels=70", "--seed=5", "a"], ["base.cfg"]),
        (["--", "--flagfile=base.cfg"], ["--", "--flagfile=base.cfg"], []),
        (["--flagfiles=base.cfg"], ["--flagfiles=base.cfg"], []),
    ],
)
def test_flags_of_files_come_first_and_in_order(folder, arguments, expected, named):
    of_files, rest, names = flagfiles.expand(arguments)
    assert ([*of_files, *rest], names) == (expected, named)


def test_a_file_may_be_included_twice_but_not_by_itself(folder):
    (folder / "twice.cfg").write_text("--flagfile=base.cfg\n--flagfile=base.cfg\n")
    assert flagfiles.expand(["--flagfile=twice.cfg"])[0] == ["--labels=70", "--seed=5"] * 2
    (folder / "a.cfg").write_text("--flagfile=b.cfg\n")
    (folder / "b.cfg").write_text("--flagfile=./a.cfg\n")
    with pytest.raises(errors.UserError, match=r"^b\.cfg: --flagfile: \./a\.cfg includes itself$"):
        flagfiles.expand(["--flagfile=a.cfg"])


def test_every_flagfile_of_the_project_is_found_from_any_folder_and_read_as_absl_reads_it(
    folder, monkeypatch
):
    """absl reads them in the project's folder only."""
    names = flagfiles.names()
    assert names == sorted(
        path.relative_to(PROJECT).as_posix() for path in (PROJECT / "configs").rglob("*.cfg")
    )
    expanded = {name: flagfiles.expand([f"--flagfile={name}"])[0] for name in names}
    monkeypatch.chdir(PROJECT)
    for name in names:
        assert expanded[name] == flags.FlagValues().read_flags_from_files([f"--flagfile={name}"])


def test_the_current_folder_comes_before_the_project_also_for_included_files(folder):
    (row,) = (name for name in flagfiles.names() if name.endswith("svhn/vat.cfg"))
    assert os.path.samefile(flagfiles.find(row), PROJECT / row)
    shared = folder / "configs/paper/svhn/shared.cfg"
    shared.parent.mkdir(parents=True)
    shared.write_text("--dataset=mine\n")
    assert flagfiles.expand([f"--flagfile={row}"])[0][0] == "--dataset=mine"
    assert flagfiles.names(str(folder)) == ["configs/paper/svhn/shared.cfg"]


def test_only_configs_is_looked_for_in_the_package(folder):
    for path in ("flagfiles.py", "configs/../flagfiles.py", "../config/configs/digits50.cfg"):
        with pytest.raises(errors.UserError, match="no such file"):
            flagfiles.find(path)


def test_flags_of_earlier_versions_that_did_nothing_are_passed_over(folder):
    """Runs of 0.2.0 have them in their flags.cfg."""
    (folder / "old.cfg").write_text("--seed=1\n--kl_cap=0.0\n--epsilon_draw=fixed\n--labels=3\n")
    assert flagfiles.expand(["--flagfile=old.cfg"])[0] == ["--seed=1", "--labels=3"]
    (folder / "old.cfg").write_text("--seed=1\n--kl_cap=2.0\n")
    with pytest.raises(errors.UserError, match="old.cfg: --kl_cap: this version has no such.*2.0"):
        flagfiles.expand(["--flagfile=old.cfg"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "--flagfile: no such file: wrong.cfg"),
        (b"--flagfile=\n", "wrong.cfg: --flagfile: expected the name of a file, got ''"),
        (b"--flagfile base.cfg\n", "wrong.cfg, line 1: expected a flag such as --seed=1 or "),
        (b"--flagfile=gone.cfg", "wrong.cfg: --flagfile: no such file: gone.cfg"),
        (b"--flagfile=.", "wrong.cfg: --flagfile: cannot read .: expected a file, found a folder"),
        (b"--seed=\xff\n", "--flagfile: wrong.cfg is not a text file (UTF-8)"),
        (b"--seed=1\n\nlabels=3", "wrong.cfg, line 3: expected a flag such as --seed=1 or "),
        (
            b"--\n",
            "wrong.cfg, line 1: expected a flag such as --seed=1 or --flagfile=<file>, got '--'",
        ),
        (b"--flagfile=configs/svhn100.cfg", "did you mean 'configs/svhn1000.cfg'?"),
    ],
)
def test_the_file_that_is_wrong_is_named(folder, content, message):
    if content is not None:
        (folder / "wrong.cfg").write_bytes(content)
    with pytest.raises(errors.UserError) as raised:
        flagfiles.expand(["--flagfile=wrong.cfg"])
    assert message in str(raised.value)


@pytest.mark.parametrize("arguments", [["--flagfile"], ["--flagfile="], ["--flagfile", "--seed=1"]])
def test_a_flagfile_without_a_name_is_refused(arguments):
    with pytest.raises(errors.UserError, match="--flagfile: expected the name of a file"):
        flagfiles.expand(arguments)
