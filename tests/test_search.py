"""Searches beyond Algorithm 1 against loops in NumPy and against Algorithm 1 itself."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import ndimage, special

from rat_tf import adversary, divergences, transforms
from tests import test_adversary

RNG = np.random.default_rng(7)
W = RNG.normal(size=(32, 5))


def smooth(size):
    """Images that are constant in blocks of 2×2 pixels: pooling loses nothing of them."""
    blocks = np.random.default_rng(1).normal(size=(6, size // 2, size // 2, 1))
    blocks = ndimage.gaussian_filter(blocks, (0, size / 12, size / 12, 0))
    return (size / 2 * blocks).repeat(2, 1).repeat(2, 2)


BLOCKS = smooth(16)
X = RNG.normal(size=(6, 4, 4, 2))


def linear(images, name=""):
    return tf.reshape(images, [-1, 32]) @ tf.cast(W, images.dtype)


def directions(transform, images):
    def draw(candidate):
        seed = (candidate, 6)
        return transform.random_direction(len(images), images.shape[1:], seed, tf.float64)

    return draw


def found(transform, images=X, logits=linear, **options):
    """By a search with the transformations' own ε; the clean pass is that of the network."""
    images = tf.convert_to_tensor(images)
    epsilons = [t.epsilon for t in transform.transforms]
    draw = directions(transform, images)
    search = adversary.Search(**options)
    return search(transform, logits, images, logits(images, "clean"), draw, epsilons)


def kl_of(offsets, transform, images=X):
    return divergences.kl_divergence(linear(images), linear(transform.apply(images, offsets)))


def test_the_default_is_algorithm_1_bit_by_bit():
    """As it stood before there were other searches: one loop, its normalisation, its fallback."""
    transform = transforms.parse("noise:0.5,channel:0.1,affine:0.2,tps:0.4,flow:0.3")
    images, names = np.float32(test_adversary.X), []
    clean = test_adversary.linear(images)
    draw = lambda i: transform.random_direction(6, images.shape[1:], (i, 5))  # noqa: E731

    def logits(x, name):
        names.append(name)
        return test_adversary.linear(x)

    epsilons = [t.epsilon for t in transform.transforms]
    actual = adversary.Search()(transform, logits, images, clean, draw, epsilons)
    assert names == ["search0"]
    v = draw(0)
    with tf.GradientTape() as tape:
        tape.watch(v)
        moved = test_adversary.linear(transform.apply(images, [1e-6 * o for o in v]))
        kl = tf.reduce_sum(divergences.kl_divergence(clean, moved))
    for t, offset, gradient in zip(transform.transforms, actual.offsets, tape.gradient(kl, v)):
        np.testing.assert_array_equal(offset, t.epsilon * t.unit(gradient))
    with pytest.raises(ValueError, match="kind.*'best'"):
        adversary.Search("best")


@pytest.mark.parametrize("count", [3, 5])
def test_worst_of_is_a_loop_over_candidates(count):
    transform = transforms.parse("noise:0.4,channel:0.5")
    actual = found(transform, kind="worst_of", candidates=count)
    draw = directions(transform, X)
    drawn = [[np.asarray(v) for v in draw(c)] for c in range(count)]
    log_p = special.log_softmax(X.reshape(6, 32) @ W, axis=1)
    worst = []
    for image in range(6):
        reached = []
        for noise, channels in drawn:
            moved = (X[image] + 0.4 * noise[image]) * (1 + 0.5 * channels[image])
            log_q = special.log_softmax(moved.ravel() @ W)
            reached.append(np.sum(np.exp(log_p[image]) * (log_p[image] - log_q)))
        worst.append(int(np.argmax(reached)))
    assert len(set(worst)) > 1
    for i, epsilon in enumerate((0.4, 0.5)):
        expected = [epsilon * drawn[c][i][image] for image, c in enumerate(worst)]
        np.testing.assert_array_equal(actual.offsets[i], expected)
    assert not np.any(actual.fallback)


def test_candidates_fill_the_ball_with_steepest_ascent():
    """Affine ones are polar factors, as the SVD has them, channel weights signs."""
    transform = transforms.parse("affine:0.5,channel:0.2")
    options = {"kind": "worst_of", "candidates": 4}
    actual = found(transform, ascent="steepest", **options)
    draw, choices, reached = directions(transform, X), [], []
    for c in range(4):
        affine, channels = (np.asarray(v) for v in draw(c))
        left, _, right = np.linalg.svd(affine, full_matrices=False)
        choices.append([0.5 * left @ right, 0.2 * np.sign(channels)])
        reached.append(kl_of(choices[-1], transform))
    for image, worst in enumerate(np.argmax(reached, axis=0)):
        for offset, choice in zip(actual.offsets, choices[worst]):
            np.testing.assert_allclose(offset[image], choice[image], rtol=1e-6, atol=1e-9)
    assert np.linalg.svd(found(transform, **options).offsets[0])[1][:, 1].max() < 0.49


def test_both_is_the_gradient_or_a_better_candidate():
    transform = transforms.parse("affine:0.5")
    options = {"xi": adversary.Xi(0.1), "ascent": "steepest"}
    gradient, both, random = (
        found(transform, kind=kind, candidates=8, **options).offsets
        for kind in ("gradient", "both", "worst_of")
    )
    best, alone = kl_of(both, transform), kl_of(gradient, transform)
    kept = np.all(np.equal(both[0], gradient[0]), axis=(1, 2))
    np.testing.assert_array_equal(np.asarray(best)[kept], np.asarray(alone)[kept])
    assert (np.asarray(best)[~kept] > np.asarray(alone)[~kept]).all() and 0 < kept.sum() < 6
    # Of the random candidates "both" has all but the first, from which its gradient starts.
    (affine,), draw = transform.transforms, directions(transform, X)
    others = np.stack([0.5 * affine.steepest(draw(c)[0]) for c in range(1, 8)])
    for offset in np.asarray(both[0])[~kept]:
        assert np.abs(others - offset).max(axis=(2, 3)).min() == 0
    start = [0.5 * affine.steepest(draw(0)[0])]
    assert np.all(kl_of(random, transform) >= kl_of(start, transform))


class Pooling:
    """Pools its images to 8×8, whatever their size, then two layers."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.layers = rng.normal(size=(64, 6)), rng.normal(size=(6, 4))

    def __call__(self, images, name):
        factor = images.shape[1] // 8
        x = tf.nn.avg_pool2d(images, factor, factor, "VALID")
        first, second = self.layers
        return tf.tanh(tf.reshape(x, [-1, 64]) @ first) @ second


@pytest.mark.parametrize(
    "text, least", [("channel:0.1", 1 - 1e-9), ("affine:0.2", 0.99), ("tps:0.4", 0.93)]
)
def test_a_pooled_gradient_is_that_of_the_full_size(text, least):
    """Not to the last digit: the corners of large and small pixels are aligned, not centres."""
    transform = transforms.parse(text)
    options = {"xi": adversary.Xi(1e-3), "logits": Pooling()}
    full, pooled = (
        np.reshape(found(transform, smooth(32), scale=scale, **options).offsets[0], [6, -1])
        for scale in (1.0, 0.5)
    )
    full, pooled = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (full, pooled))
    assert np.sum(full * pooled, axis=1).min() > least


def test_a_pooled_flow_is_the_flow_of_the_blocks():
    """Its gradient for a pixel is a quarter of the block's, and its norm is that of all pixels."""
    transform, small = transforms.parse("flow:0.5"), BLOCKS[:, ::2, ::2]
    actual = found(transform, BLOCKS, scale=0.5, xi=adversary.Xi(1e-3), logits=Pooling())
    v = directions(transform, BLOCKS)(0)[0].numpy().reshape(6, 8, 2, 8, 2, 2).mean(axis=(2, 4))
    with tf.GradientTape() as tape:
        of_blocks = tf.constant(1e-3 * v)
        tape.watch(of_blocks)
        moved = Pooling()(transform.apply(small, [of_blocks]), "")
        kl = tf.reduce_sum(divergences.kl_divergence(Pooling()(small, ""), moved))
    expected = tape.gradient(kl, of_blocks).numpy().repeat(2, 1).repeat(2, 2)
    expected *= 0.5 / np.sqrt(np.sum(expected**2, axis=(1, 2, 3), keepdims=True))
    np.testing.assert_allclose(actual.offsets[0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("text", ["channel:0.5", "affine:0.3", "tps:1", "flow:2"])
def test_pooled_candidates_are_judged_on_pooled_images(text):
    transform = transforms.parse(text)
    options = {"kind": "worst_of", "candidates": 3, "logits": Pooling(), "scale": 0.5}
    actual = np.asarray(found(transform, BLOCKS, **options).offsets[0])
    (t,), draw, small = transform.transforms, directions(transform, BLOCKS), BLOCKS[:, ::2, ::2]
    offsets = np.stack([t.epsilon * draw(c)[0] for c in range(3)])
    reached = []
    for offset in offsets:
        if text.startswith("flow"):
            offset = offset.reshape(6, 8, 2, 8, 2, 2).mean(axis=(2, 4))
        log_p, log_q = (
            special.log_softmax(Pooling()(x, ""), axis=1) for x in (small, t.apply(small, offset))
        )
        reached.append(np.sum(np.exp(log_p) * (log_p - log_q), axis=1))
    worst = np.argmax(reached, axis=0)
    assert len(set(worst)) > 1
    np.testing.assert_array_equal(actual, offsets[worst, np.arange(6)])


def test_noise_is_searched_on_its_own_at_full_size():
    sizes = []

    def logits(images, name):
        sizes.append(images.shape[1])
        return Pooling()(images, name)

    parts = transforms.parse("affine:0.2,noise:2,channel:0.1").transforms
    composite = transforms.Composite(parts)
    draw = directions(composite, BLOCKS)
    clean, images = Pooling()(BLOCKS, ""), tf.constant(BLOCKS)
    actual = adversary.Search(scale=0.5, xi=adversary.Xi(1e-2))(
        composite, logits, images, clean, draw, [0.2, 2.0, 0.1]
    )
    assert sizes == [8, 16]
    for which, scale in (([0, 2], 0.5), ([1], 1.0)):
        alone = adversary.Search(scale=scale, xi=adversary.Xi(1e-2))(
            transforms.Composite([parts[i] for i in which]), Pooling(), images, clean,
            lambda c, which=which: [draw(c)[i] for i in which],
            [parts[i].epsilon for i in which],
        )  # fmt: skip
        for i, offset in zip(which, alone.offsets):
            np.testing.assert_array_equal(actual.offsets[i], offset)


def test_a_share_is_searched_and_the_rest_is_random():
    transform = transforms.parse("noise:0.4,channel:0.5")
    draw = directions(transform, X)

    def run(images, draw, **options):
        search = adversary.Search(xi=adversary.Xi(0.1), **options)
        return search(transform, linear, images, linear(images), draw, [0.4, 0.5]).offsets

    actual = run(X, draw, share=0.5)
    rows = np.array([1, 3, 5])
    some = run(X[rows], lambda c: [v.numpy()[rows] for v in draw(c)])
    random = [0.4 * draw(0)[0], 0.5 * draw(0)[1]]
    for offset, searched, drawn in zip(actual, some, random):
        np.testing.assert_allclose(np.asarray(offset)[rows], searched, rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(np.asarray(offset)[[0, 2, 4]], np.asarray(drawn)[[0, 2, 4]])
    np.testing.assert_allclose(
        np.linalg.norm(np.reshape(actual[0], [6, -1]), axis=1), 0.4, rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["gradient", "worst_of"])
def test_the_rest_of_a_share_has_the_shape_of_what_is_searched(kind):
    """`steepest` has all singular values of an affine offset at ε: U Vᵀ of the drawn directions."""
    transform = transforms.parse("affine:0.5")
    options = {"kind": kind, "candidates": 2, "xi": adversary.Xi(0.1), "ascent": "steepest"}
    (actual,) = found(transform, X, share=0.5, **options).offsets
    u, _, v = np.linalg.svd(np.asarray(directions(transform, X)(0)[0]), full_matrices=False)
    rest = [0, 2, 4]
    np.testing.assert_allclose(np.asarray(actual)[rest], 0.5 * (u @ v)[rest], rtol=1e-6, atol=1e-9)
    values = np.linalg.svd(np.asarray(actual), compute_uv=False)
    np.testing.assert_allclose(values, 0.5, rtol=1e-6)


@pytest.mark.parametrize("ascent", ["paper", "steepest"])
def test_a_share_of_few_images_may_be_none(ascent):
    """Then no pass is made, which batch norm could not take; offsets are those of the others."""

    def logits(images, name):
        assert len(images), name
        return linear(images)

    transform = transforms.parse("affine:0.5,noise:0.4")
    for options in ({}, {"kind": "both", "scale": 0.5}):
        actual = found(transform, X, share=0.04, ascent=ascent, logits=logits, **options)
        affine, noise = (np.asarray(v) for v in directions(transform, X)(0))
        if ascent == "steepest":
            left, _, right = np.linalg.svd(affine, full_matrices=False)
            affine = left @ right
        for offset, expected in zip(actual.offsets, (0.5 * affine, 0.4 * noise)):
            np.testing.assert_allclose(offset, expected, rtol=1e-6, atol=1e-9)
        assert actual.fallback.shape == (6,) and not np.any(actual.fallback)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_replicas_choose_what_one_device_chooses(share):
    chosen = adversary.searched(120, share)
    assert len(chosen) == round(120 * share)
    for replicas in (2, 3, 4, 6):
        size = 120 // replicas
        if abs(size * share - round(size * share)) < 1e-9:
            each = [r * size + adversary.searched(size, share) for r in range(replicas)]
            np.testing.assert_array_equal(np.concatenate(each), chosen)
