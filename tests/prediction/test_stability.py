"""Stability against a closed form: noise on the two classes of a linear classifier."""

import numpy as np
import tensorflow as tf

from rat_tf import draws, transforms
from rat_tf.prediction import stability

EPSILON, COUNT, SHAPE = 0.7, 6, (3, 3, 1)


def test_share_of_a_linear_classifier():
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (40, *SHAPE)).astype(np.float32)
    weights = rng.normal(size=9)
    # Margins from -1.5 to 1.5 radii: some classes can change and some cannot.
    score = rng.uniform(-1.5, 1.5, 40) * EPSILON * np.linalg.norm(weights)
    bias = score - images.reshape(40, 9) @ weights

    def logits(x):
        total = tf.linalg.matvec(tf.reshape(x, [-1, 9]), tf.constant(weights, tf.float32))
        total += tf.constant(bias, tf.float32)
        return tf.stack([tf.zeros_like(total), total], axis=-1)

    composite = transforms.parse(f"noise:{EPSILON}")
    found = stability.share(composite, logits, images, logits(images), 5, COUNT, seed=3)

    stays = np.zeros(40)
    for number in range(COUNT):
        key = draws.seed_for(3, 5, f"stability{number}")
        (direction,) = composite.random_direction(40, SHAPE, key)
        along = np.asarray(direction, np.float64).reshape(40, 9) @ weights
        if number % 2:
            # The KL of a linear classifier grows along ±w; from v its gradient is the side of v.
            along = np.sign(along) * np.linalg.norm(weights)
        stays += np.sign(score + EPSILON * along) == np.sign(score)
    np.testing.assert_allclose(found, stays / COUNT, atol=1e-6)
    assert 0 < (found.numpy() < 1).mean() < 1


def test_draws_are_a_function_of_seed_and_position():
    composite = transforms.parse("affine:0.9")
    images = tf.random.stateless_uniform([20, 6, 6, 1], (1, 2), -1, 1)
    kernel = tf.random.stateless_normal([36, 3], (3, 4))

    def logits(x):
        return tf.reshape(x, [-1, 36]) @ kernel

    def share(start, seed):
        return stability.share(composite, logits, images, logits(images), start, 4, seed).numpy()

    np.testing.assert_array_equal(share(0, 0), share(0, 0))
    assert not np.array_equal(share(0, 0), share(0, 1))
    assert not np.array_equal(share(0, 0), share(20, 0))
