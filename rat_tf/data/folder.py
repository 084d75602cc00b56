"""A user's own images: labeled/<class>/*, unlabeled/**, and optionally validation/ and test/."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from multiprocessing import pool

import numpy as np
import tensorflow as tf

from rat_tf import errors
from rat_tf.data import examples, image_files, listing, options

IGNORED = ("thumbs.db", "desktop.ini")  # created by file managers; hidden files are ignored, too
BATCH = 64
PARTS = ("labeled", "unlabeled", "validation", "test")


def find(config: options.DataOptions) -> listing.Listing:
    """Lists the files of the folder; the folders in labeled/ are the classes."""
    root = os.path.expanduser(config.dataset.partition(":")[2])
    if not os.path.isdir(root):
        raise errors.UserError(f"--dataset=folder:{root}: no such folder")
    _, names, loose = next(_walk(root))
    for name in sorted(names):
        if name not in PARTS:
            hint = errors.did_you_mean(name, PARTS, cutoff=0.45)  # val is validation, cat is not
            raise errors.UserError(
                f"{os.path.join(root, name)}: expected one of {', '.join(PARTS)}, found "
                f"{name!r}{hint}"
            )
    for name in sorted(loose):
        if name.lower().endswith(image_files.EXTENSIONS):
            raise errors.UserError(
                f"{os.path.join(root, name)}: expected images only in {', '.join(PARTS)}, "
                "found one next to them"
            )
    class_names = _folders(os.path.join(root, "labeled"))
    if len(class_names) < 2:
        raise errors.UserError(
            f"--dataset=folder:{root}: expected two or more folders of classes in "
            f"{os.path.join(root, 'labeled')}, found {len(class_names)}"
        )
    labeled = _classes(root, "labeled", class_names, config)
    others = os.path.join(root, "unlabeled")
    unlabeled = [(path, examples.UNLABELED) for path in _files(others, config)]
    first = _first(labeled, config)
    rest = {
        name: [_part(_classes(root, name, class_names, config), first, config)]
        for name in ("validation", "test")
        if os.path.isdir(os.path.join(root, name))
    }
    return listing.Listing(
        class_names=class_names,
        image_shape=first[1],
        train=[_part(labeled, first, config), _part(unlabeled, first, config)],
        **rest,
    )


def _walk(path: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """os.walk without hidden files; a folder that cannot be read is an error."""

    def refuse(error):
        raise errors.UserError(f"{error.filename}: cannot read this folder: {error.strerror}")

    if not os.path.isdir(path):
        return
    for folder, below, names in os.walk(path, onerror=refuse, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".")]  # os.walk visits these next
        yield folder, below, [name for name in names if not name.startswith(".")]


def _folders(path: str) -> tuple[str, ...]:
    _, names, _ = next(_walk(path), ("", [], []))
    return tuple(sorted(names))


def _files(path: str, config) -> list[str]:
    """The image files in a folder and its subfolders, sorted; any other file is an error."""
    kept, others = [], []
    for file in sorted(os.path.join(folder, n) for folder, _, names in _walk(path) for n in names):
        name = os.path.basename(file).lower()
        if name not in IGNORED:
            (kept if name.endswith(image_files.EXTENSIONS) else others).append(file)
    listing.leave_out(
        [
            f"{file}: expected a file that ends in {', '.join(image_files.EXTENSIONS)}"
            for file in others
        ],
        config,
    )
    return kept


def _classes(root: str, part: str, class_names, config) -> list[tuple[str, int]]:
    """(file, label) of the part `part`, which has a folder for each class."""
    path = os.path.join(root, part)
    labels = {name: label for label, name in enumerate(class_names)}
    for name in _folders(path):
        if name not in labels:
            hint = errors.did_you_mean(name, class_names)
            raise errors.UserError(
                f"{os.path.join(path, name)}: expected a class of labeled/ "
                f"({', '.join(class_names)}), found {name!r}{hint}"
            )
    files = []
    for file in _files(path, config):
        name, _, below = os.path.relpath(file, path).partition(os.sep)
        if not below:
            raise errors.UserError(
                f"{file}: expected images in folders named after their class, as in "
                f"{os.path.join(path, class_names[0])}"
            )
        files.append((file, labels[name]))
    found = {label for _, label in files}
    for label, name in enumerate(class_names):
        if part == "labeled" and label not in found:
            raise errors.UserError(f"{os.path.join(path, name)}: expected images, found none")
    if not files:
        raise errors.UserError(f"{path}: expected images in folders of classes, found none")
    return files


def _part(files: Sequence[tuple[str, int]], first, config) -> examples.Part:
    skipped = []

    def key():
        # A broken link has only its own stat.
        stats = [os.stat(file, follow_symlinks=os.path.exists(file)) for file, _ in files]
        return repr([(*item, stat.st_size, stat.st_mtime_ns) for item, stat in zip(files, stats)])

    return examples.Part(len(files), lambda: _batches(files, first, skipped, config), key, skipped)


def _first(files, config) -> tuple[str, tuple[int, int, int]]:
    """The first file that can be read, and the shape of its image."""
    for file, _ in files:
        image, _, problem = _read(file, config)
        if not problem:
            return file, image.shape
        if not config.skip_broken:
            listing.leave_out([problem], config)
    raise errors.UserError(
        f"--dataset={config.dataset}: expected images in labeled/, found {len(files)} broken files"
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
