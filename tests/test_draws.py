"""Random numbers of a step: a function of seed, step and name, whatever the number of replicas."""

import itertools

import numpy as np
import tensorflow as tf

from rat_tf import draws

SEEDS, STEPS, NAMES = (0, 1, 2, 1000), (0, 1, 2, 499_999), ("clean", "adversarial", "search0")


def normal(*key):
    return tf.random.stateless_normal([1000], draws.seed_for(*key)).numpy()


def test_every_seed_step_and_name_has_its_own_numbers():
    keys = list(itertools.product(SEEDS, STEPS, NAMES))
    seeds = {tuple(draws.seed_for(*key).numpy()) for key in keys}
    assert len(seeds) == len(keys)
    correlation = np.corrcoef([normal(*key) for key in keys]) - np.eye(len(keys))
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)


def test_the_same_key_has_the_same_numbers_in_any_form():
    first = normal(3, 7, "clean")
    np.testing.assert_array_equal(normal(3, 7, "clean"), first)

    @tf.function
    def traced(step):
        return tf.random.stateless_normal([1000], draws.seed_for(3, step, "clean"))

    for step in (tf.constant(7), tf.constant(7, tf.int64), tf.Variable(7, dtype=tf.int64)):
        np.testing.assert_array_equal(traced(step), first)


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
