"""KL divergence and entropy against SciPy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from rat_tf import divergences


def logits(scale, seed, shape=(50, 10)):
    return np.random.default_rng(seed).normal(scale=scale, size=shape)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-6)])
@pytest.mark.parametrize("scale", [0.1, 1, 10])
def test_equal_to_scipy(dtype, tolerance, scale):
    close = {"rtol": tolerance, "atol": tolerance}
    p, q = (tf.constant(logits(scale, seed), dtype) for seed in (0, 1))
    p64, q64 = (special.softmax(x.numpy().astype(np.float64), axis=1) for x in (p, q))
    kl, entropy = divergences.kl_divergence(p, q), divergences.entropy(p)
    assert kl.dtype == entropy.dtype == dtype
    np.testing.assert_allclose(kl, special.rel_entr(p64, q64).sum(axis=1), **close)
    np.testing.assert_allclose(entropy, stats.entropy(p64, axis=1), **close)
    # NumPy arrays and lists are taken, too.
    np.testing.assert_array_equal(divergences.kl_divergence(p.numpy(), q.numpy()), kl)
    np.testing.assert_allclose(
        divergences.entropy(p.numpy().tolist()), entropy, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    p, q = (tf.cast(logits(3, seed), dtype) for seed in (0, 1))
    kl = divergences.kl_divergence(p, q)
    assert kl.dtype == divergences.entropy(p).dtype == tf.float32
    p64, q64 = (special.softmax(tf.cast(x, tf.float64).numpy(), axis=1) for x in (p, q))
    np.testing.assert_allclose(kl, special.rel_entr(p64, q64).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_logits(dtype):
    """Where softmax underflows SciPy's KL is infinite; log-softmax has the exact value."""
    p = tf.constant([[1e4, -1e4, 0], [1e4, -1e4, 0], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype)
    q = tf.constant([[-1e4, 1e4, 0], [1e4, -1e4, 0], [1e4, -1e4, 1e4], [0, 0, 1e4]], dtype)
    with tf.GradientTape() as tape:
        tape.watch([p, q])
        kl, entropy = divergences.kl_divergence(p, q), divergences.entropy(p)
    log2, log3 = np.log([2, 3])
    expected = [2e4, 0, 1e4, 2e4 / 3 - log3]
    np.testing.assert_allclose(kl, expected, rtol=1e-6)
    np.testing.assert_allclose(entropy, [0, 0, log2, log3], rtol=1e-6)
    by_p, by_q = tape.gradient([kl, entropy], [p, q])
    assert np.all(np.isfinite(by_p))
    difference = special.softmax(q.numpy(), axis=1) - special.softmax(p.numpy(), axis=1)
    np.testing.assert_allclose(by_q, difference, atol=1e-6)


def test_zero_between_equals_whatever_the_shift_of_the_logits():
    p = tf.constant(logits(3, 0))
    np.testing.assert_allclose(divergences.kl_divergence(p, p + 100), 0, atol=1e-12)
