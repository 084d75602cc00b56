"""Image classification sets of TensorFlow Datasets; nothing is downloaded without --download."""

from __future__ import annotations

import contextlib
import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from absl import logging
from tensorflow_datasets.core import read_only_builder
from tensorflow_datasets.core.utils import file_utils

from rat_tf import errors
from rat_tf.data import examples, listing, options

NAMES = {"svhn": "svhn_cropped", "cifar10": "cifar10", "cifar100": "cifar100"}
STORAGE = "https://storage.googleapis.com"  # of gs://
UNLABELED_SPLITS = ("unlabelled", "unlabeled")  # STL-10 has one


def find(config: options.DataOptions) -> listing.Listing:
    """The splits train, validation and test; `unlabelled` and SVHN's extra join train."""
    builder = _builder(config)
    image_key, label_key = _keys(builder, config)
    splits = builder.info.splits
    unlabeled = [name for name in UNLABELED_SPLITS if name in splits]
    unlabeled += ["extra"] if config.svhn_extra else []
    for name in ("train", *unlabeled):
        if name not in splits:
            raise errors.UserError(
                f"--dataset={config.dataset}: expected a split {name!r} in {builder.data_path}, "
                f"found {', '.join(sorted(splits)) or 'none'}"
            )

    def part(split, labeled=True):
        return examples.Part(
            size=splits[split].num_examples,
            batches=lambda: _batches(builder, split, image_key, label_key, labeled, config),
            key=lambda: f"{builder.info.full_name} {split} {labeled} {_files(builder, split)}",
        )

    return listing.Listing(
        class_names=tuple(builder.info.features[label_key].names),
        image_shape=_image_shape(builder, image_key, config),
        train=[part("train"), *(part(split, labeled=False) for split in unlabeled)],
        validation=[part("validation")] if "validation" in splits else [],
        test=[part("test")] if "test" in splits else [],
    )


def _builder(config: options.DataOptions) -> tfds.core.DatasetBuilder:
    """The prepared set, in the version that is on disk."""
    name = NAMES.get(config.dataset) or config.dataset.partition(":")[2]
    data_dir = config.data_dir or None
    if not re.fullmatch(r"\w+([/:].+)?", name):
        raise errors.UserError(
            f"--dataset={config.dataset}: expected the name of a TFDS set, such as tfds:mnist or "
            f"tfds:<set>/<config>:<version>, got {name!r}"
        )
    if data_dir and data_dir.startswith("gs://"):
        _check_network(STORAGE, f"--data_dir={data_dir}: no network connection to read it from")
    try:
        with _quiet():
            return read_only_builder.builder_from_files(name, data_dir=data_dir)
    except tfds.core.DatasetNotFoundError:
        pass
    except Exception as error:  # TFDS can raise anything on foreign files
        raise errors.UserError(
            f"--dataset={config.dataset}: cannot read {name} in --data_dir={data_dir}: {error}"
        ) from error
    if config.download:
        return _download(name, data_dir, config)
    looked_in = " or ".join(str(path) for path in file_utils.list_data_dirs(data_dir))
    where = looked_in + ("" if data_dir else " (no --data_dir given)")
    command = f"python -m rat_tf.data --dataset={config.dataset}"
    command += f" --data_dir={data_dir}" if data_dir else ""
    raise errors.UserError(
        f"--dataset={config.dataset}: expected {name}, prepared by TFDS, in {where}, but it is "
        f"not there. Set --data_dir, or download and prepare it: {command} --download"
    )


def _check_network(host: str, message: str) -> None:
    """Fails within seconds; TFDS and TensorFlow would retry for minutes."""
    try:
        # Not urlopen, which would fix the proxies for the whole process.
        urllib.request.build_opener().open(host, timeout=10)
    except urllib.error.HTTPError:
        pass  # the host answers
    except (OSError, http.client.HTTPException) as error:
        raise errors.UserError(f"{message} {host}: {error}") from error


def _download(name: str, data_dir: str | None, config) -> tfds.core.DatasetBuilder:
    try:
        builder = tfds.builder(name, data_dir=data_dir)
        urls = map(urllib.parse.urlsplit, builder.url_infos)
        for host in sorted({f"{url.scheme}://{url.netloc}" for url in urls}):
            _check_network(
                host,
                f"--download: {name} is not prepared in --data_dir={data_dir or ''} and there is "
                "no network connection to",
            )
        # From where its authors published it, not from a copy that TFDS may have.
        settings = tfds.download.DownloadConfig(try_download_gcs=False)
        builder.download_and_prepare(download_config=settings)
    except errors.UserError:
        raise
    except Exception as error:
        raise errors.UserError(
            f"--dataset={config.dataset}: TFDS cannot prepare {name}: {error}"
        ) from error
    return builder


def _keys(builder, config) -> tuple[str, str]:
    """Names of the image and the label among the features."""
    features = builder.info.features
    keys = builder.info.supervised_keys or ()
    if len(keys) != 2 or not isinstance(features[keys[0]], tfds.features.Image):
        kinds = (tfds.features.Image, tfds.features.ClassLabel)
        keys = [next((k for k, f in features.items() if isinstance(f, kind)), "") for kind in kinds]
    if not all(keys) or not isinstance(features[keys[1]], tfds.features.ClassLabel):
        raise errors.UserError(
            f"--dataset={config.dataset}: expected an image and a class label, found {features}"
        )
    return tuple(keys)


def _image_shape(builder, image_key: str, config) -> tuple[int, int, int]:
    feature = builder.info.features[image_key]
    height, width, depth = feature.shape
    size = config.image_size
    if feature.np_dtype != np.uint8 or not depth:
        raise errors.UserError(
            f"--dataset={config.dataset}: expected images of 8 bits and one number of channels, "
            f"found {feature}"
        )
    if not size and not (height and width):
        raise errors.UserError(
            f"--image_size: images of {config.dataset} differ in size; set the size to resize to"
        )
    return (size or height, size or width, config.channels or depth)


def _batches(builder, split, image_key, label_key, labeled, config) -> Iterator[tuple]:
    """Decodes a split in the order of its records, so that indices are reproducible."""
    with _quiet():
        dataset = builder.as_dataset(
            split=split,
            shuffle_files=False,
            decoders=tfds.decode.PartialDecoding({image_key: True, label_key: True}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
        )
    dataset = dataset.map(lambda example: (example[image_key], example[label_key]))
    found, classes = 0, builder.info.features[label_key].num_classes
    try:
        for images, labels, fingerprints in examples.decoded(
            dataset, config.image_size, config.channels
        ):
            found += len(labels)
            if not labeled:
                labels = np.full_like(labels, examples.UNLABELED)
            for label in labels[(labels < examples.UNLABELED) | (labels >= classes)][:1]:
                raise errors.UserError(
                    f"--dataset={config.dataset}: expected labels from 0 to {classes - 1}, or "
                    f"{examples.UNLABELED} for none, in split {split!r} of {builder.data_path}, "
                    f"found {label}"
                )
            yield images, labels, fingerprints
    except tf.errors.OpError as error:
        raise errors.UserError(
            f"--dataset={config.dataset}: cannot read split {split!r} in "
            f"{_damaged(builder, split)}: {examples.reason(error)}"
        ) from error
    expected = builder.info.splits[split].num_examples
    if found != expected:
        raise errors.UserError(
            f"--dataset={config.dataset}: expected {expected} images in split {split!r} of "
            f"{builder.data_path}, found {found}"
        )


def _damaged(builder, split: str) -> str:
    """The first file of a split with records that cannot be read; the folder if there is none."""
    for path in builder.info.splits[split].filepaths:
        try:
            for _ in tf.data.TFRecordDataset(str(path)).batch(1024):
                pass
        except tf.errors.OpError:
            return str(path)
    return str(builder.data_path)


def _files(builder, split: str) -> list:
    """Name, length and time of each file of a split: they change if the set is prepared again."""
    paths = [str(path) for path in builder.info.splits[split].filepaths]
    stats = [tf.io.gfile.stat(path) for path in paths]
    return [(path, stat.length, stat.mtime_nsec) for path, stat in zip(paths, stats)]


@contextlib.contextmanager
def _quiet():
    """Hides TFDS's log messages and deprecation warnings."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
