"""The number of threads of an operation."""

import subprocess
import sys

import tensorflow as tf

from rat_tf.training import devices

ASK = """
import tensorflow as tf
from rat_tf.training import devices
devices.set_threads({count})
tf.zeros([1])
print(tf.config.threading.get_intra_op_parallelism_threads())
"""


def test_the_flag_reaches_tensorflow():
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(count=3)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["3"] and "ignored" not in done.stderr


def test_threads_that_have_started_stay(capsys):
    tf.zeros([1])  # starts them
    before = tf.config.threading.get_intra_op_parallelism_threads()
    devices.set_threads(0)
    assert not capsys.readouterr().err
    devices.set_threads(1023)
    assert "--operation_threads=1023 is ignored" in capsys.readouterr().err
    assert tf.config.threading.get_intra_op_parallelism_threads() == before
