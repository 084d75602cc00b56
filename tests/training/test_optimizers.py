"""Adam against its definition."""

import numpy as np
import tensorflow as tf

from rat_tf import schedules
from rat_tf.training import optimizers


def test_adam_follows_its_definition():
    """Kingma and Ba, algorithm 1, in the order of section 2's last paragraph, in float64."""
    rng = np.random.default_rng(0)
    theta, gradients = rng.normal(size=(4, 3)), rng.normal(size=(30, 4, 3)) ** 3
    variable = tf.Variable(theta, dtype=tf.float32)
    adam = optimizers.Adam(schedules.LearningRate(0.01, 20, 0.2), epsilon=1e-8)
    adam.build([variable])
    m = v = 0.0
    for t, gradient in enumerate(gradients, 1):
        adam.apply_gradients([(tf.constant(gradient, tf.float32), variable)])
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = 0.01 if t <= 20 else 0.002
        theta = theta - rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(variable, theta, rtol=1e-5, atol=1e-6)
    assert int(adam.iterations) == 30


def test_weight_decay_shrinks_what_is_not_excluded():
    kernel, bias = tf.Variable([2.0], name="kernel"), tf.Variable([2.0], name="bias")
    adam = optimizers.Adam(0.1, weight_decay=0.5)
    adam.exclude_from_weight_decay([bias])
    adam.build([kernel, bias])
    adam.apply_gradients([(tf.zeros([1]), kernel), (tf.zeros([1]), bias)])
    np.testing.assert_allclose([kernel[0], bias[0]], [2 * (1 - 0.1 * 0.5), 2.0], rtol=1e-6)


def test_checkpoints_of_keras_adam_can_be_read(tmp_path):
    """The variables are Keras' own, under their own names."""

    def trained(kind):
        variable = tf.Variable([1.0, 2.0])
        adam = kind(0.1)
        adam.build([variable])
        for gradient in ([0.5, -1.0], [0.2, 0.1]):
            adam.apply_gradients([(tf.constant(gradient), variable)])
        return tf.train.Checkpoint(variable=variable, optimizer=adam), variable

    theirs, expected = trained(tf.keras.optimizers.Adam)
    path = theirs.write(str(tmp_path / "keras"))
    ours, variable = trained(optimizers.Adam)
    np.testing.assert_allclose(variable, expected, rtol=1e-5)
    variable.assign([0.0, 0.0])
    ours.read(path).assert_consumed()
    np.testing.assert_array_equal(variable, expected)


def test_weight_decay_follows_the_rate_of_a_variable():
    backbone, head = (tf.Variable([2.0], name=name) for name in ("kernel_a", "kernel_b"))
    adam = optimizers.Adam(0.1, weight_decay=0.5)
    adam.scale_rate([backbone], 0.01)
    adam.build([backbone, head])
    adam.apply_gradients([(tf.zeros([1]), backbone), (tf.zeros([1]), head)])
    expected = [2 * (1 - 0.1 * 0.01 * 0.5), 2 * (1 - 0.1 * 0.5)]
    np.testing.assert_allclose([backbone[0], head[0]], expected, rtol=1e-6)
