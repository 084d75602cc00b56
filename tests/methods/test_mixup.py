"""Mixup's draws against SciPy, what is mixed with what, and RAT with it."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from rat_tf import draws, methods
from rat_tf.methods import mixup, rat_mixup
from tests.methods import test_rat, test_supervised
from tests.methods.test_rat import LABELED, LABELS, SEED, UNLABELED, Tiny, log_probabilities, scale


@pytest.mark.parametrize("alpha", [0.2, 0.75, 1.0, 4.0])
def test_coefficients_follow_the_folded_beta(alpha):
    drawn = mixup.coefficients(20_000, alpha, tf.constant([1, 2])).numpy()
    assert drawn.min() >= 0.5 and drawn.max() <= 1
    # Kolmogorov's distance, at places that float32 tells from 1; its 1 % quantile is 1.63 / √n.
    places = np.linspace(0.5, 0.999, 500)
    folded = 2 * stats.beta(alpha, alpha).cdf(places) - 1
    empirical = np.searchsorted(np.sort(drawn), places, side="right") / len(drawn)
    assert np.abs(empirical - folded).max() < 1.63 / np.sqrt(len(drawn))


def mixtures(count, step):
    """Unit vectors as images: a mixture shows its coefficients and its partner."""
    units = tf.eye(count)
    rows = draws.Rows(count)
    return [
        found.numpy()
        for found in mixup.mix(
            units[:, :, None, None], units, 0.75, draws.seed_for(0, step, "m"), rows
        )
    ]


def test_every_image_is_mixed_with_one_other_and_stays_the_closer():
    images, targets = mixtures(50, step=3)
    np.testing.assert_array_equal(images[:, :, 0, 0], targets)
    own = np.diag(targets)
    np.testing.assert_allclose(targets.sum(1), 1, rtol=1e-6)
    assert (own >= 0.5).all() and 10 < np.sum(own < 0.99)
    others = targets - np.diag(own)
    assert (np.count_nonzero(others, axis=1) <= 1).all()
    mixed = np.count_nonzero(others, axis=1) == 1
    partners = others.argmax(1)[mixed]
    assert len(set(partners)) == len(partners)  # a permutation: nobody serves twice
    again, other_step = mixtures(50, 3)[1], mixtures(50, 4)[1]
    np.testing.assert_array_equal(again, targets)
    assert not np.array_equal(other_step, targets)


def batch_of(model):
    return model.fit(
        tf.data.Dataset.from_tensors(((LABELED, LABELS), UNLABELED)), verbose=0
    ).history


def test_rat_with_mixup_that_mixes_nothing_is_rat(monkeypatch):
    monkeypatch.setattr(rat_mixup.mixup, "mix", lambda images, targets, *_: (images, targets))
    found = []
    for method in (methods.RAT, methods.RATMixup):
        options = {"transforms": test_rat.TRANSFORM, "seed": SEED, "consistency_rampup": 0}
        options["xi"] = methods.rat.adversary.Xi(0.1)
        model = test_rat.build(Tiny(), method=method, **options)
        found.append((batch_of(model), model.network.get_weights()))
    (plain_logs, plain), (mixed_logs, mixed) = found
    assert plain_logs["kl"][0] > 1e-3
    for name, value in plain_logs.items():
        np.testing.assert_allclose(mixed_logs[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    for left, right in zip(plain, mixed):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


def test_rat_with_mixup_against_numpy(monkeypatch):
    """Labelled and transformed images in one pool, their targets mixed as they are."""
    partner = np.array([7, 10, 0, 1, 2, 3, 4, 5, 6, 8, 9])
    weight = np.linspace(0.5, 0.9, 11)[:, None]

    def fixed(images, targets, *_):
        factor = np.float32(weight)
        mixed = factor * targets + (1 - factor) * tf.gather(targets, partner)
        factor = factor[..., None, None]
        return factor * images + (1 - factor) * tf.gather(images, partner), mixed

    monkeypatch.setattr(rat_mixup.mixup, "mix", fixed)
    options = {"transforms": test_rat.TRANSFORM, "seed": SEED, "consistency_rampup": 0}
    model = test_rat.build(
        Tiny(), method=methods.RATMixup, search=False, consistency=2.0, **options
    )
    model(LABELED)
    weights = [np.float64(w) for w in model.network.get_weights()]
    epsilons = list(test_rat.EPSILONS.values())
    noise, channels = test_rat.offsets(model.network, 0, epsilons, search=False)
    moved = (scale(UNLABELED) + noise) * (1 + channels[:, None, None])
    predicted = np.exp(log_probabilities(weights, scale(UNLABELED)))
    targets = np.concatenate([np.eye(3)[LABELS], predicted])
    targets = weight * targets + (1 - weight) * targets[partner]
    images = np.concatenate([scale(LABELED), moved])
    images = weight[..., None, None] * images + (1 - weight[..., None, None]) * images[partner]

    def loss(weights):
        log_q = log_probabilities(weights, images)
        log_p = log_probabilities(weights, scale(UNLABELED))
        cross_entropy = -np.mean(np.sum(targets[:5] * log_q[:5], axis=1))
        kl = np.mean(np.sum(targets[5:] * (np.log(targets[5:]) - log_q[5:]), axis=1))
        return cross_entropy + 2 * kl - 0.06 * np.mean(np.sum(np.exp(log_p) * log_p, axis=1))

    gradient = test_supervised.central_differences(loss, weights)
    value = loss(weights)
    logs = batch_of(model)
    np.testing.assert_allclose(logs["loss"], [value], rtol=1e-4)
    for w, new, g in zip(weights, model.network.get_weights(), gradient):
        np.testing.assert_allclose(w - new, g, rtol=1e-3, atol=1e-5)
