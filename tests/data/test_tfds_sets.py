"""Sets of TFDS: read as they were written, and everything that is wrong with one is named."""

import json
import os
import shutil
import time

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_datasets.core.utils import file_utils

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors
from rat_tf.data import sources
from tests.data import make

SIZES = {"train": 40, "test": 12, "extra": 9}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    data_dir = str(tmp_path_factory.mktemp("tfds"))
    return data_dir, make.tfds_set(data_dir, "svhn_cropped", SIZES)


def settings(data_dir, **changes):
    values = {"dataset": "svhn", "data_dir": data_dir, "labels": 6}
    return config_lib.Config(**{**values, **changes})


def test_images_labels_and_order_are_those_written(prepared):
    data_dir, arrays = prepared
    source = make.source(settings(data_dir))
    for found, split in ((source.train, "train"), (source.test, "test")):
        np.testing.assert_array_equal(found.images, arrays[split][0])
        np.testing.assert_array_equal(found.labels, arrays[split][1])
    assert source.class_names == ("k0", "k1", "k2")
    assert len(source.validation) == 0


def test_any_prepared_set_is_found_by_its_name(prepared):
    data_dir, _ = prepared
    source = make.source(settings(data_dir, dataset="tfds:svhn_cropped"))
    assert source.train.hash == make.source(settings(data_dir)).train.hash


def test_extra_images_are_unlabelled_and_move_no_other(prepared):
    data_dir, arrays = prepared
    plain = data_lib.load(settings(data_dir))
    extra = data_lib.load(settings(data_dir, svhn_extra=True))
    np.testing.assert_array_equal(plain.split.labeled, extra.split.labeled)
    np.testing.assert_array_equal(plain.split.validation, extra.split.validation)
    np.testing.assert_array_equal(extra.unlabeled.images[-9:], arrays["extra"][0])
    assert (extra.unlabeled.labels[-9:] == -1).all()


def test_validation_and_unlabelled_splits_are_used(tmp_path):
    sizes = {"train": 30, "validation": 9, "unlabelled": 7}
    arrays = make.tfds_set(str(tmp_path), "mine", sizes)
    data = data_lib.load(settings(str(tmp_path), dataset="tfds:mine"))
    np.testing.assert_array_equal(data.validation.images, arrays["validation"][0])
    assert (len(data.labeled), len(data.unlabeled), len(data.test)) == (6, 24 + 7, 0)


def test_size_and_channels(prepared):
    data_dir, _ = prepared
    source = make.source(settings(data_dir, image_size=4, channels=1))
    assert source.train.image_shape == (4, 4, 1)
    # The hash is that of the images as found: a split serves every --image_size.
    assert source.train.hash == make.source(settings(data_dir)).train.hash


def test_images_of_any_size_need_image_size(tmp_path):
    make.tfds_set(str(tmp_path), "mine", {"train": 30}, declared=(None, None, 3))
    config = settings(str(tmp_path), dataset="tfds:mine")
    with pytest.raises(errors.UserError, match="--image_size: .* differ in size"):
        sources.find(config)
    sized = settings(str(tmp_path), dataset="tfds:mine", image_size=5)
    assert make.source(sized).train.image_shape == (5, 5, 3)


def test_missing_set_is_an_error_within_seconds(tmp_path):
    started = time.time()
    with pytest.raises(errors.UserError) as error:
        sources.find(settings(str(tmp_path), dataset="cifar10"))
    assert time.time() - started < 10
    for part in ("--dataset=cifar10", str(tmp_path), "python -m rat_tf.data", "--download"):
        assert part in str(error.value)


def test_the_folders_that_tfds_looks_in_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path / "default"))
    monkeypatch.setattr(file_utils, "_REGISTERED_DATA_DIRS", {tmp_path / "registered"})
    with pytest.raises(errors.UserError) as error:
        sources.find(settings("", dataset="cifar10"))
    for name in ("default", "registered"):
        assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize("name", ["foo-bar", "foo bar", "/foo", "föö-"])
def test_a_name_that_is_none_is_an_error_of_one_line(tmp_path, name):
    with pytest.raises(
        errors.UserError, match=f"^--dataset=tfds:{name}: expected the name of a TFDS set.*$"
    ):
        sources.find(settings(str(tmp_path), dataset=f"tfds:{name}"))


@pytest.mark.parametrize("bad", [3, -2])
def test_a_label_of_no_class_is_an_error(tmp_path, bad):
    make.tfds_set(str(tmp_path), "mine", {"train": 30})
    (path,) = tmp_path.rglob("*train*tfrecord*")
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    example = tf.train.Example.FromString(records[4])
    example.features.feature["label"].int64_list.value[0] = bad
    records[4] = example.SerializeToString()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    with pytest.raises(errors.UserError, match=f"labels from 0 to 2, .*'train'.* found {bad}$"):
        make.source(settings(str(tmp_path), dataset="tfds:mine"))


def test_a_bucket_without_network_is_an_error_within_seconds(monkeypatch):
    for name in ("http_proxy", "https_proxy"):  # a port that nobody listens on
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    started = time.time()
    with pytest.raises(errors.UserError, match="--data_dir=gs://some/where: .*no network"):
        sources.find(settings("gs://some/where"))
    assert time.time() - started < 10


def test_download_without_network_is_an_error_within_seconds(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy"):  # a port that nobody listens on
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    asked = {"cifar10": "https://www.cs.toronto.edu", "svhn": "http://ufldl.stanford.edu"}
    for dataset, host in asked.items():  # where the set comes from
        with pytest.raises(errors.UserError, match=f"--download: .*no network .*{host}: "):
            sources.find(settings(str(tmp_path), dataset=dataset, download=True))


def test_missing_split_is_named(tmp_path):
    make.tfds_set(str(tmp_path), "svhn_cropped", {"train": 30})
    with pytest.raises(errors.UserError, match="split 'extra'.*found train"):
        sources.find(settings(str(tmp_path), svhn_extra=True))


def test_svhn_extra_belongs_to_svhn(tmp_path):
    with pytest.raises(errors.UserError, match="--svhn_extra: expected --dataset=svhn"):
        sources.find(settings(str(tmp_path), dataset="digits", svhn_extra=True))


def test_the_label_is_the_one_that_the_set_names(tmp_path):
    """CIFAR-100 has a coarse label, too, which comes first."""
    features = {
        "coarse": tfds.features.ClassLabel(names=["c0", "c1"]),
        "image": tfds.features.Image(shape=(6, 6, 3)),
        "label": tfds.features.ClassLabel(names=["k0", "k1", "k2"]),
    }
    labels = np.arange(30) % 3
    columns = {"coarse": labels % 2, "image": make.pixels(30), "label": labels}
    make.store_tfds(str(tmp_path), "mine", features, {"train": columns})
    (path,) = tmp_path.rglob("dataset_info.json")
    items = [{"featureKey": "image"}, {"featureKey": "label"}]
    described = {**json.loads(path.read_text()), "supervisedKeys": {"tuple": {"items": items}}}
    path.write_text(json.dumps(described))
    source = make.source(settings(str(tmp_path), dataset="tfds:mine"))
    assert source.class_names == ("k0", "k1", "k2")
    np.testing.assert_array_equal(source.train.labels, labels)


def test_what_is_no_set_of_images_and_classes_is_an_error(tmp_path):
    images = {"image": tfds.features.Image(shape=(6, 6, 3))}
    make.store_tfds(str(tmp_path), "alone", images, {"train": {"image": make.pixels(3)}})
    with pytest.raises(errors.UserError, match="tfds:alone: expected an image and a class"):
        sources.find(settings(str(tmp_path), dataset="tfds:alone"))
    features = {
        "image": tfds.features.Image(shape=(6, 6, 1), dtype=np.uint16),
        "label": tfds.features.ClassLabel(num_classes=2),
    }
    deep = {"image": np.zeros((3, 6, 6, 1), np.uint16), "label": [0, 1, 0]}
    make.store_tfds(str(tmp_path), "deep", features, {"train": deep})
    with pytest.raises(errors.UserError, match="tfds:deep: expected images of 8 bits"):
        sources.find(settings(str(tmp_path), dataset="tfds:deep"))


def test_a_damaged_description_is_an_error(tmp_path):
    make.tfds_set(str(tmp_path), "mine", {"train": 3})
    (path,) = tmp_path.rglob("features.json")
    path.write_text("{")
    with pytest.raises(errors.UserError, match="cannot read mine in --data_dir"):
        sources.find(settings(str(tmp_path), dataset="tfds:mine"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "within a record",
            r"cannot read split 'train' in \S+tfrecord\S+: truncated record",
        ),
        ("between records", "split 'train'.* expected to contain 30 .* only 29"),
        ("all of it", r"cannot read split 'train' in \S+tfrecord\S+: "),
    ],
)
def test_damaged_shard_is_an_error(tmp_path, damage, message):
    make.tfds_set(str(tmp_path), "mine", {"train": 30})
    (shard,) = tmp_path.rglob("*train*tfrecord*")
    *_, last = tf.data.TFRecordDataset(str(shard)).as_numpy_iterator()
    framed = 8 + 4 + len(last) + 4  # its length and a checksum before, another after
    if damage == "all of it":
        os.remove(shard)
    else:
        cut = framed if damage == "between records" else 20
        os.truncate(shard, os.path.getsize(shard) - cut)
    with pytest.raises(errors.UserError, match=message) as error:
        make.source(settings(str(tmp_path), dataset="tfds:mine"))
    assert "{{" not in str(error.value) and "[Op:" not in str(error.value)


def test_set_larger_than_memory_gives_the_same_images_from_disk(prepared, tmp_path, caplog):
    data_dir, _ = prepared
    limited = settings(data_dir, memory_limit_gb=0, cache_dir=str(tmp_path))
    expected = make.source(settings(data_dir))
    for _ in range(2):  # decoded, then found again
        source = make.source(limited)
        assert isinstance(source.train.pixels, np.memmap)
        np.testing.assert_array_equal(source.train.images, expected.train.images)
        assert source.train.hash == expected.train.hash
        assert source.test.hash == expected.test.hash
    decoded = [record for record in caplog.records if "decoding" in record.getMessage()]
    assert len(decoded) == 2  # train and test, once each


def test_damaged_cache_is_decoded_again(prepared, tmp_path):
    data_dir, _ = prepared
    limited = settings(data_dir, memory_limit_gb=0, cache_dir=str(tmp_path))
    expected = make.source(limited).train.images
    for path in tmp_path.rglob("pixels.npy"):
        os.truncate(path, 1000)
    np.testing.assert_array_equal(make.source(limited).train.images, expected)


def test_a_set_that_is_prepared_anew_is_decoded_anew(tmp_path):
    data_dir = tmp_path / "tfds"
    cached = {"memory_limit_gb": 0, "cache_dir": str(tmp_path / "cache")}
    for sizes in ({"train": 12}, {"test": 3, "train": 12}):  # other images, of the same number
        shutil.rmtree(data_dir, ignore_errors=True)
        arrays = make.tfds_set(str(data_dir), "mine", sizes)
        (shard,) = data_dir.rglob("*train*tfrecord*")
        os.utime(shard, (len(sizes), len(sizes)))  # seconds count, and the two may be in the same
        source = make.source(settings(str(data_dir), dataset="tfds:mine", **cached))
        np.testing.assert_array_equal(source.train.images, arrays["train"][0])
