"""Loads a data set as labelled, unlabelled, validation and test images."""

from __future__ import annotations

import dataclasses
import os
import sys

import numpy as np

from rat_tf import errors
from rat_tf.data import duplicates, examples, options, sources, splits, zca
from rat_tf.data import listing as listing_lib
from rat_tf.data import recorded as recorded_lib

FEW = 50  # validation images: an error of 10 % has a 95 % interval from 4 to 21 %


@dataclasses.dataclass(frozen=True)
class Data:
    labeled: examples.Examples
    unlabeled: examples.Examples
    validation: examples.Examples
    test: examples.Examples  # empty if the set has none
    class_names: tuple[str, ...]
    train: examples.Examples | None = None  # all training images; ZCA is fitted to them
    split: splits.Split | None = None


def find(config: options.DataOptions, split_known: bool = False) -> listing_lib.Listing:
    """Finds the set of a config and checks it as far as possible before any image is read."""
    listing = sources.find(config)
    if not split_known:
        splits.check(listing, config)
    smallest = min(listing.image_shape[:2])
    if config.augment_shift >= smallest:
        raise errors.UserError(
            f"--augment_shift: expected less than the {smallest} pixels of an image, "
            f"got {config.augment_shift}"
        )
    if config.preprocessing == "gcn_zca":
        if config.augment_color:
            raise errors.UserError(
                f"--augment_color={config.augment_color:g}: expected --preprocessing=scale; "
                "whitened images have no brightness"
            )
        zca.check(listing.image_shape)
    return listing


def load(config: options.DataOptions, recorded: recorded_lib.Recorded | None = None) -> Data:
    """Finds, checks, reads and splits the set of a config; `recorded` images get their split."""
    listing = find(config, split_known=recorded is not None)
    for note in listing.notes:
        print(note)
    source = sources.read(listing, config)
    if not config.channels and sources.is_grey(source.train):
        print("all images that were looked at are grey: --channels=1 trains on one channel")
    if recorded is not None:
        split = recorded.split_of(source, config)
    elif config.split_file:
        split = splits.load(config.split_file, source, config)
    else:
        earlier = None
        if config.init_from:
            path = os.path.join(config.init_from, "split.json")
            earlier = splits.read(path, "--init_from")
        split = splits.split(source, config, earlier)
    unlabeled = split.unlabeled
    if config.include_labeled:
        unlabeled = np.union1d(unlabeled, split.labeled)
    validation = (
        source.validation if len(source.validation) else source.train.take(split.validation)
    )
    if len(validation) < FEW:
        print(
            f"warning: {len(validation)} validation images choose the best step: their error says "
            "little; use more, with a larger --validation or in validation/<class>",
            file=sys.stderr,
        )
    found = Data(
        labeled=source.train.take(split.labeled),
        unlabeled=source.train.take(unlabeled),
        validation=validation,
        test=source.test,
        class_names=source.class_names,
        train=source.train,
        split=split,
    )
    if config.dataset.startswith("folder:"):  # the sets of the paper are as they are
        for problem in duplicates.found(found):
            print(f"warning: {problem}", file=sys.stderr)
    if recorded is not None:
        recorded.check_part("validation", found.validation, config)
        recorded.check_part("test", found.test, config)
    return found
