"""Random numbers of a step: a function of seed, step and name, on any replicas and devices."""

import itertools

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from rat_tf import draws

SEEDS, STEPS, NAMES = (0, 1, 2, 1000), (0, 1, 2, 499_999), ("clean", "adversarial", "search0")


def normal(*key):
    return draws.normal([1000], draws.seed_for(*key)).numpy()


def test_every_seed_step_and_name_has_its_own_numbers():
    keys = list(itertools.product(SEEDS, STEPS, NAMES))
    seeds = {tuple(draws.seed_for(*key).numpy()) for key in keys}
    assert len(seeds) == len(keys)
    correlation = np.corrcoef([normal(*key) for key in keys]) - np.eye(len(keys))
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_same_key_has_the_same_numbers_in_any_form(compiled):
    """With a constant step TensorFlow would draw when it compiles, without XLA: so a variable."""

    @tf.function(jit_compile=compiled)
    def traced(step):
        seed = draws.seed_for(3, step, "clean")
        return (
            draws.normal([999], seed),
            draws.uniform([7, 3], seed),
            draws.integers([9], seed, -2, 3),
        )

    first = traced.python_function(7)
    for step in (tf.constant(7), tf.constant(7, tf.int64), tf.Variable(7, dtype=tf.int64)):
        normals, *others = traced(step)
        np.testing.assert_allclose(normals, first[0], atol=2e-6)
        for numbers, expected in zip(others, first[1:]):
            np.testing.assert_array_equal(numbers, expected)


def test_numbers_are_those_of_tensorflows_kernels():
    """Bit for bit where nothing is rounded, so that runs of earlier versions can be repeated."""
    seed = draws.seed_for(3, 7, "clean")
    with tf.device("CPU"):
        uniform = tf.random.stateless_uniform([5, 7], seed, alg="philox")
        gaussian = tf.random.stateless_normal([5, 7, 3], seed, alg="philox")
    np.testing.assert_array_equal(draws.uniform([5, 7], seed), uniform)
    np.testing.assert_allclose(draws.normal([5, 7, 3], seed), gaussian, atol=2e-6)


def test_distributions():
    seed = draws.seed_for(0, 0, "distribution")
    count = 100_000
    for numbers, law in ((draws.normal, "norm"), (draws.uniform, "uniform")):
        assert scipy.stats.kstest(numbers([count], seed).numpy(), law).pvalue > 0.01
    found = np.bincount(draws.integers([count], seed, -2, 3).numpy() + 2)
    assert scipy.stats.chisquare(found).pvalue > 0.01 and len(found) == 5
    wide = draws.normal([count], seed, tf.float64)
    assert wide.dtype == tf.float64
    np.testing.assert_array_equal(wide, draws.normal([count], seed))


def test_rows_without_replicas_are_all_rows():
    rows = draws.Rows(2, 3)
    assert rows.total == 5
    np.testing.assert_array_equal(rows(tf.range(5)), np.arange(5))


def test_rows_of_two_replicas_partition_the_global_draw(two_replicas):
    """Four labelled images, then six unlabelled ones: each replica has half of both, in order."""
    drawn = np.random.default_rng(0).normal(size=(10, 3))

    @tf.function
    def run():
        def replica():
            rows = draws.Rows(2, 3)
            assert rows.total == 10
            cut = rows(tf.constant(drawn))
            assert cut.shape == (5, 3)
            return cut

        return two_replicas.run(replica)

    first, second = two_replicas.experimental_local_results(run())
    np.testing.assert_array_equal(first, drawn[[0, 1, 4, 5, 6]])
    np.testing.assert_array_equal(second, drawn[[2, 3, 7, 8, 9]])
