"""Every transformation in every variant, and what the property tests feed them."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import stack, transforms

SHAPE = H, W, C = (7, 9, 3)
# Non-square, one to four channels, and the smallest there are.
SHAPES = [SHAPE, (9, 7, 1), (6, 10, 4), (32, 32, 3), (13, 28, 1), (2, 2, 3), (1, 6, 1), (5, 1, 3)]
SPATIAL = (transforms.Affine, transforms.ThinPlateSpline, transforms.FlowField)
PLAIN = (transforms.Noise, transforms.ChannelWeight)
CLASSES = SPATIAL + PLAIN
#: Those of this stack.
SAMPLERS = ("resampler", "gather") if stack.has("tensorflow_addons") else ("gather",)


def _variants(*samplers):
    """Every sampler with every padding."""
    cases = [cls(0.6) for cls in PLAIN]
    for how in [(padding, sampler) for sampler in samplers for padding in ("zeros", "edge")]:
        cases += [cls(0.6, padding=how[0], sampler=how[1]) for cls in SPATIAL]
    return [pytest.param(t, id=_label(t)) for t in cases]


def _composite(padding, sampler):
    parts = [cls(0.6) for cls in PLAIN]
    parts += [cls(0.6, padding=padding, sampler=sampler) for cls in SPATIAL]
    return pytest.param(transforms.Composite(parts), id=f"composite-{padding}-{sampler}")


def _label(t):
    return "-".join([t.name, *(getattr(t, k) for k in ("padding", "sampler") if hasattr(t, k))])


ZEROS, EDGE = _composite("zeros", SAMPLERS[0]), _composite("edge", "gather")

single = pytest.mark.parametrize("t", _variants(*SAMPLERS))
everything = pytest.mark.parametrize("t", [*_variants(*SAMPLERS), ZEROS, EDGE])
compilable = pytest.mark.parametrize("t", [*_variants("gather"), EDGE])
each_class = pytest.mark.parametrize("t", [cls(0.6) for cls in CLASSES], ids=lambda t: t.name)


def images(shape=SHAPE, batch=2, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(batch, *shape)).astype(dtype)


def offsets(t, shape=SHAPE, batch=2, scale=0.3):
    v = t.random_direction(batch, shape, seed=(3, 4))
    return tf.nest.map_structure(lambda o: scale * o, v)


def gradients(t):
    """Gradients to climb; for matrices also rank one, nearly so, and equal singular values."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(6, *t.offset_shape(SHAPE)))
    if t.name == "affine":
        u = np.linalg.qr(rng.normal(size=(4, 2, 2)))[0]
        v = np.linalg.qr(rng.normal(size=(4, 3, 3)))[0][:, :2]
        spectra = ([1, 0], [1, 1e-3], [1, 1e-6], [1, 1], [1, 0.9999])
        one_row, one_column = np.zeros((2, 1, 2, 3))
        one_row[0, 1], one_column[0, :, 2] = (0.3, -1, 2), (-1, 0.5)
        g = np.concatenate([g, *[(u * s) @ v for s in spectra], one_row, one_column])
    return g


def apply_and_gradients(t, x, v, weights):
    """The transformed images and the gradient of a weighted sum of their pixels."""
    with tf.GradientTape() as tape:
        tape.watch([x, v])
        out = t.apply(x, v)
        loss = tf.reduce_sum(weights * out)
    return out, tape.gradient(loss, [x, v])


def assert_same(actual, expected, atol=2e-6):
    tf.nest.assert_same_structure(actual, expected)
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
        np.testing.assert_allclose(a, e, atol=atol)
