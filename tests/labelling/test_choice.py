"""Chosen images are uncertain or unstable, and different from each other."""

import numpy as np
import pytest

from rat_tf.labelling import choice
from rat_tf.prediction import table


def test_scores_and_margins():
    probabilities = np.array([[0.5, 0.4, 0.1], [0.98, 0.01, 0.01], [0.2, 0.2, 0.6]])
    np.testing.assert_allclose(table.margins(probabilities), [0.1, 0.97, 0.4])
    np.testing.assert_allclose(choice.scores(probabilities, None), [0.9, 0.03, 0.6])
    stability = np.array([1, 0.25, 0.5])
    np.testing.assert_allclose(choice.scores(probabilities, stability), [0.9, 0.78, 1.1])


def groups(seed=0):
    """Five groups of features of 30 images each; the first 20 of a group are uncertain."""
    rng = np.random.default_rng(seed)
    centres = 10 * np.eye(5)
    features = np.concatenate([c + rng.normal(size=(30, 5)) for c in centres])
    scores = np.tile(np.repeat([0.9, 0.01], [20, 10]), 5) + rng.uniform(0, 0.01, 150)
    return scores, features


@pytest.mark.parametrize("seed", range(3))
def test_one_of_each_group_and_only_uncertain_ones(seed):
    scores, features = groups(seed)
    chosen = choice.choose(scores, features, 5, seed)
    assert sorted(chosen.rows // 30) == [0, 1, 2, 3, 4]
    assert (chosen.rows % 30 < 20).all()
    assert (np.diff(scores[chosen.rows]) <= 0).all()  # the least sure first
    assert chosen.group_sizes.sum() == 50  # the candidates
    again = choice.choose(scores, features, 5, seed)
    np.testing.assert_array_equal(chosen.rows, again.rows)


def test_the_most_uncertain_alone_would_not_be_different():
    scores, features = groups()
    scores[:20] += 0.05  # all of the first group are above the others
    assert len(set(np.argsort(-scores)[:5] // 30)) == 1
    assert len(set(choice.choose(scores, features, 5).rows // 30)) > 1


@pytest.mark.parametrize("count", [1, 7, 12, 100])
def test_few_images_and_copies(count):
    features = np.repeat([[1.0, 0], [0, 1]], 6, axis=0)  # two different ones, six times each
    chosen = choice.choose(np.linspace(1, 0, 12), features, count)
    assert len(chosen.rows) == len(set(chosen.rows)) == min(count, 12) == len(chosen.group_sizes)
    assert set(chosen.rows) <= set(range(12))


def test_reasons():
    names = ("cat", "dog", "owl")
    unsure, sure = np.array([0.5, 0.1, 0.4]), np.array([0.02, 0.97, 0.01])
    assert choice.why(unsure, None, 4, 1, names) == "uncertain: cat or owl"
    text = choice.why(sure, 0.25, 4, 9, names)
    assert text == "unstable: changes under 3 of 4 transformations; stands for 9 similar images"
    assert "rather sure" in choice.why(sure, 1.0, 4, 1, names)
