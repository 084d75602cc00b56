"""Writes the BUILD files of all packages from the modules and their imports.

    python -m tools.build_files

One library per module, one binary per command, one test per test file. tests/test_build.py fails
when a BUILD file is not what this writes, so that no module or test can be missing.
"""

from __future__ import annotations

import ast
import os
import pathlib

ROOT = pathlib.Path(os.path.realpath(__file__)).parent.parent
PACKAGES = ("benchmarks", "export", "rat_tf", "tests", "tools")
RUNNER = "//tools:run_pytest"
#: What a module reads or runs without importing it.
DATA = {
    "benchmarks.pytorch": '["pytorch_step.py"]',
    "export.serve": '["//export:serving"]',
}
HEADER = """# Written by `python -m tools.build_files`.
load("@rules_python//python:defs.bzl", {rules})

package(default_visibility = ["//visibility:public"])
"""


def build_files() -> dict[pathlib.Path, str]:
    """The text of every BUILD file that there should be."""
    files = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    modules = {_module(path.relative_to(ROOT)): path for path in files}
    imports = {name: _imports(name, path, modules) for name, path in modules.items()}
    leaders = _leaders(imports)
    texts = {}
    for folder in sorted({path.parent for path in files}):
        rules = [
            rule
            for name, path in modules.items()
            if path.parent == folder
            for rule in _rules(name, path, modules, imports, leaders)
        ]
        kinds = sorted({rule.partition("(")[0] for rule in rules if rule.startswith("py_")})
        if folder.parent == ROOT:
            rules.append(_everything(folder.name, modules))
        if folder == ROOT / "export":
            rules.append('filegroup(\n    name = "serving",\n    srcs = glob(["serving/*"]),\n)\n')
        header = HEADER.format(rules=", ".join(f'"{kind}"' for kind in kinds))
        texts[folder / "BUILD"] = "\n".join([header, *rules])
    return texts


def _module(path: pathlib.Path) -> str:
    """rat_tf/data/zca.py is rat_tf.data.zca, rat_tf/data/__init__.py is rat_tf.data."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _rules(name: str, path: pathlib.Path, modules, imports, leaders) -> list[str]:
    """A library, and for a command or a test what runs it."""
    target = _target(name, modules)
    group = [other for other in modules if leaders[other] == leaders[name]]
    if leaders[name] == name:
        sources = [modules[other].name for other in group]
        needed = set().union(*(imports[other] for other in group)) - set(group)
    else:
        sources, needed = [], {leaders[name]}
    targets = {_target(other, modules) for other in needed}
    rules = [_rule("py_library", target, sources, targets, data=DATA.get(name))]
    short = target.rpartition(":")[2].removesuffix("_lib")
    if _is_test(path):
        tree = {parent / "conftest.py" for parent in path.parents}
        helpers = {p for p in path.parent.glob("*.py") if not _is_test(p)}
        nearby = {n for n, p in modules.items() if p in tree | helpers}
        targets = {target, RUNNER + "_lib", *(_target(n, modules) for n in nearby)}
        if "subprocess" in path.read_text():  # it may run any command
            targets |= {f"//{package}:everything" for package in ("benchmarks", "export", "rat_tf")}
        rules.append(
            _rule(
                "py_test",
                short,
                [path.name, RUNNER + ".py"],
                targets,
                size='"large"',
                main=f'"{RUNNER}.py"',
                args=f'["$(location {path.name})"]',
                data='["//:project_files"]',
            )
        )
    elif '__name__ == "__main__"' in path.read_text():
        rules.append(_rule("py_binary", short, [path.name], {target}, main=f'"{path.name}"'))
        if path.name == "run_pytest.py":
            rules.append('exports_files(["run_pytest.py"])\n')
    return rules


def _imports(name: str, path: pathlib.Path, modules) -> set[str]:
    """The modules of this project that a file imports, wherever in it, and its top package."""
    found = {name.partition(".")[0]}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules else node.module)
    return (found & modules.keys()) - {name}


def _leaders(imports: dict[str, set[str]]) -> dict[str, str]:
    """Modules that import each other, one of them late, are one library under the first's name.

    Bazel allows no circles; the others' libraries just point to that one.
    """

    def reached(name: str) -> set[str]:
        found, waiting = set(), [name]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    reach = {name: reached(name) for name in imports}
    return {
        name: min([name, *(other for other in reach[name] if name in reach[other])])
        for name in imports
    }


def _target(name: str, modules) -> str:
    """The label of a module's library."""
    path = modules[name].relative_to(ROOT)
    package, stem = path.parent.as_posix(), path.stem
    if stem == "__init__":
        return f"//{package}:{path.parent.name}"
    if stem == "__main__":
        return f"//{package}:main_lib"
    runs = _is_test(path) or '__name__ == "__main__"' in modules[name].read_text()
    return f"//{package}:{stem}{'_lib' if runs else ''}"


def _is_test(path: pathlib.Path) -> bool:
    return path.name.startswith("test_")


def _everything(package: str, modules) -> str:
    names = [name for name in modules if name.partition(".")[0] == package]
    targets = {_target(name, modules) for name in names}
    return _rule("py_library", "everything", [], targets)


def _rule(kind: str, target: str, sources: list[str], targets: set[str], **others) -> str:
    attributes = {"name": f'"{target.rpartition(":")[2]}"'}
    if sources:
        attributes["srcs"] = _list(sources)
    attributes |= {key: value for key, value in others.items() if value}
    if targets:
        attributes["deps"] = _list(sorted(targets))
    lines = [f"    {key} = {value},\n" for key, value in attributes.items()]
    return f"{kind}(\n{''.join(lines)})\n"


def _list(items: list[str]) -> str:
    if len(items) == 1:
        return f'["{items[0]}"]'
    return "[\n" + "".join(f'        "{item}",\n' for item in items) + "    ]"


if __name__ == "__main__":
    for build, text in build_files().items():
        build.write_text(text)
        print(build.relative_to(ROOT))
