"""The tuner's own flags, and the folder that remembers them."""

import dataclasses
import pathlib

import pytest

from rat_tf import errors
from rat_tf.config import flag_values
from rat_tf.tuning import search_settings
from tests.tuning import searches


@pytest.mark.parametrize(
    "given, changes, message",
    [
        ({"tuner": "grid", "search_composition": True}, {}, "too large"),
        ({"tuner": "hyperband"}, {"iterations": 4}, "three validations"),
        ({"tuner": "hyperband", "max_trials": 3}, {}, "--max_trials: not used by"),
        ({"tuner": "hyperband", "stop_hopeless": True}, {}, "--stop_hopeless: not used by"),
        ({"tuner": "grid"}, {"strategy": "multi_worker"}, "--strategy"),
    ],
)
def test_settings_that_do_not_go_together(given, changes, message):
    config = flag_values.changed_config(searches.BASE, **changes)
    with pytest.raises(errors.UserError, match=message):
        search_settings.Settings(**given).resolved(config)


@pytest.fixture
def settings(tmp_path):
    """Those of a search that has its folder."""
    made = search_settings.Settings(str(tmp_path / "out"), "grid", "xi=1|2")
    search_settings.create_folder(made, searches.BASE)
    return made


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"search": "decay=0.1|0.2"}, "expected --search=xi=1.2, got --search=decay=0.1.0.2"),
        ({"tuner": "random"}, "expected --tuner=grid, got --tuner=random"),
        ({"stop_hopeless": True}, "expected --stop_hopeless=False, got --stop_hopeless=True"),
    ],
)
def test_a_search_goes_on_with_its_own_settings_only(settings, changes, message):
    search_settings.check_folder(settings, searches.BASE)
    with pytest.raises(errors.UserError, match=message):
        search_settings.check_folder(dataclasses.replace(settings, **changes), searches.BASE)


def test_a_search_may_go_on_longer_and_elsewhere(settings):
    longer = dataclasses.replace(settings, max_trials=50)
    elsewhere = flag_values.changed_config(searches.BASE, data_dir="there", jit_compile=True)
    search_settings.check_folder(longer, elsewhere)


def test_a_folder_that_was_not_finished_is_taken(settings):
    (pathlib.Path(settings.output) / "search.json").unlink()
    (pathlib.Path(settings.output) / "oracle").mkdir()  # of a worker that was faster than the chief
    search_settings.check_folder(settings, searches.BASE)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    settings = search_settings.Settings(str(tmp_path / "out"), "grid")
    with pytest.raises(errors.UserError, match="--output: expected a new or empty folder"):
        search_settings.check_folder(settings, searches.BASE)
    with pytest.raises(errors.UserError, match="--output: .*File exists"):
        search_settings.create_folder(settings, searches.BASE)
