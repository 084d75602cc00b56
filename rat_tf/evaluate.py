"""Looks closely at a trained classifier: error, calibration, robustness.

    python -m rat_tf.evaluate --run_dir=runs/digits50/rat-seed0

Prints the error with its 95 % interval and a table per class, and writes to
<run_dir>/evaluation/: report.json, per_class.csv, confusion.png, calibration.png, and
robustness.csv and robustness.png: error and KL against ε for every transformation, random and
adversarial. Test images are used; validation images if the set has no test images.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os

import numpy as np
import scipy.stats
import tensorflow as tf
from absl import flags
from sklearn import metrics

from rat_tf import (
    adversary,
    cli,
    devices,
    divergences,
    draws,
    figures,
    runs,
    train,
    transforms,
)
from rat_tf import checkpoints as checkpoints_lib
from rat_tf import config as config_lib

#: The largest ε looked at: about where people begin to doubt that the label is preserved.
LARGEST = {
    "noise": 5.0,
    "channel_weight": 0.8,
    "affine": 0.8,
    "thin_plate_spline": 1.0,
    "flow_field": 2.0,
}
# Without augmentation between the passes a smaller ξ is lost in rounding.
XI = adversary.Xi(0.1, relative=True)
BATCH = 100


def main(run_dir: str, weights: str, images: int, data_dir: str | None = None) -> dict:
    run = runs.Run(run_dir)
    config = run.config()
    changes = {"data_dir": data_dir} if data_dir else {}
    loaded = run.load(dataclasses.replace(config, **changes))
    devices.set_precision(config)
    examples = loaded.test if len(loaded.test) else loaded.validation
    model = train.build(config, loaded)
    checkpoint = checkpoints_lib.Checkpoints(model, run, config.interval)
    network = restore(model, checkpoint, weights, run, config)

    logits = predict(model, network, examples.images)
    report = {"weights": weights, **describe(logits, examples.labels)}
    print(f"{run_dir}, {weights} weights, {len(examples)} images")
    print(
        "error {error:.2%}, 95 % interval {error_interval[0]:.2%} to {error_interval[1]:.2%}; "
        "expected calibration error {calibration_error:.2%}".format(**report)
    )
    table = per_class(logits, examples.labels, loaded.class_names)
    print(_columns(table))

    folder = os.path.join(run_dir, "evaluation")
    os.makedirs(folder, exist_ok=True)
    runs.write(os.path.join(folder, "report.json"), json.dumps(report, indent=2) + "\n")
    runs.write(os.path.join(folder, "per_class.csv"), _csv(table))
    confusion = metrics.confusion_matrix(
        examples.labels, logits.argmax(-1), labels=range(len(loaded.class_names))
    )
    figures.confusion(os.path.join(folder, "confusion.png"), confusion, loaded.class_names)
    figures.calibration(
        os.path.join(folder, "calibration.png"), reliability(logits, examples.labels)
    )

    subset = examples.take(slice(images))
    curves = robustness(model, network, subset.images, subset.labels, config)
    runs.write(os.path.join(folder, "robustness.csv"), _csv(curves))
    figures.robustness(os.path.join(folder, "robustness.png"), curves)
    print(f"figures and tables in {folder}")
    return report


def restore(model, checkpoint, weights: str, run: runs.Run, config) -> tf.keras.Model:
    """Loads the named weights and returns the network that has them."""
    step = checkpoint.restore()
    monitor = config.monitor(weights)
    if monitor not in model.candidates:
        raise config_lib.UserError(
            f"--weights={weights}: {run.folder} was trained without averaged weights (--ema_decay)"
        )
    if not step or not checkpoint.best_step[monitor].numpy():
        raise config_lib.UserError(f"--run_dir: {run.folder} has no validated checkpoint yet")
    if weights != "last":
        checkpoint.restore_best(monitor)
    return model.candidates[monitor]


def predict(model, network, images) -> np.ndarray:
    @tf.function
    def logits(batch):
        return network(model.preprocessing(batch), training=False)

    return np.concatenate([logits(batch).numpy() for batch in _batches(images)])


def describe(logits, labels) -> dict:
    """Error with the Wilson interval, log loss, and the expected calibration error."""
    wrong = int((logits.argmax(-1) != labels).sum())
    interval = scipy.stats.binomtest(wrong, len(labels)).proportion_ci(0.95, "wilson")
    bins = reliability(logits, labels)
    probabilities = scipy.special.softmax(logits.astype(np.float64), axis=-1)
    return {
        "images": len(labels),
        "error": wrong / len(labels),
        "error_interval": [interval.low, interval.high],
        "log_loss": float(
            metrics.log_loss(labels, probabilities, labels=range(probabilities.shape[-1]))
        ),
        "calibration_error": float(
            sum(b["share"] * abs(b["accuracy"] - b["confidence"]) for b in bins)
        ),
    }


def reliability(logits, labels, count: int = 15) -> list[dict]:
    """Confidence and accuracy in `count` equal bins of confidence; empty bins left out.

    The expected calibration error is Σ share · |accuracy - confidence| (Guo et al., 2017).
    """
    confidence = scipy.special.softmax(logits.astype(np.float64), axis=-1).max(-1)
    correct = logits.argmax(-1) == labels
    index = np.minimum((confidence * count).astype(int), count - 1)
    return [
        {
            "share": float(np.mean(index == i)),
            "confidence": float(confidence[index == i].mean()),
            "accuracy": float(correct[index == i].mean()),
        }
        for i in np.unique(index)
    ]


def per_class(logits, labels, class_names) -> list[dict]:
    precision, recall, _, support = metrics.precision_recall_fscore_support(
        labels, logits.argmax(-1), labels=range(len(class_names)), zero_division=np.nan
    )
    return [
        {"class": name, "images": int(n), "error": 1 - r, "precision": p}
        for name, p, r, n in zip(class_names, precision, recall, support)
    ]


def robustness(model, network, images, labels, config, points: int = 7) -> list[dict]:
    """Error and mean KL[p(x) ‖ p(f_φ(x))] at ε from 0 to the largest of each transformation.

    The network is in inference mode, as it is served. Random offsets and those of the search
    start from the same directions.
    """

    def logits(moved, iteration=0):
        return network(moved, training=False)

    @tf.function
    def measure(transform_index, batch, batch_labels, epsilon, seed, search):
        composite = transforms.Composite([kinds[transform_index]])
        batch = model.preprocessing(batch)
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
        transforms.parse(f"{name}:{largest}", config.padding or "zeros").transforms[0]
        for name, largest in LARGEST.items()
    ]
    rows = []
    for kind, transform in enumerate(kinds):
        for adversarial in (False, True):
            for epsilon in np.linspace(0, transform.epsilon, points):
                totals = np.zeros(2)
                for start in range(0, len(images), BATCH):
                    part = slice(start, start + BATCH)
                    seed = draws.seed_for(0, start, "robustness")
                    # ε = 0 has no direction to search in.
                    totals += [
                        float(value)
                        for value in measure(
                            kind, tf.constant(images[part]), tf.constant(labels[part]),
                            tf.constant(max(epsilon, 1e-12), tf.float32), seed, adversarial,
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


def _batches(images):
    return (images[start : start + BATCH] for start in range(0, len(images), BATCH))


def _csv(rows: list[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(rows: list[dict]) -> str:
    width = max(8, *(len(str(row["class"])) for row in rows))
    lines = [f"{'class':<{width}} {'images':>7} {'error':>8} {'precision':>10}"]
    for row in rows:
        lines.append(
            f"{row['class']:<{width}} {row['images']:>7} {row['error']:>8.2%} "
            f"{row['precision']:>10.2%}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    flags.DEFINE_string("run_dir", None, "Folder of a run of rat_tf.train.", required=True)
    flags.DEFINE_enum("weights", "best", config_lib.WEIGHTS, "Which weights to look at.")
    flags.DEFINE_integer("images", 500, "Images for the robustness curves.", lower_bound=1)
    flags.DEFINE_string("data_dir", None, "TFDS folder, if it is not where it was in training.")
    cli.command(lambda f: main(f.run_dir, f.weights, f.images, f.data_dir))
