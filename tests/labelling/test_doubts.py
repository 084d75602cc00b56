"""Wrong labels are found by predictions that have not seen them."""

import numpy as np
import pytest

from rat_tf import errors
from rat_tf.labelling import doubts


def clusters(sizes, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return 6 * np.eye(len(sizes))[labels] + rng.normal(size=(len(labels), len(sizes))), labels


def test_wrong_labels_are_found_and_the_classes_that_they_should_be():
    features, labels = clusters([30, 25, 20, 12])
    wrong = np.array([3, 40, 60, 80])
    given = labels.copy()
    given[wrong] = (labels[wrong] + 1) % 4
    found = doubts.find(features, given, classes=5)
    assert set(wrong) == set(found.rows)
    np.testing.assert_array_equal(found.probabilities.argmax(-1), labels[found.rows])
    np.testing.assert_allclose(found.probabilities.sum(-1), 1)
    row = np.arange(len(found.rows))
    doubt = found.probabilities.max(-1) - found.probabilities[row, given[found.rows]]
    assert (np.diff(doubt) <= 0).all()


def test_right_labels_are_not_doubted_and_single_images_not_judged():
    features, labels = clusters([10, 10, 1])
    assert not len(doubts.find(features, labels, 3).rows)
    with pytest.raises(errors.UserError, match="--suspicious: .* found 1 such classes"):
        doubts.find(*clusters([5, 1, 1]), 3)
