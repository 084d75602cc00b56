"""Loads the weights of a run from its folder; the training data are not needed."""

from __future__ import annotations

import dataclasses
import os
import re
import sys

import tensorflow as tf

from rat_tf import errors
from rat_tf.data import preprocess
from rat_tf.training import kept_network, run_folder, signals


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained network with its preprocessing, classes and image shape."""

    preprocessing: tf.keras.layers.Layer
    network: tf.keras.Model
    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    step: int  # at which the weights were saved

    def logits(self, images) -> tf.Tensor:
        return self.network(self.preprocessing(images), training=False)


def load(run: run_folder.Run, weights: str, allow_code: bool = False) -> Trained:
    """Builds the network of a run and reads the named weights.

    `allow_code` runs code that the run folder keeps of a foreign network.

    It is built in float32 at any training precision: weights are stored in float32, and servers
    are often CPUs, which have no float16.
    """
    config = run.config()
    described = run.described()
    image_shape = tuple(described["image_shape"])
    policy = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy("float32")
    try:
        preprocessing = preprocess.build(config)
        preprocessing.build((None, *image_shape))
        classes = len(described["class_names"])
        network = kept_network.Kept(run, config, image_shape, classes, allow_code).make()
        network(preprocessing(tf.zeros([1, *image_shape], tf.uint8)))
    finally:
        tf.keras.mixed_precision.set_global_policy(policy)
    step = _read(run, weights, config.monitor(weights), network, preprocessing)
    finalize(network)
    return Trained(preprocessing, network, tuple(described["class_names"]), image_shape, step)


def finalize(network) -> None:
    """Lets layers that compute with constants made of their weights, as Normalization, see them."""
    for layer in network._flatten_layers():  # as Keras' set_weights does
        layer.finalize_state()


def steps(folder: str, name: str = "step") -> list[int]:
    """The steps of the checkpoints <name>-<step> in a folder, in order.

    From the file names, because TensorFlow's list of checkpoints may be damaged.
    """
    names = tf.io.gfile.listdir(folder) if tf.io.gfile.isdir(folder) else []
    found = (re.fullmatch(rf"{name}-(\d+)\.index", entry) for entry in names)
    return sorted(int(match[1]) for match in found if match)


def newest_first(folder: str) -> list[str]:
    """The checkpoints of a run, the newest first."""
    return [os.path.join(folder, f"step-{step}") for step in reversed(steps(folder))]


def best_path(run: run_folder.Run, monitor: str, step: int) -> str:
    """The path of the weights with the lowest validation error."""
    return os.path.join(run.best, f"{monitor}-{step}")


def best_checkpoint(network, preprocessing) -> tf.train.Checkpoint:
    """The checkpoint at `best_path`."""
    return tf.train.Checkpoint(network=network, preprocessing=preprocessing)


def unreadable(path: str, error: Exception) -> None:
    """Warns of a damaged checkpoint. One that is whole does not fit: that is a `UserError`."""
    signals.check()
    reason = str(error).partition("\n")[0]
    if _is_whole(path):
        raise errors.UserError(
            f"--run_dir: {path} is intact, but does not fit the network that flags.cfg and "
            f"data.json describe: {reason}. Use these files and the code with which it was written."
        ) from None
    print(f"warning: {path} cannot be read: {reason}", file=sys.stderr)


def _is_whole(path: str) -> bool:
    """Whether all of a checkpoint can be read; each of its tensors has a checksum."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception:  # a damaged file can raise anything
        return False
    return True


def _read(run: run_folder.Run, weights: str, monitor: str, network, preprocessing) -> int:
    """Fills the variables from the newest checkpoint that can be read; returns their step."""
    paths = newest_first(run.checkpoints)
    for path in paths:
        try:
            return _read_from(path, run, weights, monitor, network, preprocessing)
        except errors.UserError:
            raise
        except Exception as error:  # a damaged file can raise anything
            unreadable(path, error)
    raise errors.UserError(
        f"--run_dir: no checkpoint of {run.folder} can be read"
        if paths
        else f"--run_dir: {run.folder} has no validated checkpoint yet"
    )


def _read_from(path: str, run, weights: str, monitor: str, network, preprocessing) -> int:
    reader = tf.train.load_checkpoint(path)
    key = f"best_step/{monitor}/.ATTRIBUTES/VARIABLE_VALUE"
    if not reader.has_tensor(key):
        raise errors.UserError(
            f"--weights={weights}: {run.folder} was trained without averaged weights (--ema_decay)"
        )
    best_step = int(reader.get_tensor(key))
    if not best_step:
        raise errors.UserError(f"--run_dir: {run.folder} has no validated checkpoint yet")
    last_step = int(path.rpartition("-")[2])
    if weights != "last":
        best = best_path(run, monitor, best_step)
        try:
            best_checkpoint(network, preprocessing).read(best).assert_consumed()
            return best_step
        except Exception as error:
            unreadable(best, error)
            print(f"warning: using the weights of step {last_step}, the last", file=sys.stderr)
    model = tf.Module()
    model.preprocessing = preprocessing
    setattr(model, "network" if monitor == "error" else "averaged", network)
    status = tf.train.Checkpoint(model=model).read(path)
    status.assert_existing_objects_matched().expect_partial()
    return last_step
