"""Devices, precision and determinism, set before TensorFlow initialises its devices."""

from __future__ import annotations

import json
import os
import sys

import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.data import streams
from rat_tf.methods.options import rat
from rat_tf.training import footprint


def prepare(config: config_lib.Config) -> tf.distribute.Strategy:
    """Applies the flags of the machine; returns the strategy for building the model."""
    footprint.check(config)
    streams.check_replicas(*config.batch_sizes, config.logical_devices)
    set_threads(config.operation_threads)
    if config.deterministic:
        tf.keras.utils.set_random_seed(config.seed)
        tf.config.experimental.enable_op_determinism()
    set_precision(config)
    strategy = _strategy(config)
    streams.check_replicas(*config.batch_sizes, strategy.num_replicas_in_sync)
    check_share(config, strategy.num_replicas_in_sync)
    return strategy


def check_share(config: config_lib.Config, replicas: int) -> None:
    """Each replica searches whole images: with other shares it would not be the same ones."""
    count = config.unlabeled_batch // replicas
    problem = rat.share_problem(config.adversary_share or 1, count, replicas)
    if problem:
        raise errors.UserError(f"--adversary_share: {problem}")


def set_threads(count: int) -> None:
    """Sets how many threads share an operation; 0 leaves it to TensorFlow."""
    if not count:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(count)
    except RuntimeError:  # such as after another run of the same process
        print(
            f"warning: --operation_threads={count} is ignored: TensorFlow has started its threads",
            file=sys.stderr,
        )


def set_precision(config: config_lib.Config) -> None:
    """Sets the precision of the layers that are built next."""
    policy = f"mixed_{config.mixed_precision}" if config.mixed_precision else "float32"
    tf.keras.mixed_precision.set_global_policy(policy)


def worker_index(strategy) -> int:
    """The index of this worker in a cluster; 0 for the chief and for a single process."""
    resolver = strategy.cluster_resolver
    return int(resolver.task_id or 0) if resolver else 0


def _strategy(config: config_lib.Config) -> tf.distribute.Strategy:
    if config.strategy == "multi_worker":
        try:
            workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
            assert workers
        except (KeyError, ValueError, TypeError, AssertionError):
            raise errors.UserError(
                "--strategy=multi_worker: expected the environment variable TF_CONFIG to hold "
                '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}'
                f", got {os.environ.get('TF_CONFIG')!r}"
            ) from None
        return tf.distribute.MultiWorkerMirroredStrategy()
    if config.logical_devices > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        devices = [tf.config.LogicalDeviceConfiguration()] * config.logical_devices
        if tf.config.get_logical_device_configuration(cpu) != devices:
            tf.config.set_logical_device_configuration(cpu, devices)
        return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(config.logical_devices)])
    gpus = len(tf.config.list_physical_devices("GPU"))
    if config.strategy == "mirrored" or (config.strategy == "auto" and gpus > 1):
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
