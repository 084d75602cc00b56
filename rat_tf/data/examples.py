"""Images with their labels, in memory or on disk, and their reading into one array."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

ALIGNMENT = 64  # bytes; TensorFlow aborts on shared memory with another alignment
UNLABELED = -1
PROGRESS_INTERVAL = 30  # seconds between messages while reading


@dataclasses.dataclass(frozen=True)
class Examples:
    """N images, uint8 [H, W, C], with labels, int64 [N], -1 for images without one.

    The pixels, [M, H, W, C], are shared by all subsets of a set; `rows` [N] selects them.
    """

    pixels: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None  # all of them, in order
    fingerprints: np.ndarray | None = None  # uint8 [N, 8], of the images before they were resized
    skipped: tuple[str, ...] = ()  # files that cannot be used, and why
    name: Callable[[int], str] = str  # of an image by its row: its file, or svhn/train/17

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
            self.pixels,
            self.labels[indices],
            self.rows[indices],
            self.fingerprints[indices],
            name=self.name,
        )

    @property
    def names(self) -> list[str]:
        return [self.name(row) for row in self.rows]

    @property
    def hash(self) -> str:
        """Identifies the content: images before resizing, labels and order."""
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
    """Identifies the images; names their file in the cache."""
    skipped: list[str] = dataclasses.field(default_factory=list)
    """Files that `batches` has skipped, and why."""
    files: Sequence[str] = ()
    """The files of the images, if each has one."""


def naming(parts: Sequence[Part], skipped: Sequence[str], otherwise: str) -> Callable[[int], str]:
    """How the images that were read from the parts are called, by their row.

    By their files; those of a set without files <otherwise>/<row>.
    """
    files = [file for part in parts for file in part.files]
    if not files:
        return lambda row: f"{otherwise}/{row}"
    if skipped:  # "<file>: <problem>", in the order of the files
        problems, left = iter([*skipped, ""]), []
        problem = next(problems)
        for file in files:
            if problem.startswith(f"{file}: "):
                problem = next(problems)
            else:
                left.append(file)
        files = left
    return files.__getitem__


def fingerprint(images) -> tf.Tensor:
    """FarmHash of each image, uint8 [B, 8]."""
    flat = tf.reshape(images, [tf.shape(images)[0], -1])
    if not flat.shape[0]:
        return tf.zeros([0, 8], tf.uint8)
    return tf.raw_ops.Fingerprint(data=flat, method="farmhash64")


def fit(image, size: int | tuple[int, int], channels: int) -> tf.Tensor:
    """One image, uint8 [H, W, C], in the configured size and channels; 0: unchanged.

    A `size` may be a height and a width.
    """
    if channels:
        depth = image.shape[-1]
        if depth in (2, 4):  # the last is alpha: dropped, as image libraries do
            image, depth = image[..., : depth - 1], depth - 1
        if (depth, channels) == (1, 3):
            image = tf.image.grayscale_to_rgb(image)
        elif (depth, channels) == (3, 1):
            image = tf.image.rgb_to_grayscale(image)
    height_width = (size, size) if isinstance(size, int) else tuple(size)
    if size and image.shape[:2] != height_width:
        resized = tf.image.resize(image, height_width, antialias=True)
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
    """Disables autotuning, which can take up to a minute to stop when a pipeline is deleted.

    Its thread wakes after 10, 20, 40, … ms, up to once a minute, and TensorFlow 2.15 often fails to
    wake it at the end. Without autotuning, AUTOTUNE means one thread per core, at most 16.
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
    reported = time.monotonic()
    for part in parts:
        for images, part_labels, part_fingerprints in part.batches():
            pixels[filled : filled + len(images)] = images
            filled += len(images)
            labels.append(part_labels)
            fingerprints.append(part_fingerprints)
            if time.monotonic() - reported >= PROGRESS_INTERVAL:
                print(f"read {filled:,} of {size:,} images", file=sys.stderr, flush=True)
                reported = time.monotonic()
    if path:
        pixels.flush()
    return Examples(
        pixels,
        np.concatenate(labels),
        np.arange(filled),
        np.concatenate(fingerprints),
        tuple(reason for part in parts for reason in part.skipped),
    )


def reason(error: tf.errors.OpError) -> str:
    """TensorFlow's message without the names of nodes and operations around it."""
    text = error.message.splitlines()[0] if error.message else type(error).__name__
    return re.sub(r"\{\{.*?\}\}\s*|\s*\[(Op:|\[).*", "", text).strip()


def as_tensor(pixels: np.ndarray) -> tf.Tensor:
    """The array as a tensor on the CPU, without a copy if its alignment permits."""
    shareable = pixels.flags.c_contiguous and pixels.flags.writeable  # DLPack knows no read-only
    if pixels.size and pixels.ctypes.data % ALIGNMENT == 0 and shareable:
        return tf.experimental.dlpack.from_dlpack(pixels.__dlpack__())
    with tf.device("CPU"):
        return tf.constant(pixels)


def _aligned(shape) -> np.ndarray:
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].reshape(shape)
