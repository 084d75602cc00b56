"""Copies in folders of classes, and names of classes that are no names of folders."""

import os
import pathlib

import numpy as np
import pytest
from PIL import Image

from rat_tf import errors
from rat_tf.labelling import layout, page
from tests.data import make


def test_files_are_copied_and_arrays_written(tmp_path):
    make.png(str(tmp_path / "in/a.png"), make.pixels(1)[0])
    make.png(str(tmp_path / "in2/a.png"), make.pixels(1, seed=1)[0])
    array = make.pixels(1, (4, 5, 1))[0]
    names = [str(tmp_path / "in/a.png"), str(tmp_path / "in2/a.png"), "digits/train/17"]
    cards = [page.Card(name, array, np.ones(2) / 2, "why") for name in names]
    target = tmp_path / "out"
    layout.check(str(target))
    layout.copy(str(target), cards, ["cat", "cat", "a/b"], ("cat", "a/b", ".."))
    found = sorted(os.path.relpath(p, target) for p in target.rglob("*"))
    assert found == [
        "_..", "a_b", "a_b/0003-17.png", "cat", "cat/0001-a.png", "cat/0002-a.png",
    ]  # fmt: skip
    for number, name in enumerate(names[:2], 1):
        assert (target / f"cat/000{number}-a.png").read_bytes() == pathlib.Path(name).read_bytes()
    np.testing.assert_array_equal(np.asarray(Image.open(target / "a_b/0003-17.png")), array[..., 0])
    with pytest.raises(errors.UserError, match="--copy_to: expected a new or empty folder"):
        layout.check(str(target))
