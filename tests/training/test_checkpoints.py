"""Which step is the best one."""

import signal

import pytest
import tensorflow as tf

from rat_tf.training import checkpoints, run_folder


@pytest.mark.parametrize(("later", "step"), [(False, 2), (True, 3)])
def test_of_steps_with_the_same_error_the_first_or_the_last_is_best(tmp_path, later, step):
    """Errors 1/2, 0, 0, 1/3; the weights are those of that step."""
    network = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
    network.build((None, 1))
    network.compile("sgd")
    network.candidates = {"error": network}
    network.preprocessing = tf.keras.layers.Identity()
    run = run_folder.Run(str(tmp_path))
    checkpoint = checkpoints.Checkpoints(network, run, interval=1, later=later)
    checkpoint.set_model(network)
    for now, error in enumerate((1 / 2, 0.0, 0.0, 1 / 3), start=1):
        network.optimizer.iterations.assign(now)
        network.layers[0].kernel.assign([[float(now)]])
        checkpoint.on_epoch_end(0, {"val_error": error})
    checkpoint.close()
    assert checkpoint.restore_best() == step == float(network.layers[0].kernel[0, 0])


def test_a_signal_that_is_switched_off_stays_so(tmp_path):
    """As nohup does with SIGHUP, and a shell with the SIGINT of its background jobs."""
    network = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    network.build((None, 1))
    network.compile("sgd")
    network.candidates = {"error": network}
    network.preprocessing = tf.keras.layers.Identity()
    checkpoint = checkpoints.Checkpoints(network, run_folder.Run(str(tmp_path)), interval=1)
    checkpoint.set_model(network)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        checkpoint.on_train_begin()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == checkpoint._on_signal
        checkpoint.close()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
