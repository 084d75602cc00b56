"""The packages of docs/architecture.md: who may import whom, and how large they may grow."""

import graphlib
import pathlib
import subprocess
import sys

import grimp
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES = 18
MOST_LINES = 300


def test_every_package_imports_only_what_it_may():
    # In a process of its own: the linter takes over the logging and the output of pytest's.
    code = "from importlinter import cli; cli.lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_imports_itself_through_others_or_through_a_package():
    """To import a.b.c is to run a and a.b, too, unless one is already inside them."""
    graph = grimp.build_graph("rat_tf", "export", cache_dir=None)
    needs = {}
    for module in graph.modules:
        needs[module] = set()
        for imported in graph.find_modules_directly_imported_by(module):
            parts = imported.split(".")
            packages = {".".join(parts[:length]) for length in range(1, len(parts))}
            outside = {
                package for package in packages if not f"{module}.".startswith(f"{package}.")
            }
            needs[module] |= outside | {imported}
    graphlib.TopologicalSorter(needs).prepare()


def test_the_root_of_the_library_stays_small():
    files = sorted(path.name for path in (ROOT / "rat_tf").glob("*.py"))
    assert len(files) <= MOST_FILES, files


@pytest.mark.parametrize("folder", ["rat_tf", "export", "benchmarks", "tests"])
def test_no_module_is_long(folder):
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lines and {path: count for path, count in lines.items() if count > MOST_LINES} == {}
