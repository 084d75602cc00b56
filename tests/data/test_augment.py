import numpy as np
import pytest
import tensorflow as tf
from scipy import ndimage

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


def reference_crop(image, area, aspect, down, right, smallest):
    """A random crop by its definition, pixel by pixel, in float64."""
    height, width, channels = image.shape
    area, aspect = smallest + (1 - smallest) * area, (4 / 3) ** (2 * aspect - 1)
    tall = height * min((area / aspect) ** 0.5, 1)
    wide = width * min((area * aspect) ** 0.5, 1)
    top, left = (height - tall) * down, (width - wide) * right
    result = np.empty_like(image, dtype=np.float64)
    for i in range(height):
        for j in range(width):
            y = np.clip(top + (i + 0.5) * tall / height - 0.5, 0, height - 1)
            x = np.clip(left + (j + 0.5) * wide / width - 0.5, 0, width - 1)
            place = [[y], [x]]
            for c in range(channels):
                plane = image[..., c].astype(np.float64)
                result[i, j, c] = ndimage.map_coordinates(plane, place, order=1)[0]
    return result


def reference_colour(image, brightness, contrast, saturation):
    """As torchvision defines the three, for pixels in [0, 1], without clipping."""
    image = (image.astype(np.float64) + 1) / 2 * brightness
    luma = np.array([0.299, 0.587, 0.114])
    grey = (image @ luma)[..., np.newaxis] if image.shape[-1] == 3 else image
    image = contrast * image + (1 - contrast) * grey.mean()
    grey = (image @ luma)[..., np.newaxis] if image.shape[-1] == 3 else image
    return (saturation * image + (1 - saturation) * grey) * 2 - 1


@pytest.mark.parametrize("smallest", [0.1, 0.6])
def test_crops_by_their_definition(smallest):
    drawn = np.random.default_rng(1).random((8, 4)).astype(np.float32)
    drawn[0] = 1 - 1e-6  # the whole image
    found = augment._cropped(tf.constant(images()), drawn, smallest)
    expected = [reference_crop(x, *row, smallest) for x, row in zip(images(), drawn.tolist())]
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_colours_by_their_definition(channels):
    originals = images(shape=(5, 4, channels))
    factors = np.random.default_rng(2).uniform(0.5, 1.5, (8, 3)).astype(np.float32)
    found = augment._recoloured(tf.constant(originals), factors)
    expected = [reference_colour(x, *row) for x, row in zip(originals, factors.tolist())]
    np.testing.assert_allclose(found, expected, atol=2e-5)


PHOTO = {"crop": 0.3, "color": 0.4}


def test_every_image_has_its_own_crop_and_colours_within_the_bounds():
    ramp = np.linspace(-1, 1, 40, dtype=np.float32)
    across = np.tile(ramp[None, None, :, None], (200, 40, 1, 1))
    seed = tf.constant([1, 2], tf.int64)
    cropped = augment.Augmentation(crop=0.25)(across, seed, all_rows(200)).numpy()
    widths = np.ptp(cropped, axis=(1, 2, 3)) / 2  # of the crop, as the ramp is linear
    assert widths.min() > (0.25 * 3 / 4) ** 0.5 - 0.06 and widths.max() > 0.95
    assert len(np.unique(widths)) > 150 and 0.6 < widths.mean() < 0.9
    flat = np.zeros((200, 2, 2, 3), np.float32)
    colours = augment.Augmentation(color=0.3)(flat, seed, all_rows(200)).numpy()
    bright = colours[:, 0, 0, 0] + 1  # grey stays grey: contrast and saturation keep it
    assert 0.7 <= bright.min() < 0.72 and 1.28 < bright.max() <= 1.3
    assert (np.ptp(colours, axis=(1, 2, 3)) < 1e-5).all()


def test_options_for_photos_do_not_change_the_other_draws():
    originals, seed = images(shape=(7, 6, 3)), tf.constant([5, 6], tf.int64)
    plain = augment.Augmentation(shift=2, flip=True, granularity="image")
    both = augment.Augmentation(shift=2, flip=True, granularity="image", **PHOTO)
    moved = plain(originals, seed, all_rows(8))
    alone = augment.Augmentation(**PHOTO)(moved, seed, all_rows(8))
    np.testing.assert_array_equal(both(originals, seed, all_rows(8)), alone)


def test_photo_draws_are_cut_from_the_global_batch_and_pooled_images_have_the_same_crop():
    call, seed = augment.Augmentation(**PHOTO), tf.constant([5, 6], tf.int64)
    originals = images(shape=(16, 16, 3))
    whole = call(originals, seed, all_rows(8)).numpy()
    second_half = lambda drawn: drawn[4:]  # noqa: E731
    second_half.total = 8
    np.testing.assert_allclose(call(originals[4:], seed, second_half), whole[4:], atol=1e-6)
    ramp = np.tile(np.linspace(-1, 1, 16, dtype=np.float32)[:, None, None], (8, 1, 16, 1))
    small = ramp.reshape(8, 8, 2, 8, 2, 1).mean(axis=(2, 4))
    pooled = call.pooled(2)(small, seed, all_rows(8)).numpy()
    large = call(ramp, seed, all_rows(8)).numpy().reshape(8, 8, 2, 8, 2, 1).mean(axis=(2, 4))
    np.testing.assert_allclose(pooled[:, 2:-2], large[:, 2:-2], atol=0.02)


def test_gradients_of_photo_augmentation_are_those_of_a_linear_map():
    call, seed = augment.Augmentation(**PHOTO), tf.constant([3, 1], tf.int64)
    originals = tf.constant(images(shape=(7, 6, 3)))
    weights = np.random.default_rng(1).normal(size=originals.shape).astype(np.float32)

    def loss(x):
        return tf.reduce_sum(call(x, seed, all_rows(8)) * weights)

    with tf.GradientTape() as tape:
        tape.watch(originals)
        value = loss(originals)
    gradient = tape.gradient(value, originals)
    change = value - loss(tf.zeros_like(originals))
    np.testing.assert_allclose(tf.reduce_sum(gradient * originals), change, rtol=1e-4)
