"""Images with their labels, in memory or on disk, and how they are read into one array.

A set that is larger than --memory_limit_gb is decoded once, from its shards or files into one file
of pixels that is then mapped into memory. The usual alternative, shards with a shuffle buffer, is
neither reproducible from any step (the buffer's state is no function of the step), nor able to
pick 1,000 labelled images out of a large set without reading all of it. Mapped, every image is
within reach, the batches are those that the same set in memory gives, and a worker reads only its
own rows of a batch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from absl import logging

from rat_tf import config as config_lib

ALIGNMENT = 64  # bytes; TensorFlow aborts on a tensor that shares memory aligned otherwise
UNLABELED = -1


@dataclasses.dataclass(frozen=True)
class Examples:
    """N images, uint8 [H, W, C], with labels, int64 [N], -1 where there is none.

    The pixels, [M, H, W, C], are shared by all subsets of a set; `rows` [N] says which are meant.
    """

    pixels: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None  # all of them, in order
    fingerprints: np.ndarray | None = None  # uint8 [N, 8], of the images before they were resized

    def __post_init__(self):
        if self.rows is None:
            object.__setattr__(self, "rows", np.arange(len(self.pixels)))
        if self.fingerprints is None:
            object.__setattr__(self, "fingerprints", fingerprint(self.images).numpy())

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def images(self) -> np.ndarray:
        """A copy of the images, [N, H, W, C]."""
        return self.pixels[self.rows]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return self.pixels.shape[1:]

    def take(self, indices) -> Examples:
        return Examples(
            self.pixels, self.labels[indices], self.rows[indices], self.fingerprints[indices]
        )

    @property
    def hash(self) -> str:
        """Names the content: images as they were found, labels and order."""
        digest = hashlib.sha256(self.labels.astype("<i8").tobytes())
        digest.update(np.ascontiguousarray(self.fingerprints).tobytes())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class Part:
    """Images still to be read, in a fixed order: `size` of them, fewer if some are skipped."""

    size: int
    batches: Callable[[], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]]
    """Yields images of the final shape, labels, fingerprints."""
    key: Callable[[], str]
    """Changes with the images; names their file in the cache."""


def fingerprint(images) -> tf.Tensor:
    """FarmHash of each image, uint8 [B, 8]."""
    flat = tf.reshape(images, [tf.shape(images)[0], -1])
    if not flat.shape[0]:
        return tf.zeros([0, 8], tf.uint8)
    return tf.raw_ops.Fingerprint(data=flat, method="farmhash64")


def fit(image, size: int, channels: int) -> tf.Tensor:
    """One image, uint8 [H, W, C], in the configured size and channels; 0 leaves either as it is."""
    if channels:
        depth = image.shape[-1]
        if depth in (2, 4):  # the last is alpha: left out, as image libraries do
            image, depth = image[..., : depth - 1], depth - 1
        if (depth, channels) == (1, 3):
            image = tf.image.grayscale_to_rgb(image)
        elif (depth, channels) == (3, 1):
            image = tf.image.rgb_to_grayscale(image)
    if size and image.shape[:2] != (size, size):
        resized = tf.image.resize(image, [size, size], antialias=True)
        image = tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)
    return image


def decoded(dataset: tf.data.Dataset, size: int, channels: int) -> Iterator[tuple]:
    """The batches of a `Part`, from a dataset of (image, label), in its order."""

    def prepare(image, label):
        label = tf.cast(label, tf.int64)
        return fit(image, size, channels), label, fingerprint(image[tf.newaxis])[0]

    dataset = dataset.map(prepare, tf.data.AUTOTUNE, deterministic=True).batch(256)
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options()).as_numpy_iterator()


def options() -> tf.data.Options:
    """No autotuning, which costs up to a minute when a pipeline is dropped.

    Its thread wakes after 10, 20, 40, … ms, at last once a minute, and TensorFlow 2.15 often fails
    to wake it for the end. AUTOTUNE then stands for as many threads as cores, at most 16.
    """
    found = tf.data.Options()
    found.autotune.enabled = False
    return found


def read(parts: Sequence[Part], shape, path: str | None = None) -> Examples:
    """Reads the parts one after the other into one array, in memory or in a new file at `path`."""
    size = sum(part.size for part in parts)
    if path:
        pixels = np.lib.format.open_memmap(path, "w+", np.uint8, (size, *shape))
    else:
        pixels = _aligned((size, *shape))
    labels, fingerprints, filled = [np.zeros(0, np.int64)], [np.zeros((0, 8), np.uint8)], 0
    for part in parts:
        for images, part_labels, part_fingerprints in part.batches():
            pixels[filled : filled + len(images)] = images
            filled += len(images)
            labels.append(part_labels)
            fingerprints.append(part_fingerprints)
    if path:
        pixels.flush()
    rows = np.arange(filled)
    return Examples(pixels, np.concatenate(labels), rows, np.concatenate(fingerprints))


def read_mapped(parts: Sequence[Part], shape, cache_dir: str) -> Examples:
    """As `read`, with the pixels in a file of the cache that is written once and then mapped."""
    size = sum(part.size for part in parts)
    if not size:
        return read(parts, shape)
    key = hashlib.sha256(json.dumps([[part.key() for part in parts], shape]).encode()).hexdigest()
    folder = os.path.join(cache_dir, "images", key[:24])
    found = _open_mapped(folder)
    if found:
        return found
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    needed, free = size * int(np.prod(shape)), shutil.disk_usage(parent).free
    if needed > 0.95 * free:
        raise config_lib.UserError(
            f"--cache_dir: {needed / 1e9:.1f} GB of decoded images do not fit into the "
            f"{free / 1e9:.1f} GB that are free in {parent}; give another folder, raise "
            "--memory_limit_gb or lower --image_size"
        )
    logging.warning("decoding %d images (%.1f GB) into %s, once", size, needed / 1e9, folder)
    temporary = tempfile.mkdtemp(dir=parent)
    try:
        examples = read(parts, shape, os.path.join(temporary, "pixels.npy"))
        rest = {"labels": examples.labels, "fingerprints": examples.fingerprints}
        np.savez(os.path.join(temporary, "labels.npz"), **rest)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(temporary, folder)
    except OSError:
        if not os.path.isdir(folder):  # it is there if another process was faster: the same images
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _open_mapped(folder)


def _open_mapped(folder: str) -> Examples | None:
    """What `read_mapped` wrote; None if it is not there or damaged."""
    try:
        # "c" (copy on write): TensorFlow shares no memory that is read-only.
        pixels = np.load(os.path.join(folder, "pixels.npy"), mmap_mode="c")
        with np.load(os.path.join(folder, "labels.npz")) as rest:
            labels, fingerprints = rest["labels"], rest["fingerprints"]
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever a damaged file raises
        logging.warning("%s is damaged and decoded again: %s", folder, error)
        return None
    return Examples(pixels, labels, np.arange(len(labels)), fingerprints)


def as_tensor(pixels: np.ndarray) -> tf.Tensor:
    """The array as a tensor on the CPU, without a copy where its alignment allows that."""
    if pixels.size and pixels.ctypes.data % ALIGNMENT == 0 and pixels.flags.c_contiguous:
        return tf.experimental.dlpack.from_dlpack(pixels.__dlpack__())
    with tf.device("CPU"):
        return tf.constant(pixels)


def _aligned(shape) -> np.ndarray:
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].reshape(shape)
