"""The BUILD files name every module and test, with what they import."""

import pytest

from tools import build_files

TEXTS = build_files.build_files()


@pytest.mark.parametrize("path", sorted(TEXTS), ids=lambda path: path.parent.name)
def test_build_files_are_up_to_date(path):
    assert path.exists() and path.read_text() == TEXTS[path], "run: python -m tools.build_files"


def test_nothing_is_missing():
    """By a look at the texts that does not trust their maker."""
    for package in build_files.PACKAGES:
        for path in (build_files.ROOT / package).rglob("*.py"):
            text = (path.parent / "BUILD").read_text()
            assert f'"{path.name}"' in text, f"{path} is in no BUILD file"
            if path.name.startswith("test_"):
                assert f'py_test(\n    name = "{path.stem}"' in text


def test_commands_are_binaries():
    for package, names in (
        ("rat_tf", ("train", "evaluate", "moons", "configs", "sweep", "report", "tune")),
        ("export", ("savedmodel", "serve", "client")),
    ):
        text = (build_files.ROOT / package / "BUILD").read_text()
        for name in names:
            assert f'py_binary(\n    name = "{name}"' in text
