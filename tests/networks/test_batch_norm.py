"""Batch normalisation against its formula in NumPy, and over two replicas against one device."""

import numpy as np
import pytest
import tensorflow as tf

from rat_tf import networks

RNG = np.random.default_rng(0)
X = RNG.normal(loc=(1, -2, 0), scale=(1, 3, 0.1), size=(4, 3, 5, 3)).astype(np.float32)
WEIGHTS = RNG.normal(size=X.shape).astype(np.float32)  # of a loss that is a weighted sum
GAMMA, BETA, MEAN = np.float32(RNG.normal(size=(3, 3)))
VARIANCE = np.float32([0.3, 2, 1])
AXES = (0, 1, 2)


def formula(x, gamma, beta, mean=None, variance=None):
    mean = x.mean(AXES) if mean is None else mean
    variance = x.var(AXES) if variance is None else variance
    return gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta


def batch_norm(channels=3, **options):
    layer = networks.BatchNorm(**options)
    layer(tf.zeros([1, 1, 1, channels]))  # creates the weights
    layer.set_weights([np.resize(w, channels) for w in (GAMMA, BETA, MEAN, VARIANCE)])
    return layer


def outputs_and_gradients(layer, x, weights, **call):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, **call)
        loss = tf.reduce_sum(weights * y)
    return y, tape.gradient(loss, [x, layer.gamma, layer.beta])


def test_training_normalises_by_the_batch():
    y = batch_norm()(X, training=True)
    np.testing.assert_allclose(y, formula(X, GAMMA, BETA), atol=1e-5)


def test_inference_normalises_by_the_running_statistics():
    layer = batch_norm()
    np.testing.assert_allclose(layer(X), formula(X, GAMMA, BETA, MEAN, VARIANCE), atol=1e-5)
    np.testing.assert_array_equal(layer.get_weights(), [GAMMA, BETA, MEAN, VARIANCE])


@pytest.mark.parametrize("momentum", [0.9, 0.99])
def test_running_statistics_move_towards_the_batch_with_unbiased_variance(momentum):
    layer = batch_norm(momentum=momentum)
    mean, variance = MEAN, VARIANCE
    for x in (X, 2 * X + 1):
        layer(x, training=True)
        mean = momentum * mean + (1 - momentum) * x.mean(AXES)
        variance = momentum * variance + (1 - momentum) * x.var(AXES, ddof=1)
    np.testing.assert_allclose(layer.moving_mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, variance, rtol=1e-5)


def test_without_update_stats_only_the_running_statistics_differ():
    layer, other = batch_norm(), batch_norm()
    y = layer(X, training=True, update_stats=False)
    np.testing.assert_array_equal(layer.get_weights(), [GAMMA, BETA, MEAN, VARIANCE])
    np.testing.assert_array_equal(y, other(X, training=True))
    assert np.all(other.moving_mean != MEAN) and np.all(other.moving_variance != VARIANCE)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_equal_central_differences(training):
    running = () if training else (MEAN, VARIANCE)
    at = [np.float64(v) for v in (X, GAMMA, BETA)]

    def loss(*arguments):
        return np.sum(WEIGHTS * formula(*arguments, *running))

    def central_differences(i, step=1e-5):
        result = np.zeros(at[i].size)
        for j in range(at[i].size):
            nudge = step * (np.arange(at[i].size) == j).reshape(at[i].shape)
            high, low = (loss(*at[:i], at[i] + s * nudge, *at[i + 1 :]) for s in (1, -1))
            result[j] = (high - low) / (2 * step)
        return result.reshape(at[i].shape)

    _, gradients = outputs_and_gradients(batch_norm(), tf.constant(X), WEIGHTS, training=training)
    for i, gradient in enumerate(gradients):
        np.testing.assert_allclose(gradient, central_differences(i), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, atol", [("float16", 5e-3), ("bfloat16", 4e-2)])
def test_half_precision_in_and_out_with_float32_statistics(dtype, atol):
    layer = batch_norm(dtype=tf.keras.mixed_precision.Policy(f"mixed_{dtype}"))
    x = tf.cast(X, dtype)
    exact = tf.cast(x, tf.float64).numpy()
    y = layer(x, training=True)
    assert y.dtype == dtype and {w.dtype for w in layer.weights} == {tf.float32}
    np.testing.assert_allclose(tf.cast(y, tf.float32), formula(exact, GAMMA, BETA), atol=atol)
    expected = 0.9 * VARIANCE + 0.1 * exact.var(AXES, ddof=1)
    np.testing.assert_allclose(layer.moving_variance, expected, rtol=1e-4)


class Replicated:
    """A layer on two replicas, each with half of the batch; results are put together again."""

    def __init__(self, strategy, **options):
        self.strategy = strategy
        with strategy.scope():
            self.layer = batch_norm(**options)

    def __call__(self, x, weights=WEIGHTS, **call):
        def half(array):
            parts = np.split(array, 2)
            return self.strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(parts[context.replica_id_in_sync_group])
            )

        run = tf.function(
            lambda *args: self.strategy.run(
                lambda *a: outputs_and_gradients(self.layer, *a, **call), args=args
            )
        )
        local = self.strategy.experimental_local_results
        y, (by_x, *by_weights) = tf.nest.map_structure(local, run(half(x), half(weights)))
        return np.concatenate(y), [np.concatenate(by_x), *(sum(g) for g in by_weights)]


@pytest.mark.parametrize("update_stats", [True, False])
def test_synchronized_replicas_equal_one_device_on_the_joint_batch(two_replicas, update_stats):
    call = {"training": True, "update_stats": update_stats}
    single, replicated = batch_norm(), Replicated(two_replicas, synchronized=True)
    expected = outputs_and_gradients(single, tf.constant(X), WEIGHTS, **call)
    for a, e in zip(tf.nest.flatten(replicated(X, **call)), tf.nest.flatten(expected)):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-4)
    for a, e in zip(replicated.layer.get_weights(), single.get_weights()):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_other_replicas_keep_to_themselves_and_average_their_statistics(two_replicas):
    replicated = Replicated(two_replicas)
    y, _ = replicated(X, training=True)
    halves = np.split(X, 2)
    np.testing.assert_allclose(
        y, np.concatenate([formula(half, GAMMA, BETA) for half in halves]), atol=1e-5
    )
    expected = 0.9 * VARIANCE + 0.1 * np.mean([h.var(AXES, ddof=1) for h in halves], axis=0)
    np.testing.assert_allclose(replicated.layer.get_weights()[3], expected, rtol=1e-5)


def test_synchronized_statistics_keep_a_small_variance_far_from_zero(two_replicas):
    """In float32 E[x²] - E[x]² would lose it."""
    x = np.float32(np.float32([30.7, -100.3, 0.1]) + 0.01 * WEIGHTS)
    y, _ = Replicated(two_replicas, synchronized=True)(x, training=True)
    exact = formula(np.float64(x), GAMMA, BETA)
    np.testing.assert_allclose(batch_norm()(x, training=True), exact, atol=2e-2)
    np.testing.assert_allclose(y, exact, atol=2e-2)


def test_synchronized_constant_channels_are_finite(two_replicas):
    """Their variance must not come out negative."""
    x = np.tile(np.linspace(1, 100, 64, dtype=np.float32), (4, 3, 5, 1))
    y, _ = Replicated(two_replicas, channels=64, synchronized=True)(
        x, np.ones_like(x), training=True
    )
    np.testing.assert_allclose(y, np.broadcast_to(np.resize(BETA, 64), y.shape), atol=0.1)
