"""Stratified samples, against scikit-learn and their definition."""

import numpy as np
import pytest
from sklearn import model_selection

from rat_tf.data import strata


@pytest.mark.parametrize("count", [1, 10, 64, 333])
def test_shares_are_within_one_of_proportional(count):
    sizes = np.array([500, 3, 97, 400])
    found = strata.shares(sizes, count)
    assert found.sum() == count
    assert (np.abs(found - count * sizes / sizes.sum()) < 1).all()


def test_a_sample_has_the_shares_that_scikit_learn_gives():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    found = strata.sample(labels, 50, seed=1)
    split = model_selection.StratifiedShuffleSplit(1, train_size=50, random_state=0)
    theirs, _ = next(split.split(labels, labels))
    np.testing.assert_array_equal(np.bincount(labels[found]), np.bincount(labels[theirs]))
    assert len(set(found)) == 50 and (np.diff(found) > 0).all()
    assert np.ptp(found[labels[found] == 0]) > 400  # from all over the class


def test_the_seed_decides_a_sample():
    labels = np.arange(1000) % 10
    first, same, other = (strata.sample(labels, 40, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(strata.sample(labels, 1000), np.arange(1000))


def test_first_leaves_an_image_of_every_class():
    labels = np.repeat([0, 1, 2, 3], [40, 5, 2, 1])
    order = np.random.default_rng(0).permutation(len(labels))
    for count in (1, 5, 12, 44):
        found = strata.first(order, labels, count)
        np.testing.assert_array_equal(np.sort(found), np.arange(len(labels)))
        assert set(labels[found[count:]]) == {0, 1, 2, 3}
    counts = np.bincount(labels[strata.first(order, labels, 12)[:12]], minlength=4)
    assert counts.tolist() == [10, 1, 1, 0]  # 10, 1.25, 0.5 and 0.25 of the whole
