"""Files are found, read in order and in batches, and fitted as training fits them."""

import os

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data, errors
from rat_tf.prediction import inputs
from tests.data import make


def test_files_and_folders_are_found_once_in_order(tmp_path):
    for name in ("b/2.PNG", "b/c/1.jpg", "a.png", "b/notes.txt", "b/.hidden/3.png", "x[1]/4.webp"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "empty").mkdir()
    odd, b, a = str(tmp_path / "x[1]"), str(tmp_path / "b"), str(tmp_path / "a.png")
    found = inputs.find([a, b, b, odd])
    assert [os.path.relpath(name, tmp_path) for name in found] == [
        *("a.png", "b/2.PNG", "b/c/1.jpg", "x[1]/4.webp")
    ]
    with pytest.raises(errors.UserError, match="expected files that end in .png.* found none"):
        inputs.find([str(tmp_path / "empty")])


@pytest.mark.parametrize("shape", [(5, 5, 1), (4, 7, 3)])
def test_batches_are_those_of_training(tmp_path, shape):
    written = make.folder(tmp_path, shape=(9, 9, 3))
    (tmp_path / "labeled/cat/broken.png").write_bytes(b"\x89PNG no")
    problems, names, images = [], [], []
    files = inputs.find([str(tmp_path / "labeled")])
    for some, batch in inputs.of_files(files, shape, 4, problems):
        names += some
        images += list(batch)
        assert batch.shape[1:] == shape
    assert names == [file for file in files if "broken" not in file] and len(names) == 12
    assert len(problems) == 1 and "broken.png: expected an image" in problems[0]
    if shape[0] == shape[1]:
        config = config_lib.Config(
            dataset=f"folder:{tmp_path}", image_size=5, channels=1, skip_broken=True
        )
        train = make.source(config).train
        np.testing.assert_array_equal(train.images[:12], images)
        assert train.names[:12] == names and len(written) > 12


def test_names_of_a_set_survive_splits_and_skipped_files(tmp_path):
    written = make.folder(tmp_path, labeled=6)
    (tmp_path / "labeled/cat/2.png").write_bytes(b"broken")
    (tmp_path / "unlabeled/deep/0.png").write_bytes(b"broken")
    for limit in (4.0, 0.0):  # in memory, and mapped
        flags = {"labels": 0, "validation": 0.3, "skip_broken": True, "memory_limit_gb": limit}
        loaded = data.load(
            config_lib.Config(
                dataset=f"folder:{tmp_path}", cache_dir=str(tmp_path / ".cache"), **flags
            )
        )
        for part in (loaded.labeled, loaded.unlabeled, loaded.validation, loaded.test):
            for name, image in zip(part.names, part.images):
                np.testing.assert_array_equal(written[os.path.relpath(name, tmp_path)], image)
        assert len(loaded.labeled) + len(loaded.validation) == 11 and len(loaded.unlabeled) == 4


def test_images_without_files_have_numbers():
    digits = data.load(config_lib.Config(dataset="digits", labels=20))
    assert digits.unlabeled.names[0] == f"digits/train/{digits.split.unlabeled[0]}"
    assert digits.test.names[7] == "digits/test/7"
