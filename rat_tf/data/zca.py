"""Global contrast normalisation and ZCA whitening, fitted in float64 and cached.

    gcn(x) = 55 (x - x̄) / max(‖x - x̄‖, 1e-10)            for each image, over all its values
    matrix = U diag(1/√(S + 1e-10)) Uᵀ  with  U diag(S) Uᵀ = cov(gcn(x)) + 0.1 I

The statistics are those of the whole training set, validation images included, as in the code of
the paper's baselines.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
import scipy.linalg
from absl import logging
from scipy.linalg import blas

from rat_tf import errors
from rat_tf.data import cache, examples
from rat_tf.storage import files

SCALE = 55.0
SMALLEST_NORM = 1e-10
REGULARIZER = 0.1
SMALLEST_VARIANCE = 1e-10
MAX_VALUES = 12_288  # per image, 64×64×3: beyond, the decomposition takes hours and many GB
BLOCK = 2_000


def gcn(images: np.ndarray) -> np.ndarray:
    """[N, H, W, C] to float64 [N, H·W·C]."""
    flat = images.reshape(len(images), -1).astype(np.float64)
    flat -= flat.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(flat, axis=1, keepdims=True)
    flat *= SCALE / np.maximum(norm, SMALLEST_NORM)
    return flat


def fit(train: examples.Examples) -> tuple[np.ndarray, np.ndarray]:
    """Mean [D] and symmetric whitening matrix [D, D], float64, block by block."""
    size = int(np.prod(train.image_shape))
    mean = np.zeros(size)
    second = np.zeros((size, size), order="F")
    for start in range(0, len(train), BLOCK):
        block = gcn(train.pixels[train.rows[start : start + BLOCK]])
        mean += block.sum(axis=0) / len(train)
        # Adds blockᵀ·block to one triangle only, in place: half the work of a full product.
        second = blas.dsyrk(1 / len(train), block.T, beta=1.0, c=second, overwrite_c=True)
    covariance = second - np.outer(mean, mean)
    covariance[np.diag_indices(size)] += REGULARIZER
    variances, vectors = scipy.linalg.eigh(covariance, lower=False, overwrite_a=True)
    scaled = vectors / np.sqrt(np.maximum(variances, 0) + SMALLEST_VARIANCE)
    return mean, scaled @ vectors.T


def check(image_shape) -> None:
    """Refuses images that are too large, before they are read."""
    size = int(np.prod(image_shape))
    if size > MAX_VALUES:
        raise errors.UserError(
            f"--preprocessing=gcn_zca: expected images of at most {MAX_VALUES} values, got {size} "
            f"({'×'.join(map(str, image_shape))}); use a smaller --image_size, or "
            "--preprocessing=scale"
        )


def fitted(train: examples.Examples, cache_dir: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and matrix of `fit`, float32, from the cache if these images have been fitted before."""
    size = int(np.prod(train.image_shape))
    # Labels do not matter; the shape does, since fingerprints are taken before resizing.
    constants = (SCALE, SMALLEST_NORM, REGULARIZER, SMALLEST_VARIANCE, train.image_shape)
    key = hashlib.sha256(repr(constants).encode() + train.fingerprints.tobytes()).hexdigest()
    path = os.path.join(cache_dir, "zca", f"{key[:24]}.npz")
    cached = _load(path, key, size)
    if cached:
        return cached
    logging.warning("fitting ZCA to %d images, once; cached in %s", len(train), path)
    mean, matrix = (array.astype(np.float32) for array in fit(train))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with files.writing(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, mean=mean, matrix=matrix, key=key)
    except OSError as error:  # the matrix can be used without the cache
        logging.warning(
            "--cache_dir: cannot cache the ZCA matrix in %s: %s", path, error.strerror or error
        )
    return mean, matrix


def _load(path: str, key: str, size: int) -> tuple[np.ndarray, np.ndarray] | None:
    """None if there is no such file or it is damaged: every entry of an npz has a checksum."""
    try:
        with np.load(path) as content:
            mean, matrix = content["mean"], content["matrix"]
            whole = str(content["key"]) == key
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged file can raise anything
        problem = "cannot be read" if cache.is_refusal(error) else "is damaged"
        logging.warning("--cache_dir: %s %s; fitting again: %s", path, problem, error)
        return None
    if whole and mean.shape == (size,) and matrix.shape == (size, size):
        return mean, matrix
    logging.warning("%s does not match; fitting again", path)
    return None
