"""One tiny run and one export of it, shared by all tests of a process."""

import pytest

from export import savedmodel
from rat_tf import config as config_lib
from rat_tf import train
from tests.test_train import TINY

SHORT = {**TINY, "iterations": 8, "validate_every": 4, "decay_at": 6, "tensorboard": False}


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    train.main(config_lib.Config(**SHORT, run_dir=str(folder)))
    return folder


@pytest.fixture(scope="session")
def model_dir(run_dir, tmp_path_factory):
    """The folder of a model named digits that has version 1."""
    folder = tmp_path_factory.mktemp("models") / "digits"
    savedmodel.main(str(run_dir), str(folder))
    return folder
