"""A user's own images: the files that `layouts` finds in a folder, read by `image_files`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from multiprocessing import pool

import numpy as np
import tensorflow as tf

from rat_tf import errors
from rat_tf.data import examples, image_files, layouts, links, listing, options

BATCH = 64


def find(config: options.DataOptions) -> listing.Listing:
    """Lists the files of the folder, see `layouts`, and reads the first for its shape."""
    root = os.path.expanduser(config.dataset.partition(":")[2])
    links.check(root, config.follow_links)
    layout, notes = layouts.find(root)
    unlabeled = [(file, examples.UNLABELED) for file in layout.unlabeled]
    first = _first(layout.labeled, config)
    return listing.Listing(
        class_names=layout.class_names,
        image_shape=first[1],
        train=[_part(layout.labeled, first, config), _part(unlabeled, first, config)],
        notes=tuple(notes),
        **{part: [_part(files, first, config)] for part, files in layout.parts.items()},
    )


def _part(files: Sequence[tuple[str, int]], first, config) -> examples.Part:
    skipped = []

    def key():
        # A broken link has only its own stat.
        stats = [os.stat(file, follow_symlinks=os.path.exists(file)) for file, _ in files]
        # "upright": files decoded before EXIF rotation was applied are others.
        return "upright " + repr(
            [(*item, stat.st_size, stat.st_mtime_ns) for item, stat in zip(files, stats)]
        )

    return examples.Part(
        len(files),
        lambda: _batches(files, first, skipped, config),
        key,
        skipped,
        [file for file, _ in files],
    )


def _first(files, config) -> tuple[str, tuple[int, int, int]]:
    """The first file that can be read, and the shape of its image."""
    for file, _ in files:
        image, _, problem = _read(file, config)
        if not problem:
            return file, image.shape
        if not config.skip_broken:
            listing.leave_out([problem], config)
    raise errors.UserError(
        f"--dataset={config.dataset}: expected images with a class, found {len(files)} broken files"
    )


def _read(file: str, config) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Image, fingerprint and what is wrong with the file."""
    try:
        image = tf.constant(image_files.read(file))
    except image_files.Unusable as problem:
        return None, None, f"{file}: {problem}"
    try:
        fitted = examples.fit(image, config.image_size, config.channels or 3)
    except tf.errors.ResourceExhaustedError as error:
        raise errors.UserError(
            f"--image_size: not enough memory to resize {file} to "
            f"{config.image_size}×{config.image_size} pixels ({examples.reason(error)})"
        ) from error
    return fitted.numpy(), examples.fingerprint(image[tf.newaxis])[0].numpy(), None


def _batches(files, first, skipped: list[str], config) -> Iterator[tuple]:
    """Reads files in parallel and in order. Threads, as tf.data does not say which file failed."""
    first_file, shape = first
    skipped.clear()
    with pool.ThreadPool() as threads:
        for start in range(0, len(files), BATCH):
            some = files[start : start + BATCH]
            results = threads.map(lambda item: _read(item[0], config), some)
            kept = []
            for (file, label), (image, fingerprint, problem) in zip(some, results):
                if problem:
                    skipped.append(problem)
                    continue
                if image.shape != shape:
                    raise errors.UserError(
                        f"--image_size: the images differ in size, {first_file} is "
                        f"{shape[0]}×{shape[1]} and {file} is {image.shape[0]}×{image.shape[1]}; "
                        "set the size to resize to"
                    )
                kept.append((image, label, fingerprint))
            if not config.skip_broken:
                listing.leave_out(skipped, config)
            if kept:
                images, labels, fingerprints = zip(*kept)
                yield np.stack(images), np.array(labels, np.int64), np.stack(fingerprints)
