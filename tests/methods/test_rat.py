"""One step of RAT against NumPy in float64, and on two replicas against one."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from rat_tf import adversary, draws, methods, networks, transforms
from rat_tf.data import augment
from tests.methods import test_supervised

RNG = np.random.default_rng(0)
SHAPE = (2, 2, 2)
LABELED, UNLABELED = (RNG.integers(0, 256, (n, *SHAPE), np.uint8) for n in (5, 6))
LABELS = RNG.integers(0, 3, 5)
EPSILONS = {"noise": 0.8, "channel_weight": 0.3}
TRANSFORM = transforms.parse("noise:0.8,channel_weight:0.3")
SEED = 3


class Tiny(tf.keras.Model):
    """Flatten, five tanh units, three classes; the images may be normalised over the batch."""

    def __init__(self, normalized=False):
        super().__init__()
        dense, normal = tf.keras.layers.Dense, tf.keras.initializers.RandomNormal
        self.norm = networks.BatchNorm(synchronized=True) if normalized else None
        self.hidden = dense(5, "tanh", kernel_initializer=normal(0, 1, seed=1))
        self.out = dense(3, kernel_initializer=normal(0, 1, seed=2))

    def call(self, images, training=False, update_stats=True):
        if self.norm:
            images = self.norm(images, training=training, update_stats=update_stats)
        return self.out(self.hidden(tf.keras.layers.Flatten()(images)))


def scale(images):
    return images / 127.5 - 1


def log_probabilities(weights, images):
    hidden = np.tanh(images.reshape(-1, 8) @ weights[0] + weights[1])
    return special.log_softmax(hidden @ weights[2] + weights[3], axis=1)


def kl(log_p, log_q):
    return np.mean(np.sum(np.exp(log_p) * (log_p - log_q), axis=1))


def build(network, augmentation=None, method=methods.RAT, eager=False, **options):
    """With this optimiser a step subtracts the gradient."""
    preprocessing = tf.keras.layers.Rescaling(1 / 127.5, -1)
    if method is methods.RAT:
        xi = {} if options.get("adversary_kind") == "worst_of" else {"xi": adversary.Xi(0.1)}
        options = {"transforms": TRANSFORM, "seed": SEED, **xi, **options}
    model = method(network, preprocessing, augmentation or augment.Augmentation(), **options)
    model.compile(tf.keras.optimizers.SGD(1.0), run_eagerly=eager)
    return model


def offsets(network, step, epsilons, search):
    """By the adversary from the direction drawn for this step, or that direction itself."""
    images = tf.constant(scale(UNLABELED), tf.float32)
    v = TRANSFORM.random_direction(6, SHAPE, draws.seed_for(SEED, step, "direction"))
    if not search:
        return [epsilon * np.float64(o) for epsilon, o in zip(epsilons, v)]
    options = {"xi": adversary.Xi(0.1)}
    logits = lambda x, iteration: network(x)  # noqa: E731
    found = adversary.search(TRANSFORM, logits, images, network(images), v, epsilons, **options)
    return [np.float64(o) for o in found.offsets]


@pytest.mark.parametrize("step", [4, 50])  # inside both ramps, and beyond
@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("direction", ["clean_adversarial", "adversarial_clean"])
def test_step_descends_the_papers_loss(step, search, direction):
    ramps = {"consistency_rampup": 10, "epsilon_rampup": 20}
    options = {"consistency": 2, "search": search, "kl_direction": direction, **ramps}
    model = build(Tiny(), eager=True, **options)
    model(LABELED)
    model.optimizer.iterations.assign(step)
    weights = [np.float64(w) for w in model.network.get_weights()]
    weight = 2 * np.exp(-5 * (1 - min(step / 10, 1)) ** 2)
    ramp = np.exp(-5 * (1 - min(step / 20, 1)) ** 2)
    epsilons = [np.float32(ramp * epsilon) for epsilon in EPSILONS.values()]
    noise, channels = offsets(model.network, step, epsilons, search)
    moved = (scale(UNLABELED) + noise) * (1 + channels[:, None, None])
    frozen = log_probabilities(weights, scale(UNLABELED))

    def terms(weights, target=frozen):
        log_p, log_q = (log_probabilities(weights, x) for x in (scale(UNLABELED), moved))
        target = log_p if target is None else target
        pair = (target, log_q) if direction == "clean_adversarial" else (log_q, target)
        return {
            "cross_entropy": -log_probabilities(weights, scale(LABELED))[range(5), LABELS].mean(),
            "kl": kl(*pair),
            "entropy": -np.mean(np.sum(np.exp(log_p) * log_p, axis=1)),
        }

    def loss(weights, target=frozen):
        parts = terms(weights, target)
        return parts["cross_entropy"] + weight * parts["kl"] + 0.06 * parts["entropy"]

    gradient = test_supervised.central_differences(loss, weights)
    unfrozen = test_supervised.central_differences(lambda w: loss(w, None), weights)
    flipped = log_probabilities(weights, moved).argmax(1) != frozen.argmax(1)
    expected = {
        **terms(weights),
        **dict(zip([f"epsilon_{name}" for name in EPSILONS], epsilons)),
        "loss": loss(weights),
        "lambda": weight,
        "flipped": flipped.mean(),
        "fallback": 0,
        "learning_rate": 1,
        "gradient_norm": np.sqrt(sum(np.sum(g**2) for g in gradient)),
    }
    batch = (LABELED, LABELS), UNLABELED
    logs = model.fit(tf.data.Dataset.from_tensors(batch), verbose=0).history
    for name, value in expected.items():
        np.testing.assert_allclose(logs[name], [value], rtol=1e-4, atol=1e-6, err_msg=name)
    assert model.optimizer.iterations == step + 1
    for w, new, g in zip(weights, model.network.get_weights(), gradient):
        np.testing.assert_allclose(w - new, g, rtol=1e-3, atol=1e-5)
    # The clean prediction is a constant: through it the gradient would be another.
    assert max(np.abs(g - u).max() for g, u in zip(gradient, unfrozen)) > 1e-3


def test_an_option_may_be_a_variable():
    """Keras refuses to track one that a model has before `super().__init__()`."""
    multiplier = tf.Variable(0.5, trainable=False)
    model = build(Tiny(), search=False, entropy_multiplier=multiplier)
    images = [tf.constant(scale(pixels), tf.float32) for pixels in (LABELED, UNLABELED)]

    def objective():
        with tf.GradientTape() as tape:
            return model.objective(images[0], LABELS, images[1], tf.constant(0, tf.int64), tape)

    before, observed = objective()
    multiplier.assign(1.5)
    np.testing.assert_allclose(objective()[0] - before, observed["entropy"], rtol=1e-4)
    epsilons = [f"epsilon_{name}" for name in EPSILONS]
    expected = ["cross_entropy", "kl", "entropy", "flipped", "fallback", "lambda", *epsilons]
    assert list(model.observations) == list(observed) == expected


def test_running_statistics_and_weight_gradients_come_from_the_right_passes():
    """Statistics from the clean pass; gradients from the clean and the adversarial one alone."""
    labeled, unlabeled = (RNG.integers(0, 256, (4, 8, 8, 3), np.uint8) for _ in range(2))
    batch = tf.nest.map_structure(tf.constant, ((labeled, LABELS[:4]), unlabeled))
    twin, network = (networks.build("wrn-10-1", 3, seed=5) for _ in range(2))
    model = build(network, transforms=transforms.parse("noise:3,affine:0.6"))
    model(labeled)
    model.optimizer.build(network.trainable_variables)  # else the step is traced twice
    step = tf.function(model.train_step)
    step(batch)
    twin(np.float32(scale(np.concatenate([labeled, unlabeled]))), training=True)
    statistics = [[w for w in n.weights if "moving" in w.name] for n in (network, twin)]
    assert len(statistics[0]) == 14
    for actual, expected in zip(*statistics):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)

    # TensorFlow writes more gradients into a graph than it runs: count those that are needed.
    graph = step.get_concrete_function(batch).graph
    needed = [op.name for op in [*graph.control_outputs, *(t.op for t in graph.outputs)]]
    pruned = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), needed)
    count = collections.Counter(node.op for node in pruned.node)
    assert count["Conv2D"] == 9 * 3  # nine convolutions; clean, search and adversarial pass
    assert count["Conv2DBackpropFilter"] == 9 * 2


def step_on(strategy, batch, build_network, method, granularity, eager):
    """Metrics and weights after a step; every replica gets its rows of the batch."""
    options = {"augmentation": augment.Augmentation(1, True, 0.1, granularity), "eager": eager}
    baselines = {
        "supervised": (methods.Supervised, {}),
        "pi_model": (methods.PiModel, {}),
        "pseudo_label": (methods.PseudoLabel, {"threshold": 0.5}),
        "mean_teacher": (methods.MeanTeacher, {}),
        # With Mixup the partners of an image are those of its replica.
        "mixmatch": (methods.MixMatch, {"mixup_alpha": None, "ema_decay": 0}),
    }
    if method in baselines:
        options["method"], extra = baselines[method]
        options.update(extra)
        if method != "supervised":
            options["consistency_rampup"] = 0
    else:
        options["transforms"] = transforms.parse("noise:2,affine:0.3")
        options["xi"] = adversary.Xi(0.5, relative=True)
        options["search"] = method == "rat"
        options["consistency_rampup"] = 0
    with strategy.scope():
        averages = {"averaged": build_network(), "ema_decay": 0.5}
        averaged = averages if method == "mean_teacher" or not eager else {}
        model = build(build_network(), **options, **averaged)
        for network in model.candidates.values():
            network(scale(np.float32(batch[1])))
        model.optimizer.build(model.network.trainable_variables)  # else a step is traced twice
    rows = (strategy.num_replicas_in_sync, -1)
    each = tf.nest.map_structure(lambda a: a.reshape(*rows, *a.shape[1:]), batch)
    dataset = tf.data.Dataset.from_tensor_slices(each)  # one replica after the other
    distributed = strategy.distribute_datasets_from_function(lambda context: dataset)
    logs = model.fit(distributed, steps_per_epoch=1, verbose=0).history
    return logs, [w for network in model.candidates.values() for w in network.get_weights()]


SMALL = [("tiny", m, g) for m in ("supervised", "rat", "random") for g in ("batch", "image")]
SMALL += [("tiny", m, "image") for m in ("pi_model", "pseudo_label", "mean_teacher")]
# MixMatch interleaves the images of each replica: other batches are normalised together.
SMALL += [("unnormalized", "mixmatch", "image")]


@pytest.mark.parametrize("network, method, granularity", [*SMALL, ("wrn-10-1", "rat", "image")])
def test_two_replicas_make_the_step_of_one(two_replicas, network, method, granularity):
    def build_network():
        if network == "wrn-10-1":
            return networks.build(network, 3, synchronized=True)
        return Tiny(normalized=network == "tiny")

    rng = np.random.default_rng(3)
    labeled, unlabeled = (rng.integers(0, 256, (n, 8, 8, 3), np.uint8) for n in (8, 12))
    batch = (labeled, rng.integers(0, 3, 8)), unlabeled
    # In a graph the replicas interleave; it takes long to trace, hence once, with averages.
    traced = (network, method, granularity) == ("tiny", "rat", "image")
    options = batch, build_network, method, granularity, not traced
    logs, weights = step_on(two_replicas, *options)
    expected_logs, expected = step_on(tf.distribute.get_strategy(), *options)
    assert logs.keys() == expected_logs.keys() and len(weights) == len(expected)
    for name, value in expected_logs.items():
        np.testing.assert_allclose(logs[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    for i, (actual, value) in enumerate(zip(weights, expected)):
        np.testing.assert_allclose(actual, value, rtol=1e-3, atol=1e-4, err_msg=str(i))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_candidates_are_judged_under_the_augmentation_under_which_they_are_used(share):
    """Every image has noise of its own, which the pass that trains draws again."""
    drawn = []

    class Spy(augment.Augmentation):
        def __call__(self, images, seed, rows):
            noisy = super().__call__(images, seed, rows)
            drawn.append((noisy - images).numpy())
            return noisy

    search = {"adversary_kind": "worst_of", "candidates": 2, "adversary_share": share}
    model = build(Tiny(), eager=True, augmentation=Spy(noise=0.5), **search)
    images, step = tf.constant(scale(UNLABELED), tf.float32), tf.constant(3, tf.int64)
    model.network(images)
    model.offsets(images, model.network(images), step, search=True)
    judged = drawn[-1]
    model.forward(step, "adversarial", images, update_stats=False)
    used = drawn[-1][adversary.searched(6, share)]
    assert judged.shape == used.shape and np.abs(used).max() > 0.1
    np.testing.assert_allclose(judged, used, atol=1e-6)
