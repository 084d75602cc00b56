"""A trained classifier for predictions: that of a run folder, or an exported SavedModel."""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.special
import tensorflow as tf

from rat_tf import errors
from rat_tf.networks import features
from rat_tf.prediction import inputs, stability
from rat_tf.training import build, run_folder, weights

PIXELS = 2**17  # of the images of a batch: the search takes 8 kB per pixel in a WRN-28-2
MAX_BATCH = 128
CLASS_NAMES = os.path.join("assets", "class_names.txt")  # of an exported model


class Outputs(NamedTuple):
    """Of a batch: [B, K], [B] (None: not known) and [B, F] (None: not known)."""

    probabilities: np.ndarray
    stability: np.ndarray | None = None
    features: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Predictions:
    """`classes` [N], names, and `probabilities` [N, K] in the order of `class_names`."""

    classes: np.ndarray
    probabilities: np.ndarray
    class_names: tuple[str, ...]
    files: tuple[str, ...]  # of the images; empty for arrays


class Classifier(abc.ABC):
    """Predicts batches of images of `image_shape`, uint8."""

    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]

    @property
    def batch(self) -> int:
        """Images that are predicted at once."""
        return max(1, min(MAX_BATCH, PIXELS // (self.image_shape[0] * self.image_shape[1])))

    @abc.abstractmethod
    def outputs(self, images: np.ndarray, start: int = 0, draws: int = 0, seed: int = 0) -> Outputs:
        """Of at most `batch` images, the first of which is the `start`-th.

        Stability is of `draws` transformations, 0 for none.
        """

    def predict(self, images) -> Predictions:
        """Classes and probabilities of image files, or of uint8 arrays.

        Args:
          images: a file, a folder or several of them; or an array [H, W, C] or [N, H, W, C], or
            several [H, W, C]. All are converted to the shape that the classifier takes, as training
            does it.
        """
        if isinstance(images, (str, os.PathLike)):
            images = [images]
        elif isinstance(images, np.ndarray) and images.ndim == 3:
            images = images[np.newaxis]
        images = list(images)
        files = [isinstance(image, (str, os.PathLike)) for image in images]
        if any(files):
            if not all(files):
                raise ValueError("images: expected files or arrays, got both")
            named, batches, problems = self._of_files(list(map(os.fspath, images)))
        else:
            named, batches, problems = (), self._of_arrays(images), []
        found = [self.outputs(batch).probabilities for batch in batches]
        if problems:
            raise ValueError("; ".join(problems))
        probabilities = np.concatenate([np.zeros((0, len(self.class_names)), np.float32), *found])
        classes = np.array(self.class_names)[probabilities.argmax(-1)]
        return Predictions(classes, probabilities, self.class_names, tuple(named))

    def _of_files(self, paths: list[str]):
        problems: list[str] = []
        files = inputs.find(paths)
        batches = inputs.of_files(files, self.image_shape, self.batch, problems)
        return files, (images for _, images in batches if len(images)), problems

    def _of_arrays(self, images: list) -> Iterator[np.ndarray]:
        for position, image in enumerate(images):
            image = np.asarray(image)
            if image.dtype != np.uint8 or image.ndim != 3 or image.shape[-1] not in (1, 2, 3, 4):
                raise ValueError(
                    f"images: expected arrays of uint8, [height, width, channels] with 1 to 4 "
                    f"channels, got {image.dtype} {list(image.shape)} at {position}"
                )
        for start in range(0, len(images), self.batch):
            some = images[start : start + self.batch]
            yield np.array([inputs.fitted(np.asarray(image), self.image_shape) for image in some])


class OfRun(Classifier):
    """The classifier of a run folder."""

    def __init__(self, folder: str, which: str = "best"):
        run = run_folder.Run(folder)
        config = run.config()
        self.trained = weights.load(run, which)
        self.class_names = self.trained.class_names
        self.image_shape = self.trained.image_shape
        #: None for a method without transformations.
        self.transform = None if config.used_transforms is None else build.transform(config)
        self._both = features.with_features(self.trained.network)
        self._function = tf.function(self._compute)

    def _compute(self, images, start, draws, seed):
        images = self.trained.preprocessing(images)
        found, clean = self._both(images)
        if not draws:
            return clean, found
        stays = stability.share(
            self.transform, lambda x: self._both(x)[1], images, clean, start, draws, seed
        )
        return clean, found, stays

    def outputs(self, images, start=0, draws=0, seed=0):
        count = len(images)
        # A few sizes, so that not every number of images makes a graph of its own.
        size = min(1 << (count - 1).bit_length(), self.batch) if count > 1 else 1
        padded = images[np.minimum(np.arange(size), count - 1)]
        draws = draws if self.transform is not None else 0
        found = self._function(tf.constant(padded), tf.constant(start, tf.int64), draws, seed)
        clean, learned, *stays = (each[:count].numpy() for each in found)
        probabilities = scipy.special.softmax(clean.astype(np.float64), axis=-1)
        return Outputs(probabilities.astype(np.float32), stays[0] if stays else None, learned)


class Exported(Classifier):
    """A SavedModel of export.savedmodel: the newest version in its folder, or one version."""

    def __init__(self, folder: str):
        version = exported_version(folder)
        try:
            with open(os.path.join(version, CLASS_NAMES), encoding="utf-8") as file:
                self.class_names = tuple(file.read().split("\n")[:-1])
            loaded = tf.saved_model.load(version)
            self._signature = loaded.signatures["serving_default"]
        except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
            raise errors.UserError(
                f"--model_dir: {version} cannot be read as a model of export.savedmodel: "
                f"{str(error).partition(chr(10))[0]}"
            ) from None
        self._loaded = loaded  # its variables live as long as it does
        self.image_shape = tuple(self._signature.structured_input_signature[1]["images"].shape[1:])

    def outputs(self, images, start=0, draws=0, seed=0):
        return Outputs(self._signature(images=tf.constant(images))["probabilities"].numpy())


def exported_version(folder: str) -> str:
    """The folder of the newest version of an exported model, or that version itself."""
    if os.path.exists(os.path.join(folder, "saved_model.pb")):
        return folder
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers: Iterable[int] = (int(name) for name in names if name.isdecimal())
    paths = (os.path.join(folder, str(number)) for number in sorted(numbers, reverse=True))
    for path in paths:
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return path
    raise errors.UserError(
        f"--model_dir: expected a folder of export.savedmodel, with <version>/saved_model.pb, "
        f"got {folder}"
    )


def load(path: str | os.PathLike, weights: str = "best") -> Classifier:
    """The classifier of a run folder, or of a folder of export.savedmodel.

    `weights` are those of a run: best, last, student, ema or teacher.
    """
    path = os.path.expanduser(os.fspath(path))
    try:
        if os.path.exists(run_folder.Run(path).flags):
            return OfRun(path, weights)
        return Exported(path)
    except errors.UserError as error:
        if not os.path.exists(path):
            raise ValueError(f"path: no such folder: {path}") from None
        raise ValueError(str(error)) from None
