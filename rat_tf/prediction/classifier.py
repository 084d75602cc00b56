"""Predictions of a trained classifier, whether of a run folder or an export."""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rat_tf import memory
from rat_tf.prediction import inputs

MAX_BATCH = 128  # of 32×32 pixels: the search takes 8 kB per pixel in a WRN-28-2


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
        return memory.at_once(MAX_BATCH, self.image_shape)

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
