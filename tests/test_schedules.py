"""Ramps and the learning rate against their closed forms."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import schedules


@pytest.mark.parametrize("length", [1, 400, 200_000])
def test_rampup_is_the_sigmoid_shape_of_mean_teacher(length):
    steps = np.unique(np.linspace(0, 2 * length, 41).astype(int))
    expected = np.where(steps < length, np.exp(-5 * (1 - steps / length) ** 2), 1)
    actual = [float(schedules.rampup(step, length)) for step in steps]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_rampup_over_no_steps_is_one_from_the_start():
    assert [float(schedules.rampup(step, 0)) for step in (0, 1, 7)] == [1, 1, 1]


def test_rampup_follows_a_variable_inside_a_graph():
    """As it follows `optimizer.iterations`, an int64 variable, in a traced step."""
    step = tf.Variable(0, dtype=tf.int64)
    ramp = tf.function(lambda: schedules.rampup(step, 10))
    np.testing.assert_allclose(ramp(), np.exp(-5), rtol=1e-6)
    step.assign(5)
    np.testing.assert_allclose(ramp(), np.exp(-1.25), rtol=1e-6)


def test_learning_rate_decays_once():
    rate = schedules.LearningRate(0.003, decay_at=400, decay=0.2)
    np.testing.assert_allclose([rate(step) for step in (0, 1, 399)], 0.003, rtol=1e-6)
    np.testing.assert_allclose([rate(step) for step in (401, 10**6)], 0.0006, rtol=1e-6)


def test_learning_rate_serves_exactly_decay_at_steps():
    """`optimizer.iterations` counts the steps made: at 400 there have been 400 of them."""
    rate = schedules.LearningRate(0.003, decay_at=400, decay=0.2)
    np.testing.assert_allclose(rate(tf.constant(400, tf.int64)), 0.0006, rtol=1e-6)
