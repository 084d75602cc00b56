"""One export of the finished run, shared by all tests of a process."""

import pytest

from export import savedmodel


@pytest.fixture
def run_dir(finished_run):
    return finished_run


@pytest.fixture(scope="session")
def model_dir(finished_run, tmp_path_factory):
    """The folder of a model named digits that has version 1."""
    folder = tmp_path_factory.mktemp("models") / "digits"
    savedmodel.main(str(finished_run), str(folder))
    return folder
