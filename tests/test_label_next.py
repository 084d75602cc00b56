"""rat_tf.label_next on a folder and on a set without files: the loop that a user goes through."""

import csv
import json
import os
import shutil

import pytest

from rat_tf import config as config_lib
from rat_tf import train
from tests import runs
from tests.data import make


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A folder of images and a run on it."""
    root = tmp_path_factory.mktemp("pets")
    make.folder(root / "images", labeled=6, unlabeled=12, shape=(8, 8, 3))
    flags = {**runs.TINY, "iterations": 2, "validate_every": 2, "tensorboard": False, "labels": 0}
    flags |= {"dataset": f"folder:{root / 'images'}", "validation": 0.3}
    train.main(config_lib.Config(**flags, run_dir=str(root / "run")))
    return root


def test_a_folder_is_asked_about_once(pets, tmp_path):
    images = tmp_path / "images"
    shutil.copytree(pets / "run", tmp_path / "run")
    shutil.copytree(pets / "images", images)
    flags = (tmp_path / "run/flags.cfg").read_text().replace(str(pets / "images"), str(images))
    (tmp_path / "run/flags.cfg").write_text(flags)
    command = ["rat_tf.label_next", f"--run_dir={tmp_path / 'run'}", f"--output={tmp_path / 'n'}"]
    command += ["--stability_draws=2"]
    copies = tmp_path / "copies"
    status, out, _ = runs.command(*command, "--count=5", f"--copy_to={copies}")
    assert status == 0 and "5 of 12 unlabelled images" in out and "changed" not in out
    assert f"cp -r {copies}/. {images / 'labeled'}\n" in out and "--init_from" in out
    asked = rows(tmp_path / "n/label_next.csv")
    assert len(asked) == 5 and all(os.path.isfile(row["file"]) for row in asked)
    scores = [float(row["score"]) for row in asked]
    assert scores == sorted(scores, reverse=True)
    for row in asked:
        sure = float(row["margin"]) + float(row["stability"])
        assert float(row["score"]) == pytest.approx(2 - sure, abs=2e-6) and row["why"]
    page = (tmp_path / "n/label_next.html").read_text(encoding="utf-8")
    assert page.count("<img") == 5 and all(row["file"] in page for row in asked)
    for number, row in enumerate(asked, 1):
        copy = copies / row["class"] / f"000{number}-{os.path.basename(row['file'])}"
        with open(row["file"], "rb") as file:
            assert copy.read_bytes() == file.read()

    # The copies become labelled images; they are not asked for again.
    for row in asked:
        name = f"new-{os.path.basename(row['file'])}"
        shutil.copy(row["file"], images / "labeled" / row["class"] / name)
    os.remove(asked[0]["file"])  # moved, and the others copied
    status, out, _ = runs.command(*command, "--count=100")
    assert status == 0 and "changed since this run" in out and "7 of 7 unlabelled" in out
    again = {os.path.basename(row["file"]) for row in rows(tmp_path / "n/label_next.csv")}
    assert len(again) == 7 and not again & {os.path.basename(row["file"]) for row in asked}


def test_a_finished_run_of_a_folder_that_has_changed_is_another_run(pets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pets / "images", "images")
    flags = {**runs.TINY, "iterations": 2, "validate_every": 2, "tensorboard": False, "labels": 0}
    command = ["rat_tf.train", *(f"--{name}={value}" for name, value in flags.items())]
    command += ["--dataset=folder:images", "--validation=0.3"]
    first = "runs/folder-images/rat-seed0"
    for dataset in ("images", "./images/"):
        status, out, _ = runs.command(*command, f"--dataset=folder:{dataset}")
        assert status == 0 and first in out
    assert f"{first} is finished; nothing to do" in out
    shutil.copy("images/unlabeled/deep/0.png", "images/labeled/cat/new.png")
    status, _, err = runs.command(*command, f"--run_dir={first}")
    assert status == 2 and f"--init_from={first} to start from its weights" in err
    status, out, _ = runs.command(*command)
    assert status == 0 and "the files of folder:images have changed since" in out
    assert f"this one is {first}-2" in out and os.path.exists(f"{first}-2/result.json")
    status, _, err = runs.command(*command, "--run_dir=images/runs")
    assert status == 2 and "--run_dir: expected a folder outside of --dataset=folder:images" in err


def test_images_without_files_and_doubts(finished_run, tmp_path):
    command = ["rat_tf.label_next", f"--run_dir={finished_run}", f"--output={tmp_path}"]
    status, _, _ = runs.command(
        *command, "--count=3", f"--copy_to={tmp_path / 'c'}", "--stability_draws=0"
    )
    assert status == 0 and len(list((tmp_path / "c").glob("*/*.png"))) == 3
    split = json.loads((finished_run / "split.json").read_text())
    for row in rows(tmp_path / "label_next.csv"):
        kind, part, number = row["file"].split("/")
        assert (kind, part) == ("digits", "train") and int(number) in split["unlabeled"]
        assert float(row["score"]) == pytest.approx(1 - float(row["margin"]), abs=2e-6)

    status, out, _ = runs.command(*command, "--suspicious", "--count=4")
    assert status == 0 and "of 164 labelled images" in out
    doubted = rows(tmp_path / "suspicious.csv")
    assert len(doubted) == 4
    for row in doubted:
        assert row["label"] != row["class"]
        assert float(row["probability"]) > float(row["label_probability"])
        assert int(row["file"].split("/")[-1]) in split["labeled"] + split["validation"]
    assert "<b>" in (tmp_path / "suspicious.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "flags, match",
    [
        (["--run_dir=nowhere"], "--run_dir: expected a run folder, with flags.cfg, but nowhere"),
        (["--run_dir={run}", "--copy_to={run}"], "--copy_to: expected a new or empty folder"),
        (["--run_dir={run}", "--output={run}/flags.cfg"], "--output: expected a folder, but"),
        (["--run_dir={run}", "--weights=worst"], "--weights: expected one of best"),
        (["--run_dir={run}", "extra.png"], "unexpected arguments: extra.png"),
    ],
)
def test_wrong_uses(finished_run, tmp_path, flags, match):
    flags = [flag.format(run=finished_run) for flag in flags]
    status, out, err = runs.command("rat_tf.label_next", f"--output={tmp_path / 'x'}", *flags)
    assert (status, out) == (2, "") and match in err
    assert not list(tmp_path.iterdir())
