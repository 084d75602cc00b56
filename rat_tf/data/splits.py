"""The split of a training set into validation, labelled and unlabelled images."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import reprlib
from collections.abc import Iterator

import numpy as np

from rat_tf import errors
from rat_tf.data import examples, kept, options, sources, strata
from rat_tf.data import listing as listing_lib
from rat_tf.storage import files, records

PARTS = ("validation", "labeled", "unlabeled")


@dataclasses.dataclass(frozen=True)
class Split:
    """Disjoint indices into the training set with this hash, which they cover.

    `validation` is empty if the set has its own validation part. `content` has the fingerprints of
    validation and labelled images, by which a later run finds them in a set that has changed.
    """

    validation: np.ndarray
    labeled: np.ndarray
    unlabeled: np.ndarray
    hash: str
    content: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Identifies the split: the content of the set and the part of each image."""
        digest = hashlib.sha256(self.hash.encode())
        for part in PARTS:
            digest.update(getattr(self, part).astype("<i8").tobytes() + b"|")
        return digest.hexdigest()

    def save(self, path: str) -> None:
        """Writes the split as JSON, for --split_file."""
        indices = {part: getattr(self, part).tolist() for part in PARTS}
        files.write(path, json.dumps({"hash": self.hash, **indices, "content": self.content}))


def check(listing: listing_lib.Listing, config: options.DataOptions) -> None:
    """Checks --labels and --validation against the sizes of the set, before reading it."""
    classes, available = len(listing.class_names), listing.train[0].size
    if config.split_file:
        labeled = len(read(config.split_file).labeled)
        if config.labels not in (0, labeled):
            raise errors.UserError(
                f"--labels: {config.split_file} has {labeled} labelled images, got "
                f"--labels={config.labels}; use the same number, or 0"
            )
        return
    if config.stratify == "balanced" and config.labels % classes:
        raise errors.UserError(
            f"--labels: expected a multiple of the {classes} classes of {config.dataset} (or "
            f"--stratify=proportional), got {config.labels}"
        )
    own = sum(part.size for part in listing.validation)
    available -= _num_validation(available, own, config)
    if config.labels > available:
        raise errors.UserError(
            f"--labels: expected at most the {available} images of {config.dataset} that have a "
            f"label and are not for validation, got {config.labels}; 0 uses all of them"
        )


def split(
    source: sources.Source, config: options.DataOptions, earlier: Split | None = None
) -> Split:
    """Validation first, then the labelled images class by class, the rest unlabelled.

    Images without a label are always unlabelled, so that adding some leaves the others where they
    were. The validation images of a folder, often few, are stratified. Those of an `earlier` split
    stay validation, see `kept`.
    """
    labels = source.train.labels
    rng = np.random.default_rng(config.split_seed)
    order = rng.permutation(np.flatnonzero(labels != examples.UNLABELED))
    num_validation = _num_validation(len(order), len(source.validation), config)
    if config.dataset.startswith("folder:"):
        # Only there: the sets of the paper keep their splits, and have thousands of images.
        order = strata.first(order, labels, num_validation)
    if earlier is not None:
        order, num_validation = kept.first(order, num_validation, source, earlier)
    validation, training = order[:num_validation], order[num_validation:]
    chosen = []
    for k, count in enumerate(_counts(labels[training], source, config)):
        members = training[labels[training] == k]
        if len(members) < count or not count:
            raise errors.UserError(
                f"--labels: {config.labels} labelled images ({config.stratify}) mean {count} of "
                f"class {source.class_names[k]!r}, which has {len(members)} training images in "
                f"{config.dataset} after {num_validation} for validation; each class needs at "
                "least one, and --labels=0 uses all"
            )
        chosen.append(members[:count])
    labeled = np.sort(np.concatenate(chosen))
    validation = np.sort(validation)
    used = np.concatenate([labeled, validation])
    unlabeled = np.setdiff1d(np.arange(len(labels)), used)
    _check_unlabeled(unlabeled, labeled, config)
    found = _with_content(Split(validation, labeled, unlabeled, source.train.hash), source)
    for problem in _problems(found, source):
        raise AssertionError(problem)  # a bug, not a user error
    return found


def load(path: str, source: sources.Source, config: options.DataOptions) -> Split:
    """Reads a split that `Split.save` wrote for these images."""
    split = read(path)
    if split.hash != source.train.hash:
        raise errors.UserError(
            f"--split_file: {path} splits a training set with hash {split.hash[:16]}…, but "
            f"that of --dataset={config.dataset} has {source.train.hash[:16]}…: the images, files "
            "or labels have changed"
        )
    return matched(split, source, config, f"--split_file: {path}")


def matched(split: Split, source: sources.Source, config: options.DataOptions, where: str) -> Split:
    """The split, if these images can be trained with it; `where` it comes from begins the error."""
    for problem in _problems(split, source):
        raise errors.UserError(f"{where}: {problem}")  # the first
    _check_unlabeled(split.unlabeled, split.labeled, config)
    return _with_content(split, source)


def read(path: str, flag: str = "--split_file") -> Split:
    """Reads a split, without comparing it with any images; errors name the `flag`."""
    try:
        checks = {"hash": records.string, **dict.fromkeys(PARTS, _indices)}
        advice = "expected the split.json of a run"
        # Splits of the first version have no `content`.
        content = records.json_object(path, checks, {"content": _content}, advice)
    except errors.UserError as error:
        raise errors.UserError(f"{flag}: {error}") from None
    indices = {part: np.array(content[part], np.int64) for part in PARTS}
    return Split(**indices, hash=content["hash"], content=content.get("content", {}))


def _indices(value) -> str | None:
    """A check of `records`: a list of indices, which may be empty."""
    wrong = [value]
    if isinstance(value, list):  # `type`, as True is an int, too; they become int64
        wrong = [index for index in value if type(index) is not int or not 0 <= index < 2**63]
    return f"expected a list of indices, found {reprlib.repr(wrong[0])}" if wrong else None


_content = records.expect(
    lambda value: (
        isinstance(value, dict) and all(isinstance(part, list) for part in value.values())
    ),
    "lists of fingerprints",
)


def _with_content(split: Split, source: sources.Source) -> Split:
    texts = {part: kept.texts(source.train, getattr(split, part)) for part in kept.PARTS}
    texts["validation"] += kept.texts(source.validation)
    return dataclasses.replace(split, content=texts)


def _counts(labels, source, config) -> np.ndarray:
    """How many labelled images each class has."""
    classes = len(source.class_names)
    sizes = np.bincount(labels, minlength=classes)
    if not config.labels:
        return sizes
    if config.stratify == "balanced":
        return np.full(classes, config.labels // classes)
    return strata.shares(sizes, config.labels)


def _num_validation(available: int, own: int, config) -> int:
    """How many of the available labelled images are for validation: none if the set has its own."""
    count = 0 if own else round(config.validation * available)
    if not count and not own:
        raise errors.UserError(
            f"--validation: the best checkpoint is chosen on validation images, but "
            f"{config.validation:g} of {available} labelled images is none; use a larger share, or "
            "a set with a validation part (a folder: validation/<class>/*)"
        )
    return count


def _problems(split: Split, source: sources.Source) -> Iterator[str]:
    """What is wrong with a split of these images: parts must be disjoint, complete and usable."""
    size, labels = len(source.train), source.train.labels
    everything = np.concatenate([split.validation, split.labeled, split.unlabeled])
    outside = everything[everything >= size]
    if len(outside):
        yield f"expected indices of the {size} training images, found {outside[0]}"
        return
    times = np.bincount(everything, minlength=size)
    for index in np.flatnonzero(times != 1)[:1]:
        yield (
            f"expected each of the {size} training images in one part, found index {index} "
            f"{times[index]} times"
        )
    for part in ("validation", "labeled"):
        indices = getattr(split, part)
        for index in indices[labels[indices] == examples.UNLABELED][:1]:
            yield f"expected images with a label in {part}, found index {index} without one"
    if not len(split.validation) and not len(source.validation):
        yield "expected validation images, as the set has no others, found none"
    for k, name in enumerate(source.class_names):
        if not (labels[split.labeled] == k).any():
            yield f"expected labelled images of every class, found none of {name!r}"


def _check_unlabeled(unlabeled, labeled, config: options.DataOptions) -> None:
    if config.batch_sizes[1] and not len(unlabeled) and not config.include_labeled:
        raise errors.UserError(
            f"--dataset={config.dataset}: the method needs unlabelled images, but all "
            f"{len(labeled)} training images are labelled (--labels={config.labels}); "
            "--include_labeled uses these as unlabelled images, too"
        )
