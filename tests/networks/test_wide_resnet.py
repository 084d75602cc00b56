"""Wide ResNet against counts, distributions and a forward pass written down independently."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from rat_tf import networks


def built(depth, width, num_classes=10, channels=3, **options):
    network = networks.WideResNet(depth, width, num_classes, **options)
    network(tf.zeros([1, 8, 8, channels]))
    return network


def trainable(network):
    return sum(int(np.prod(w.shape)) for w in network.trainable_weights)


def expected_parameters(depth, width, num_classes, channels):
    """9·in·out per 3×3, in·out per 1×1 where the width changes, 2 per normalised channel."""
    total, inside = 9 * channels * 16, 16
    for outside in (16 * width, 32 * width, 64 * width):
        for _ in range((depth - 4) // 6):
            total += 2 * inside + 9 * inside * outside + 2 * outside + 9 * outside**2
            total += inside * outside if inside != outside else 0
            inside = outside
    return total + 2 * inside + (inside + 1) * num_classes


@pytest.mark.parametrize(
    "depth, width, num_classes, channels",
    [(28, 2, 10, 3), (10, 1, 10, 1), (16, 2, 7, 3), (28, 10, 10, 3)],
)
def test_number_of_parameters(depth, width, num_classes, channels):
    network = built(depth, width, num_classes, channels)
    assert trainable(network) == expected_parameters(depth, width, num_classes, channels)


def test_wrn_28_2_has_the_papers_number_of_parameters():
    assert trainable(built(28, 2)) == 1_467_610


def test_initial_weights_follow_from_the_seed():
    first, again, other = (built(10, 1, seed=seed).get_weights() for seed in (0, 0, 1))
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    drawn = [(a, b) for a, b in zip(first, other) if a.ndim > 1]
    assert len(drawn) == 10  # nine convolutions and the linear layer
    for i, (a, b) in enumerate(drawn):
        assert np.abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.3, i
    kernels = {a.tobytes()[:64] for a, _ in drawn}
    assert len(kernels) == 10  # no two layers alike


def test_initial_distributions():
    network = built(16, 2)
    kernels = [w.numpy() for w in network.trainable_weights if w.shape.rank == 4]
    assert len(kernels) == 1 + 2 * 6 + 3
    for kernel in kernels:
        std = np.sqrt(2 / (kernel.shape[0] ** 2 * kernel.shape[3]))
        assert stats.kstest(kernel.ravel(), stats.norm(scale=std).cdf).pvalue > 1e-3
    linear, bias = network.linear.get_weights()
    np.testing.assert_allclose(linear.std(), np.sqrt(2 / (128 + 10)), rtol=0.1)
    np.testing.assert_array_equal(bias, np.zeros(10))


def convolve(x, kernel, stride=1):
    """Correlation in float64 with as many zeros on the left as on the right."""
    size, pad = kernel.shape[0], kernel.shape[0] // 2
    x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    return np.einsum("bhwcij,ijco->bhwo", windows[:, ::stride, ::stride], np.float64(kernel))


def act(x, norm, training=False):
    gamma, beta, mean, variance = (np.float64(w) for w in norm.get_weights())
    if training:
        mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
    x = gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta
    return np.where(x > 0, x, 0.1 * x)


def forward(network, images, width_changes, strides, training=False):
    """WRN as facts of the authors' port: pre-activation, first shortcut activated."""
    x = convolve(images, network.first.kernel)
    for i, (block, changes, stride) in enumerate(zip(network.blocks, width_changes, strides)):
        activated = act(x, block.norm1, training)
        shortcut = activated if i == 0 else x
        if changes:
            shortcut = convolve(shortcut, block.shortcut.kernel, stride)
        inner = act(convolve(activated, block.conv1.kernel, stride), block.norm2, training)
        x = convolve(inner, block.conv2.kernel) + shortcut
    weights, bias = network.linear.get_weights()
    return act(x, network.norm, training).mean(axis=(1, 2)) @ np.float64(weights) + bias


@pytest.mark.parametrize(
    "depth, width, width_changes, strides",
    [(10, 1, [0, 1, 1], [1, 2, 2]), (16, 2, [1, 0, 1, 0, 1, 0], [1, 1, 2, 1, 2, 1])],
)
@pytest.mark.parametrize("size", [(8, 12), (7, 9)])  # SAME would differ at even sizes only
def test_inference_equals_numpy(depth, width, width_changes, strides, size):
    rng = np.random.default_rng(0)
    network = built(depth, width)
    for w in network.weights:
        if w.shape.rank == 1:  # make every statistic, scale and bias matter
            w.assign(rng.uniform(0.5, 1.5, w.shape) * (1 if "variance" in w.name else 0.7))
    images = rng.normal(size=(2, *size, 3))
    expected = forward(network, images, width_changes, strides)
    actual = network(tf.constant(images, tf.float32), training=False)
    assert np.ptp(expected, axis=0).max() > 0.1
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_gradient_in_training_equals_central_differences():
    rng = np.random.default_rng(0)
    network = built(10, 1)
    images = rng.normal(size=(3, 8, 8, 3))
    weights = rng.normal(size=(3, 10))  # of a loss that is a weighted sum of logits
    x = tf.constant(images, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(weights * network(x, training=True))
    gradient = tape.gradient(loss, x).numpy()

    def reference(nudged):
        logits = forward(network, nudged, [0, 1, 1], [1, 2, 2], training=True)
        return np.sum(weights * logits)

    for _ in range(5):
        direction = rng.normal(size=images.shape)
        slope = (reference(images + 1e-6 * direction) - reference(images - 1e-6 * direction)) / 2e-6
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-3, atol=1e-3)
        assert abs(slope) > 0.1


@pytest.mark.parametrize("shape", [(1, 1, 1), (8, 8, 1), (9, 13, 4), (32, 32, 3)])
def test_any_image_size_and_number_of_channels(shape):
    network = networks.build("wrn-10-1", 7)
    logits = network(np.random.default_rng(0).normal(size=(2, *shape)), training=True)
    assert logits.shape == (2, 7) and np.all(np.isfinite(logits))


def test_statistics_move_only_when_told():
    network = built(10, 1)
    images = np.random.default_rng(0).normal(size=(4, 8, 8, 3))
    running = [w for w in network.weights if "moving" in w.name]
    assert len(running) == 2 * 7
    before = [w.numpy() for w in running]
    network(images, training=True, update_stats=False)
    network(images, training=False, update_stats=True)
    for w, b in zip(running, before):
        np.testing.assert_array_equal(w, b)
    network(images, training=True)
    for w, b in zip(running, before):
        assert np.all(w.numpy() != b)


def test_logits_are_float32_under_mixed_precision():
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        low = built(10, 1)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    images = np.random.default_rng(0).normal(size=(8, 8, 8, 3))
    logits, exact = low(images, training=True), built(10, 1)(images, training=True)
    assert low.first.compute_dtype == "bfloat16" and logits.dtype == tf.float32
    assert {w.dtype for w in low.weights} == {tf.float32}
    np.testing.assert_allclose(logits, exact, atol=0.1 * np.std(exact))


@pytest.mark.parametrize("depth", [4, 9, 11, 27, -2])
def test_depth_must_fit_three_groups(depth):
    with pytest.raises(ValueError, match=f"depth.*{depth}"):
        networks.WideResNet(depth, 2, 10)


def test_build_reads_depth_and_width():
    network = networks.build("wrn-16-3", 10)
    network(tf.zeros([1, 8, 8, 3]))
    assert trainable(network) == expected_parameters(16, 3, 10, 3)


@pytest.mark.parametrize("name", ["", "resnet", "wrn-28", "wrn-28-2x", "wrn-28--2", "WRN-28-2"])
def test_build_rejects_other_names(name):
    with pytest.raises(ValueError, match=f"network: expected .*wrn-<depth>-<width>.*{name!r}"):
        networks.build(name, 10)
