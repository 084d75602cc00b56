"""The split of a training set into validation, labelled and unlabelled images."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np

from rat_tf import config as config_lib
from rat_tf.data import examples, sources

PARTS = ("validation", "labeled", "unlabeled")


@dataclasses.dataclass(frozen=True)
class Split:
    """Disjoint indices into the training set whose content has this hash; together all of it.

    `validation` is empty where the set has a validation part of its own.
    """

    validation: np.ndarray
    labeled: np.ndarray
    unlabeled: np.ndarray
    hash: str

    @property
    def digest(self) -> str:
        """Names the split: the content and which image is in which part."""
        digest = hashlib.sha256(self.hash.encode())
        for part in PARTS:
            digest.update(getattr(self, part).astype("<i8").tobytes() + b"|")
        return digest.hexdigest()

    def save(self, path: str) -> None:
        """Writes the split as JSON, for --split_file."""
        content = {part: getattr(self, part).tolist() for part in PARTS}
        with open(path, "w") as file:
            json.dump({"hash": self.hash, **content}, file)


def check(listing: sources.Listing, config: config_lib.Config) -> None:
    """Finds out before any image is read whether --labels can be had."""
    classes = len(listing.class_names)
    if config.split_file:
        _read(config.split_file)
    elif config.stratify == "balanced" and config.labels % classes:
        raise config_lib.UserError(
            f"--labels: expected a multiple of the {classes} classes of {config.dataset} (or "
            f"--stratify=proportional), got {config.labels}"
        )
    available = listing.train[0].size
    if config.labels > available:
        raise config_lib.UserError(
            f"--labels: expected at most the {available} images of {config.dataset} that have a "
            f"label, got {config.labels}; 0 takes all of them"
        )


def split(source: sources.Source, config: config_lib.Config) -> Split:
    """Validation first, then the labelled images class by class, the rest unlabelled.

    Images without a label are always unlabelled, so that adding some leaves the others where they
    were.
    """
    labels = source.train.labels
    rng = np.random.default_rng(config.split_seed)
    order = rng.permutation(np.flatnonzero(labels != examples.UNLABELED))
    share = 0 if len(source.validation) else config.validation
    num_validation = round(share * len(order))
    validation, training = order[:num_validation], order[num_validation:]
    if not num_validation and not len(source.validation):
        raise config_lib.UserError(
            f"--validation: the best checkpoint is chosen on validation images, but "
            f"{config.validation:g} of {len(order)} labelled images is none"
        )
    chosen = []
    for k, count in enumerate(_counts(labels[training], source, config)):
        members = training[labels[training] == k]
        if len(members) < count or not count:
            raise config_lib.UserError(
                f"--labels: {config.labels} labelled images ({config.stratify}) are {count} of "
                f"class {source.class_names[k]!r}, which has {len(members)} training images in "
                f"{config.dataset} after {num_validation} for validation; each class needs one or "
                "more, and --labels=0 takes all"
            )
        chosen.append(members[:count])
    labeled = np.sort(np.concatenate(chosen))
    validation = np.sort(validation)
    used = np.concatenate([labeled, validation])
    unlabeled = np.setdiff1d(np.arange(len(labels)), used)
    return _checked(Split(validation, labeled, unlabeled, source.train.hash), source, config)


def load(path: str, source: sources.Source, config: config_lib.Config) -> Split:
    """The split that `Split.save` wrote, if it is of these very images."""
    content = _read(path)
    if content["hash"] != source.train.hash:
        raise config_lib.UserError(
            f"--split_file: {path} splits a training set with hash {content['hash'][:16]}…, but "
            f"that of --dataset={config.dataset} has {source.train.hash[:16]}…: not the same images"
        )
    indices = {part: np.array(content[part], np.int64) for part in PARTS}
    if config.labels not in (0, len(indices["labeled"])):
        raise config_lib.UserError(
            f"--labels: {path} has {len(indices['labeled'])} labelled images, got "
            f"--labels={config.labels}; give the same number, or 0"
        )
    return _checked(Split(**indices, hash=content["hash"]), source, config)


def _counts(labels, source, config) -> np.ndarray:
    """How many labelled images each class has."""
    classes = len(source.class_names)
    sizes = np.bincount(labels, minlength=classes)
    if not config.labels:
        return sizes
    if config.stratify == "balanced":
        return np.full(classes, config.labels // classes)
    exact = config.labels * sizes / max(len(labels), 1)
    counts = np.floor(exact).astype(int)
    # The largest remainders get what rounding down has left.
    counts[np.argsort(counts - exact, kind="stable")[: config.labels - counts.sum()]] += 1
    return counts


def _read(path: str) -> dict:
    try:
        with open(path) as file:
            content = json.load(file)
        if all(isinstance(content[part], list) for part in PARTS) and content["hash"]:
            return content
        problem = "found something else"
    except OSError as error:
        problem = error.strerror
    except (ValueError, KeyError, TypeError) as error:
        problem = f"found {type(error).__name__}: {error}"
    raise config_lib.UserError(
        f"--split_file: expected a split.json with hash, {', '.join(PARTS)} in {path}: {problem}"
    )


def _checked(split: Split, source: sources.Source, config: config_lib.Config) -> Split:
    """The split, after asserting that its parts are disjoint, complete, labelled, not empty."""
    everything = np.concatenate([split.validation, split.labeled, split.unlabeled])
    size = len(source.train)
    if len(everything) != size or not np.array_equal(np.sort(everything), np.arange(size)):
        raise config_lib.UserError(
            f"{config.split_file or config.dataset}: expected a split with each of the {size} "
            f"training images in one part, found {len(everything)} indices"
        )
    with_label = source.train.labels[np.concatenate([split.validation, split.labeled])]
    if (with_label == examples.UNLABELED).any():
        raise config_lib.UserError(f"{config.split_file}: labelled images without a label")
    semi_supervised = config.method != "supervised" and config.unlabeled_batch > 0
    if semi_supervised and not len(split.unlabeled) and not config.include_labeled:
        raise config_lib.UserError(
            f"--dataset={config.dataset}: method {config.method} needs unlabelled images, but all "
            f"{len(split.labeled)} training images are labelled (--labels={config.labels}); "
            "--include_labeled uses these, too"
        )
    return split
