"""--init_from: the weights of another run, and its validation images by content."""

import os
import shutil

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data, errors, train
from rat_tf.data import kept
from rat_tf.training import run_folder, weights
from tests import runs
from tests.data import make

TINY = {k: v for k, v in runs.TINY.items() if k not in ("dataset", "labels")}
SHORT = {**TINY, "iterations": 2, "validate_every": 2, "tensorboard": False}


def trained(run_dir, **flags):
    train.main(config_lib.Config(**{**SHORT, "run_dir": str(run_dir), **flags}))
    return run_folder.Run(str(run_dir))


def test_the_loop_of_a_folder(tmp_path, capsys):
    folder, first, second = tmp_path / "pets", tmp_path / "first", tmp_path / "second"
    make.folder(folder, labeled=10, unlabeled=12)
    flags = {"dataset": f"folder:{folder}", "labels": 0, "validation": 0.3}
    flags["method"] = "mean_teacher"  # its step is traced soon
    one = trained(first, **flags)
    before = data.load(one.config(split_file=one.split))
    # Labels for half of the pool, and new names for files that had one.
    for i in range(6):
        shutil.move(
            folder / f"unlabeled/deep/{i}.png", folder / f"labeled/{['cat', 'dog'][i % 2]}/u{i}.png"
        )
    for name in os.listdir(folder / "labeled/cat")[:5]:
        shutil.move(folder / "labeled/cat" / name, folder / "labeled/cat" / f"x{name}")
    # A learning rate of almost nothing: the weights are those that it starts from.
    two = trained(second, **flags, init_from=str(first), learning_rate=1e-12)
    assert f"starting from step 2 of {first}" in capsys.readouterr().out
    after = data.load(two.config(split_file=two.split))
    prints = {
        part: [set(kept.texts(getattr(images, part))) for images in (before, after)]
        for part in ("labeled", "validation")
    }
    assert prints["validation"][0] <= prints["validation"][1]
    assert not prints["validation"][1] & prints["labeled"][0]
    assert len(after.validation) == round(0.3 * 26)
    old, new = (weights.load(run, "last").network for run in (one, two))
    for ours, theirs in zip(new.trainable_variables, old.trainable_variables):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)

    # A finished run does not need the first one any more.
    shutil.rmtree(first)
    train.main(two.config())
    assert "is finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"init_from": "nowhere"}, "--init_from: expected a run folder, but nowhere has no flags"),
        ({"network": "wrn-10-1"}, "--network: expected that of --init_from=.*, tiny, got wrn-10-1"),
        ({"preprocessing": "gcn_zca"}, "--preprocessing: expected that of --init_from=.*, scale"),
        ({"image_size": 10}, "--init_from: .* has the image shape 8, 8, 1, but .* has 10, 10, 1"),
        ({"dataset": "folder"}, "--init_from: .* has the class names 0, 1, .* has cat, dog"),
    ],
)
def test_other_runs_are_refused(finished_run, tmp_path, changes, match):
    make.folder(tmp_path / "pets")
    flags = {"dataset": "digits", "labels": 20, "init_from": str(finished_run), **changes}
    if flags["dataset"] == "folder":
        flags |= {"dataset": f"folder:{tmp_path / 'pets'}", "labels": 0, "validation": 0.2}
    with pytest.raises(errors.UserError, match=match):
        trained(tmp_path / "run", **flags)
    assert not (tmp_path / "run").exists()
