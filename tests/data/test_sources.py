import numpy as np
import pytest
from sklearn import datasets

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.data import examples, sources
from tests.data import make


def test_digits_are_those_of_scikit_learn():
    source = make.source(config_lib.Config(dataset="digits"))
    assert (len(source.train), len(source.test)) == (1437, 360)
    images = np.concatenate([source.train.images, source.test.images]).reshape(1797, -1)
    labels = np.concatenate([source.train.labels, source.test.labels])
    bunch = datasets.load_digits()
    ours = sorted((*image, label) for image, label in zip(images.tolist(), labels))
    theirs = np.round(bunch.data * (255 / 16)).astype(int).tolist()
    assert ours == sorted((*image, label) for image, label in zip(theirs, bunch.target))


def test_size_and_channels_of_digits():
    source = make.source(config_lib.Config(dataset="digits", image_size=16, channels=3))
    assert source.train.image_shape == (16, 16, 3)
    listing = sources.find(config_lib.Config(dataset="digits", image_size=16, channels=3))
    assert listing.bytes == 1797 * 16 * 16 * 3


@pytest.mark.parametrize("name", ["svnh", "tfds:", "folder:", "SVHN"])
def test_unknown_dataset(name):
    with pytest.raises(errors.UserError, match="--dataset: expected svhn, cifar10"):
        config_lib.Config(dataset=name)


def test_take_selects_rows_without_copying_pixels():
    images, labels = make.pixels(10), np.arange(10)
    some = examples.Examples(images, labels).take([7, 2, 5]).take([2, 0])
    np.testing.assert_array_equal(some.images, images[[5, 7]])
    np.testing.assert_array_equal(some.labels, [5, 7])
    assert some.pixels is images


def test_hash_tells_content_labels_and_order_apart():
    images, labels = make.pixels(10), np.arange(10)
    changed = images.copy()
    changed[3, 2, 1, 0] ^= 1
    sets = [
        examples.Examples(images, labels),
        examples.Examples(changed, labels),
        examples.Examples(images, labels[::-1]),
        examples.Examples(images[::-1], labels[::-1]),
    ]
    assert len({found.hash for found in sets}) == 4
    assert examples.Examples(images.copy(), labels.copy()).hash == sets[0].hash


@pytest.mark.parametrize("offset", [0, 1])
def test_as_tensor_is_right_for_any_alignment(offset):
    memory = examples._aligned((1, 4097, 1, 1)).reshape(-1)
    memory[:] = np.arange(4097) % 251
    array = memory[offset : offset + 4096].reshape(4, 32, 32, 1)
    np.testing.assert_array_equal(examples.as_tensor(array), array)
