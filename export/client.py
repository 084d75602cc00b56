"""Classifies image files with a served model.

    python -m export.client --server=localhost:8500 image.png …
    python -m export.client --server=http://localhost:8501 image.png …
    python -m export.client --server=localhost:8500 --status

host:port means gRPC, a URL means REST. --status shows the versions of the model and its signatures.
Photos are turned as their EXIF orientation says, and files that the served graph cannot decode,
such as WebP and TIFF, are sent as PNG; other clients have to do this themselves.
Exit status 2, with one message, if the server cannot be reached or refuses a request.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import time

import numpy as np

import export
from export import answers, protocol
from rat_tf import data, errors, fields
from rat_tf.config import cli
from rat_tf.storage import escapes

MAX_WAIT = 10.0  # seconds between two attempts


@dataclasses.dataclass(frozen=True)
class Flags:
    server: str = fields.flag("localhost:8500", "host:port (gRPC) or http://host:port (REST).")
    model: str = fields.flag(protocol.NAME, "Name of the model on the server.")
    version: int = fields.flag(
        0,
        "Version of the model; 0: the newest.",
        fields.expect(lambda version: 0 <= version < 2**63, "a number in [0, 2^63)"),
    )
    status: bool = fields.flag(False, "Show versions, states and signatures.")
    top: int = fields.flag(3, "Number of classes to show per image.", fields.at_least(1))
    batch_size: int = fields.flag(
        max(protocol.BATCH_SIZES), "Images per request.", fields.at_least(1)
    )
    timeout: float = fields.flag(
        10.0,
        "Seconds in which a request must have its whole answer.",
        fields.expect(lambda timeout: 0.001 <= timeout <= 86400, "a number in [0.001, 86400]"),
    )
    retries: int = fields.flag(4, "Retries after a transient error.", fields.at_least(0))


def main(
    files: list[str],
    server: str,
    model: str,
    version: int = 0,
    top: int = 3,
    batch_size: int = max(protocol.BATCH_SIZES),
    timeout: float = 10.0,
    retries: int = 4,
) -> None:
    connection = export.transport.connect(server, model, version, timeout)
    if not files:
        print(attempt(lambda: describe(connection), retries))
        return
    contents = [_read(name) for name in files]
    probabilities = []
    for start in range(0, len(files), batch_size):
        part = slice(start, start + batch_size)
        answer = attempt(lambda: classify(connection, files[part], contents[part]), retries)  # noqa: B023
        probabilities.append(answer)
    probabilities = np.concatenate(probabilities)
    names = attempt(lambda: class_names(connection, probabilities.shape[1], batch_size), retries)
    print(table(files, probabilities, names, top))


def classify(connection, files: list[str], contents: list[bytes]) -> np.ndarray:
    """Probabilities [B, K] of some images; server errors name the file instead of its index."""
    inputs = {"image_bytes": np.array(contents, dtype=object)}
    try:
        outputs = connection.predict("serving_bytes", inputs)
        with answers.understood(connection.server):
            return _probabilities(outputs["probabilities"], len(files))
    except answers.ServerError as error:
        found = re.search(r"image_bytes\[(\d+)\] of (\d+) bytes ([^\]\n]*)", str(error))
        if not found:
            raise
        position, size, problem = int(found[1]), int(found[2]), found[3]
    if position < len(files) and len(contents[position]) == size:
        raise errors.UserError(f"{files[position]} {problem}")
    # The server has batched this request with one that has a broken image.
    raise answers.ServerError("another client's image was refused", transient=True)


def _probabilities(found: np.ndarray, count: int) -> np.ndarray:
    """The answer as floats; a ValueError if it is not a row of probabilities per image."""
    found = found.astype(float)
    if found.ndim != 2 or len(found) != count or not found.size or not np.isfinite(found).all():
        raise ValueError(f"expected probabilities of {count} images, got shape {found.shape}")
    return found


def class_names(connection, count: int, batch_size: int) -> list[str]:
    names = []
    for start in range(0, count, batch_size):
        ids = np.arange(start, min(start + batch_size, count), dtype=np.int64)
        outputs = connection.predict("class_names", {"classes": ids})
        with answers.understood(connection.server):
            (labels,) = outputs.values()
            if labels.shape != ids.shape:
                raise ValueError(f"expected {len(ids)} names of classes, got {labels.shape}")
            names += map(str, labels)
    return names


def describe(connection) -> str:
    """Versions and their states, then signatures with their inputs and outputs."""
    status, metadata = connection.status(), connection.metadata()
    with answers.understood(connection.server):
        lines = [f"version {item['version']}: {item['state']}" for item in status]
        for name, signature in sorted(metadata.items()):
            if name.startswith("__"):  # the loader's own
                continue
            inputs, outputs = (", ".join(sorted(signature[key])) for key in ("inputs", "outputs"))
            lines.append(f"{name}: {inputs} -> {outputs}")
    return "\n".join(map(escapes.printable, lines))


def attempt(ask, retries: int, first_wait: float = 0.5):
    """Retries after transient errors, and waits twice as long each time."""
    for number in range(retries + 1):
        try:
            return ask()
        except answers.ServerError as error:
            if not error.transient or number == retries:
                raise
            wait = min(first_wait * 2**number, MAX_WAIT)
            print(f"{error}; retrying in {wait:g} s", file=sys.stderr)
            time.sleep(wait)


def table(files, probabilities: np.ndarray, names: list[str], top: int) -> str:
    """One line per image: its most probable classes, in order."""
    files, names = ([escapes.printable(text) for text in texts] for texts in (files, names))
    width = max(len(name) for name in files)
    cell = max(len(name) for name in names)
    lines = []
    for file, row in zip(files, probabilities):
        best = np.argsort(-row, kind="stable")[:top]
        lines.append(
            f"{file:<{width}}  " + "  ".join(f"{names[i]:>{cell}} {row[i]:6.1%}" for i in best)
        )
    return "\n".join(lines)


def _read(name: str) -> bytes:
    """A file as the served graph can decode it, photos upright."""
    try:
        return data.image_files.for_server(data.image_files.content(name))
    except data.image_files.Unusable as problem:
        raise errors.UserError(f"{name}: {problem}") from None


def run(f: cli.Parsed) -> None:
    if f.status and f.rest:
        raise errors.UserError(f"--status: expected no images, got {' '.join(f.rest)}")
    if not f.rest and not f.status:
        raise errors.UserError("expected image files, or --status")
    cli.import_tensorflow_quietly()
    main(list(f.rest), f.server, f.model, f.version, f.top, f.batch_size, f.timeout, f.retries)


if __name__ == "__main__":
    cli.command(run, Flags, positional=True)
