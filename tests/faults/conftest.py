"""What the fault injections share."""

import pathlib
import shutil

import pytest


@pytest.fixture
def copy(finished_run, tmp_path):
    """A finished run that may be damaged."""
    return pathlib.Path(shutil.copytree(finished_run, tmp_path / "run"))
