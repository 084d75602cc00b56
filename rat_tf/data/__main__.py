"""Describes the images that a run would use, and writes a contact sheet next to its run folder.

    python -m rat_tf.data --dataset=folder:pets
    python -m rat_tf.data --flagfile=configs/digits50.cfg
    python -m rat_tf.data --dataset=svhn --download    # downloads and prepares the set first

The flags are those of rat_tf.train, with the preset that it would take.
"""

from __future__ import annotations

import os
import time

import numpy as np

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors, plots, training
from rat_tf.config import cli

IMBALANCE = 3  # times as many images of a class as of another
PARTS = ("labeled", "unlabeled", "validation", "test")


def describe(config: config_lib.Config, data: data_lib.Data) -> str:
    """Counts per class and split, shape, hash, and images that occur in several splits."""
    height, width, channels = data.train.image_shape
    where = "on disk" if isinstance(data.train.pixels, np.memmap) else "in memory"
    lines = [
        f"{config.dataset}: {len(data.class_names)} classes, images {height}×{width}×{channels} "
        f"uint8, {where}; preprocessing {config.preprocessing}",
        f"hash of the {len(data.train):,} training images: {data.train.hash}",
        f"hash of the {len(data.test):,} test images: {data.test.hash}",
        f"hash of the split, split_hash in a run's result.json: {data.split.digest}",
        "",
        *_table(data),
    ]
    counts = np.bincount(data.labeled.labels, minlength=len(data.class_names))
    if counts.max() >= IMBALANCE * counts.min():
        most, least = (data.class_names[k] for k in (counts.argmax(), counts.argmin()))
        lines.append(
            f"the classes are imbalanced: {counts.max():,} labelled images of {most!r}, "
            f"{counts.min():,} of {least!r}; --class_weights=balanced makes them count the same"
        )
    return "\n".join([*lines, *data_lib.duplicates.found(data)])


def _table(data: data_lib.Data) -> list[str]:
    labels = {name: getattr(data, name).labels for name in PARTS}
    counts = [
        (name, *((labels[part] == k).sum() for part in PARTS))
        for k, name in enumerate(data.class_names)
    ]
    counts.append(("no label", *((labels[part] < 0).sum() for part in PARTS)))
    counts.append(("total", *(len(labels[part]) for part in PARTS)))
    width = max(len(name) for name, *_ in counts)
    lines = ["class".ljust(width) + "".join(part.rjust(12) for part in PARTS)]
    for name, *numbers in counts:
        lines.append(name.ljust(width) + "".join(f"{number:12,}" for number in numbers))
    return lines


def start(parsed: cli.Parsed) -> None:
    """The flags are checked, then those that they leave open are chosen as for a new run."""
    choice = training.choice.for_new_run(parsed)
    cli.import_tensorflow_quietly()
    main(choice.fit_to_images())


def main(config: config_lib.Config) -> None:
    cli.import_tensorflow_quietly()
    data_lib.streams.check_replicas(*config.batch_sizes, config.logical_devices)
    started = time.time()
    data = data_lib.load(config)
    print(describe(config, data))
    print(f"read and split in {time.time() - started:.1f} s")
    # Next to the run folder, which only training creates.
    folder = os.path.dirname(os.path.abspath(config.run_dir))
    path = os.path.join(folder, "contact_sheet.png")
    try:
        os.makedirs(folder, exist_ok=True)
        sheet = plots.contact_sheet
        sheet.save(path, training.preview.rows(config, data, sheet.COLUMNS))
    except OSError as error:
        raise errors.UserError(
            f"--run_dir: cannot write {path} next to the run folder: {error.strerror or error}"
        ) from error
    print(f"contact sheet: {path}")


if __name__ == "__main__":
    cli.command(start, training=True)
