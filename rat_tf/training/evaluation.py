"""Metrics of a trained classifier: error, calibration, robustness to every transformation."""

from __future__ import annotations

import numpy as np
import scipy.special
import tensorflow as tf
from sklearn import metrics

from rat_tf import adversary, divergences, draws, memory, transforms
from rat_tf.data import examples
from rat_tf.training import intervals, weights

#: The largest ε evaluated: about where people begin to doubt that the label is preserved.
MAX_EPSILON = {
    "noise": 5.0,
    "channel_weight": 0.8,
    "affine": 0.8,
    "thin_plate_spline": 1.0,
    "flow_field": 2.0,
}
# Nothing else tells the passes apart: a smaller ξ is lost in rounding.
XI = adversary.Xi(0.1, relative=True)
BATCH = 100  # of up to 32×32 pixels


def predict(trained: weights.Trained, found: examples.Examples) -> np.ndarray:
    """Logits [N, classes] of stored images, of which one batch at a time is copied."""
    logits = tf.function(trained.logits)
    size = memory.at_once(BATCH, found.image_shape)
    starts = range(0, len(found), size)
    batches = (found.take(slice(start, start + size)).images for start in starts)
    return np.concatenate([logits(batch).numpy() for batch in batches])


def describe(logits, labels) -> dict:
    """Error with the Wilson interval, log loss, and the expected calibration error."""
    wrong = int((logits.argmax(-1) != labels).sum())
    bins = reliability(logits, labels)
    probabilities = scipy.special.softmax(logits.astype(np.float64), axis=-1)
    return {
        "images": len(labels),
        "error": wrong / len(labels),
        "error_interval": list(intervals.wilson(wrong / len(labels), len(labels))),
        "log_loss": float(
            metrics.log_loss(labels, probabilities, labels=range(probabilities.shape[-1]))
        ),
        "calibration_error": float(
            sum(b["share"] * abs(b["accuracy"] - b["confidence"]) for b in bins)
        ),
    }


def reliability(logits, labels, count: int = 15) -> list[dict]:
    """Confidence and accuracy in `count` equal bins of confidence; empty bins left out.

    `low` and `high` are Wilson's 95 % interval of the accuracy. The expected calibration error is
    Σ share · |accuracy - confidence| (Guo et al., 2017).
    """
    confidence = scipy.special.softmax(logits.astype(np.float64), axis=-1).max(-1)
    correct = logits.argmax(-1) == labels
    index = np.minimum((confidence * count).astype(int), count - 1)
    bins = []
    for i in np.unique(index):
        chosen = index == i
        right, images = int(correct[chosen].sum()), int(chosen.sum())
        low, high = intervals.wilson(right / images, images)
        bins.append(
            {
                "images": images,
                "share": images / len(labels),
                "confidence": float(confidence[chosen].mean()),
                "accuracy": right / images,
                "low": low,
                "high": high,
            }
        )
    return bins


def confusion(logits, labels, num_classes: int) -> np.ndarray:
    """Images by true class (rows) and predicted class (columns)."""
    return metrics.confusion_matrix(labels, logits.argmax(-1), labels=range(num_classes))


def per_class(logits, labels, class_names) -> list[dict]:
    precision, recall, _, support = metrics.precision_recall_fscore_support(
        labels, logits.argmax(-1), labels=range(len(class_names)), zero_division=np.nan
    )
    return [
        {"class": name, "images": int(n), "error": 1 - r, "precision": p}
        for name, p, r, n in zip(class_names, precision, recall, support)
    ]


def robustness(
    trained: weights.Trained, images, labels, clean, padding: str = "zeros", points: int = 7
) -> list[dict]:
    """Error and mean KL[p(x) ‖ p(f_φ(x))] at ε from 0 to the largest of each transformation.

    `clean` are the logits of the images, which have the error at ε = 0. The network is in inference
    mode, as when it is served. Random offsets and the search start from the same directions.
    """

    def logits(moved, iteration=0):
        return trained.network(moved, training=False)

    @tf.function
    def measure(transform_index, batch, batch_labels, epsilon, seed, search):
        composite = transforms.Composite([kinds[transform_index]])
        batch = trained.preprocessing(batch)
        clean = logits(batch)
        direction = composite.random_direction(batch.shape[0], batch.shape[1:], seed)
        found = adversary.search(
            composite, logits, batch, clean, direction, [epsilon],
            xi=XI, power_iterations=int(search), ascent="steepest",
        )  # fmt: skip
        moved = logits(composite.apply(batch, found.offsets))
        wrong = tf.cast(tf.argmax(moved, -1) != batch_labels, tf.float32)
        return tf.reduce_sum(wrong), tf.reduce_sum(divergences.kl_divergence(clean, moved))

    kinds = [
        transforms.parse(f"{name}:{largest}", padding).transforms[0]
        for name, largest in MAX_EPSILON.items()
    ]
    size = memory.at_once(BATCH, images.shape[1:])
    rows = []
    for kind, transform in enumerate(kinds):
        for adversarial in (False, True):
            for epsilon in np.linspace(0, transform.epsilon, points):
                # ε = 0 has no direction to search in.
                totals = np.array([(clean.argmax(-1) != labels).sum() * (epsilon == 0), 0.0])
                for start in range(0, len(images) if epsilon else 0, size):
                    part = slice(start, start + size)
                    seed = draws.seed_for(0, start, "robustness")
                    totals += [
                        float(value)
                        for value in measure(
                            kind, tf.constant(images[part]), tf.constant(labels[part]),
                            tf.constant(epsilon, tf.float32), seed, adversarial,
                        )
                    ]  # fmt: skip
                rows.append(
                    {
                        "transform": transform.name,
                        "offsets": "adversarial" if adversarial else "random",
                        "epsilon": float(epsilon),
                        "error": totals[0] / len(images),
                        "kl": totals[1] / len(images),
                    }
                )
    return rows
