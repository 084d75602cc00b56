import os
import time

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data as data_lib
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
    source = sources.load(settings(data_dir))
    for found, split in ((source.train, "train"), (source.test, "test")):
        np.testing.assert_array_equal(found.images, arrays[split][0])
        np.testing.assert_array_equal(found.labels, arrays[split][1])
    assert source.class_names == ("k0", "k1", "k2")
    assert len(source.validation) == 0


def test_any_prepared_set_is_found_by_its_name(prepared):
    data_dir, _ = prepared
    source = sources.load(settings(data_dir, dataset="tfds:svhn_cropped"))
    assert source.train.hash == sources.load(settings(data_dir)).train.hash


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
    source = sources.load(settings(data_dir, image_size=4, channels=1))
    assert source.train.image_shape == (4, 4, 1)
    # The hash is that of the images as found: a split serves every --image_size.
    assert source.train.hash == sources.load(settings(data_dir)).train.hash


def test_images_of_any_size_need_image_size(tmp_path):
    make.tfds_set(str(tmp_path), "mine", {"train": 30}, declared=(None, None, 3))
    config = settings(str(tmp_path), dataset="tfds:mine")
    with pytest.raises(config_lib.UserError, match="--image_size: .* differ in size"):
        sources.find(config)
    sized = settings(str(tmp_path), dataset="tfds:mine", image_size=5)
    assert sources.load(sized).train.image_shape == (5, 5, 3)


def test_missing_set_is_an_error_within_seconds(tmp_path):
    started = time.time()
    with pytest.raises(config_lib.UserError) as error:
        sources.find(settings(str(tmp_path), dataset="cifar10"))
    assert time.time() - started < 10
    for part in ("--dataset=cifar10", str(tmp_path), "python -m rat_tf.data", "--download"):
        assert part in str(error.value)


def test_download_without_network_is_an_error_within_seconds(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy"):  # a port that nobody listens on
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(config_lib.UserError, match="--download: .*no network"):
        sources.find(settings(str(tmp_path), dataset="cifar10", download=True))


def test_missing_split_is_named(tmp_path):
    make.tfds_set(str(tmp_path), "svhn_cropped", {"train": 30})
    with pytest.raises(config_lib.UserError, match="split 'extra'.*found train"):
        sources.find(settings(str(tmp_path), svhn_extra=True))


def test_svhn_extra_belongs_to_svhn(tmp_path):
    with pytest.raises(config_lib.UserError, match="--svhn_extra: expected --dataset=svhn"):
        sources.find(settings(str(tmp_path), dataset="digits", svhn_extra=True))


@pytest.mark.parametrize("damage", ["truncate", "delete"])
def test_damaged_shard_is_an_error(tmp_path, damage):
    make.tfds_set(str(tmp_path), "mine", {"train": 30})
    (shard,) = tmp_path.rglob("*train*tfrecord*")
    if damage == "truncate":
        os.truncate(shard, os.path.getsize(shard) - 20)
    else:
        os.remove(shard)
    with pytest.raises(config_lib.UserError, match="split 'train'"):
        sources.load(settings(str(tmp_path), dataset="tfds:mine"))


def test_set_larger_than_memory_gives_the_same_images_from_disk(prepared, tmp_path, caplog):
    data_dir, _ = prepared
    limited = settings(data_dir, memory_limit_gb=0, cache_dir=str(tmp_path))
    expected = sources.load(settings(data_dir))
    for _ in range(2):  # decoded, then found again
        source = sources.load(limited)
        assert isinstance(source.train.pixels, np.memmap)
        np.testing.assert_array_equal(source.train.images, expected.train.images)
        assert source.train.hash == expected.train.hash
        assert source.test.hash == expected.test.hash
    decoded = [record for record in caplog.records if "decoding" in record.getMessage()]
    assert len(decoded) == 2  # train and test, once each


def test_damaged_cache_is_decoded_again(prepared, tmp_path):
    data_dir, _ = prepared
    limited = settings(data_dir, memory_limit_gb=0, cache_dir=str(tmp_path))
    expected = sources.load(limited).train.images
    for path in tmp_path.rglob("pixels.npy"):
        os.truncate(path, 1000)
    np.testing.assert_array_equal(sources.load(limited).train.images, expected)
