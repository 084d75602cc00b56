"""Two moons: the data, the transformations and the training of the paper's Figure 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from sklearn import datasets

from rat_tf import adversary, methods, networks, transforms
from rat_tf.data import augment, examples
from rat_tf.plots import moons as plots

LABELED, UNLABELED = 10, 30  # of each moon
NOISE = 0.1
CENTRES = np.array([[0.0, 0.0], [1.0, 0.5]], np.float32)  # of scikit-learn's two semicircles


class Rotation(transforms.Transform):
    """Rotates each point about its own centre; offset [B, 1], the angle in radians, norm |v|.

    `centres` [B, 2] belong to the rows of the batch, which full-batch training keeps in order.
    """

    name = "rotation"

    def __init__(self, epsilon: float, centres):
        super().__init__(epsilon)
        self.centres = centres

    def offset_shape(self, image_shape):
        return (1,)

    def _apply(self, images, offset):
        x, y = tf.unstack(images - tf.cast(self.centres, images.dtype), axis=1)
        radius, tangent = tf.stack([x, y], axis=1), tf.stack([-y, x], axis=1)
        # x + (R - I)(x - c) and not c + R(x - c): exact where the angle is zero.
        return images + tf.sin(offset) * tangent - 2 * tf.sin(offset / 2) ** 2 * radius


class Points(NamedTuple):
    """Points, float32 [N, 2], and their moons, int64 [N]."""

    points: np.ndarray
    labels: np.ndarray


def moons(count: int, noise: float | None = None, seed: int = 0) -> Points:
    points, labels = datasets.make_moons(count, noise=noise, random_state=seed)
    return Points(points.astype(np.float32), labels)


def sample(seed: int) -> tuple[Points, Points]:
    """Labelled and unlabelled points of one draw."""
    # scikit-learn spaces its points evenly, in random order; few out of many are at random places.
    many = moons(2000, NOISE, seed)
    by_moon = np.stack([np.flatnonzero(many.labels == moon) for moon in (0, 1)])
    labeled, unlabeled, _ = np.split(by_moon, [LABELED, LABELED + UNLABELED], axis=1)
    chosen = [rows.ravel() for rows in (labeled, unlabeled)]
    return tuple(Points(many.points[rows], many.labels[rows]) for rows in chosen)


def compared(unlabeled: Points) -> dict[str, list[transforms.Transform]]:
    """The transformations of Figure 1 (b), (c) and (d)."""
    rotation = Rotation(math.radians(10), CENTRES[unlabeled.labels])
    return {
        "VAT, ε = 0.3": [transforms.Noise(0.3)],
        "VAT, ε = 0.5": [transforms.Noise(0.5)],
        "RAT, ε = 0.3 + rotation": [rotation, transforms.Noise(0.3)],
    }


def train(labeled: Points, unlabeled: Points, transform, iterations: int, seed: int) -> methods.RAT:
    model = methods.RAT(
        networks.MLP(seed=seed),
        preprocessing=tf.keras.layers.Identity(),
        augmentation=augment.Augmentation(),
        seed=seed,
        transforms=transforms.Composite(transform),
        xi=adversary.Xi(1.0, relative=True),
        consistency=1.0,
        consistency_rampup=0,
        entropy_multiplier=0.06,
    )
    # All steps in one call: so small a step takes less time than its call from Python.
    model.compile(tf.keras.optimizers.Adam(epsilon=1e-8), steps_per_execution=iterations)
    # All variables now: a step that makes some is traced twice.
    model(labeled.points)
    model.optimizer.build(model.network.trainable_variables)
    batch = tf.data.Dataset.from_tensors((tuple(labeled), unlabeled.points))
    batch = batch.repeat().with_options(examples.options())
    model.fit(batch, steps_per_epoch=iterations, verbose=0)
    return model


def error(model: methods.RAT) -> float:
    """The share of mistakes on 1,000 points of each noiseless semicircle."""
    semicircles = moons(2000)
    return float(np.mean(np.argmax(model(semicircles.points), axis=1) != semicircles.labels))


def panel(model: methods.RAT) -> np.ndarray:
    """p(lower moon | x) at the points that the picture shows."""
    return tf.nn.softmax(model(plots.grid()))[:, 1].numpy()
