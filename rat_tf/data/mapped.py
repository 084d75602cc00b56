"""Sets that are large or slow: decoded once into a file of pixels, then mapped into memory.

Large are sets above --memory_limit_gb, slow are folders that took more than `SLOW` seconds to read.

The usual alternative, shards with a shuffle buffer, cannot be reproduced from any step (the state
of the buffer is not a function of the step), and cannot pick 1,000 labelled images out of a large
set without reading all of it. In a mapped file every image can be read directly, the batches are
the same as from memory, and a worker reads only its own rows of a batch.

A set has a folder in --cache_dir with pixels.npy and, written last, labels.npz, which also lists
the skipped files and has a checksum of the pixels. The decoding process locks the folder. Shapes,
counts and the checksum are checked when a set is opened. This reads the file once, past the map, so
that it takes no memory.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Sequence

import numpy as np
from absl import logging

from rat_tf import errors
from rat_tf.data import cache, examples
from rat_tf.storage import files

BLOCK = 2**24  # bytes read at once for the checksum
SLOW = 5  # seconds of reading, above which a set is kept


def read(parts: Sequence[examples.Part], shape, cache_dir: str) -> examples.Examples:
    """As `examples.read`, with the pixels in a file of the cache."""
    size = sum(part.size for part in parts)
    if not size:
        return examples.read(parts, shape)
    folder = _place(parts, shape, cache_dir)
    with cache.user_errors(cache_dir):
        found = _open(folder, size, shape)
        if found is not None:
            return found
        os.makedirs(folder, exist_ok=True)
        _remove_abandoned(os.path.dirname(folder))
        with files.locked(os.path.join(folder, "lock"), wait=True):
            found = _open(folder, size, shape)  # decoded by another process in the meantime
            if found is None:
                _decode(parts, size, shape, folder)
                found = _open(folder, size, shape)
    if found is None:
        raise errors.UserError(f"--cache_dir: cannot read what was just written to {folder}")
    return found


def remembered(parts: Sequence[examples.Part], shape, cache_dir: str) -> examples.Examples:
    """As `examples.read`; what takes long to decode is kept in the cache for the next start."""
    size = sum(part.size for part in parts)
    folder = _place(parts, shape, cache_dir) if size else ""
    # A cache that cannot be used is no reason to stop: the images fit into memory.
    with contextlib.suppress(OSError):
        found = _open(folder, size, shape) if size else None
        if found is not None:
            print(f"{size:,} decoded images from {folder}")
            return found
    began = time.monotonic()
    found = examples.read(parts, shape)
    seconds = time.monotonic() - began
    if seconds > SLOW:
        try:
            _keep(found, folder)
            size_mb = found.pixels.nbytes / 1e6
            kept = f"they are kept in {folder} for the next start ({size_mb:,.0f} MB)"
        except OSError as error:
            kept = f"they cannot be kept in {folder}: {error.strerror or error}"
        print(f"{size:,} images took {seconds:.0f} s to decode; {kept}")
    return found


def _keep(found: examples.Examples, folder: str) -> None:
    if found.pixels.nbytes > 0.95 * shutil.disk_usage(cache.existing(folder)).free:
        raise OSError(errno.ENOSPC, "not enough space")
    os.makedirs(folder, exist_ok=True)
    _remove_abandoned(os.path.dirname(folder))
    with files.locked(os.path.join(folder, "lock")) as held:
        if held is False:  # another process writes the same
            return
        with files.writing(os.path.join(folder, "pixels.npy")) as path, open(path, "wb") as file:
            np.save(file, found.pixels)
        _save_labels(found, folder)


def _place(parts, shape, cache_dir: str) -> str:
    key = hashlib.sha256(json.dumps([[part.key() for part in parts], shape]).encode()).hexdigest()
    return os.path.join(cache_dir, "images", key[:24])


def _decode(parts, size: int, shape, folder: str) -> None:
    needed, free = size * int(np.prod(shape)), shutil.disk_usage(folder).free
    if needed > 0.95 * free:
        raise errors.UserError(
            f"--cache_dir: {needed / 1e9:.1f} GB of decoded images do not fit into the "
            f"{free / 1e9:.1f} GB that are free in {folder}; use another folder, a larger "
            "--memory_limit_gb or a smaller --image_size"
        )
    logging.warning("decoding %d images (%.1f GB) into %s, once", size, needed / 1e9, folder)
    with files.writing(os.path.join(folder, "pixels.npy")) as path:
        found = examples.read(parts, shape, path)
    _save_labels(found, folder)


def _save_labels(found: examples.Examples, folder: str) -> None:
    """The last file of a set: all of it is there."""
    with files.writing(os.path.join(folder, "labels.npz")) as path, open(path, "wb") as file:
        np.savez(
            file,
            labels=found.labels,
            fingerprints=found.fingerprints,
            skipped=np.array(found.skipped, str),
            checksum=_checksum(os.path.join(folder, "pixels.npy")),
        )


def _open(folder: str, size: int, shape) -> examples.Examples | None:
    """What `_decode` wrote; None if it is missing or damaged."""
    try:
        # "c" (copy on write): TensorFlow does not share read-only memory.
        pixels = np.load(os.path.join(folder, "pixels.npy"), mmap_mode="c")
        with np.load(os.path.join(folder, "labels.npz")) as rest:
            labels, fingerprints, skipped = rest["labels"], rest["fingerprints"], rest["skipped"]
            checksum = int(rest["checksum"])
        rows = len(labels)
        found = (pixels.shape, pixels.dtype, fingerprints.shape, rows + len(skipped))
        expected = ((size, *shape), np.uint8, (rows, 8), size)
        if found != expected:
            raise ValueError(f"expected {expected}, found {found}")
        if checksum != _checksum(os.path.join(folder, "pixels.npy")):
            raise ValueError("the pixels have changed since they were decoded")
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged file can raise anything
        if cache.is_refusal(error):
            raise
        logging.warning("%s is damaged; decoding again: %s", folder, error)
        return None
    return examples.Examples(pixels, labels, np.arange(rows), fingerprints, tuple(skipped.tolist()))


def _checksum(path: str) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _remove_abandoned(parent: str) -> None:
    """Removes the temporary files of killed processes, which are as large as the set."""
    for path in glob.glob(os.path.join(glob.escape(parent), "*", f"*{files.TEMPORARY}")):
        with (
            contextlib.suppress(OSError),
            files.locked(os.path.join(os.path.dirname(path), "lock")) as held,
        ):
            if held:
                os.remove(path)
