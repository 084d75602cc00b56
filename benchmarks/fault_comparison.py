"""Whether two run folders, exports, searches or sweeps are the same, bit by bit; see faults.py."""

from __future__ import annotations

import csv
import glob
import json
import os
from collections.abc import Iterator

import numpy as np

TIMES = ("seconds", "images_per_second")  # which no two runs share


def runs(found: str, whole: str) -> Iterator[str]:
    """In what a run differs from the undisturbed one."""
    names = [_names(folder) for folder in (found, whole)]
    # One that was stopped in the middle of an interval keeps its checkpoint of that step, too.
    names[0] -= {name for name in names[0] - names[1] if name.startswith("checkpoints/step-")}
    if names[0] != names[1]:
        yield f"has files {sorted(names[0] ^ names[1])} in one only"
        return
    if _rows(found) != _rows(whole):
        yield "has another metrics.csv"
    if _result(found) != _result(whole):
        yield f"has another result.json: {_result(found)}"
    if _events(found) != _events(whole):
        yield "has other TensorBoard values"
    for name in sorted(names[1]):
        if name.endswith(".index"):
            yield from _tensors(*(os.path.join(f, name[: -len(".index")]) for f in (found, whole)))


def _names(folder: str) -> set[str]:
    """The files of a run; all of TensorBoard's count as one."""
    names = (os.path.relpath(name, folder) for name in _files(folder))
    return {"tensorboard" if name.startswith("tensorboard") else name for name in names}


def _files(folder: str) -> list[str]:
    return [name for name in glob.glob(f"{folder}/**", recursive=True) if os.path.isfile(name)]


def _rows(folder: str) -> list[dict]:
    with open(os.path.join(folder, "metrics.csv"), encoding="utf-8", newline="") as file:
        return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]


def _result(folder: str) -> dict:
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
        return {k: v for k, v in json.load(file).items() if k not in TIMES}


def _events(folder: str) -> list:
    import tensorflow as tf

    found = []
    for name in glob.glob(os.path.join(folder, "tensorboard", "*")):
        for record in tf.data.TFRecordDataset(name).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                if value.tag not in TIMES:
                    found.append((event.step, value.tag, value.tensor.SerializeToString()))
    return sorted(found)


def _tensors(found: str, whole: str) -> Iterator[str]:
    import tensorflow as tf

    readers = [tf.train.load_checkpoint(path) for path in (found, whole)]
    names = [set(reader.get_variable_to_shape_map()) for reader in readers]
    if names[0] != names[1]:
        yield f"{found} has tensors {sorted(names[0] ^ names[1])} in one only"
        return
    for name in sorted(names[1]):
        if not name.startswith(("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter", "seconds")):
            values = [np.asarray(reader.get_tensor(name)) for reader in readers]
            if values[0].tobytes() != values[1].tobytes():
                yield f"{found} has another {name}"


def exports(found: str, alone: str) -> Iterator[str]:
    """Every version must be whole: it has the files, weights and answers of the undisturbed one."""
    import tensorflow as tf

    whole = os.path.join(alone, "1")
    names = {os.path.relpath(name, whole) for name in _files(whole)}
    (weights,) = (name for name in names if name.endswith(".data-00000-of-00001"))
    expected = _answers(tf, whole)
    for entry in os.listdir(found):
        folder = os.path.join(found, entry)
        if not entry.isdecimal():
            yield f"{folder} was left"
        elif {os.path.relpath(name, folder) for name in _files(folder)} != names:
            yield f"{folder} is not whole"
        elif _bytes(os.path.join(folder, weights)) != _bytes(os.path.join(whole, weights)):
            yield f"{folder} has other weights"
        elif (_answers(tf, folder) != expected).any():
            yield f"{folder} gives other answers"


def _answers(tf, folder: str):
    model = tf.saved_model.load(folder).signatures["serving_default"]
    (shape,) = (spec.shape for spec in model.structured_input_signature[1].values())
    rng = np.random.default_rng(0)
    images = tf.constant(rng.integers(256, size=(8, *shape[1:])), tf.uint8)
    return model(images=images)["logits"].numpy()


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def searches(found: str, whole: str) -> Iterator[str]:
    """The same trials with the same outcomes, and the same best.cfg but for the folder's name."""
    tables = []
    for folder in (found, whole):
        with open(os.path.join(folder, "trials.csv"), encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            tables.append([{k: v for k, v in row.items() if k not in TIMES} for row in rows])
    if tables[0] != tables[1]:
        yield f"has other trials: {tables}"
    best = [_bytes(os.path.join(folder, "best.cfg")).splitlines()[3:] for folder in (found, whole)]
    if best[0] != best[1]:
        yield "has another best.cfg"
    for path in glob.glob(os.path.join(whole, "trials", "*", "checkpoints", "*.index")):
        name = os.path.relpath(path, whole)[: -len(".index")]
        yield from _tensors(*(os.path.join(folder, name) for folder in (found, whole)))


def sweeps(found: str, whole: str) -> Iterator[str]:
    paths = [
        {os.path.relpath(path, folder) for path in glob.glob(f"{folder}/*/*/flags.cfg")}
        for folder in (found, whole)
    ]
    if paths[0] != paths[1] or not paths[1]:
        yield f"has other runs: {paths}"
        return
    for path in map(os.path.dirname, paths[1]):
        yield from runs(os.path.join(found, path), os.path.join(whole, path))


def size(folder: str) -> int:
    """Bytes of a folder's files in whole blocks, as a disk counts them."""
    return sum(-(-os.path.getsize(name) // 4096) * 4096 for name in _files(folder))


def largest_file(folder: str) -> int:
    return max(map(os.path.getsize, _files(folder)))
