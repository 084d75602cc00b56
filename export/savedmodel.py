"""Exports the classifier of a run as a SavedModel that TF Serving, or any TensorFlow, can load.

    python -m export.savedmodel --run_dir=runs/digits50/rat-seed0 --output=models/digits

Writes models/digits/<version>/, the next number or --version, checks that it gives the answers of
the run, and only then lets it appear under its name: a server that polls the folder never sees half
a model, and an export that fails or is stopped leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from absl import flags

from export import card, classifier, warmup
from export import weights as weights_lib
from rat_tf import cli, data, runs
from rat_tf import config as config_lib

BATCHES = (1, 7, 64)  # verified: one image, an odd number, the largest that is served
TOLERANCE = 1e-4  # of a logit, relative to the largest; rounding gives about 1e-6
LAST_VERSION = 2**63 - 1  # TF Serving's numbers have 64 bits
TEMPORARY = ".export-"  # not a number: servers look at numbers only


def main(
    run_dir: str, output: str, weights: str = "best", version: int = 0, data_dir: str | None = None
) -> str:
    """Exports and returns the version's folder."""
    run = runs.Run(run_dir)
    changes = {"data_dir": data_dir} if data_dir else {}
    config = run.config(download=False, **changes)
    trained = weights_lib.load(run, config, weights)
    if trained.image_shape[-1] not in (1, 3):
        raise config_lib.UserError(
            f"--run_dir: expected images of 1 or 3 channels, but {run_dir} has those of "
            f"{trained.image_shape[-1]}; train with --channels=3"
        )
    images, kind = verification_images(config, trained.image_shape)
    name = os.path.basename(os.path.abspath(output))
    with open(run.flags) as file:
        training_flags = file.read()
    with new_version(output, version) as (temporary, final):
        with tempfile.TemporaryDirectory() as folder:
            texts = {
                "class_names.txt": "".join(f"{label}\n" for label in trained.class_names),
                "model_card.md": card.text(name, run, config, trained, weights),
                "flags.cfg": training_flags,
            }
            for file_name, text in texts.items():
                runs.write(os.path.join(folder, file_name), text)
            assets = [os.path.join(folder, file_name) for file_name in texts]
            module = classifier.Classifier(trained, assets)
            tf.saved_model.save(module, temporary, module.signatures())
        warmup.write(temporary, name, images)
        difference = verify(temporary, trained, images)
    print(f"{weights} weights of {run_dir}, step {trained.step}, exported to {final}")
    print(f"largest difference to the run on {len(images)} {kind}: {difference:.1e} of a logit")
    return final


@contextlib.contextmanager
def new_version(output: str, version: int) -> Iterator[tuple[str, str]]:
    """A temporary folder, which gets its name if all goes well and is removed if it does not.

    The lock is the kernel's and ends with the process, however that ends: what is found under it
    and has a temporary name was left by an export that was killed.
    """
    existed = os.path.isdir(output)
    try:
        os.makedirs(output, exist_ok=True)
        lock = os.open(output, os.O_RDONLY)
    except OSError as error:
        raise config_lib.UserError(
            f"--output: cannot write to {output}: {error.strerror}"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise config_lib.UserError(
                f"--output: another export is writing to {output}; wait for its end"
            ) from None
        number = version or max(versions(output), default=0) + 1
        if number > LAST_VERSION:
            raise config_lib.UserError(f"--version: must be at most {LAST_VERSION}, got {number}")
        final = os.path.join(output, str(number))
        if os.path.exists(final):
            raise config_lib.UserError(
                f"--version: {final} exists; take another number, or none for the next"
            )
        for leftover in os.listdir(output):
            if leftover.startswith(TEMPORARY):
                shutil.rmtree(os.path.join(output, leftover))
        temporary = os.path.join(output, f"{TEMPORARY}{os.path.basename(final)}")
        try:
            yield temporary, final
            os.rename(temporary, final)
        except (OSError, tf.errors.OpError) as error:
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise config_lib.UserError(
                f"--output: {final} cannot be written: {reason}; nothing was left there"
            ) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    finally:
        os.close(lock)
        if not existed and not os.listdir(output):
            os.rmdir(output)


def versions(model_dir: str) -> list[int]:
    """The versions in the folder of a model, in order: folders that TF Serving looks at."""
    if not os.path.isdir(model_dir):
        return []
    numbers = (name for name in os.listdir(model_dir) if re.fullmatch("0|[1-9][0-9]*", name))
    return sorted(number for number in map(int, numbers) if number <= LAST_VERSION)


def verification_images(config: config_lib.Config, image_shape) -> tuple[np.ndarray, str]:
    """As many images as the largest batch, and what they are: of validation, if they can be had."""
    count = max(BATCHES)
    try:
        images = data.load(config).validation.images
    except (config_lib.UserError, OSError) as error:
        reason = str(error).partition("\n")[0]
        print(f"warning: without the run's data, verified on noise: {reason}", file=sys.stderr)
    else:
        if images.shape[1:] == image_shape and len(images):
            return images[np.arange(count) % len(images)], "validation images"
        print("warning: the data are not those of the run, verified on noise", file=sys.stderr)
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(count, *image_shape), dtype=np.uint8), "images of noise"


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
            if not difference <= TOLERANCE * scale:  # also if it is not a number
                raise config_lib.UserError(
                    f"the exported {signature} differs from the run by {difference:.1e} in a "
                    f"logit, for a batch of {size}; nothing was exported"
                )
            largest = max(largest, float(difference))
    warmup.replay(signatures, version_dir)
    return largest


def _stop(number, frame):
    """Leaves as an exception does, so that the temporary folder is removed."""
    print("stopped; nothing was exported", file=sys.stderr)
    sys.exit(128 + number)


if __name__ == "__main__":
    flags.DEFINE_string("run_dir", None, "Folder of a run of rat_tf.train.", required=True)
    flags.DEFINE_string(
        "output", None, "Folder of the model, one below for a version.", required=True
    )
    flags.DEFINE_enum("weights", "best", config_lib.WEIGHTS, "Which weights to export.")
    flags.DEFINE_integer("version", 0, "Number of the version; 0: the next.", lower_bound=0)
    flags.DEFINE_string("data_dir", None, "TFDS folder, if it is not where it was in training.")
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, _stop)
    cli.command(lambda f: main(f.run_dir, f.output, f.weights, f.version, f.data_dir))
