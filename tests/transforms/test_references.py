"""Values and gradients against SciPy and NumPy, which share no code with rat_tf."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import transforms
from rat_tf.transforms import sampling
from tests.transforms import cases, reference

H, W, C = 7, 9, 3
SHAPE = (H, W, C)
# Offsets large enough that part of the image is read from outside.
SCALES = {"affine": 0.5, "thin_plate_spline": 0.3, "flow_field": 0.4}
CLASSES = {
    "affine": transforms.Affine,
    "thin_plate_spline": transforms.ThinPlateSpline,
    "flow_field": transforms.FlowField,
}
PADDINGS = ("zeros", "edge")

spatial = pytest.mark.parametrize("name", CLASSES)
paddings = pytest.mark.parametrize("padding", PADDINGS)
samplers = pytest.mark.parametrize("sampler", cases.SAMPLERS)


def _build(name, padding, sampler):
    return CLASSES[name](1.0, padding=padding, sampler=sampler)


def _draw(name, shape=SHAPE, batch=3, seed=0):
    rng = np.random.default_rng(seed)
    offset_shape = CLASSES[name](1.0).offset_shape(shape)
    return rng.normal(size=(batch, *shape)), SCALES[name] * rng.normal(size=(batch, *offset_shape))


@spatial
@paddings
@samplers
@pytest.mark.parametrize("shape", [SHAPE, (10, 4, 1), (6, 6, 4)])
def test_warp_equals_scipy(name, padding, sampler, shape):
    images, v = _draw(name, shape)
    where = np.stack([reference.positions(name, o, *shape[:2]) for o in v])
    limits = np.reshape([shape[0] - 1, shape[1] - 1], (1, 2, 1, 1))
    outside = np.any((where < 0) | (where > limits), axis=1).mean()
    assert 0.1 < outside < 0.9

    expected = np.stack([reference.apply(name, x, o, padding) for x, o in zip(images, v)])
    t = _build(name, padding, sampler)
    np.testing.assert_allclose(t.apply(tf.constant(images), tf.constant(v)), expected, atol=1e-10)
    single = t.apply(tf.constant(images, tf.float32), tf.constant(v, tf.float32))
    np.testing.assert_allclose(single, expected, atol=5e-5)


@spatial
@paddings
@samplers
def test_gradients_equal_central_differences(name, padding, sampler):
    images, v = _draw(name, (5, 6, 2), batch=1, seed=1)
    weights = np.random.default_rng(2).normal(size=images.shape)
    x, o = tf.constant(images), tf.constant(v)
    with tf.GradientTape() as tape:
        tape.watch([x, o])
        loss = tf.reduce_sum(weights * _build(name, padding, sampler).apply(x, o))
    by_image, by_offset = tape.gradient(loss, [x, o])

    def of_offset(offset):
        return np.sum(weights[0] * reference.apply(name, images[0], offset, padding))

    def of_image(image):
        return np.sum(weights[0] * reference.apply(name, image, v[0], padding))

    expected = reference.differences(of_offset, v[0], -1e-6, 1e-6)
    np.testing.assert_allclose(by_offset[0], expected, atol=1e-7)
    expected = reference.differences(of_image, images[0], -1e-3, 1e-3)
    np.testing.assert_allclose(by_image[0], expected, atol=1e-9)


@paddings
@samplers
@pytest.mark.parametrize("dtype, scale, atol", [("float64", 0, 1e-6), ("float32", 1e-6, 1e-4)])
def test_gradient_at_the_kink_lies_between_the_one_sided_ones(padding, sampler, dtype, scale, atol):
    """At the identity every pixel sits on a kink, border pixels on that of the padding too."""
    images, v = _draw("flow_field", (5, 6, 2), batch=1)
    weights = np.random.default_rng(2).normal(size=images.shape)
    o = tf.constant(scale * v, dtype)
    with tf.GradientTape() as tape:
        tape.watch(o)
        warped = _build("flow_field", padding, sampler).apply(images.astype(dtype), o)
        loss = tf.reduce_sum(weights.astype(dtype) * warped)

    def of_offset(offset):
        return np.sum(weights[0] * reference.apply("flow_field", images[0], offset, padding))

    left = reference.differences(of_offset, np.zeros_like(v[0]), -1e-6, 0)
    right = reference.differences(of_offset, np.zeros_like(v[0]), 0, 1e-6)
    gradient = tape.gradient(loss, o)[0]
    assert np.all(gradient >= np.minimum(left, right) - atol)
    assert np.all(gradient <= np.maximum(left, right) + atol)


@paddings
@samplers
def test_one_pixel_to_the_right_reads_the_right_hand_neighbour(padding, sampler):
    images = np.random.default_rng(3).normal(size=(1, *SHAPE)).astype(np.float32)
    step = 2 / (W - 1)
    last = images[:, :, -1:] * (padding == "edge")
    expected = np.concatenate([images[:, :, 1:], last], axis=2)
    affine = tf.constant([[[0, 0, step], [0, 0, 0]]])
    flow = tf.broadcast_to(tf.constant([step, 0.0]), (1, H, W, 2))
    control = tf.broadcast_to(tf.constant([step, 0.0]), (1, 16, 2))
    for name, v in zip(CLASSES, (affine, control, flow)):
        warped = _build(name, padding, sampler).apply(images, v)
        np.testing.assert_allclose(warped, expected, atol=1e-5, err_msg=name)


@paddings
@samplers
@pytest.mark.parametrize("distance", [3.0, 1e5, 1e12, 1e30])
def test_far_outside_is_the_padding(padding, sampler, distance):
    images = np.random.default_rng(4).normal(size=(1, *SHAPE)).astype(np.float32)
    flow = tf.broadcast_to(tf.constant([distance, -distance]), (1, H, W, 2))
    expected = np.broadcast_to(images[:, :1, -1:] * (padding == "edge"), images.shape)
    warped = _build("flow_field", padding, sampler).apply(images, flow)
    np.testing.assert_allclose(warped, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 10), (4, 4)])
def test_spline_interpolates_its_control_points(shape):
    """Where a control point lies on a pixel, the spline moves that pixel as a flow field would."""
    images, v = _draw("thin_plate_spline", (*shape, 1), batch=1)
    rows, columns = np.linspace(0, shape[0] - 1, 4), np.linspace(0, shape[1] - 1, 4)
    nodes = np.ix_([0], rows.astype(int), columns.astype(int))
    flow = np.zeros((1, *shape, 2))
    flow[nodes] = v.reshape(1, 4, 4, 2)
    spline = transforms.ThinPlateSpline(1.0).apply(tf.constant(images), tf.constant(v))
    expected = transforms.FlowField(1.0).apply(tf.constant(images), tf.constant(flow))
    np.testing.assert_allclose(spline.numpy()[nodes], expected.numpy()[nodes], atol=1e-10)


def test_spline_of_an_affine_displacement_is_affine():
    """The spline bends no more than it must: control points moved affinely move all affinely."""
    images, affine = _draw("affine", batch=1)
    control = reference.displacement("affine", affine[0], 4, 4).reshape(1, 2, 16)
    spline = transforms.ThinPlateSpline(1.0).apply(images, np.swapaxes(control, 1, 2))
    np.testing.assert_allclose(spline, transforms.Affine(1.0).apply(images, affine), atol=1e-10)


def test_noise_and_channel_weight():
    rng = np.random.default_rng(5)
    images = rng.normal(size=(2, *SHAPE))
    noise, weight = rng.normal(size=images.shape), rng.normal(size=(2, C))
    np.testing.assert_array_equal(transforms.Noise(1.0).apply(images, noise), images + noise)
    expected = images * (1 + weight[:, None, None])
    weighted = transforms.ChannelWeight(1.0).apply(images, weight)
    np.testing.assert_allclose(weighted, expected, rtol=1e-14)


def test_composite_applies_in_order():
    """Noise is warped along when it comes first, and lies on the warped image when last."""
    images, affine = _draw("affine", batch=1)
    noise = np.random.default_rng(6).normal(size=images.shape)
    first, second = transforms.Noise(1.0), transforms.Affine(1.0)
    warped = reference.apply("affine", images[0] + noise[0], affine[0])
    actual = transforms.Composite([first, second]).apply(images, [noise, affine])
    np.testing.assert_allclose(actual[0], warped, atol=1e-10)
    actual = transforms.Composite([second, first]).apply(images, [affine, noise])
    expected = reference.apply("affine", images[0], affine[0]) + noise[0]
    np.testing.assert_allclose(actual[0], expected, atol=1e-10)


@pytest.mark.parametrize("dtype, rtol", [("float32", 2e-6), ("float64", 1e-13)])
def test_operator_norm_equals_largest_singular_value(dtype, rtol):
    rng = np.random.default_rng(7)
    generic = rng.normal(size=(20, 2, 3))
    rank_one = rng.normal(size=(5, 2, 1)) * rng.normal(size=(5, 1, 3))
    u = np.linalg.qr(rng.normal(size=(5, 2, 2)))[0]
    v = np.linalg.qr(rng.normal(size=(5, 3, 3)))[0][:, :2]
    equal = u @ v
    nearly_equal = (u * [1.0, 0.9999]) @ v
    nearly_rank_one = (u * [1.0, 1e-5]) @ v
    single_entry = np.eye(6).reshape(6, 2, 3) * 0.3
    all_cases = [generic, rank_one, equal, nearly_equal, nearly_rank_one, single_entry]
    matrices = np.concatenate(all_cases + [np.zeros((1, 2, 3))]).astype(dtype)
    expected = np.linalg.svd(matrices.astype(np.float64), compute_uv=False).max(-1)
    actual = transforms.Affine(1.0).norm(tf.constant(matrices))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol)


@paddings
@samplers
def test_a_displacement_that_is_no_number_gives_zero(padding, sampler):
    images = tf.constant(1 + np.random.default_rng(0).uniform(size=(2, H, W, C)))
    displacement = np.zeros((2, H, W, 2))
    displacement[0, 3, 4] = np.nan
    with tf.GradientTape() as tape:
        moves = tf.constant(displacement)
        tape.watch([images, moves])
        result = sampling.warp(images, moves, padding, sampler)
        loss = tf.reduce_sum(result)
    expected = images.numpy()
    expected[0, 3, 4] = 0
    np.testing.assert_allclose(result, expected, atol=1e-12)
    for gradient in tape.gradient(loss, [images, moves]):
        assert np.all(np.isfinite(gradient))
