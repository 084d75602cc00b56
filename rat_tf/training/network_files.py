"""The user's files behind --network and --pretrained, checked without TensorFlow."""

from __future__ import annotations

import contextlib
import importlib.util
import os

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.networks import model_files, names


def check(config: config_lib.Config) -> None:
    """Refuses files that are missing or no model's, and models with code, before any work."""
    family, groups = names.parse(config.network)
    if family.builder == "of_file":
        with errors_of("network"):
            found = model_files.config_of(os.path.expanduser(groups[0]))
            if found is not None and not config.allow_code:
                model_files.refuse_code(found, groups[0])
    elif family.builder == "of_function":
        module_file(groups[0])
    path = config.pretrained
    if path and not is_run(path):
        if os.path.isdir(path):
            raise errors.UserError(
                f"--pretrained: expected a .keras or .h5 file, or a run folder, but {path} is a "
                "folder without flags.cfg"
            )
        with errors_of("pretrained"):
            found = model_files.config_of(path)
            if found is not None and not config.allow_code:
                model_files.refuse_code(found, path)


def module_file(module: str) -> str:
    """The file of a module, which is not run."""
    if module.endswith(".py"):
        raise errors.UserError(
            f"--network: expected the name of a module, as in {module[:-3]}:<function>, got the "
            f"file {module}"
        )
    try:
        spec = importlib.util.find_spec(module)
    except Exception as error:  # of a package around it
        spec, reason = None, f" ({type(error).__name__}: {error})"
    else:
        reason = ""
    if spec is None or not spec.origin or not os.path.exists(spec.origin):
        raise errors.UserError(
            f"--network: no Python module {module!r} in the current folder, on PYTHONPATH or "
            f"installed{reason}"
        )
    return spec.origin


def is_run(path: str) -> bool:
    return os.path.exists(os.path.join(path, "flags.cfg"))


def hashes(config: config_lib.Config) -> dict[str, str]:
    """SHA-256 of the files that a network is made of, by path."""
    family, groups = names.parse(config.network)
    paths = []
    if family.builder == "of_file":
        paths.append(os.path.expanduser(groups[0]))
    elif family.builder == "of_function":
        paths.append(module_file(groups[0]))
    if config.pretrained and not is_run(config.pretrained):
        paths.append(config.pretrained)
    return {path: model_files.sha256(path) for path in paths}


@contextlib.contextmanager
def errors_of(flag: str, value: str = ""):
    """Turns what is wrong with a network, a ValueError, into a UserError that names the flag."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if not text.startswith("--"):
            text = f"--{flag}={value}: {text}" if value else f"--{flag}: {text}"
        raise errors.UserError(text) from error
