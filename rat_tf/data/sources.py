"""Finds and reads the set that --dataset names."""

from __future__ import annotations

import dataclasses

import numpy as np

from rat_tf import errors
from rat_tf.data import cache, examples, listing, mapped, options
from rat_tf.data.examples import Examples


@dataclasses.dataclass(frozen=True)
class Source:
    train: Examples
    validation: Examples  # empty if the set has none of its own
    test: Examples  # empty if the set has none
    class_names: tuple[str, ...]


def find(config: options.DataOptions) -> listing.Listing:
    """Finds the set that --dataset names."""
    if config.svhn_extra and config.dataset != "svhn":
        raise errors.UserError(
            f"--svhn_extra: expected --dataset=svhn, got --dataset={config.dataset}"
        )
    if config.dataset == "digits":
        from rat_tf.data import digits

        return digits.find(config)
    if config.dataset.startswith("folder:"):
        from rat_tf.data import folder

        return folder.find(config)
    from rat_tf.data import tfds_sets  # imports TFDS, which takes seconds

    return tfds_sets.find(config)


def read(found: listing.Listing, config: options.DataOptions) -> Source:
    """Reads the images into memory or, if they are too large, into the cache on disk."""
    parts = (read_part(found, name, config) for name in ("train", "validation", "test"))
    return Source(*parts, found.class_names)


def read_part(found: listing.Listing, name: str, config: options.DataOptions) -> Examples:
    """One part of a set: train, validation or test; only images with a label of the latter two."""
    parts = getattr(found, name)
    if found.bytes <= config.memory_limit_gb * 1e9:
        images = examples.read(parts, found.image_shape)
    else:
        images = mapped.read(parts, found.image_shape, cache.folder(config))
    listing.leave_out(images.skipped, config)
    if images.skipped and not len(images):
        raise errors.UserError(
            f"--dataset={config.dataset}: expected images in {name}/, found "
            f"{len(images.skipped)} broken files"
        )
    return images if name == "train" else _labeled(images)


def load(config: options.DataOptions) -> Source:
    return read(find(config), config)


def _labeled(found: Examples) -> Examples:
    """Only the images with a label; those of ImageNet's test set, for one, have none."""
    return found.take(np.flatnonzero(found.labels != examples.UNLABELED))
