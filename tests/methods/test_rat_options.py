"""What RAT has beyond the paper, against NumPy in float64 and on two replicas against one."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from rat_tf import adversary, draws, methods, networks, transforms
from rat_tf.data import augment
from tests import graphs
from tests.methods import test_rat, test_supervised
from tests.methods.test_rat import LABELED, LABELS, UNLABELED, Tiny, log_probabilities, scale

PIXELS = [np.float32(scale(images)) for images in (LABELED, UNLABELED)]


def objective(model, step=0):
    """Loss, observations and the gradient of the weights."""
    labeled, unlabeled = map(tf.constant, PIXELS)
    with tf.GradientTape() as tape:
        at = tf.constant(step, tf.int64)
        loss, observed = model.objective(labeled, LABELS, unlabeled, at, tape)
    return loss, observed, tape.gradient(loss, model.network.trainable_variables)


@pytest.mark.parametrize(
    "options",
    [
        {"target_temperature": 0.4},
        {"target_threshold": 0.8},
        {"target_temperature": 2.0, "target_threshold": 0.6},
        {"target_temperature": 0.4, "kl_direction": "adversarial_clean"},
        {"target": "teacher", "target_threshold": 0.6},
    ],
    ids=lambda options: " ".join(f"{k}={v}" for k, v in options.items()),
)
def test_the_loss_and_its_gradient(options):
    fixed = {"search": False, "consistency": 2.0, "consistency_rampup": 0}
    model = test_rat.build(Tiny(), eager=True, averaged=Tiny(), ema_decay=0.9, **fixed, **options)
    for network in model.candidates.values():
        network(PIXELS[0])
    for variable in model.averaged.trainable_variables:
        variable.assign(1.5 * variable)
    weights = [np.float64(w) for w in model.network.get_weights()]
    step = 4
    noise, channels = test_rat.offsets(
        model.network, step, list(test_rat.EPSILONS.values()), search=False
    )
    moved = (scale(UNLABELED) + noise) * (1 + channels[:, None, None])
    teacher = [1.5 * w for w in weights] if options.get("target") else weights
    p = np.exp(log_probabilities(teacher, scale(UNLABELED)))
    sharp = p ** (1 / options.get("target_temperature", 1))
    sharp /= sharp.sum(axis=1, keepdims=True)
    kept = p.max(axis=1) >= options.get("target_threshold", 0)

    def terms(weights):
        log_q, log_p = (log_probabilities(weights, x) for x in (moved, scale(UNLABELED)))
        if "kl_direction" in options:
            kl = np.sum(np.exp(log_q) * (log_q - np.log(sharp)), axis=1)
        else:
            kl = np.sum(sharp * (np.log(sharp) - log_q), axis=1)
        kl = kept * kl
        entropy = -np.mean(np.sum(np.exp(log_p) * log_p, axis=1))
        labeled = -log_probabilities(weights, scale(LABELED))[range(5), LABELS].mean()
        return labeled, kl, entropy

    def loss(weights):
        labeled, kl, entropy = terms(weights)
        return labeled + 2 * kl.mean() + 0.06 * entropy

    if "target_threshold" in options:
        assert 0 < kept.sum() < 6
    value, observed, gradients = objective(model, step)
    np.testing.assert_allclose(value, loss(weights), rtol=1e-4)
    np.testing.assert_allclose(observed["kl"], terms(weights)[1].mean(), rtol=1e-4)
    for g, expected in zip(gradients, test_supervised.central_differences(loss, weights)):
        np.testing.assert_allclose(g, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["gradient", "worst_of", "both"])
def test_examination_reports_the_search_of_the_run(kind):
    """Of the gradient's offsets and those drawn, the worst under the adversarial pass's shifts."""
    augmentation = augment.Augmentation(1, True, 0.2, "image")
    model = test_rat.build(Tiny(), augmentation, adversary_kind=kind, candidates=4)
    step, epsilons = 3, list(test_rat.EPSILONS.values())
    examined = model.examine(UNLABELED, tf.constant(step, tf.int64))
    images = tf.constant(PIXELS[1])

    def logits(x, name):
        seed = draws.seed_for(test_rat.SEED, step, name)
        return model.network(augmentation(x, seed, draws.Rows(len(UNLABELED))))

    def kl(offsets):
        moved = logits(test_rat.TRANSFORM.apply(images, offsets), "adversarial")
        return special.kl_div(*(special.softmax(z, axis=1) for z in (clean, moved))).sum(1)

    def drawn(candidate):
        seed = draws.seed_for(test_rat.SEED, step, f"direction{candidate or ''}")
        return test_rat.TRANSFORM.random_direction(len(UNLABELED), test_rat.SHAPE, seed)

    clean = logits(images, "clean")
    offsets = [[epsilon * v for epsilon, v in zip(epsilons, drawn(c))] for c in range(4)]
    close = {"rtol": 1e-3, "atol": 1e-6}
    np.testing.assert_allclose(examined["random_kl"], kl(offsets[0]), **close)
    if kind != "worst_of":
        offsets[0] = adversary.search(
            test_rat.TRANSFORM, lambda x, iteration: logits(x, f"search{iteration}"), images,
            clean, drawn(0), epsilons, xi=adversary.Xi(0.1),
        ).offsets  # fmt: skip
    reached = [kl(each) for each in (offsets[:1] if kind == "gradient" else offsets)]
    np.testing.assert_allclose(examined["adversarial_kl"], np.max(reached, axis=0), **close)
    worst = np.argmax(reached, axis=0)
    assert len(set(worst)) > (kind != "gradient")
    for name, *found in zip(test_rat.EPSILONS, *offsets):
        expected = np.stack(found)[worst, range(len(UNLABELED))]
        np.testing.assert_allclose(examined["offsets"][name], expected, **close)


def test_separate_statistics():
    """A pass for labelled and one, without a backward pass, for unlabelled images."""
    rng = np.random.default_rng(0)
    labeled, unlabeled = (rng.integers(0, 256, (4, 8, 8, 3), np.uint8) for _ in range(2))
    batch = tf.nest.map_structure(tf.constant, ((labeled, LABELS[:4]), unlabeled))
    twin, network = (networks.build("wrn-10-1", 3, seed=5) for _ in range(2))
    options = {"entropy_multiplier": 0.0, "separate_statistics": True}
    model = test_rat.build(network, transforms=transforms.parse("affine:0.6"), **options)
    model(labeled)
    model.optimizer.build(network.trainable_variables)  # else the step is traced twice
    step = tf.function(model.train_step)
    graph = step.get_concrete_function(batch).graph
    count = collections.Counter(op.type for op in graphs.live_operations(graph))
    assert count["Conv2D"] == 9 * 4  # labelled, clean, search and adversarial pass
    assert count["Conv2DBackpropFilter"] == 9 * 2
    assert count["Conv2DBackpropInput"] == 8 + 9 + 8  # none of the clean pass

    logits = twin(np.float32(scale(labeled)), training=True, update_stats=False)
    expected = -special.log_softmax(logits, axis=1)[range(4), LABELS[:4]].mean()
    np.testing.assert_allclose(step(batch)["cross_entropy"], expected, rtol=1e-4)
    twin(np.float32(scale(unlabeled)), training=True)
    statistics = [[w for w in n.weights if "moving" in w.name] for n in (network, twin)]
    for actual, expected in zip(*statistics):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


class AnySize(tf.keras.Model):
    """Images of any size pooled to 2×2, then a network without batch statistics."""

    def __init__(self):
        super().__init__()
        self.tiny = Tiny()

    def call(self, images, training=False, update_stats=True):
        size = images.shape[1] // 2
        return self.tiny(tf.nn.avg_pool2d(images, size, size, "VALID"))


def test_two_replicas_find_the_offsets_of_one(two_replicas):
    """Images, draws and augmentation are those of the same rows of the global batch."""

    def search(strategy):
        with strategy.scope():
            model = test_rat.build(
                AnySize(),
                augment.Augmentation(2, True, 0.1, "image"),
                transforms=transforms.parse("noise:2,flow:0.5"),
                xi=adversary.Xi(0.5, relative=True),
                adversary_kind="both",
                candidates=2,
                adversary_scale=0.5,
                adversary_share=0.5,
            )
            model.network(images[:1])
        replicas = strategy.num_replicas_in_sync
        parts = np.split(images, replicas)
        values = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(parts[context.replica_id_in_sync_group])
        )

        def offsets(some):
            return model.offsets(some, 0.9 * model.network(some), tf.constant(3), True).offsets

        found = strategy.run(offsets, [values])  # not in a graph: to trace it takes long
        each = [strategy.experimental_local_results(v) for v in found]
        return [np.concatenate(v) for v in each]

    images = np.float32(np.random.default_rng(1).normal(size=(12, 8, 8, 3)))
    for actual, expected in zip(search(two_replicas), search(tf.distribute.get_strategy())):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
        assert np.abs(expected).max() > 0.1 / expected[0].size


def test_the_worst_of_one_is_random():
    """The presets for short runs: the same transformations as Random's, bit for bit."""
    found = []
    for options in ({"search": False}, {"adversary_kind": "worst_of", "candidates": 1}):
        model = test_rat.build(Tiny(), augment.Augmentation(1, False, 0.0, "image"), **options)
        model(UNLABELED)
        images = tf.constant(PIXELS[1])
        found.append(model.transformed(images, model.network(images), tf.constant(7))[0])
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0] - PIXELS[1]).max() > 0.01


def test_mixup_has_the_same_target():
    """A sharper teacher and a threshold, where nothing is mixed: that of RAT."""
    options = {"target": "teacher", "target_temperature": 0.5, "target_threshold": 0.5}
    options |= {"search": False, "transforms": test_rat.TRANSFORM, "seed": 3}
    found = []
    for method in (methods.RAT, methods.RATMixup):
        model = test_rat.build(Tiny(), method=method, averaged=Tiny(), ema_decay=0.9, **options)
        model.averaged(PIXELS[0])
        for variable in model.averaged.trainable_variables:
            variable.assign(1.5 * variable)
        if method is methods.RATMixup:
            model.mixup_alpha = 1e-9  # Beta(α, α) is then 0 or 1
        found.append(objective(model))
    np.testing.assert_allclose(found[0][1]["kl"], found[1][1]["kl"], rtol=1e-4)
