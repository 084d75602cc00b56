"""Evaluates a trained classifier: error, calibration, robustness.

    python -m rat_tf.evaluate --run_dir=runs/digits50/rat-seed0

Prints the error with its 95 % interval and a table per class, and writes to
<run_dir>/evaluation/: report.json, per_class.csv, confusion.png, calibration.png, and
robustness.csv and robustness.png: error and KL against ε for every transformation, random and
adversarial. Uses the test images, or the validation images if the set has no test images.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os

from rat_tf import config as config_lib
from rat_tf import data, fields, plots, training
from rat_tf.config import cli
from rat_tf.storage import files


@dataclasses.dataclass(frozen=True)
class Flags:
    run_dir: str = fields.path(None, "Run folder of rat_tf.train.")
    weights: str = fields.flag("best", "Which weights to evaluate.", choices=config_lib.WEIGHTS)
    images: int = fields.flag(
        500,
        "Number of images for the robustness curves: a sample with the same shares of the classes.",
        fields.at_least(1),
    )
    data_dir: str = fields.path("", "TFDS folder, if it has moved since training.")
    allow_code: bool = fields.flag(False, config_lib.ALLOW_CODE)


FILES = (
    *("report.json", "per_class.csv", "robustness.csv"),
    *("confusion.png", "calibration.png", "robustness.png"),
)


def main(
    run_dir: str, weights: str, images: int, data_dir: str | None = None, allow_code=False
) -> dict:
    # The run, its weights and its images.
    run = training.run_folder.Run(run_dir)
    config = run.config()
    cli.import_tensorflow_quietly()
    changes = {"data_dir": data_dir} if data_dir else {}
    trained = training.weights.load(run, weights, allow_code)
    part, examples = run.held_out(dataclasses.replace(config, **changes))

    # Error and calibration.
    measure = training.evaluation
    logits = measure.predict(trained, examples)
    report = {"weights": weights, "part": part, **measure.describe(logits, examples.labels)}
    print(f"{run_dir}, {weights} weights, {len(examples):,} {part} images")
    if part == "validation":
        print("the set has no test images; validation images have also chosen the step: the error")
        print("of new images is probably higher")
    print(
        "error {error:.2%}, 95 % interval {error_interval[0]:.2%} to {error_interval[1]:.2%}; "
        "expected calibration error {calibration_error:.2%}".format(**report)
    )
    table = measure.per_class(logits, examples.labels, trained.class_names)
    print(_columns(table))
    folder = os.path.join(run_dir, "evaluation")
    with files.alone_in(folder):
        path = {name: os.path.join(folder, name) for name in FILES}
        files.write(path["report.json"], json.dumps(report, indent=2) + "\n")
        files.write(path["per_class.csv"], files.csv_text(table, table[0]))
        confusion = measure.confusion(logits, examples.labels, len(trained.class_names))
        title = "{}\nerror {error:.2%} of {images:,} images".format(config.title, **report)
        plots.evaluation.confusion(path["confusion.png"], confusion, trained.class_names, title)
        bins = measure.reliability(logits, examples.labels)
        title = "{}\nexpected calibration error {calibration_error:.2%}, {images:,} images"
        title = title.format(config.title, **report)
        plots.evaluation.calibration(path["calibration.png"], bins, title)
        _robustness(path, config, trained, examples, logits, images)
    print(f"figures and tables in {folder}")
    return report


def _robustness(path, config, trained, examples, logits, images: int) -> None:
    """Robustness to every transformation, of some of the images."""
    indices = data.strata.sample(examples.labels, images)
    subset = examples.take(indices)
    padding = config.padding or "zeros"
    curves = training.evaluation.robustness(
        trained, subset.images, subset.labels, logits[indices], padding
    )
    files.write(path["robustness.csv"], files.csv_text(curves, curves[0]))
    used = config.used_transforms
    title = f"{config.title}: error and KL under transformations, {len(subset):,} images"
    plots.evaluation.robustness(
        path["robustness.png"], curves, used.epsilons if used else {}, title
    )
    print(
        f"robustness curves: {len(subset):,} images, the same shares of the classes; error without "
        f"a transformation {curves[0]['error']:.2%}"
    )


def _columns(rows: list[dict]) -> str:
    width = max(8, *(len(str(row["class"])) for row in rows))
    lines = [f"{'class':<{width}} {'images':>7} {'error':>8} {'precision':>10}"]
    for row in rows:
        error, precision = (
            "–" if math.isnan(row[name]) else f"{row[name]:.2%}" for name in ("error", "precision")
        )  # of a class without images, or one that was never predicted
        lines.append(f"{row['class']:<{width}} {row['images']:>7} {error:>8} {precision:>10}")
    return "\n".join(lines)


if __name__ == "__main__":
    cli.command(lambda f: main(**vars(f.own)), Flags)
