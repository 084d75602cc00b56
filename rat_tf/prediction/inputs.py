"""The images to predict: files, found in folders and read in batches, or images of a set."""

from __future__ import annotations

import collections
import glob
import os
from collections.abc import Iterator, Sequence
from multiprocessing import pool

import numpy as np
import tensorflow as tf

from rat_tf import errors
from rat_tf.data import examples, image_files

AHEAD = 2  # batches that are read while one is predicted


def find(paths: Sequence[str]) -> list[str]:
    """Files as they are named, and all image files in the folders, sorted, each once."""
    found = []
    for path in paths:
        if os.path.isdir(path):
            inside = glob.glob("**", root_dir=path, recursive=True)  # without hidden files
            images = (n for n in inside if n.lower().endswith(image_files.EXTENSIONS))
            found += sorted(os.path.join(path, name) for name in images)
        else:
            found.append(path)
    if not found:
        raise errors.UserError(
            f"expected files that end in {', '.join(image_files.EXTENSIONS)} in "
            f"{', '.join(paths)}, found none"
        )
    return list(dict.fromkeys(found))


def fitted(image: np.ndarray, image_shape) -> np.ndarray:
    """An image, uint8 [H, W, C], in the shape that a classifier takes, as in training."""
    height, width, channels = image_shape
    return examples.fit(tf.constant(image), (height, width), channels).numpy()


def of_files(
    files: Sequence[str], image_shape, size: int, problems: list[str]
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Batches of names and images; only a few batches are in memory.

    What is wrong with files that cannot be read is added to `problems`.
    """

    def read(file):
        try:
            return fitted(image_files.read(file), image_shape)
        except image_files.Unusable as problem:
            return f"{file}: {problem}"

    def batch(some, results):
        found = [(name, image) for name, image in zip(some, results) if not isinstance(image, str)]
        problems.extend(result for result in results if isinstance(result, str))
        return [name for name, _ in found], np.array([image for _, image in found])

    with pool.ThreadPool() as threads:
        waiting = collections.deque()
        for start in range(0, len(files), size):
            some = files[start : start + size]
            waiting.append((some, threads.map_async(read, some)))
            if len(waiting) > AHEAD:
                names, results = waiting.popleft()
                yield batch(names, results.get())
        for names, results in waiting:
            yield batch(names, results.get())


def of_examples(found: examples.Examples, size: int) -> Iterator[tuple[list[str], np.ndarray]]:
    """The same of images of a set."""
    for start in range(0, len(found), size):
        some = found.take(slice(start, start + size))
        yield some.names, some.images
