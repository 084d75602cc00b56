"""Where images come from: what --dataset names, found first and checked, then read."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from absl import logging
from sklearn import datasets, model_selection

from rat_tf import errors
from rat_tf.data import examples, mapped, options
from rat_tf.data.examples import Examples

NAMED = 10  # files that a warning names


@dataclasses.dataclass(frozen=True)
class Listing:
    """A set of images of which none is read yet.

    Some images of the training set may have no label. Validation and test sets may be missing.
    """

    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    train: Sequence[examples.Part]
    validation: Sequence[examples.Part] = ()
    test: Sequence[examples.Part] = ()

    @property
    def bytes(self) -> int:
        parts = (*self.train, *self.validation, *self.test)
        return sum(part.size for part in parts) * int(np.prod(self.image_shape))


@dataclasses.dataclass(frozen=True)
class Source:
    train: Examples
    validation: Examples  # empty if the set has none of its own
    test: Examples  # empty if the set has none
    class_names: tuple[str, ...]


def find(config: options.DataOptions) -> Listing:
    """Looks for the set that --dataset names."""
    if config.svhn_extra and config.dataset != "svhn":
        raise errors.UserError(
            f"--svhn_extra: expected --dataset=svhn, got --dataset={config.dataset}"
        )
    if config.dataset == "digits":
        return digits(config)
    if config.dataset.startswith("folder:"):
        from rat_tf.data import folder

        return folder.find(config)
    from rat_tf.data import tfds_sets  # imports TFDS, which takes seconds

    return tfds_sets.find(config)


def read(listing: Listing, config: options.DataOptions) -> Source:
    """Reads the images, into memory or, where there are too many, into the cache on disk."""
    fits = listing.bytes <= config.memory_limit_gb * 1e9

    def read_part(name):
        parts = getattr(listing, name)
        if fits:
            found = examples.read(parts, listing.image_shape)
        else:
            found = mapped.read(parts, listing.image_shape, cache_dir(config))
        leave_out(found.skipped, config)
        if found.skipped and not len(found):
            raise errors.UserError(
                f"--dataset={config.dataset}: expected images in {name}/, found "
                f"{len(found.skipped)} broken files"
            )
        return found

    return Source(
        read_part("train"),
        _labeled(read_part("validation")),
        _labeled(read_part("test")),
        listing.class_names,
    )


def leave_out(problems: Sequence[str], config: options.DataOptions) -> None:
    """Reports files that cannot be used: an error, or a warning with --skip_broken."""
    if problems and not config.skip_broken:
        more = f" (one of at least {len(problems)} such files)" if problems[1:] else ""
        raise errors.UserError(f"{problems[0]}{more}; --skip_broken leaves such files out")
    if problems:
        named = "\n  ".join(problems[:NAMED])
        more = f"\n  and {len(problems) - NAMED} more" if problems[NAMED:] else ""
        logging.warning("--skip_broken: files left out: %d\n  %s%s", len(problems), named, more)


def load(config: options.DataOptions) -> Source:
    return read(find(config), config)


def cache_dir(config: options.DataOptions) -> str:
    if config.cache_dir:
        return os.path.expanduser(config.cache_dir)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "rat_tf")


def digits(config: options.DataOptions) -> Listing:
    """scikit-learn's 1,797 handwritten digits, 8×8 grey, a fixed stratified fifth of them to test.

    They come with the package: real images and no download.
    """
    bunch = datasets.load_digits()
    images = np.round(bunch.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    train, test = model_selection.train_test_split(
        np.arange(len(images)), test_size=0.2, stratify=bunch.target, random_state=0
    )

    def part(indices, name):
        def batches():
            dataset = tf.data.Dataset.from_tensor_slices((images[indices], bunch.target[indices]))
            return examples.decoded(dataset, config.image_size, config.channels)

        return [examples.Part(len(indices), batches, lambda: f"digits {name}")]

    shape = examples.fit(tf.constant(images[0]), config.image_size, config.channels).shape
    return Listing(
        class_names=tuple(str(name) for name in bunch.target_names),
        image_shape=tuple(shape),
        train=part(train, "train"),
        test=part(test, "test"),
    )


def _labeled(found: Examples) -> Examples:
    """Without the images that nothing can be compared with, such as ImageNet's test set."""
    return found.take(np.flatnonzero(found.labels != examples.UNLABELED))
