"""The baselines against NumPy in float64: three steps, each gradient by central differences."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from rat_tf import methods
from rat_tf.data import augment
from rat_tf.methods import mixmatch
from tests.methods import test_rat, test_supervised
from tests.methods.test_rat import LABELED, LABELS, UNLABELED, Tiny, log_probabilities, scale

RATE, RAMP, WEIGHT = 0.5, 2, 3.0  # learning rate; λ: its ramp and size
BATCH = (LABELED, LABELS), UNLABELED


def model_of(method, **options):
    """With noise as augmentation: without any, two passes would see the same."""
    options = {"consistency": WEIGHT, "consistency_rampup": RAMP, "seed": 4, **options}
    preprocessing = tf.keras.layers.Rescaling(1 / 127.5, -1)
    model = method(Tiny(), preprocessing, augment.Augmentation(noise=0.5), **options)
    model.compile(tf.keras.optimizers.SGD(RATE))
    for network in model.candidates.values():
        network(scale(LABELED))
    return model


def passes(model, step):
    """What every pass of a step sees: the draws are the model's, the rest is not."""
    labeled, unlabeled = (tf.constant(scale(x), tf.float32) for x in (LABELED, UNLABELED))
    clean = np.float64(model.augment(step, "clean", labeled, unlabeled))
    found = {"labeled": clean[:5], "clean": clean[5:]}
    for name in ("second", "teacher", "unlabeled0", "unlabeled1"):
        found[name] = np.float64(model.augment(step, name, unlabeled))
    found["labeled alone"] = np.float64(model.augment(step, "labeled", labeled))
    return found


def probabilities(weights, images):
    return np.exp(log_probabilities(weights, images))


def cross_entropy(weights, images):
    return -log_probabilities(weights, images)[range(5), LABELS].mean()


def pi_model(images, old, teacher):
    """Laine & Aila: squared difference of two evaluations; the first is a constant."""
    target = probabilities(old, images["clean"])
    distance = lambda w: np.mean((target - probabilities(w, images["second"])) ** 2)  # noqa: E731
    return lambda w: (cross_entropy(w, images["labeled"]), distance(w))


def pseudo_label(images, old, teacher):
    """Lee: the most probable class is the label, if it is probable enough."""
    before = probabilities(old, images["clean"])
    chosen = [(i, p.argmax()) for i, p in enumerate(before) if p.max() > 0.6]
    assert 0 < len(chosen) < len(UNLABELED)

    def loss(weights):
        log_p = log_probabilities(weights, images["second"])
        return -sum(log_p[i, y] for i, y in chosen) / len(UNLABELED)

    return lambda w: (cross_entropy(w, images["labeled"]), loss(w))


def mean_teacher(images, old, teacher):
    """Tarvainen & Valpola: the target is the teacher's answer."""
    target = probabilities(teacher, images["teacher"])
    distance = lambda w: np.mean((target - probabilities(w, images["clean"])) ** 2)  # noqa: E731
    return lambda w: (cross_entropy(w, images["labeled"]), distance(w))


PARTNER = np.array([16, 3, 8, 0, 1, 2, 4, 5, 9, 6, 7, 10, 15, 12, 11, 13, 14])
COEFFICIENT = np.linspace(0.5, 1, 17)


def fixed_mix(images, targets, alpha, seed, rows):
    """In place of the random one."""
    assert rows.total == images.shape[0] == 17

    def mixed(values):
        weight = COEFFICIENT.astype(np.float32).reshape(-1, *[1] * (len(values.shape) - 1))
        return weight * values + (1 - weight) * tf.gather(values, PARTNER)

    return mixed(images), mixed(targets)


def mixmatch_losses(images, old, mixed):
    """Berthelot et al., algorithm 1, K = 2, T = 1/2."""
    copies = [images["unlabeled0"], images["unlabeled1"]]
    guess = sum(probabilities(old, copy) for copy in copies) / 2
    guess = guess**2 / np.sum(guess**2, axis=1, keepdims=True)
    inputs = np.concatenate([images["labeled alone"], *copies])
    targets = np.concatenate([np.eye(3)[LABELS], guess, guess])
    if mixed:
        weight = COEFFICIENT[:, None]
        targets = weight * targets + (1 - weight) * targets[PARTNER]
        weight = weight[..., None, None]
        inputs = weight * inputs + (1 - weight) * inputs[PARTNER]

    def losses(weights):
        log_p = log_probabilities(weights, inputs)
        return (
            -np.mean(np.sum(targets[:5] * log_p[:5], axis=1)),
            np.mean((targets[5:] - np.exp(log_p[5:])) ** 2),
        )

    return losses


CASES = {
    "pi_model": (methods.PiModel, {}, pi_model),
    "pseudo_label": (methods.PseudoLabel, {"threshold": 0.6}, pseudo_label),
    "mean_teacher": (methods.MeanTeacher, {}, mean_teacher),
    "mixmatch": (methods.MixMatch, {}, lambda i, o, t: mixmatch_losses(i, o, True)),
    "mixmatch_nomixup": (
        methods.MixMatch,
        {"mixup_alpha": None},
        lambda i, o, t: mixmatch_losses(i, o, False),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_three_steps_are_those_of_the_methods_paper(case, monkeypatch):
    method, options, losses_of = CASES[case]
    monkeypatch.setattr(mixmatch.mixup, "mix", fixed_mix)
    averaged = Tiny()
    model = model_of(method, averaged=averaged, ema_decay=0.15, **options)
    weights = [np.float64(w) for w in model.network.get_weights()]
    averaged.set_weights(model.network.get_weights())
    teacher = [w.copy() for w in weights]
    for step in range(3):
        ramp = np.exp(-5 * (1 - min(step / RAMP, 1)) ** 2)
        ramp = min(step / RAMP, 1) if case.startswith("mixmatch") else ramp
        losses = losses_of(passes(model, step), [w.copy() for w in weights], teacher)
        supervised, consistency = losses(weights)
        expected = {
            "cross_entropy": supervised,
            "consistency": consistency,
            "lambda": WEIGHT * ramp,
            "loss": supervised + WEIGHT * ramp * consistency,
        }
        total = lambda w: losses(w)[0] + WEIGHT * ramp * losses(w)[1]  # noqa: E731, B023
        gradient = test_supervised.central_differences(total, weights)
        expected["gradient_norm"] = np.sqrt(sum(np.sum(g**2) for g in gradient))
        weights = [w - RATE * g for w, g in zip(weights, gradient)]
        decay = min(0.15, (1 + step) / (10 + step))
        teacher = [decay * t + (1 - decay) * w for t, w in zip(teacher, weights)]

        logs = model.fit(tf.data.Dataset.from_tensors(BATCH), verbose=0).history
        for name, value in expected.items():
            np.testing.assert_allclose(logs[name], [value], rtol=1e-3, atol=1e-6, err_msg=name)
    for found, values in ((model.network, weights), (averaged, teacher)):
        for actual, value in zip(found.get_weights(), values):
            np.testing.assert_allclose(actual, value, rtol=1e-3, atol=1e-5)
    assert np.abs(teacher[0] - weights[0]).max() > 1e-4


# MixMatch with Mixup is not among them: it mixes labelled images into the unlabelled ones.
@pytest.mark.parametrize("case", [*(case for case in CASES if case != "mixmatch"), "rat"])
def test_the_unlabelled_loss_leaves_labelled_images_alone(case):
    """And receives no gradient through its target: the passes with a constant see none."""
    if case == "rat":
        model = test_rat.build(Tiny(), eager=True)
        model(LABELED)
    else:
        method, options, _ = CASES[case]
        model = model_of(method, averaged=Tiny(), ema_decay=0.6, **options)
    labeled, unlabeled = (tf.constant(scale(x), tf.float32) for x in (LABELED, UNLABELED))
    step = tf.constant(5, tf.int64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([labeled, unlabeled])
        _, observed = model.objective(labeled, LABELS, unlabeled, step, tape)
        name = "kl" if case == "rat" else "consistency"
        total = tf.reduce_sum(observed[name])
    zero = tf.UnconnectedGradients.ZERO
    assert not np.any(tape.gradient(total, labeled, unconnected_gradients=zero))
    assert not np.any(
        tape.gradient(observed["cross_entropy"], unlabeled, unconnected_gradients=zero)
    )
    teachers = model.averaged.trainable_variables if model.averaged else []
    assert all(gradient is None for gradient in tape.gradient(total, teachers))


def test_labels_below_the_threshold_contribute_nothing():
    model = model_of(methods.PseudoLabel, threshold=0.999999, consistency_rampup=0)
    supervised = model_of(methods.PseudoLabel, consistency=0.0, threshold=0.1)
    for each in (model, supervised):
        each.fit(tf.data.Dataset.from_tensors(BATCH), verbose=0)
    for left, right in zip(model.network.get_weights(), supervised.network.get_weights()):
        np.testing.assert_array_equal(left, right)


def test_mixmatch_moves_running_statistics_by_the_first_interleaved_batch_alone():
    model = test_rat.build(
        Tiny(normalized=True), method=methods.MixMatch, mixup_alpha=None, ema_decay=0
    )
    model.network(scale(LABELED))
    before = model.network.norm.moving_mean.numpy()
    model.fit(tf.data.Dataset.from_tensors(BATCH), verbose=0)
    everything = np.concatenate([LABELED, UNLABELED, UNLABELED])
    first = scale(everything[::3]).mean(axis=(0, 1, 2))
    expected = 0.9 * before + 0.1 * first
    np.testing.assert_allclose(model.network.norm.moving_mean, expected, rtol=1e-5, atol=1e-6)


def test_sharpening_to_the_limits():
    p = special.softmax(np.random.default_rng(2).normal(size=(4, 3)), axis=1)
    np.testing.assert_allclose(mixmatch.sharpen(p, 1.0), p)
    np.testing.assert_allclose(mixmatch.sharpen(p, 1e-4), np.eye(3)[p.argmax(1)], atol=1e-6)
