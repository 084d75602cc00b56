"""Finds and reads the set that --dataset names."""

from __future__ import annotations

import dataclasses

import numpy as np

from rat_tf import errors, memory
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
    size = config.image_size
    if size:  # resized as floating-point numbers
        image = {f"an image of {size:,}×{size:,} pixels": 4 * size**2 * (config.channels or 1)}
        memory.check(image, "use a smaller --image_size")
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
    """Reads the images into memory, or from the cache on disk what is large or slow to decode."""
    return Source(*read_parts(found, config, ("train", "validation", "test")), found.class_names)


def read_parts(found: listing.Listing, config: options.DataOptions, names) -> list[Examples]:
    """Some of train, validation and test; of the latter two only the images with a label."""
    fits = found.bytes <= config.memory_limit_gb * 1e9
    if fits:
        advice = "use a smaller --memory_limit_gb, which keeps them on disk, or --image_size"
        memory.check({"the images": found.bytes}, advice)
    skipped = []

    def read_part(name):
        parts = getattr(found, name)
        if fits and config.dataset.startswith("folder:"):  # photos take long to decode
            images = mapped.remembered(parts, found.image_shape, cache.folder(config))
        elif fits:
            images = examples.read(parts, found.image_shape)
        else:
            images = mapped.read(parts, found.image_shape, cache.folder(config))
        skipped.extend(images.skipped)
        if not config.skip_broken:  # before any more are read
            listing.leave_out(skipped, config)
        if images.skipped and not len(images):
            raise errors.UserError(
                f"--dataset={config.dataset}: expected images in {name}/, found "
                f"{len(images.skipped)} broken files"
            )
        naming = examples.naming(parts, images.skipped, f"{config.dataset}/{name}")
        images = dataclasses.replace(images, name=naming)
        return images if name == "train" else _labeled(images)

    parts = [read_part(name) for name in names]
    listing.leave_out(skipped, config)
    return parts


def _labeled(found: Examples) -> Examples:
    """Only the images with a label; those of ImageNet's test set, for one, have none."""
    return found.take(np.flatnonzero(found.labels != examples.UNLABELED))


def is_grey(found: Examples, count: int = 200) -> bool:
    """Whether the three channels of an image are equal, in `count` images from all over the set."""
    if not len(found) or found.image_shape[-1] != 3:
        return False
    for index in np.linspace(0, len(found) - 1, min(count, len(found))).astype(int):
        image = found.pixels[found.rows[index]]
        if (image != image[..., :1]).any():
            return False
    return True
