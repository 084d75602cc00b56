"""Two logical CPU devices for the distribution tests; both must be set before TensorFlow starts."""

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import pathlib

import pytest
import tensorflow as tf

(_cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(_cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)


@pytest.fixture(autouse=True)
def own_collectives():
    """Keeps the strategies of different tests apart, as TensorFlow's own tests do.

    All strategies of a process number their collectives alike: the second one's would meet the
    first one's, which have other shapes.
    """
    tf.distribute.MirroredStrategy._collective_key_base += 100_000


@pytest.fixture
def two_replicas(own_collectives):
    """A strategy over the two CPUs."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def in_the_projects_folder(monkeypatch):
    """Flagfiles nest others by paths from there."""
    monkeypatch.chdir(pathlib.Path(__file__).resolve().parent.parent)
