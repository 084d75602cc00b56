"""Algorithm 1 against dense eigenvectors, VAT's own formula and random directions."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from sklearn import datasets

from rat_tf import adversary, networks, transforms
from rat_tf.transforms import spec

RNG = np.random.default_rng(0)
SHAPE = (3, 4, 2)
X = RNG.normal(size=(6, *SHAPE))
W, W2 = RNG.normal(size=(24, 5)), RNG.normal(size=(5, 5))
NOISE = transforms.parse("noise:2")
ALL = transforms.parse("noise:0.5,channel:0.1,affine:0.2,tps:0.4,flow:0.3")
both_ascents = pytest.mark.parametrize("ascent", spec.ASCENTS)


def linear(images, iteration=0):
    return tf.reshape(images, [-1, 24]) @ tf.cast(W, images.dtype)


def search(transform, logits=linear, images=X, direction=None, **options):
    """The search with the transforms' own ε, from a random direction unless one is given."""
    images = tf.convert_to_tensor(images)
    v = direction or transform.random_direction(len(images), images.shape[1:], (1, 2), images.dtype)
    epsilons = [t.epsilon for t in transform.transforms]
    return adversary.search(transform, logits, images, logits(images, 0), v, epsilons, **options)


def flat(offsets):
    return np.reshape(offsets, [len(offsets), -1])


def norm(name, offset):
    if name == "affine":
        return np.linalg.norm(offset, 2)
    return np.abs(offset).max() if name == "channel_weight" else np.linalg.norm(offset)


def hessians():
    """Of the KL with respect to the pixels: W F Wᵀ, F = diag(p) - ppᵀ the Fisher matrix."""
    p = special.softmax(flat(X) @ W, axis=1)
    return [W @ (np.diag(row) - np.outer(row, row)) @ W.T for row in p]


def test_many_power_iterations_find_the_leading_eigenvector():
    found = search(NOISE, xi=adversary.Xi(1e-5), power_iterations=60)
    for hessian, offset in zip(hessians(), flat(found.offsets[0])):
        leading = np.linalg.eigh(hessian)[1][:, -1]
        assert abs(leading @ offset) / 2 > 1 - 1e-6


def test_one_iteration_is_a_hessian_vector_product_over_all_transformations():
    """The joint Hessian is JᵀHJ with J = ∂f/∂φ: the identity, and the pixels of each channel."""
    composite = transforms.parse("noise:2,channel:0.3")
    v = composite.random_direction(6, SHAPE, (3, 4), tf.float64)
    found = search(composite, direction=v, xi=adversary.Xi(1e-6))
    for i, hessian in enumerate(hessians()):
        channels = [np.ravel(X[i] * np.eye(2)[c]) for c in (0, 1)]
        jacobian = np.hstack([np.eye(24), np.transpose(channels)])
        product = jacobian.T @ hessian @ jacobian @ np.hstack([flat(o)[i] for o in v])
        blocks = product[:24], product[24:]
        for offset, block, t in zip(found.offsets, blocks, composite.transforms):
            expected = t.epsilon * block / norm(t.name, block)
            np.testing.assert_allclose(np.ravel(offset[i]), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("power_iterations", [1, 2, 5])
def test_noise_alone_is_vat(power_iterations):
    """r_vadv = ε g/‖g‖₂, g = ∇_r KL[p(x) ‖ p(x + r)] at r = ξd (Miyato et al. 2018), in NumPy."""
    d = RNG.normal(size=(6, 24))
    d = start = d / np.linalg.norm(d, axis=1, keepdims=True)
    p = special.softmax(np.tanh(flat(X) @ W) @ W2, axis=1)
    for _ in range(power_iterations):
        hidden = np.tanh((flat(X) + 0.1 * d) @ W)
        q = special.softmax(hidden @ W2, axis=1)
        g = ((q - p) @ W2.T * (1 - hidden**2)) @ W.T
        d = g / np.linalg.norm(g, axis=1, keepdims=True)

    def logits(images, iteration):
        return tf.tanh(linear(images)) @ W2

    options = {"xi": adversary.Xi(0.1), "power_iterations": power_iterations}
    found = search(NOISE, logits, direction=[tf.reshape(start, X.shape)], **options)
    np.testing.assert_allclose(flat(found.offsets[0]), 2 * d, rtol=1e-9, atol=1e-12)


@both_ascents
def test_offsets_have_the_norms_epsilon(ascent):
    found = search(ALL, images=np.float32(X), ascent=ascent, xi=adversary.Xi(1e-2))
    assert not np.any(found.fallback)
    for t, offsets in zip(ALL.transforms, found.offsets):
        np.testing.assert_allclose([norm(t.name, o) for o in offsets], t.epsilon, rtol=2e-6)


def test_steepest_fills_the_ball_of_the_norm():
    paper, steepest = (search(ALL, ascent=ascent).offsets for ascent in spec.ASCENTS)
    np.testing.assert_allclose(np.linalg.svd(steepest[2], compute_uv=False), 0.2, rtol=1e-9)
    assert np.linalg.svd(paper[2], compute_uv=False)[:, 1].max() < 0.19
    np.testing.assert_allclose(steepest[1], 0.1 * np.sign(paper[1]), rtol=1e-12)
    for i in (0, 3, 4):  # L2: the two rules agree
        np.testing.assert_allclose(steepest[i], paper[i], rtol=1e-9)
    with pytest.raises(ValueError, match="ascent.*'newton'"):
        search(ALL, ascent="newton")


@pytest.mark.parametrize(
    "text, value, at_two", [("1e-6", 1e-6, 1e-6), (" 0.5eps ", 0.5, 1), ("eps", 1, 2), ("3", 3, 3)]
)
def test_xi(text, value, at_two):
    """The probe is ξv, or a multiple of εv: seen by the network as the noise on black images."""
    xi, images = adversary.Xi.parse(text), []
    assert (xi.value, xi.at(2)) == (value, at_two)
    v = NOISE.random_direction(6, SHAPE, (1, 2), tf.float64)
    search(NOISE, lambda x, i: images.append(x) or linear(x), 0 * X, v, xi=xi)
    np.testing.assert_allclose(images[1], at_two * v[0], rtol=1e-12)


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "eps0.5", "0eps", "-eps", "1epss"])
def test_xi_rejects(text):
    with pytest.raises(ValueError, match="expected a number > 0"):
        adversary.Xi.parse(text)


@both_ascents
@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf])
def test_images_without_a_gradient_keep_their_random_direction(ascent, factor):
    broken = np.array([0, 1, 0, 1, 1, 0], bool)

    def logits(images, iteration):
        return linear(images) * np.where(broken, factor, 1.0)[:, None]

    v = ALL.random_direction(6, SHAPE, (1, 2), tf.float64)
    found = search(ALL, logits, direction=v, ascent=ascent, power_iterations=2)
    healthy = search(ALL, direction=v, ascent=ascent, power_iterations=2)
    np.testing.assert_array_equal(found.fallback, broken)
    for t, offset, random, good in zip(ALL.transforms, found.offsets, v, healthy.offsets):
        np.testing.assert_allclose(offset[broken], t.epsilon * random[broken], rtol=1e-12)
        np.testing.assert_array_equal(offset[~broken], good[~broken])
        assert np.abs(good - t.epsilon * random)[~broken].max() > 1e-3


def test_fallback_of_one_transformation_or_of_a_later_iteration():
    """A black image has no channel gradient; an iteration that fails leaves the one before."""
    images = X * np.reshape([1, 0, 1, 1, 1, 1], [6, 1, 1, 1])
    composite = transforms.parse("channel:0.3,noise:2")
    v = composite.random_direction(6, SHAPE, (1, 2), tf.float64)
    once = search(composite, linear, images, v, xi=adversary.Xi(1.0))
    np.testing.assert_array_equal(once.fallback, [0, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(once.offsets[0][1], 0.3 * v[0][1])
    assert np.sum(once.offsets[1][1] * v[1][1]) < 1.9  # not the random noise
    huge = tf.custom_gradient(lambda x: (x, lambda g: tf.sign(g) * 1.7e308))  # of norm infinity
    late = lambda x, iteration: linear(huge(x) if iteration else x)  # noqa: E731
    twice = search(composite, late, images, v, xi=adversary.Xi(1.0), power_iterations=2)
    assert np.all(twice.fallback)
    for a, b in zip(once.offsets, twice.offsets):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def trained():
    """WRN-10-1 after 75 steps on digits of three channels, called as RAT does, and 100 images."""
    digits, labels = datasets.load_digits(return_X_y=True)
    digits = np.float32(digits.reshape(-1, 8, 8) / 8 - 1)
    images = np.stack([digits, digits[:, ::-1], np.swapaxes(digits, 1, 2)], axis=-1)
    network = networks.build("wrn-10-1", 10)
    network.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    network.fit(images[:1600], labels[:1600], batch_size=64, epochs=3, shuffle=False, verbose=0)
    return network, lambda x, i=0: network(x, training=True, update_stats=False), images[-100:]


@both_ascents
@pytest.mark.parametrize("transform", ALL.transforms, ids=lambda t: t.name)
def test_the_search_beats_random_directions(trained, transform, ascent):
    _, logits, images = trained
    reached = []
    for iterations in (0, 1):
        options = {"xi": adversary.Xi(1e-2), "power_iterations": iterations, "ascent": ascent}
        found = search(transforms.Composite([transform]), logits, images, **options)
        moved = transform.apply(images, found.offsets[0])
        p, q = (special.softmax(logits(x), axis=1) for x in (images, moved))
        reached.append(special.rel_entr(p, q).sum(axis=1).mean())
    print(f"{transform!r} {ascent}: KL {reached[0]:.4f} at random, {reached[1]:.4f} by the search")
    assert reached[1] > 1.2 * reached[0]


def test_offsets_are_constants_and_weights_are_not_watched(trained, monkeypatch):
    network, logits, images = trained
    images, tape, inner = tf.constant(images[:4]), tf.GradientTape, []
    sources = [images, *network.trainable_variables]
    with tape(persistent=True) as outer:
        outer.watch(images)
        monkeypatch.setattr(tf, "GradientTape", lambda **o: inner.append(tape(**o)) or inner[-1])
        found, control = search(ALL, logits, images), logits(images)
    assert [t.watched_variables() for t in inner] == [()]
    assert all(g is not None for g in outer.gradient(control, sources))
    assert all(g is None for g in outer.gradient(found.offsets, sources))


def test_arrays_are_as_good_as_tensors():
    v = [o.numpy() for o in ALL.random_direction(6, SHAPE, (1, 2), tf.float64)]
    epsilons = np.array([t.epsilon for t in ALL.transforms])
    found = adversary.search(ALL, linear, X, linear(X).numpy(), v, epsilons, ascent="steepest")
    expected = search(ALL, ascent="steepest")
    for offset, other in zip(found.offsets, expected.offsets):
        assert offset.dtype == tf.float64
        np.testing.assert_array_equal(offset, other)


def test_a_candidate_without_a_kl_does_not_win():
    """NaN is neither larger nor smaller: the first candidate would stay."""
    transform, images, calls = transforms.parse("noise:0.5"), tf.constant(X, tf.float32), []

    def directions(candidate):
        return transform.random_direction(6, images.shape[1:], (candidate, 5))

    def logits(moved, name):
        calls.append(name)
        broken = np.zeros([6, 1], np.float32)
        broken[[1, 4]] = np.nan if len(calls) == 1 else 0  # of the first candidate
        return linear(moved) + broken

    search = adversary.Search("worst_of", candidates=2)
    (found,) = search(transform, logits, images, linear(images), directions, [0.5]).offsets
    for image in (1, 4):
        np.testing.assert_allclose(found[image], 0.5 * directions(1)[0][image])
