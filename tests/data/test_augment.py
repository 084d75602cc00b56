import numpy as np
import pytest
import tensorflow as tf

from rat_tf.data import augment


def all_rows(count):
    rows = lambda drawn: drawn  # noqa: E731
    rows.total = count
    return rows


def images(count=8, shape=(7, 6, 2)):
    return np.random.default_rng(0).normal(size=(count, *shape)).astype(np.float32)


def shifted(image, down, right, largest):
    """The crop of the reflected image that begins `down`, `right` of its middle one."""
    padded = np.pad(image, [(largest, largest), (largest, largest), (0, 0)], mode="reflect")
    height, width = image.shape[:2]
    top, left = largest + down, largest + right
    return padded[top : top + height, left : left + width]


def shift_of(result, image, largest):
    """The shifts that explain an augmented image, by trying all."""
    span = range(-largest, largest + 1)
    tries = [(a, b) for a in span for b in span]
    return [t for t in tries if np.array_equal(shifted(image, *t, largest), result)]


@pytest.mark.parametrize("granularity", ["batch", "image"])
@pytest.mark.parametrize("compiled", [False, True])
def test_shift_is_a_crop_of_the_reflected_image(granularity, compiled):
    call = augment.Augmentation(shift=2, granularity=granularity)
    call = tf.function(call) if compiled else call
    originals, rows, seen = tf.constant(images()), all_rows(8), set()
    for seed in range(25):
        result = call(originals, tf.constant([seed, 0], tf.int64), rows).numpy()
        found = [shift_of(r, o, 2) for r, o in zip(result, originals.numpy())]
        assert all(len(f) == 1 for f in found)
        shifts = {f[0] for f in found}
        seen |= shifts
        if granularity == "batch":
            assert len(shifts) == 1
    assert {a for a, _ in seen} == {b for _, b in seen} == {-2, -1, 0, 1, 2}
    assert len(seen) > (12 if granularity == "batch" else 24)


@pytest.mark.parametrize("granularity", ["batch", "image"])
def test_flip(granularity):
    call = augment.Augmentation(flip=True, granularity=granularity)
    originals, coins = images(), []
    for seed in range(40):
        result = call(originals, tf.constant([seed, 0], tf.int64), all_rows(8)).numpy()
        flipped = [np.array_equal(r, o[:, ::-1]) for r, o in zip(result, originals)]
        kept = [np.array_equal(r, o) for r, o in zip(result, originals)]
        assert all(a != b for a, b in zip(flipped, kept))
        coins.append(np.mean(flipped))
    assert 0.3 < np.mean(coins) < 0.7
    assert (set(coins) == {0.0, 1.0}) == (granularity == "batch")


def test_noise_has_its_standard_deviation_and_differs_per_pixel():
    call = augment.Augmentation(noise=0.15)
    originals = np.zeros((20, 30, 30, 3), np.float32)
    noise = call(originals, tf.constant([1, 2], tf.int64), all_rows(20)).numpy()
    assert abs(noise.std() - 0.15) < 0.002 and abs(noise.mean()) < 0.002
    assert len(np.unique(noise)) > 0.99 * noise.size


@pytest.mark.parametrize("granularity", ["batch", "image"])
def test_same_seed_same_draw_and_rows_cut_the_global_one(granularity):
    call = augment.Augmentation(shift=2, flip=True, noise=0.1, granularity=granularity)
    originals, seed = images(), tf.constant([5, 6], tf.int64)
    whole = call(originals, seed, all_rows(8)).numpy()
    np.testing.assert_array_equal(call(originals, seed, all_rows(8)), whole)
    second_half = lambda drawn: drawn[4:]  # noqa: E731
    second_half.total = 8
    np.testing.assert_array_equal(call(originals[4:], seed, second_half), whole[4:])
    other = call(originals, tf.constant([5, 7], tf.int64), all_rows(8)).numpy()
    assert not np.array_equal(other, whole)


def test_without_options_nothing_changes():
    originals = images()
    result = augment.Augmentation()(originals, tf.constant([0, 0], tf.int64), all_rows(8))
    np.testing.assert_array_equal(result, originals)


@pytest.mark.parametrize("granularity", ["batch", "image"])
def test_gradients_are_those_of_moving_pixels(granularity):
    call = augment.Augmentation(shift=2, flip=True, granularity=granularity)
    originals = tf.constant(images())
    weights = np.random.default_rng(1).normal(size=originals.shape).astype(np.float32)
    with tf.GradientTape() as tape:
        tape.watch(originals)
        result = call(originals, tf.constant([3, 1], tf.int64), all_rows(8))
        loss = tf.reduce_sum(result * weights)
    gradient = tape.gradient(loss, originals)
    # Linear in the images: the loss is the product with its gradient.
    np.testing.assert_allclose(tf.reduce_sum(gradient * originals), loss, rtol=1e-4)


@pytest.mark.parametrize("granularity", ["batch", "image"])
def test_xla_compiles_once_for_all_draws(granularity):
    """What XLA needs to know at compile time would be written into its program."""
    call = augment.Augmentation(shift=2, flip=True, noise=0.1, granularity=granularity)

    @tf.function(jit_compile=True)
    def value_and_gradient(originals, seed):
        with tf.GradientTape() as tape:
            tape.watch(originals)
            result = tf.reduce_sum(call(originals, seed, all_rows(8)) ** 2)
        return result, tape.gradient(result, originals)

    def program(seed):
        arguments = tf.constant(images()), tf.constant([seed, 0], tf.int64)
        return value_and_gradient.experimental_get_compiler_ir(*arguments)(stage="hlo")

    first, *others = map(program, range(4))
    assert "f32[8,7,6,2]" in first and all(other == first for other in others)
