"""Two logical CPU devices for the distribution tests; both must be set before TensorFlow starts."""

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import pytest
import tensorflow as tf

(_cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(_cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(2)


@pytest.fixture(scope="session")
def two_replicas():
    """A strategy over the two CPUs, one for all tests.

    Every strategy of a process counts its collectives from the same number: those of a second one
    would meet the first one's, of other shapes.
    """
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
