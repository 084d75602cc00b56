import types

import numpy as np
import pytest

from rat_tf import adversary, draws, errors, training, transforms
from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf.config import cli
from rat_tf.data import __main__ as command
from rat_tf.data import cache, examples
from rat_tf.training import preview
from tests import runs
from tests.data import make

SMALL = {"labels": 4, "network": "wrn-10-1", "image_size": 8}


def test_description_and_contact_sheet_of_a_folder(tmp_path, capsys):
    written = make.folder(tmp_path / "set")
    make.png(str(tmp_path / "set" / "test" / "cat" / "leak.png"), written["labeled/cat/0.png"])
    run_dir = str(tmp_path / "run")
    config = config_lib.Config(dataset=f"folder:{tmp_path}/set", run_dir=run_dir, **SMALL)
    command.main(config)
    printed = capsys.readouterr().out
    data = data_lib.load(config)
    assert data.train.hash in printed and data.split.digest in printed
    assert "images 8×8×3 uint8" in printed
    lines = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.split()}
    assert lines["cat"][0] == lines["dog"][0] == "2"
    assert lines["total"] == ["4", str(len(data.unlabeled)), str(len(data.validation)), "5"]
    assert "training sees copies of 1 of the" in printed
    with open(tmp_path / "contact_sheet.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_imbalanced_classes_are_named(tmp_path, capsys):
    make.folder(tmp_path / "set", labeled=4)
    for i in range(14):
        make.png(str(tmp_path / "set" / "labeled" / "dog" / f"x{i}.png"), make.pixels(1, seed=i)[0])
    flags = {"labels": 0, "network": "tiny", "run_dir": str(tmp_path / "run")}
    command.main(config_lib.Config(dataset=f"folder:{tmp_path}/set", **flags))
    assert (
        "the classes are imbalanced: 16 labelled images of 'dog', 4 of 'cat'; "
        "--class_weights=balanced" in capsys.readouterr().out
    )


def test_rows_of_the_contact_sheet(tmp_path):
    config = config_lib.Config(
        dataset="digits",
        labels=50,
        network="wrn-10-1",
        preprocessing="gcn_zca",
        cache_dir=str(tmp_path),
        transforms="noise:0.5,affine:0.3",
    )
    data = data_lib.load(config)
    rows = preview.rows(config, data, 10)
    assert len(rows) == 5 and all(len(images) == 10 for _, images, _ in rows)
    assert all(images.dtype == np.uint8 for _, images, _ in rows)
    known = {image.tobytes() for image in data.labeled.images}
    assert all(image.tobytes() in known for image in rows[0][1])
    assert "noise:0.5,affine:0.3, adversarial to the untrained network" in rows[-1][0]
    assert not np.array_equal(rows[-1][1], rows[2][1])


@pytest.mark.parametrize(
    "flags, drawn, words",
    [
        ({}, [], "adversarial to the untrained network"),
        (
            {"adversary": "worst_of"},
            range(10),
            "the most adversarial of 4 to the untrained network",
        ),
        (
            {"adversary_share": 0.5},
            range(0, 10, 2),
            "adversarial (50% of the images, others random)",
        ),
        (
            {"adversary_share": 0.04, "network": "wrn-10-1"},  # none of ten; it has batch norm
            range(10),
            "adversarial (4% of the images, others random)",
        ),
        ({"method": "random"}, range(10), "affine:0.3, random"),
    ],
)
def test_the_contact_sheet_shows_the_search_of_the_run(flags, drawn, words):
    """Candidates are shown as they are drawn; what a gradient found is none of them."""
    flags = {"network": "tiny", **flags}
    config = config_lib.Config(dataset="digits", transforms="affine:0.3", **flags)
    rows = preview.rows(config, data_lib.load(config), 10)
    (_, stored, _), (title, images, _) = rows[1], rows[-1]
    assert words in title
    affine = transforms.parse("affine:0.3")
    shown = []
    for candidate in range(4):
        seed = draws.seed_for(config.seed, candidate, "perturb")
        (direction,) = affine.random_direction(10, stored.shape[1:], seed)
        moved = affine.apply(stored / 127.5 - 1, [0.3 * direction])
        shown.append(np.abs(np.uint8((moved + 1) * 127.5) - 1.0 * images).max(axis=(1, 2, 3)) <= 1)
    np.testing.assert_array_equal(np.flatnonzero(np.any(shown, axis=0)), drawn)
    searched = flags.get("adversary") == "worst_of"
    assert np.any(shown[1:]) == searched


@pytest.mark.parametrize("size, searched", [(96, 10), (224, 1), (304, 0)])
def test_large_images_are_searched_in_small_numbers(size, searched, monkeypatch):
    monkeypatch.setattr(adversary.Search, "__call__", lambda s, t, f, x, *_, **__: found(t, x))

    def found(transform, images):
        assert len(images) == searched > 0
        direction = transform.random_direction(searched, images.shape[1:], [0, 0])
        return types.SimpleNamespace(offsets=direction)

    pixels = np.zeros((3, size, size, 3), np.uint8)
    whole = examples.Examples(pixels, np.arange(3), None, np.zeros((3, 8), np.uint8))
    data = types.SimpleNamespace(labeled=whole, unlabeled=whole, train=whole, class_names="abc")
    config = config_lib.Config(network="wrn-10-1", transforms="noise:1")
    title, images, _ = preview.rows(config, data, 10)[-1]
    assert len(images) == searched
    assert ("to save memory" in title) == (searched < 10) and ("skipped" in title) == (not searched)


def test_batches_that_do_not_divide_by_the_devices_are_refused_as_in_training():
    config = config_lib.Config(dataset="digits", labels=50, logical_devices=3)
    with pytest.raises(errors.UserError, match="--labeled_batch: .*3 replicas"):
        command.main(config)


def test_a_place_that_cannot_be_written_is_an_error():
    config = config_lib.Config(dataset="digits", labels=50, run_dir="/etc/passwd/a/b")
    with pytest.raises(errors.UserError, match="--run_dir: cannot write /etc/passwd/a"):
        command.main(config)


def test_command_line_error_is_one_line():
    status, out, err = runs.command("rat_tf.data.__main__", "--dataset=folder:/no/where")
    assert status == 2 and "Traceback" not in out and len(err.splitlines()) == 1
    assert "error: --dataset=folder:/no/where: no such folder" in err


def test_a_folder_has_the_flags_of_its_preset(tmp_path, monkeypatch, capsys):
    """As in training: all labels, the augmentation for photos; flags that are given win."""
    make.folder(tmp_path / "set")
    monkeypatch.chdir(tmp_path)
    status, out, _ = runs.command(
        "rat_tf.data.__main__", "--dataset=folder:set", "--transforms=affine:0.1"
    )
    assert status == 0 and "preset   configs/folder/cpu-32.cfg" in out
    assert (tmp_path / "runs" / "folder-set" / "contact_sheet.png").exists()
    chosen = training.choice.for_new_run(
        cli.parse(["--dataset=folder:set", "--transforms=affine:0.1"], training=True)
    ).fit_to_images()
    assert (chosen.labels, chosen.augment_crop, str(chosen.transforms)) == (0, 0.8, "affine:0.1")


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder(config_lib.Config()) == str(tmp_path / "rat_tf")
    assert cache.folder(config_lib.Config(cache_dir="/x")) == "/x"
