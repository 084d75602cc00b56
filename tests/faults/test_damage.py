"""Damaged files and changed images: every command names them, and copies no more than it needs."""

import json

import pytest

from export import savedmodel, verification
from rat_tf import data, errors, evaluate, report, sweep, train
from rat_tf.data import examples, zca
from rat_tf.experiments import plan
from rat_tf.training import run_folder
from tests.data import make
from tests.faults.test_runs import config_of

JUNK = {
    "empty": b"",
    "binary": b"\x89PNG\r\n\x1a\n\0\xff",
    "other": b'{"a": 1}\n',
    "word": b"spam\n",
}


# ---- images


@pytest.mark.parametrize(
    "name, words",
    [
        ("test/cat/0.png", "test images"),
        ("validation/dog/0.png", "validation images"),
        ("labeled/cat/1.png", "training images"),
    ],
)
def test_changed_images_are_noticed_as_that(tmp_path, name, words):
    make.folder(tmp_path / "set")
    for kind in ("cat", "dog"):
        make.png(tmp_path / f"set/validation/{kind}/0.png", make.pixels(1, seed=5)[0])
    flags = {"dataset": f"folder:{tmp_path}/set", "labels": 4, "image_size": 8}
    config = config_of(tmp_path / "run", **flags)
    run = run_folder.Run(config.run_dir)
    run.create(config, run.load(config))
    run.load(config)
    make.png(tmp_path / "set" / name, make.pixels(1, seed=77)[0])
    with pytest.raises(
        errors.UserError, match=f"--dataset=.*{words}.* have changed since"
    ) as error:
        run.load(config)
    assert "--split_file" not in str(error.value)


def test_few_images_are_copied_and_nothing_is_fitted_to_verify_an_export(tmp_path, monkeypatch):
    """The validation images are those of the run's split, out of a set on disk."""
    flags = {"preprocessing": "gcn_zca", "memory_limit_gb": 0.0, "cache_dir": str(tmp_path / "c")}
    run = run_folder.Run(str(tmp_path / "run"))
    other = data.load(config_of(run.folder, split_seed=7))
    config = config_of(run.folder, **flags)
    run.create(config, other)  # as with a --split_file that is no longer there
    monkeypatch.setattr(zca, "fit", lambda *_: pytest.fail("fitted"))
    copied, images = [], examples.Examples.images.fget
    monkeypatch.setattr(
        examples.Examples, "images", property(lambda e: (copied.append(len(e)), images(e))[1])
    )
    found, kind = verification.images(run, config, (8, 8, 1))
    assert kind == "64 validation images" and max(copied) <= 64
    assert (found == images(other.validation)[:64]).all()
    assert len(run.held_out(config)[1]) == 360 and max(copied) <= 64


# ---- damaged files


@pytest.mark.parametrize("name", ["flags.cfg", "data.json", "split.json", "result.json"])
@pytest.mark.parametrize("junk", JUNK)
def test_train_names_the_damaged_file(copy, name, junk):
    if name != "result.json":
        (copy / "result.json").unlink()
    (copy / name).write_bytes(JUNK[junk])
    with pytest.raises(errors.UserError, match=f"run/{name}: "):
        train.main(config_of(copy))


@pytest.mark.parametrize("junk", JUNK)
def test_every_other_command_names_the_damaged_file(copy, tmp_path, junk, capsys):
    def refused(name, call):
        whole = (copy / name).read_bytes()
        (copy / name).write_bytes(JUNK[junk])
        with pytest.raises(errors.UserError, match=rf"(run/|\b){name}: "):
            call()
        (copy / name).write_bytes(whole)

    def planned():
        run = plan.Planned((), {}, config_of(copy))
        return sweep.main([run], run=False, print_commands=False)

    for name in ("flags.cfg", "data.json"):
        refused(name, lambda: evaluate.main(str(copy), "best", 1))
        refused(name, lambda: savedmodel.main(str(copy), str(tmp_path / "model")))
    refused("split.json", lambda: run_folder.Run(str(copy)).held_out(config_of(copy)))
    refused("result.json", planned)
    for name in ("flags.cfg", "result.json"):  # listed, and then there is nothing to report
        refused(name, lambda name=name: _reported(copy, tmp_path, name, capsys))
    if junk != "empty":  # an empty metrics.csv is that of a run that has just begun
        (copy / "result.json").unlink()
        refused("metrics.csv", planned)


def _reported(folder, tmp_path, name, capsys):
    with pytest.raises(errors.UserError, match="no results to report"):
        report.main([str(folder)], "", str(tmp_path / "report"))
    raise errors.UserError(capsys.readouterr().err)


def test_a_run_goes_on_without_metrics(copy):
    (copy / "result.json").unlink()
    (copy / "metrics.csv").unlink()
    train.main(config_of(copy))
    assert json.loads((copy / "result.json").read_text())["seconds"] > 0
