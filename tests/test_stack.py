"""Keras 2 on every stack, and what depends on the packages that are installed."""

import subprocess
import sys

import pytest
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import errors, stack
from rat_tf.config import cli
from rat_tf.training import run_folder


def packages(monkeypatch, *installed):
    monkeypatch.setattr(stack, "has", lambda module: module in installed)


def test_keras_is_keras_2():
    assert tf.keras.Model.__module__.split(".")[0] == (
        "tf_keras" if stack.has("tf_keras") else "keras"
    )
    assert issubclass(tf.keras.layers.Layer, tf.Module)  # not in Keras 3


@pytest.mark.parametrize(
    "installed, expected", [(["tf_keras"], "1"), ([], None), (["tensorflow_addons"], None)]
)
def test_tf_keras_is_chosen_where_it_is_installed(monkeypatch, installed, expected):
    """TensorFlow 2.15 would have no Keras if it were told to use a package that is not there."""
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "")  # so that it is put back as it was
    monkeypatch.delenv("TF_USE_LEGACY_KERAS")
    packages(monkeypatch, *installed)
    stack.choose_keras()
    assert stack.os.environ.get("TF_USE_LEGACY_KERAS") == expected


#: A TensorFlow with Keras 3, as far as rat_tf looks at it.
KERAS_3 = """
import sys, types
sys.modules["tensorflow"] = tf = types.ModuleType("tensorflow")
tf.keras = types.SimpleNamespace(version=lambda: "3.15.1")
import rat_tf
"""


@pytest.mark.parametrize(
    "installed, chosen, advice",
    [
        (["tf_keras"], "1", "import rat_tf first, or set TF_USE_LEGACY_KERAS=1"),
        (["tf_keras"], "0", "set TF_USE_LEGACY_KERAS=1, it is 0"),
        ([], "1", "pip install tf_keras, of the same version as TensorFlow"),
    ],
)
def test_keras_3_is_refused_with_what_to_do(monkeypatch, installed, chosen, advice):
    packages(monkeypatch, *installed)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", chosen)
    monkeypatch.setattr(tf.keras, "version", lambda: "3.15.1", raising=False)
    expected = f"needs Keras 2, but tf.keras is Keras 3.15.1: {advice}$"
    with pytest.raises(ImportError, match=expected):
        stack.check_keras()
    with pytest.raises(errors.UserError, match=expected):
        cli.import_tensorflow_quietly()  # a command: no traceback


def test_one_message_if_tensorflow_came_first_with_keras_3():
    done = subprocess.run([sys.executable, "-c", KERAS_3], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ImportError: rat_tf needs Keras 2, but")


def test_a_run_records_the_packages_that_are_installed():
    recorded = run_folder._environment()["packages"]
    assert {"tensorflow", "tensorflow-datasets", "keras", "numpy"} <= set(recorded)
    assert recorded["tensorflow"] == tf.__version__
    assert ("tensorflow-addons" in recorded) == stack.has("tensorflow_addons")
    assert ("tf-keras" in recorded) == stack.has("tf_keras")


def test_the_kernel_of_tfa_is_refused_where_it_is_missing(monkeypatch):
    """On the command line; run folders in which it was used can be read."""
    packages(monkeypatch)
    flags = ["--sampler=resampler"]
    with pytest.raises(errors.UserError, match="--sampler: .*TensorFlow Addons.*use gather"):
        print(cli.parse(flags, training=True).config)
    assert config_lib.Config(sampler="resampler").sampler == "resampler"
    packages(monkeypatch, "tensorflow_addons")
    assert cli.parse(flags, training=True).config.sampler == "resampler"
