"""How tests compute, which must be set before TensorFlow starts, and what several of them share."""

import os

# Processes that tests start compute in the same way, so that runs can be compared bit by bit.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")
# Some virtual machines announce AMX and do not let it be used: oneDNN would believe them.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

import rat_tf  # noqa: F401  (first: it sets the environment that TensorFlow reads at its import)

# isort: split
import gc
import pathlib
import types

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import train
from rat_tf.training import loop
from rat_tf.tuning import trials
from tests import runs

# Two logical devices for the distribution tests.
(_cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(_cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


@pytest.fixture(autouse=True)
def own_collectives():
    """Keeps the strategies of different tests apart, as TensorFlow's own tests do.

    All strategies of a process number their collectives alike: the second one's would meet the
    first one's, which have other shapes.
    """
    tf.distribute.MirroredStrategy._collective_key_base += 100_000


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """Runs and searches do not draw themselves, which takes as long as a hundred steps.

    Those that several tests share do, and tests/plots has the pictures.
    """
    for user, name, draw in ((loop, "plots", "summary"), (trials, "figure", "trials")):
        stand_in = {**vars(getattr(user, name)), draw: lambda *_: None}
        monkeypatch.setattr(user, name, types.SimpleNamespace(**stand_in))


def pytest_collection_finish():
    """What is imported stays: the garbage collector need not look through all of it again."""
    gc.freeze()


@pytest.fixture
def two_replicas(own_collectives):
    """A strategy over the two CPUs."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """The folder of a run that nothing interrupts. To be read only: all tests share it."""
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    train.main(config_lib.Config(**runs.TINY, run_dir=str(run_dir)))
    return run_dir


@pytest.fixture
def in_the_projects_folder(monkeypatch):
    """Flagfiles nest others by paths from there."""
    monkeypatch.chdir(pathlib.Path(__file__).resolve().parent.parent)
