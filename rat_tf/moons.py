"""The paper's Figure 1, VAT and RAT on two moons: `python -m rat_tf.moons --output=moons.png`.

Section "Evaluation on Synthetic Dataset": 10 labelled and 30 unlabelled points per moon, a
three-layer MLP with 128 hidden units, 500 full-batch iterations of Adam with its default
parameters, no ramps. RAT composes the noise of VAT with a rotation about the centre of each
point's own semicircle, f(x) = R(x, φ⁽¹⁾) + φ⁽²⁾ with |φ⁽¹⁾| ≤ 10° and ‖φ⁽²⁾‖ ≤ 0.3, both
adversarial. The rotation knows the class of unlabelled points; the paper treats the toy problem
"as if we already know appropriate class-invariant transformations".

The paper leaves open the noise of the data (here 0.1), λ (1), the entropy term (0.06, as for
images) and ξ (= ε: there is no augmentation to keep 1e-6 from drowning in float32).
"""

from __future__ import annotations

import math
import os
import sys
from typing import NamedTuple

import matplotlib
import numpy as np
import tensorflow as tf
from absl import app, flags
from matplotlib import colors, figure, lines
from sklearn import datasets

from rat_tf import adversary, methods, networks, transforms
from rat_tf import config as config_lib
from rat_tf.data import augment

LABELED, UNLABELED = 10, 30  # of each moon
NOISE = 0.1
CENTRES = np.array([[0.0, 0.0], [1.0, 0.5]], np.float32)  # of scikit-learn's two semicircles

# Blue and vermilion of Okabe and Ito, which colour-blind readers tell apart; dark for labelled
# points, light for unlabelled ones. The shape of a marker says the same again, for grey prints.
DARK, LIGHT, MARKERS = ("#00395c", "#6b2b00"), ("#3d9fd6", "#f28a3c"), ("o", "s")
CONFIDENCE = colors.LinearSegmentedColormap.from_list(
    "confidence", ["#8ec3e3", "#d3e7f3", "#ffffff", "#fae0cd", "#f0b184"]
)


class Rotation(transforms.Transform):
    """Rotates each point about a centre of its own; offset [B, 1], the angle in radians, norm |v|.

    `centres` [B, 2] go with the rows of the batch, which full-batch training keeps in order.
    """

    name = "rotation"

    def __init__(self, epsilon: float, centres):
        super().__init__(epsilon)
        self.centres = centres

    def offset_shape(self, image_shape):
        return (1,)

    def _apply(self, images, offset):
        # x + (R - I)(x - c) instead of c + R(x - c): exactly x where the angle is zero.
        x, y = tf.unstack(images - tf.cast(self.centres, images.dtype), axis=1)
        radius, normal = tf.stack([x, y], axis=1), tf.stack([-y, x], axis=1)
        return images + tf.sin(offset) * normal - 2 * tf.sin(offset / 2) ** 2 * radius


class Points(NamedTuple):
    """Points, float32 [N, 2], and their moons, int64 [N]."""

    points: np.ndarray
    labels: np.ndarray


class Panel(NamedTuple):
    title: str
    model: methods.RAT
    error: float


def moons(count: int, noise: float | None = None, seed: int = 0) -> Points:
    points, labels = datasets.make_moons(count, noise=noise, random_state=seed)
    return Points(points.astype(np.float32), labels)


def sample(seed: int) -> tuple[Points, Points]:
    """Labelled and unlabelled points: random ones of a large sample, whose angles are even."""
    drawn = moons(2000, NOISE, seed)
    by_class = [np.flatnonzero(drawn.labels == label) for label in (0, 1)]

    def take(start, stop):
        rows = np.concatenate([rows[start:stop] for rows in by_class])
        return Points(drawn.points[rows], drawn.labels[rows])

    return take(0, LABELED), take(LABELED, LABELED + UNLABELED)


def train(labeled: Points, unlabeled: Points, transform, iterations: int, seed: int) -> methods.RAT:
    model = methods.RAT(
        networks.MLP(seed=seed),
        preprocessing=tf.keras.layers.Identity(),
        augmentation=augment.Augmentation(),
        seed=seed,
        transform=transforms.Composite(transform),
        xi=adversary.Xi(1.0, relative=True),
        consistency=1.0,
        consistency_rampup=0,
    )
    # One call for the whole training: a step of this size costs less than a call from Python.
    model.compile(tf.keras.optimizers.Adam(epsilon=1e-8), steps_per_execution=iterations)
    batch = tf.data.Dataset.from_tensors((tuple(labeled), unlabeled.points))
    model.fit(batch.repeat(), steps_per_epoch=iterations, verbose=0)
    return model


def train_panels(labeled: Points, unlabeled: Points, iterations: int, seed: int) -> list[Panel]:
    """Figure 1 (b), (c), (d), each with its error on the noiseless semicircles."""
    rotation = Rotation(math.radians(10), CENTRES[unlabeled.labels])
    compared = {
        "VAT, ε = 0.3": [transforms.Noise(0.3)],
        "VAT, ε = 0.5": [transforms.Noise(0.5)],
        "RAT, ε = 0.3 and rotation": [rotation, transforms.Noise(0.3)],
    }
    panels, semicircles = [], moons(2000)
    for title, transform in compared.items():
        model = train(labeled, unlabeled, transform, iterations, seed)
        error = model.evaluate(*semicircles, batch_size=2000, return_dict=True, verbose=0)["error"]
        panels.append(Panel(title, model, error))
    return panels
