"""The flags of data: the images, their split, preprocessing, batches and augmentation."""

from __future__ import annotations

import dataclasses
import os

from rat_tf import errors, fields

DATASETS = ("svhn", "cifar10", "cifar100", "digits")


def _check_dataset(name: str) -> str | None:
    kind, _, rest = name.partition(":")
    if name in DATASETS or (kind in ("tfds", "folder") and rest):
        return None
    hint = errors.did_you_mean(name, DATASETS)
    return f"expected {', '.join(DATASETS)}, tfds:<name> or folder:<path>, got {name!r}{hint}"


def _one_name(name: str) -> str:
    """./pets/ is pets, so that runs of one folder are in one place."""
    kind, _, path = name.partition(":")
    return f"folder:{os.path.normpath(path)}" if kind == "folder" and path else name


@dataclasses.dataclass(frozen=True)
class DataOptions:
    dataset: str = fields.flag(
        "svhn",
        "svhn, cifar10, cifar100, digits (comes with scikit-learn), tfds:<name> for any other "
        "image classification set of TFDS, or folder:<path> with a folder for each class, alone or "
        "in labeled/ or train/; unlabeled/, validation/<class> and test/<class> are optional.",
        check=_check_dataset,
        parse=_one_name,
        group="Data",
    )
    data_dir: str = fields.path(
        "", "TFDS folder, local or gs://; default: that of TFDS.", group="Machine"
    )
    download: bool = fields.flag(
        False, "Download and prepare the set if it is not in --data_dir.", group="Machine"
    )
    svhn_extra: bool = fields.flag(
        False, "Add the 531,131 extra images of SVHN to the unlabelled ones.", group="Data"
    )
    image_size: int = fields.flag(
        0,
        "Resize images to this height and width; 0: no resizing.",
        fields.at_least(0),
        group="Data",
    )
    channels: int = fields.flag(
        0,
        "Convert images to grey (1) or RGB (3) without alpha; 0: unchanged, RGB for folders.",
        fields.expect(lambda value: value in (0, 1, 3), "0, 1 or 3"),
        group="Data",
    )
    skip_broken: bool = fields.flag(
        False, "Skip image files of a folder that are broken, and list them.", group="Data"
    )
    follow_links: bool = fields.flag(
        False,
        "Follow links in a folder of images that lead out of it; do this only for a folder that "
        "you trust.",
        group="Machine",
    )
    labels: int = fields.flag(
        1000,
        "Number of labelled images; 0: all images that have a label.",
        fields.at_least(0),
        group="Data",
    )
    validation: float = fields.flag(
        0.1,
        "Fraction of the labelled training set used for validation; not used if the set has its "
        "own validation part.",
        fields.fraction,
        group="Data",
    )
    stratify: str = fields.flag(
        "balanced",
        "Labelled images: the same number per class, or proportional to the class sizes.",
        choices=("balanced", "proportional"),
        group="Data",
    )
    split_seed: int = fields.flag(
        1,
        "Seed of the split into validation, labelled and unlabelled images.",
        fields.seed,
        group="Data",
    )
    split_file: str = fields.path(
        "", "Use the split in this file: split.json of another run.", group="Data"
    )
    init_from: str = fields.path(
        "",
        "Run folder whose best weights training starts from, such as that of the last round when "
        "labels have been added. Its validation images stay validation, wherever their files are "
        "now. Needs the same network, preprocessing, classes and image size.",
        group="Training",
    )
    include_labeled: bool = fields.flag(
        False, "Use the labelled images as unlabelled images, too.", group="Data"
    )
    preprocessing: str = fields.flag(
        "scale",
        "Scale to [-1, 1] (SVHN), or global contrast normalisation and ZCA (CIFAR-10).",
        choices=("scale", "gcn_zca"),
        group="Data",
    )
    labeled_batch: int = fields.flag(50, "Labelled images per step.", fields.positive, group="Data")
    unlabeled_batch: int = fields.flag(
        50,
        "Unlabelled images per step; --method=supervised uses as many labelled ones instead.",
        fields.at_least(0),
        group="Data",
    )
    augment_shift: int = fields.flag(
        2, "Maximum random shift in pixels.", fields.at_least(0), group="Data"
    )
    augment_flip: bool = fields.flag(False, "Random horizontal flip.", group="Data")
    augment_noise: float = fields.flag(
        0.0, "Standard deviation of Gaussian pixel noise.", fields.at_least(0), group="Data"
    )
    augment_granularity: str = fields.flag(
        "batch",
        "Draw one shift and flip per batch or per image.",
        choices=("batch", "image"),
        group="Data",
    )
    augment_crop: float = fields.flag(
        1.0,
        "Random crops of at least this share of the area of an image, resized to the whole; 1: "
        "none. For photos: 0.5, with --augment_shift=0 --augment_flip.",
        fields.expect(lambda value: 0 < value <= 1, "a share in (0, 1]"),
        group="Data",
    )
    augment_color: float = fields.flag(
        0.0,
        "Random changes of brightness, contrast and saturation by up to this share. For photos: "
        "0.3.",
        fields.fraction,
        group="Data",
    )
    memory_limit_gb: float = fields.flag(
        4.0,
        "Larger sets are decoded once into --cache_dir and memory-mapped, as are folders that "
        "take more than 5 seconds to decode.",
        fields.at_least(0),
        group="Machine",
    )
    cache_dir: str = fields.path(
        "",
        "Folder for decoded sets and ZCA matrices; default: ~/.cache/rat_tf.",
        group="Machine",
    )

    @property
    def augments(self) -> bool:
        """Whether two passes over the same images see different pixels."""
        return bool(
            self.augment_shift
            or self.augment_flip
            or self.augment_noise
            or self.augment_crop < 1
            or self.augment_color
        )

    @property
    def batch_sizes(self) -> tuple[int, int]:
        """Labelled and unlabelled images per step."""
        return self.labeled_batch, self.unlabeled_batch
