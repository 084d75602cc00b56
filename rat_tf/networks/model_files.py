"""What is in the files of Keras models, read without TensorFlow and without running any of it."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator

import h5py

MAX_CONFIG = 2**26  # bytes, when it is unpacked; those of the largest applications have 1 MB
#: Packages whose classes a model may be made of.
TRUSTED = ("keras", "tf_keras", "tensorflow", "builtins")


def config_of(path: str) -> dict | None:
    """The config of the model in a .keras or .h5 file; None for a file of weights alone."""
    if not os.path.exists(path):
        raise ValueError(f"no such file: {path}")
    try:
        config = _read(path)
        if not (config is None or isinstance(config, dict)):
            raise ValueError("its config is no object of JSON")
        return config
    except Exception as error:  # damaged archives raise whatever their readers stumble over
        reason = str(error).strip("'\"").partition("\n")[0]
        raise ValueError(
            f"expected a .keras or .h5 file of Keras, but {path} cannot be read: {reason}"
        ) from None


def _read(path: str):
    if not os.path.isfile(path):  # a pipe would wait for a writer, a device may have no end
        raise ValueError("it is a folder or a device")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "metadata.json" in archive.namelist():
                _refuse_keras_3(_json(archive, "metadata.json")["keras_version"])
            return _json(archive, "config.json")
    with h5py.File(path, "r") as file:
        text = file.attrs.get("model_config")
        if text is None:
            return None
        _refuse_keras_3(file.attrs.get("keras_version", ""))
        return json.loads(text)


def _json(archive: zipfile.ZipFile, name: str):
    if archive.getinfo(name).file_size > MAX_CONFIG:
        raise ValueError(f"its {name} has more than {MAX_CONFIG:,} bytes")
    return json.loads(archive.read(name))


def _refuse_keras_3(version: str | bytes) -> None:
    """Its configs have arguments that Keras 2 does not know, those of the input layer first."""
    text = version.decode() if isinstance(version, bytes) else version
    major = text.partition(".")[0]
    if major.isdecimal() and int(major) >= 3:
        raise ValueError(
            f"it was saved by Keras {text}, and rat_tf needs Keras 2; build the model with "
            "tf.keras after importing rat_tf, and save it there"
        )


def code_in(config) -> Iterator[str]:
    """The parts of a model's config that would run code which is not Keras' own."""
    if isinstance(config, dict):
        kind, inner = config.get("class_name"), config.get("config")
        # Keras' own classes have a module, those that a user has registered only a name.
        module = str(config.get("module") or config.get("registered_name") or "keras")
        if kind in ("Lambda", "__lambda__"):
            named = inner.get("name") if isinstance(inner, dict) else None
            yield f"the Lambda layer {named!r}" if named else "a lambda function"
        elif kind and module.partition(".")[0] not in TRUSTED:
            yield f"the class {kind} of {module}"
        for value in config.values():
            yield from code_in(value)
    elif isinstance(config, list):
        for value in config:
            yield from code_in(value)


def refuse_code(config, where: str) -> None:
    """Refuses a model that comes with code."""
    for found in code_in(config):
        raise ValueError(
            f"{where} has {found}, which is code that would be run; if you trust where it comes "
            "from, use --allow_code"
        )


def sha256(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(2**20):
            found.update(part)
    return found.hexdigest()
