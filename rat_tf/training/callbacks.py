"""Callbacks of a run: curves, examination of the adversary, health warnings."""

from __future__ import annotations

import glob
import math
import os
import sys

import numpy as np
import tensorflow as tf

from rat_tf import errors
from rat_tf.plots import run as plots
from rat_tf.storage import files
from rat_tf.training import run_folder


class Diverged(errors.UserError):
    """The loss is not finite. A search counts such a trial as failed."""


class Curves(tf.keras.callbacks.Callback):
    """One row per interval to metrics.csv and TensorBoard, against the step.

    On resume both are first truncated to the restored step: no gaps and no duplicates.
    """

    def __init__(self, run: run_folder.Run, columns, start: int, tensorboard: bool, stopwatch):
        super().__init__()
        self._run = run
        self._stopwatch = stopwatch
        self._columns = ["step", "seconds", *columns]
        rows = [row for row in run.rows() if row["step"] <= start]
        with run.writing("metrics.csv"):
            files.write(run.metrics, files.csv_text(map(_texts, rows), self._columns))
        self._writer = None
        if tensorboard:
            _cut_events(run.tensorboard, start)
            self._writer = tf.summary.create_file_writer(run.tensorboard)

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        # Shared with the callbacks that follow.
        logs["step"], logs["seconds"] = step, self._stopwatch.seconds()
        line = files.csv_text([_texts(logs)], self._columns, header=False)
        with self._run.writing("metrics.csv"):
            # Not created: if it is missing, the run folder has been removed.
            with open(self._run.metrics, "r+", encoding="utf-8", newline="") as file:
                file.seek(0, os.SEEK_END)
                file.write(line)
        if self._writer:
            with self._writer.as_default(step):
                for name in self._columns[1:]:
                    if name in logs:
                        tf.summary.scalar(name, logs[name])
            self._writer.flush()

    def images(self, examined: dict, step: int) -> None:
        """Panels of original, transformed and difference, and the offsets' histograms."""
        if not self._writer:
            return
        with self._writer.as_default(step):
            panel = np.concatenate(list(plots.panels(examined).values()), axis=2)
            tf.summary.image("original, transformed, difference", panel, max_outputs=8)
            for name, offset in examined["offsets"].items():
                tf.summary.histogram(f"offset_{name}", offset)


class Health(tf.keras.callbacks.Callback):
    """Warns when training goes wrong, and stops it when it has diverged.

    Noisy symptoms are reported once, and only if they occur twice in a row; a flat KL and one class
    for all images only after step `settled`: until then it is a network that has hardly learned.
    `remedies` are flags that make the search stronger than it is; without a search there are none.
    """

    def __init__(self, remedies: str = "", settled: int = 0):
        super().__init__()
        self._remedies = remedies
        self._settled = settled
        self._before = {}
        self._said = set()

    def on_epoch_end(self, epoch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise Diverged(
                f"the loss is {logs['loss']} at step {logs['step']}: training has diverged. The "
                "last checkpoint was saved before. Try a smaller --learning_rate, smaller ε in "
                "--transforms, a longer --epsilon_rampup, or training without --mixed_precision."
            )
        # At first no target may reach --target_threshold.
        if self._again("flat", logs["step"] > self._settled and logs.get("kl", 1) < 1e-6):
            _warn(
                f"the KL under the transformations is flat at zero ({logs['kl']:.1e}): nothing is "
                "learned from unlabelled images. Try larger ε in --transforms, a smaller "
                "--target_threshold, or a smaller --entropy_multiplier if the network is saturated."
            )
        if logs.get("fallback", 0) > 0.5 and "lost" not in self._said:
            self._said.add("lost")
            _warn(
                f"the search finds no gradient for {logs['fallback']:.0%} of the images and uses "
                "random transformations there. Try a larger --xi such as 1e-2 or 0.1eps."
            )
        if "top_class" not in logs:
            return
        if self._again("collapsed", logs["step"] > self._settled and logs["top_class"] > 0.95):
            _warn(
                f"{logs['top_class']:.0%} of the unlabelled images are assigned to one class: "
                "predictions have collapsed. Try a smaller --consistency, a longer "
                "--consistency_rampup or smaller ε in --transforms."
            )
        weak = logs.get("adversarial_kl", 1) < logs.get("random_kl", 0)
        if self._again("weak", bool(self._remedies) and weak):
            _warn(
                f"the adversary (KL {logs['adversarial_kl']:.3f}) is no stronger than random "
                f"transformations ({logs['random_kl']:.3f}). Try {self._remedies}."
            )

    def _again(self, symptom: str, now: bool) -> bool:
        before, self._before[symptom] = self._before.get(symptom, False), now
        if not (before and now) or symptom in self._said:
            return False
        self._said.add(symptom)
        return True


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr, flush=True)


class Examination(tf.keras.callbacks.Callback):
    """Examines a fixed batch of unlabelled images at every validation.

    Logs the share of the most predicted class and, for a method with transformations, the KL of
    adversarial and of random transformations.
    """

    COLUMNS = ("top_class", "adversarial_kl", "random_kl")

    def __init__(self, images, curves: Curves):
        super().__init__()
        self._images = images
        self._curves = curves

    def on_epoch_end(self, epoch, logs=None):
        if "val_error" not in logs:
            return
        found, latest = examine(self.model, self._images)
        logs.update(found)
        if latest:
            self._curves.images(latest, int(tf.identity(self.model.optimizer.iterations)))


def examine(model, images) -> tuple[dict[str, float], dict | None]:
    """Values of `Examination.COLUMNS`, and what the method says of the images, if anything."""
    predicted = tf.argmax(model(images), axis=-1)
    share = float(tf.reduce_max(tf.math.bincount(predicted))) / len(images)
    latest = model.examine(images, tf.identity(model.optimizer.iterations))
    names = Examination.COLUMNS[1:] if latest else ()
    means = {name: float(tf.reduce_mean(latest[name])) for name in names}
    return {"top_class": share, **means}, latest


def _texts(row) -> dict[str, str]:
    return {name: f"{value:.9g}" for name, value in row.items()}


def _cut_events(folder: str, step: int) -> None:
    """Removes TensorBoard events after `step`; the resumed run writes them again."""
    for name in glob.glob(os.path.join(glob.escape(folder), "events.*")):
        if name.endswith(files.TEMPORARY):  # of a process that was killed here
            os.remove(name)
            continue
        kept = []
        for record in tf.data.TFRecordDataset(name).ignore_errors():
            if tf.compat.v1.Event.FromString(record.numpy()).step <= step:
                kept.append(record.numpy())
        with files.writing(name) as temporary, tf.io.TFRecordWriter(temporary) as writer:
            for record in kept:
                writer.write(record)
