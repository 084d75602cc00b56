"""The model card: what an operator should know about a classifier before serving it."""

from __future__ import annotations

from rat_tf import config as config_lib
from rat_tf.data import headers
from rat_tf.storage import escapes
from rat_tf.training import intervals, run_folder
from rat_tf.training import weights as weights_lib

CARD = """# {name}

An image classifier with {classes} classes, trained by rat_tf {labels} ({method}).

| | |
| --- | --- |
| data | {dataset}: {counts} |
| images | uint8, {height}×{width}, {channels} channel(s) |
| files | PNG, JPEG, BMP or GIF of up to {limit:,} pixels, resized to that |
| classes | {class_names} |
| split | {split} |
| method | {method} |
| ε | {transforms} |
| network | {network}, {preprocessing} preprocessing, served in float32 |
| weights | {weights}, step {step} of {iterations}, seed {seed} |
| test error | {error} |

## Limits

- The test error holds for images like those it was measured on: the same source, framing and
  classes. It does not hold for other images. Every image gets one of the classes above, even if it
  shows none of them.
- Files are decoded as they are stored. Photos must be turned upright first, as their EXIF
  orientation says; `python -m export.client` does that, as training did.
- Probabilities are not calibrated; `python -m rat_tf.evaluate` measures the calibration error.
- The weights were selected by the error on validation images, whose labels had no other use.
- Training against transformations does not make the classifier secure against attackers.

flags.cfg next to this file reproduces the training, class_names.txt lists the classes in order.
"""


def text(
    name: str,
    run: run_folder.Run,
    config: config_lib.Config,
    trained: weights_lib.Trained,
    weights: str,
) -> str:
    counts = run.described()["counts"]
    result = run.finished() or {}
    height, width, channels = trained.image_shape
    supervised = not config.options.unlabeled
    return CARD.format(
        name=escapes.markdown(name),
        classes=len(trained.class_names),
        labels=f"from {counts['labeled']} labelled images"
        + ("" if supervised else f" and {counts['unlabeled']} unlabelled ones"),
        method=config.method,
        dataset=escapes.markdown(config.dataset),
        counts=", ".join(f"{count} {part}" for part, count in counts.items()) + " images",
        height=height,
        width=width,
        channels=channels,
        limit=headers.LIMIT,
        class_names=", ".join(map(escapes.markdown, trained.class_names)),
        split=f"seed {config.split_seed}, hash {result.get('split_hash', 'in split.json')}",
        transforms=f"`{config.used_transforms}`" if config.transforms else "none",
        network=config.network,
        preprocessing=config.preprocessing,
        weights=weights,
        step=trained.step,
        iterations=config.iterations,
        seed=config.seed,
        error=test_error(result, weights, counts["test"]),
    )


def test_error(result: dict, weights: str, images: int) -> str:
    """The error of the exported weights on the test images, with its 95 % (Wilson) interval."""
    names = {"last": "last_test_error", "ema": "ema_test_error", "teacher": "ema_test_error"}
    if "student_test_error" in result:  # only with averaged weights
        names["student"] = "student_test_error"
    error = result.get(names.get(weights, "test_error"))
    if error is None:
        return "not known: " + ("no test images" if result else "training is not finished")
    low, high = intervals.wilson(error, images)
    wrong = round(error * images)
    return f"{error:.2%}, 95 % interval {low:.2%} to {high:.2%} ({wrong} of {images} images)"
