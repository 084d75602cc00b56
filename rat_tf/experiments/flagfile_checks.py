"""Checks of flagfiles: does each match the paper, and does it train a step?"""

from __future__ import annotations

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

from rat_tf import config as config_lib
from rat_tf import data, errors
from rat_tf.config import flag_values, flagfiles
from rat_tf.data import examples
from rat_tf.experiments import hyperparameters, paper
from rat_tf.training import build
from rat_tf.transforms import spec

BATCH = 4
SHAPES = {"digits": (8, 8, 1)}  # all others: 32x32 RGB
CLASSES = {"cifar100": 100}
PARTS = ("shared.cfg", "long.cfg")  # of other flagfiles, not experiments themselves


def files() -> list[str]:
    """Every flagfile that describes an experiment, in the current folder or the package."""
    found = flagfiles.names("." if os.path.isdir("configs") else flagfiles.root())
    return [path for path in found if os.path.basename(path) not in PARTS]


def problems(path: str, step: bool = True, **changes) -> list[str]:
    """What is wrong with a flagfile: parsing, the paper's values, its header, a training step.

    `changes` are flags for the training step alone, such as a smaller network.
    """
    try:
        config = flag_values.config_of_file(path)
    except errors.UserError as error:
        return [str(error)]
    found = deviations(path, config) + missing_promises(path)
    if step:
        found += failures(flag_values.config_of_file(path, **changes))
    return found


def deviations(path: str, config: config_lib.Config) -> list[str]:
    """Flags that differ from the paper; none for a file that is not a row of the paper."""
    row = _row(path)
    if row is None:
        return []
    found = []
    for flag, wanted in hyperparameters.expected(row.dataset, row.config).items():
        value = getattr(config, flag)
        if flag == "transforms":
            value, wanted = config.used_transforms, spec.Spec(tuple(wanted.items()))
        elif flag == "xi" and value is not None:
            value = value.value
        if value != wanted:
            found.append(f"--{flag}: expected {wanted} as in the paper, got {value}")
    return found


def missing_promises(path: str) -> list[str]:
    """What is missing in the opening comment of a row's flagfile."""
    row = _row(path)
    if row is None:
        return []
    with open(flagfiles.find(path), encoding="utf-8") as file:
        lines = [line[1:].strip() for line in file if line.startswith("#")]
    comment = " ".join(lines)
    numbers = [name[len("table") :] for name in paper.tables_of(row.path, row.labels)]
    wanted = [f"{row.shown} %", f"{row.labels:,} labels", *numbers]
    return [f"expected {text!r} in the comment" for text in wanted if text not in comment]


def failures(config: config_lib.Config) -> list[str]:
    """Builds the model and trains one step; returns what went wrong."""
    try:
        loss, moved = one_step(config)
    except Exception as error:  # so that the other files are still checked
        return [f"the training step failed: {type(error).__name__}: {error}"]
    if not np.isfinite(loss):
        return [f"the loss of a training step is {loss}"]
    return [] if moved else ["a training step changes no weight"]


def one_step(config: config_lib.Config) -> tuple[float, bool]:
    """The loss of one step on random images, and whether the weights have moved."""
    images = _random_data(config)
    model = build.build(config, images)
    before = [variable.numpy() for variable in model.network.trainable_variables]
    unlabeled = images.unlabeled.images[: config.batch_sizes[1]]
    batch = tf.nest.map_structure(
        tf.constant, ((images.labeled.images, images.labeled.labels), unlabeled)
    )
    observed = model.train_step(batch)  # eager: tracing would take most of the time
    moved = any(
        not np.array_equal(old, new.numpy())
        for old, new in zip(before, model.network.trainable_variables)
    )
    return float(observed["loss"]), moved


def _random_data(config: config_lib.Config) -> data.Data:
    height, width, channels = SHAPES.get(config.dataset, (32, 32, 3))
    if config.image_size:
        height = width = config.image_size
    shape = (height, width, config.channels or channels)
    classes = CLASSES.get(config.dataset, 10)
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (BATCH, *shape), dtype=np.uint8)
    batch = examples.Examples(pixels, random.integers(0, classes, BATCH))
    names = tuple(str(label) for label in range(classes))
    return data.Data(batch, batch, batch, batch, class_names=names, train=batch)


def _row(path: str) -> paper.Row | None:
    """The row of a flagfile at the data set's standard number of labels."""
    for row in paper.rows():
        if row.path == path and row.labels == paper.STANDARD_LABELS[row.dataset]:
            return row
    return None


def check(steps: bool) -> int:
    """Checks every flagfile; returns the number of those with a problem."""
    found = files()
    wrong = sorted({row.path for row in paper.rows()} - set(found))
    for path in wrong:
        print(f"{path}: missing; it is a row of the paper")
    with tempfile.TemporaryDirectory() as folder:
        for path in found:
            # One cache for all: the ZCA matrix of the random images is fitted once.
            messages = problems(path, steps, cache_dir=folder)
            print(f"{path:<44} {'wrong' if messages else 'ok'}", flush=True)
            for message in messages:
                print(f"  {path}: {message}", file=sys.stderr)
            wrong += [path] if messages else []
    print(f"{len(found)} flagfiles, {len(wrong) or 'none'} wrong")
    return len(wrong)
