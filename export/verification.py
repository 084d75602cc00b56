"""Compares an exported model with its run on the same images."""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

from export import warmup
from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.training import run_folder
from rat_tf.training import weights as weights_lib

BATCHES = (1, 7, 64)  # one image, an odd number, the largest that is served
TOLERANCE = 1e-4  # of a logit, relative to the largest; rounding gives about 1e-6


def images(run: run_folder.Run, config: config_lib.Config, image_shape) -> tuple[np.ndarray, str]:
    """Images for the largest batch and what they are: validation images if available, or noise.

    Fewer validation images are repeated.
    """
    count = max(BATCHES)
    try:
        _, found = run.held_out(config, ("validation",))
        found = found.take(slice(count)).images
    except (errors.UserError, OSError) as error:
        reason = str(error).partition("\n")[0]
        print(
            f"warning: the run's data cannot be loaded, verifying on noise: {reason}",
            file=sys.stderr,
        )
    else:
        if found.shape[1:] == image_shape and len(found):
            return found[np.arange(count) % len(found)], f"{len(found)} validation images"
        print("warning: the data are not those of the run, verifying on noise", file=sys.stderr)
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(count, *image_shape), dtype=np.uint8), f"{count} images of noise"


def verify(version_dir: str, trained: weights_lib.Trained, images: np.ndarray) -> float:
    """Compares the saved model with the run's network; returns the largest difference of a logit.

    The model is read back from disk. The network is called eagerly, op by op.
    """
    signatures = tf.saved_model.load(version_dir).signatures
    largest = 0.0
    for size in BATCHES:
        batch = images[:size]
        expected = trained.logits(tf.constant(batch)).numpy()
        scale = max(1.0, np.abs(expected).max())
        for signature, argument in (
            ("serving_default", {"images": tf.constant(batch)}),
            ("serving_bytes", {"image_bytes": tf.constant(warmup.encode(batch))}),
        ):
            answer = signatures[signature](**argument)
            difference = np.abs(answer["logits"].numpy() - expected).max()
            if not difference <= TOLERANCE * scale:  # also if it is NaN
                raise errors.UserError(
                    f"the exported {signature} differs from the run by {difference:.1e} in a "
                    f"logit, for a batch of {size}; nothing was exported"
                )
            largest = max(largest, float(difference))
    warmup.replay(signatures, version_dir)
    return largest
