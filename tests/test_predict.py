"""rat_tf.predict and rat_tf.load: files, pools and exports give the predictions of the run."""

import csv
import json
import os

import numpy as np
import pytest
import tensorflow as tf

import rat_tf
from export import savedmodel
from rat_tf import config as config_lib
from rat_tf import data, train
from rat_tf.training import run_folder, weights
from tests import runs
from tests.data import make

COLUMNS = ["file", "class", "probability", "margin", "stability"]


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    return rows


def expected(run_dir, images):
    """Probabilities by the run's network, op by op."""
    logits = weights.load(run_folder.Run(str(run_dir)), "best").logits(images)
    return tf.nn.softmax(logits).numpy()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Digits as files, one of them broken, one of no image's name."""
    folder = tmp_path_factory.mktemp("photos")
    images = data.load(config_lib.Config(dataset="digits", labels=20)).test.images[:7]
    for i, image in enumerate(images):
        make.png(str(folder / f"deep/ziffer-ß{i}.png"), image)
    (folder / "zzz.png").write_bytes(b"not an image")
    (folder / "notes.txt").write_text("not an image")
    return folder, images


def test_files_and_folders(finished_run, photos, tmp_path):
    folder, images = photos
    output = tmp_path / "out.csv"
    flags = [f"--run_dir={finished_run}", f"--output={output}", "--stability_draws=2"]
    status, out, err = runs.command("rat_tf.predict", *flags, folder)
    assert status == 0 and "7 images in" in out
    assert "left out 1 files:" in err and "zzz.png: expected an image" in err
    rows = table(output)
    assert [row["file"] for row in rows] == [f"{folder}/deep/ziffer-ß{i}.png" for i in range(7)]
    probabilities = expected(finished_run, images)
    two = np.sort(probabilities, axis=-1)[:, -2:]
    for row, p, (second, first) in zip(rows, probabilities, two):
        assert row["class"] == str(p.argmax())
        assert float(row["probability"]) == pytest.approx(first, abs=2e-6)
        assert float(row["margin"]) == pytest.approx(first - second, abs=2e-6)
        assert float(row["stability"]) in (0, 0.5, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_the_pool_of_a_run(finished_run, tmp_path):
    output = tmp_path / "pool.csv"
    flags = [f"--run_dir={finished_run}", f"--output={output}", "--pool=unlabeled"]
    assert runs.command("rat_tf.predict", *flags, "--stability_draws=0")[0] == 0
    rows = table(output)
    split = json.loads((finished_run / "split.json").read_text())
    assert [row["file"] for row in rows] == [f"digits/train/{i}" for i in split["unlabeled"]]
    assert {row["stability"] for row in rows} == {""}
    train_images = data.load(run_folder.Run(str(finished_run)).config()).train.images
    found = [int(row["class"]) for row in rows]
    near = expected(finished_run, train_images[split["unlabeled"]]).argmax(-1)
    assert np.mean(near != found) < 0.01  # ties of rounding


def test_python_and_an_export_agree_with_the_run(finished_run, photos, tmp_path):
    folder, images = photos
    model = rat_tf.load(finished_run)
    files = [str(folder / f"deep/ziffer-ß{i}.png") for i in range(7)]
    found = model.predict(files)
    np.testing.assert_allclose(found.probabilities, expected(finished_run, images), atol=1e-5)
    assert found.classes.tolist() == [str(k) for k in found.probabilities.argmax(-1)]
    assert found.files == tuple(files) and found.class_names == tuple("0123456789")
    for same in (images, list(images), [np.repeat(image, 3, -1) for image in images]):
        again = model.predict(same)
        np.testing.assert_allclose(again.probabilities, found.probabilities, atol=1e-5)
    assert model.predict(images[0]).probabilities.shape == (1, 10)
    assert model.predict([]).classes.shape == (0,)

    exported = tmp_path / "models"
    savedmodel.main(str(finished_run), str(exported))
    served = rat_tf.load(exported).predict(files)
    np.testing.assert_allclose(served.probabilities, found.probabilities, atol=1e-5)
    output = tmp_path / "out.csv"
    flags = [f"--model_dir={exported}", f"--output={output}", *files]
    assert runs.command("rat_tf.predict", *flags)[0] == 0
    assert [row["class"] for row in table(output)] == served.classes.tolist()
    assert {row["stability"] for row in table(output)} == {""}


@pytest.mark.parametrize(
    "images, match",
    [
        (np.zeros((2, 8, 8, 1)), "expected arrays of uint8.* got float64"),
        ([np.zeros((8, 8), np.uint8)], r"got uint8 \[8, 8\] at 0"),
        (["a.png", np.zeros((8, 8, 1), np.uint8)], "files or arrays, got both"),
        ("nowhere.png", "nowhere.png: cannot be read: No such file"),
    ],
)
def test_what_python_refuses(finished_run, images, match):
    with pytest.raises(ValueError, match=match):
        rat_tf.load(finished_run).predict(images)


@pytest.mark.parametrize("path, match", [("nowhere", "no such folder"), (".", "<version>/saved")])
def test_folders_that_are_no_classifier(path, match):
    with pytest.raises(ValueError, match=match):
        rat_tf.load(path)


def test_a_method_without_transformations_has_no_stability(photos, tmp_path):
    flags = {**runs.TINY, "iterations": 2, "validate_every": 2, "method": "supervised"}
    flags |= {"consistency_rampup": None, "tensorboard": False, "run_dir": str(tmp_path / "run")}
    train.main(config_lib.Config(**flags))
    output = tmp_path / "out.csv"
    run_dir = f"--run_dir={tmp_path / 'run'}"
    assert runs.command("rat_tf.predict", run_dir, f"--output={output}", photos[0])[0] == 0
    assert {row["stability"] for row in table(output)} == {""}


@pytest.mark.parametrize(
    "flags, match",
    [
        (["{files}"], "expected either --run_dir or --model_dir"),
        (["--run_dir={run}", "--model_dir=x", "{files}"], "expected either --run_dir or"),
        (["--run_dir={run}"], "expected image files or folders, or --pool"),
        (["--run_dir={run}", "--pool=unlabeled", "{files}"], "--pool: expected no files, got"),
        (["--run_dir={run}", "nowhere.png"], "nowhere.png: no such file or folder"),
        (["--run_dir={files}", "{files}"], "--run_dir: expected a run folder"),
        (["--model_dir={files}", "{files}"], "--model_dir: expected a folder of export.savedmodel"),
        (["--model_dir=x", "--weights=ema", "{files}"], "--weights: not used with --model_dir"),
        (["--run_dir={run}", "{files}/zzz.png"], "none of the 1 images could be read"),
        (["--run_dir={run}", "--output=no/such/x.csv", "{files}"], "--output: expected a file in"),
    ],
)
def test_wrong_uses(finished_run, photos, tmp_path, flags, match):
    flags = [flag.format(run=finished_run, files=photos[0]) for flag in flags]
    status, out, err = runs.command("rat_tf.predict", f"--output={tmp_path / 'x.csv'}", *flags)
    assert (status, out) == (2, "") and match in err
    assert not list(tmp_path.iterdir())


def test_names_that_are_not_utf8(finished_run, photos, tmp_path):
    image = next((photos[0] / "deep").iterdir()).read_bytes()
    odd = tmp_path / "in" / os.fsdecode(b"caf\xe9.png")
    odd.parent.mkdir()
    try:
        odd.write_bytes(image)
    except OSError:
        pytest.skip("a file system of UTF-8 names only")
    output = tmp_path / "out.csv"
    flags = [f"--run_dir={finished_run}", f"--output={output}", "--stability_draws=0"]
    assert runs.command("rat_tf.predict", *flags, tmp_path / "in")[0] == 0
    assert table(output)[0]["file"].endswith(r"caf\udce9.png")
