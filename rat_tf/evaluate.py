"""Looks closely at a trained classifier: error, calibration, robustness.

    python -m rat_tf.evaluate --run_dir=runs/digits50/rat-seed0

Prints the error with its 95 % interval and a table per class, and writes to
<run_dir>/evaluation/: report.json, per_class.csv, confusion.png, calibration.png, and
robustness.csv and robustness.png: error and KL against ε for every transformation, random and
adversarial. Test images are used; validation images if the set has no test images.
"""

from __future__ import annotations

import dataclasses
import json
import os

import tensorflow as tf
from absl import flags
from sklearn import metrics

from rat_tf import config as config_lib
from rat_tf import errors, files
from rat_tf.config import cli
from rat_tf.plots import evaluation as plots
from rat_tf.training import checkpoints as checkpoints_lib
from rat_tf.training import devices, evaluation, loop, run_folder


def main(run_dir: str, weights: str, images: int, data_dir: str | None = None) -> dict:
    run = run_folder.Run(run_dir)
    config = run.config()
    changes = {"data_dir": data_dir} if data_dir else {}
    loaded = run.load(dataclasses.replace(config, **changes))
    devices.set_precision(config)
    examples = loaded.test if len(loaded.test) else loaded.validation
    model = loop.build(config, loaded)
    checkpoint = checkpoints_lib.Checkpoints(model, run, config.interval)
    network = restore(model, checkpoint, weights, run, config)

    logits = evaluation.predict(model, network, examples.images)
    report = {"weights": weights, **evaluation.describe(logits, examples.labels)}
    print(f"{run_dir}, {weights} weights, {len(examples)} images")
    print(
        "error {error:.2%}, 95 % interval {error_interval[0]:.2%} to {error_interval[1]:.2%}; "
        "expected calibration error {calibration_error:.2%}".format(**report)
    )
    table = evaluation.per_class(logits, examples.labels, loaded.class_names)
    print(_columns(table))

    folder = os.path.join(run_dir, "evaluation")
    os.makedirs(folder, exist_ok=True)
    files.write(os.path.join(folder, "report.json"), json.dumps(report, indent=2) + "\n")
    files.write(os.path.join(folder, "per_class.csv"), files.csv_text(table, table[0]))
    confusion = metrics.confusion_matrix(
        examples.labels, logits.argmax(-1), labels=range(len(loaded.class_names))
    )
    plots.confusion(os.path.join(folder, "confusion.png"), confusion, loaded.class_names)
    plots.calibration(
        os.path.join(folder, "calibration.png"), evaluation.reliability(logits, examples.labels)
    )

    subset = examples.take(slice(images))
    curves = evaluation.robustness(model, network, subset.images, subset.labels, config)
    files.write(os.path.join(folder, "robustness.csv"), files.csv_text(curves, curves[0]))
    plots.robustness(os.path.join(folder, "robustness.png"), curves)
    print(f"figures and tables in {folder}")
    return report


def restore(model, checkpoint, weights: str, run: run_folder.Run, config) -> tf.keras.Model:
    """Loads the named weights and returns the network that has them."""
    step = checkpoint.restore()
    monitor = config.monitor(weights)
    if monitor not in model.candidates:
        raise errors.UserError(
            f"--weights={weights}: {run.folder} was trained without averaged weights (--ema_decay)"
        )
    if not step or not checkpoint.best_step[monitor].numpy():
        raise errors.UserError(f"--run_dir: {run.folder} has no validated checkpoint yet")
    if weights != "last":
        checkpoint.restore_best(monitor)
    return model.candidates[monitor]


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
