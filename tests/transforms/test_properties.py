"""Every transformation, in every variant, runs through the same properties."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import transforms
from tests.transforms import cases, reference
from tests.transforms.cases import SHAPE, SHAPES, C, H, W

# Per image of one batch: what happens to one must not depend on the scale of another.
SCALES = np.float32([1e-30, 1e-12, 1e-6, 1, 7, 1e30])


@cases.each_class
def test_name_epsilon_and_offset_shape(t):
    expected = {
        "noise": SHAPE,
        "channel_weight": (C,),
        "affine": (2, 3),
        "thin_plate_spline": (16, 2),
        "flow_field": (H, W, 2),
    }
    assert tuple(t.offset_shape(SHAPE)) == expected[t.name]
    assert t.epsilon == 0.6


@cases.everything
def test_identity_at_zero_is_exact(t):
    for shape in SHAPES:
        for dtype in (np.float32, np.float64):
            images = 100 * cases.images(shape, dtype=dtype)
            zero = tf.nest.map_structure(tf.zeros_like, cases.offsets(t, shape))
            np.testing.assert_array_equal(t.apply(images, zero), images, err_msg=f"{shape} {dtype}")


@cases.everything
def test_directions_have_norm_one(t):
    for shape in SHAPES:
        v = t.random_direction(5, shape, seed=(1, 2))
        expected = t.offset_shape(shape)
        expected = expected if isinstance(v, list) else [expected]
        assert [tuple(o.shape) for o in tf.nest.flatten(v)] == [(5, *s) for s in expected]
        for norm in tf.nest.flatten(t.norm(v)):
            np.testing.assert_allclose(norm, np.ones(5), rtol=1e-5)


@cases.everything
def test_directions_depend_on_the_seed_and_nothing_else(t):
    first = t.random_direction(5, SHAPE, seed=(1, 2))
    cases.assert_same(t.random_direction(5, SHAPE, seed=tf.constant([1, 2])), first, atol=0)
    for seed in ((2, 1), (1, 3)):
        other = t.random_direction(5, SHAPE, seed=seed)
        for a, b in zip(tf.nest.flatten(first), tf.nest.flatten(other)):
            assert np.mean(a.numpy() == b.numpy()) < 0.5
    for o in tf.nest.flatten(first):  # every image of the batch has its own
        assert len({row.tobytes() for row in o.numpy()}) == 5


def test_directions_of_a_composite_are_independent():
    alike = transforms.Composite([transforms.Noise(1.0), transforms.FlowField(1.0)])
    first, second = alike.random_direction(4, (H, W, 2), seed=(1, 2))  # offsets of one shape
    cosine = np.sum(first.numpy() * second.numpy(), axis=(1, 2, 3))
    assert np.abs(cosine).max() < 0.3


@cases.each_class
def test_norm_is_the_papers_and_homogeneous(t):
    v = np.random.default_rng(0).normal(size=(len(SCALES), *t.offset_shape(SHAPE)))
    scales = SCALES.reshape([-1] + [1] * (v.ndim - 1))
    expected = [reference.norm(t.name, o) for o in v * scales]
    actual = t.norm(tf.constant(np.float32(v) * scales))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    np.testing.assert_array_equal(t.norm(tf.zeros_like(v)), np.zeros(len(v)))


@cases.each_class
def test_steepest_is_the_best_feasible_direction(t):
    g = np.concatenate([cases.gradients(t) for _ in SCALES])
    scales = np.repeat(SCALES, len(g) // len(SCALES)).reshape([-1] + [1] * (g.ndim - 1))
    u = t.steepest(tf.constant(np.float32(g) * scales)).numpy()
    np.testing.assert_allclose([reference.norm(t.name, o) for o in u], 1, rtol=1e-5)

    reached = np.sum((g * u).reshape(len(g), -1), axis=1)
    np.testing.assert_allclose(reached, [reference.dual_norm(t.name, o) for o in g], rtol=1e-5)
    rivals = np.random.default_rng(1).normal(size=(200, *u.shape[1:]))
    rivals = np.stack([r / reference.norm(t.name, r) for r in rivals])
    assert np.all(g.reshape(len(g), -1) @ rivals.reshape(200, -1).T <= reached[:, None] + 1e-5)


@cases.each_class
def test_steepest_of_a_zero_gradient_is_finite_and_feasible(t):
    """Every feasible direction is a maximiser then, but NaN is none."""
    u = t.steepest(tf.zeros((2, *t.offset_shape(SHAPE)))).numpy()
    assert np.all(np.isfinite(u))
    assert max(reference.norm(t.name, o) for o in u) < 1.00001


def _given_as(convert, values):
    return tf.nest.map_structure(lambda value: convert(value.numpy()), values)


@cases.everything
@pytest.mark.parametrize("convert", [np.array, np.ndarray.tolist], ids=["numpy", "list"])
def test_arrays_and_lists_are_as_good_as_tensors(t, convert):
    images, v = tf.constant(cases.images()), cases.offsets(t)
    given = [_given_as(convert, o) for o in v] if isinstance(v, list) else _given_as(convert, v)
    cases.assert_same(t.norm(given), t.norm(v), atol=0)
    cases.assert_same(t.apply(_given_as(convert, images), given), t.apply(images, v), atol=0)
    drawn = t.random_direction(2, convert(np.array(SHAPE)), convert(np.array([3, 4])))
    cases.assert_same(drawn, t.random_direction(2, SHAPE, (3, 4)), atol=0)
    for name in ("unit", "steepest"):
        if hasattr(t, name):
            cases.assert_same(getattr(t, name)(given), getattr(t, name)(v), atol=0)


@cases.each_class
def test_arrays_of_float64_stay_float64_and_whole_numbers_count(t):
    v = np.random.default_rng(0).normal(size=(3, *t.offset_shape(SHAPE)))
    expected = [reference.norm(t.name, o) for o in v]
    for found in (t.norm(v), t.norm(t.unit(v)) * expected, t.norm(t.steepest(v)) * expected):
        assert found.dtype == tf.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    whole = np.rint(10 * v).astype(int)
    expected = [reference.norm(t.name, o) for o in whole]
    np.testing.assert_allclose(t.norm(whole), expected, rtol=1e-6)


@cases.each_class
def test_taking_arrays_costs_a_traced_step_nothing(t):
    spec = tf.TensorSpec([2, *t.offset_shape(SHAPE)])
    for function in (t.norm, t.unit, t.steepest):
        graph = tf.function(function).get_concrete_function(spec).graph
        assert "Cast" not in {op.type for op in graph.get_operations()}


@cases.everything
def test_images_of_a_batch_are_independent(t):
    images, v = cases.images(batch=3), cases.offsets(t, batch=3)
    together = t.apply(images, v)
    for i in range(3):
        one = slice(i, i + 1)
        alone = t.apply(images[one], [o[one] for o in v] if isinstance(v, list) else v[one])
        np.testing.assert_allclose(together[one], alone, atol=2e-6)


@cases.everything
def test_dtypes_and_shapes(t):
    for shape in SHAPES[:3]:
        images, v = cases.images(shape), cases.offsets(t, shape)
        expected = t.apply(images, v)
        assert expected.dtype == tf.float32 and expected.shape == images.shape
        out = t.apply(images.astype(np.float64), v)
        assert out.dtype == tf.float64
        np.testing.assert_allclose(out, expected, atol=1e-4)
        for half in (tf.float16, tf.bfloat16):
            low = tf.cast(images, half)
            out = t.apply(low, v)
            assert out.dtype == tf.float32
            np.testing.assert_array_equal(out, t.apply(tf.cast(low, tf.float32), v))


@cases.single
def test_gradients_at_tiny_offsets_are_finite_and_live(t):
    """At xi = 1e-6 in float32 the search sees a gradient wherever exact arithmetic has one."""
    images, weights = cases.images(batch=1), cases.images(batch=1, seed=1)
    v = cases.offsets(t, batch=1, scale=1e-6)
    padding = getattr(t, "padding", "zeros")

    def weighted_sum(offset):
        return np.sum(weights[0] * reference.apply(t.name, images[0], offset, padding))

    expected = reference.differences(weighted_sum, v[0], -1e-9, 1e-9)
    out, (_, gradient) = cases.apply_and_gradients(t, tf.constant(images), v, weights)
    np.testing.assert_allclose(out, images, atol=1e-4)
    assert np.all(np.isfinite(gradient))
    alive = gradient[0].numpy()[np.abs(expected) > 1e-3] != 0
    # All but border pixels with padding "edge", whose derivative is zero on one side.
    assert alive.size > 0 and alive.mean() > (0.9 if padding == "edge" else 0.999)


@cases.everything
def test_graph_and_data_pipeline_equal_eager(t):
    images, v = tf.constant(cases.images()), cases.offsets(t)
    any_batch = tf.nest.map_structure(lambda o: tf.TensorSpec([None, *o.shape[1:]]), (images, v))
    graph = tf.function(t.apply, input_signature=any_batch)
    cases.assert_same(graph(images, v), t.apply(images, v))

    def draw_and_apply(x, seed):
        direction = t.random_direction(2, SHAPE, seed)
        return tuple(tf.nest.flatten([direction, t.norm(direction), t.apply(x, direction)]))

    source = tf.data.Dataset.from_tensors((images, tf.constant([3, 4])))
    (mapped,) = source.map(draw_and_apply)
    cases.assert_same(mapped, draw_and_apply(images, (3, 4)), atol=1e-5)


@cases.compilable
def test_xla_equals_eager(t):
    images, v, weights = tf.constant(cases.images()), cases.offsets(t), cases.images(seed=1)

    def step(x, o):
        direction = t.random_direction(2, SHAPE, seed=(1, 2))
        return cases.apply_and_gradients(t, x, o, weights), t.norm(o), t.norm(direction)

    compiled = tf.function(step, jit_compile=True)
    cases.assert_same(compiled(images, v), step(images, v), atol=1e-4)


@cases.each_class
def test_xla_steepest_equals_eager(t):
    g = tf.constant(cases.gradients(t)[:6], tf.float32)
    cases.assert_same(tf.function(t.steepest, jit_compile=True)(g), t.steepest(g), atol=1e-5)


@cases.everything
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e30])
def test_wild_offsets_neither_crash_nor_leak(t, value):
    """A diverged offset spoils its own image at most."""
    images, v, weights = tf.constant(cases.images()), cases.offsets(t), cases.images(seed=1)
    wild = tf.nest.map_structure(lambda o: tf.concat([tf.fill(o[:1].shape, value), o[1:]], 0), v)
    out, (by_image, by_offset) = cases.apply_and_gradients(t, images, wild, weights)
    expected, gradients = cases.apply_and_gradients(t, images, v, weights)
    np.testing.assert_allclose(out[1], expected[1], atol=2e-6)
    for a, e in zip(tf.nest.flatten([by_image, by_offset]), tf.nest.flatten(gradients)):
        np.testing.assert_allclose(a[1], e[1], atol=1e-4)
