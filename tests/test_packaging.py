"""What pyproject.toml declares: ranges that the lock satisfies, and all that is imported."""

import ast
import pathlib
import re
import sys
from importlib import metadata

import pytest
from packaging import markers, requirements, specifiers, utils, version

from rat_tf import stack

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


#: The locks, and the Pythons on which they install.
LOCKS = {"requirements": ("3.10", "3.11"), "requirements-modern": ("3.10", "3.11", "3.12", "3.13")}


@pytest.mark.parametrize("lock, python", [(k, v) for k, names in LOCKS.items() for v in names])
def test_the_lock_satisfies_the_ranges(lock, python):
    locked = {}
    for each in wanted(python, lines(f"{lock}.txt") + lines(f"{lock}-dev.txt")):
        (pin,) = each.specifier
        name = utils.canonicalize_name(each.name)
        assert pin.operator == "==" and "*" not in pin.version, str(each)
        assert name not in locked, f"{name} is locked twice"
        locked[name] = version.Version(pin.version)
    # The ranges of the modern stack are those of the last Python, for which there is no other.
    ranges = python if lock == "requirements" else "3.13"
    direct = wanted(ranges, [requirements.Requirement(text) for text in PROJECT["dependencies"]])
    assert len({each.name for each in direct}) == len(direct)
    for each in direct:
        found = locked.get(utils.canonicalize_name(each.name))
        assert found and found in each.specifier, f"{each}, but {found} is locked"


def test_what_is_locked_installs_on_every_python():
    """As the packages themselves say, those that are installed here in the locked version."""
    lock = "requirements-modern" if stack.has("tf_keras") else "requirements"
    seen = []
    for python in LOCKS[lock]:
        for each in wanted(python, lines(f"{lock}.txt") + lines(f"{lock}-dev.txt")):
            try:
                found = metadata.metadata(each.name)
            except metadata.PackageNotFoundError:
                continue
            if found["Version"] in each.specifier:
                seen.append(each.name)
                supported = specifiers.SpecifierSet(found.get("Requires-Python", ""))
                assert f"{python}.99" in supported, f"{each} needs Python {supported}"
    assert "tensorflow" in seen


def test_the_classifiers_are_the_pythons_that_are_supported():
    prefix = "Programming Language :: Python :: 3."
    found = [each for each in PROJECT["classifiers"] if each.startswith(prefix)]
    assert found == [f"{prefix}{each[2:]}" for each in LOCKS["requirements-modern"]]


def test_both_stacks_are_tested_with_the_same_tools():
    texts = [(ROOT / f"{lock}-dev.txt").read_text(encoding="utf-8") for lock in LOCKS]
    direct = [text.partition("# Direct")[2].partition("# Transitive")[0] for text in texts]
    names = [[line for line in text.splitlines() if "==" in line] for text in direct]
    assert names[0] == names[1] != []


def test_docker_has_the_stacks_of_make():
    make, docker = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile")
    )
    stacks = dict(re.findall(r"ifeq \(\$\(TF\),(.+)\)\nVENV.*\nLOCK := (.+)\n", make))
    assert list(stacks.values()) == list(LOCKS)
    for name, lock in stacks.items():
        stage = docker.partition(f" AS tensorflow-{name}\n")[2].partition("\nFROM ")[0]
        assert f"COPY {lock}.txt .\n" in stage and f"-r {lock}.txt" in stage
        (server,) = [each for each in lines(f"{lock}.txt") if each.name == "tensorflow-serving-api"]
        assert f"SERVING={str(server.specifier)[2:]}" in docker


@pytest.mark.parametrize("python, addons", [("3.10", True), ("3.11", True), ("3.12", False)])
def test_tfa_is_required_only_where_it_exists(python, addons):
    direct = wanted(python, [requirements.Requirement(text) for text in PROJECT["dependencies"]])
    assert ("tensorflow-addons" in {each.name for each in direct}) == addons
    assert ("tf-keras" in {each.name for each in direct}) == (not addons)


@pytest.mark.parametrize("python", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_other_pythons_are_refused_by_the_locks_too(python):
    allowed = specifiers.SpecifierSet(PROJECT["requires-python"])
    assert (python in allowed) == (python in LOCKS["requirements-modern"])
    for lock, pythons in LOCKS.items():
        refusals = [each for each in wanted(python, lines(f"{lock}.txt")) if each.url]
        assert (python in pythons) == (not refusals)
        assert all("needs%20Python%203.10%20" in each.url for each in refusals)


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
