"""What pyproject.toml declares: ranges that the lock satisfies, and all that is imported."""

import ast
import pathlib
import sys

import pytest
from packaging import markers, requirements, specifiers, utils, version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lines(name: str) -> list[requirements.Requirement]:
    """The requirements in a file, without comments and the names of other files."""
    texts = [line.strip() for line in (ROOT / name).read_text().splitlines()]
    return [requirements.Requirement(text) for text in texts if text and text[0] not in "#-"]


def wanted(python: str, found: list[requirements.Requirement]) -> list[requirements.Requirement]:
    """Those whose markers hold on a version of Python."""
    environment = {**markers.default_environment(), "python_version": python}
    return [each for each in found if not each.marker or each.marker.evaluate(environment)]


@pytest.mark.parametrize("python", ["3.10", "3.11"])
def test_the_lock_satisfies_the_ranges(python):
    locked = {}
    for each in wanted(python, lines("requirements.txt") + lines("requirements-dev.txt")):
        (pin,) = each.specifier
        name = utils.canonicalize_name(each.name)
        assert pin.operator == "==" and "*" not in pin.version, str(each)
        assert name not in locked, f"{name} is locked twice"
        locked[name] = version.Version(pin.version)
    direct = wanted(python, [requirements.Requirement(text) for text in PROJECT["dependencies"]])
    assert len(direct) == len(PROJECT["dependencies"])
    for each in direct:
        found = locked.get(utils.canonicalize_name(each.name))
        assert found and found in each.specifier, f"{each}, but {found} is locked"


@pytest.mark.parametrize("python", ["3.9", "3.10", "3.11", "3.12"])
def test_other_pythons_are_refused_by_the_lock_too(python):
    supported = python in specifiers.SpecifierSet(PROJECT["requires-python"])
    refusals = [each for each in wanted(python, lines("requirements.txt")) if each.url]
    assert supported == (not refusals) == (python in ("3.10", "3.11"))
    assert all("needs%20Python%203.10%20or%203.11" in each.url for each in refusals)


def test_every_module_that_is_imported_is_declared():
    """The names under which the declared packages are imported; the library's own are left out."""
    names = {
        "absl": "absl-py",
        "PIL": "pillow",
        "google": "protobuf",
        "grpc": "grpcio",
        "sklearn": "scikit-learn",
        "tensorflow_serving": "tensorflow-serving-api",
    }
    direct = [requirements.Requirement(text).name for text in PROJECT["dependencies"]]
    imported = set()
    for path in [*(ROOT / "rat_tf").rglob("*.py"), *(ROOT / "export").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.partition(".")[0])
    imported -= {*sys.stdlib_module_names, "rat_tf", "export"}
    assert "tensorflow_addons" in imported
    needed = {utils.canonicalize_name(names.get(each, each)) for each in imported}
    assert needed - set(map(utils.canonicalize_name, direct)) == set()
