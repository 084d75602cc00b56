"""The flagfiles of configs/: all can be read, are what the paper says, and train a step."""

import csv
import pathlib
import shutil

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf.config import flag_values
from rat_tf.experiments import flagfile_checks, paper
from tests import runs

ROOT = pathlib.Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.usefixtures("in_the_projects_folder")


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The flagfiles in a folder where they may be spoilt."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_flagfile_is_what_the_paper_says():
    found = {path: flagfile_checks.problems(path, step=False) for path in flagfile_checks.files()}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_every_row_has_a_flagfile_and_every_flagfile_of_the_paper_a_row():
    rows = {row.path for row in paper.rows()}
    assert rows == {path for path in flagfile_checks.files() if path.startswith(paper.FOLDER)}


def test_a_row_that_stands_in_several_tables_has_one_number():
    """The paper repeats itself: its tables must agree, or one was copied wrongly."""
    numbers = {}
    for table in paper.TABLES.values():
        for row in table.rows:
            numbers.setdefault((row.path, row.labels), set()).add((row.mean, row.std))
    assert {key: found for key, found in numbers.items() if len(found) > 1} == {}
    counts = {name: len(table.rows) for name, table in paper.TABLES.items()}
    assert counts["table3"] == 18 and counts["table4"] == 6 and counts["table5"] == 18
    assert counts["table7"] == 11 and counts["table8"] == 6 and counts["figure2"] == 60


@pytest.mark.parametrize("path", ["configs/svhn1000.cfg", "configs/cifar10_4000.cfg"])
def test_the_files_for_the_main_job_are_the_papers_best_row(path):
    config = flag_values.config_of_file(path)
    assert config == flag_values.config_of_file(f"{paper.FOLDER}/{config.dataset}/rat_rampup.cfg")


def test_the_digits_state_the_errors_that_were_measured():
    """README's table and the flagfile against the records of the runs."""
    arms = {
        "supervised": "Supervised",
        "VAT": "VAT, paper, ξ = 1e-6",
        "Random": "Random",
        "RAT, one gradient": "gradient, paper, ξ = 1e-6",
        "MixMatch": "MixMatch",
        "RAT, worst of 8": "worst of 8, steepest",
    }
    errors = {name: [] for name in arms.values()}
    with open(ROOT / "docs/evidence.csv", encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            if record["experiment"] == "digits, wrn-10-1, 50 labels, 1,000 steps":
                errors[record["method"]].append(float(record["test"]))
    assert {len(found) for found in errors.values()} == {10}
    shown = [f"{np.mean(found):.1f} ± {np.std(found, ddof=1):.1f}" for found in errors.values()]
    table = f"| {' | '.join(arms)} |\n{'| --- ' * 6}|\n| {' | '.join(shown)} |\n"
    assert table in (ROOT / "README.md").read_text()
    promise = (ROOT / "configs/digits50.cfg").read_text()
    assert f"{shown[-1]} %" in promise and f"{shown[0]} %" in promise


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The whitening of the images, which is the same for all methods."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("method", config_lib.METHODS)
def test_a_row_of_each_method_trains_a_step(method, cache):
    names = {"rat": "rat_channel_tps"}
    path = f"{paper.FOLDER}/cifar10/{names.get(method, method)}.cfg"
    small = {"network": "tiny", "image_size": 8, "cache_dir": str(cache)}
    assert flagfile_checks.problems(path, **small) == []
    assert flag_values.config_of_file(path).method == method


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("svhn/vat", "noise:1", "noise:6", ["--transforms", "noise:1 ", "noise:6"]),
        ("svhn/rat_affine", "noise:1,affine:0.6", "affine:0.6,noise:1", ["--transforms"]),
        ("cifar10/rat_rampup", "400000", "40000", ["--epsilon_rampup", "400000", "40000"]),
        ("svhn/pi_model", "pi_model\n", "pi_model\n--xi=1\n--decay=0.1\n", ["--decay", "0.2"]),
        ("svhn/mixmatch", "--consistency=250\n", "", ["--consistency", "250", "75"]),
        ("svhn/vat", "5.32", "3.52", ["comment", "5.32 ± 0.25"]),
        ("svhn/vat", "--method=vat", "--metod=vat", ["metod"]),
        ("svhn/vat", "svhn/shared", "svhn/missing", ["missing.cfg"]),
    ],
)
def test_a_wrong_flag_is_named(copy, name, old, new, words):
    path = f"{paper.FOLDER}/{name}.cfg"
    text = (copy / path).read_text()
    assert old in text
    (copy / path).write_text(text.replace(old, new, 1))
    (message,) = flagfile_checks.problems(path, step=False)
    assert [word for word in words if word not in message + ","] == []


def test_a_step_that_fails_is_a_problem_of_that_file(monkeypatch):
    def broken(*_):
        raise ValueError("no network")

    monkeypatch.setattr(flagfile_checks.build, "build", broken)
    assert flagfile_checks.problems("configs/digits50.cfg") == [
        "the training step failed: ValueError: no network"
    ]
    monkeypatch.setattr(flagfile_checks, "one_step", lambda config: (float("nan"), True))
    assert flagfile_checks.problems("configs/digits50.cfg") == [
        "the loss of a training step is nan"
    ]


def test_the_command_ends_with_1_naming_file_and_flag(copy):
    (copy / "configs/paper/svhn/vat.cfg").unlink()
    path = copy / "configs/digits50.cfg"
    path.write_text(path.read_text() + "--labels=many\n")
    status, out, err = runs.command("rat_tf.configs", "--check", "--nosteps")
    assert status == 1
    assert "configs/digits50.cfg: " in err and "labels" in err
    assert "configs/paper/svhn/vat.cfg: missing" in out
    assert "2 wrong" in out


def test_elsewhere_the_flagfiles_of_the_package_are_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = runs.command("rat_tf.configs", "--check", "--nosteps")
    assert (status, err) == (0, "")
    assert "configs/paper/svhn/vat.cfg" in out and "none wrong" in out
