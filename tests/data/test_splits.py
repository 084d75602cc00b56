import dataclasses
import json

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf.data import examples, sources, splits


def settings(**changes):
    return config_lib.Config(**{"dataset": "digits", "labels": 50, **changes})


def fake(labels, classes=10):
    """A source with these labels and images of one pixel."""
    labels = np.asarray(labels, np.int64)
    images = np.arange(len(labels)).astype(np.uint8).reshape(-1, 1, 1, 1)
    empty = examples.Examples(images[:0], labels[:0])
    names = tuple(f"k{i}" for i in range(classes))
    return sources.Source(examples.Examples(images, labels), empty, empty, names)


def uneven(size, seed=0):
    weights = np.arange(1, 11) / 55
    return np.random.default_rng(seed).choice(10, size, p=weights)


@pytest.mark.parametrize("size, validation", [(73_257, 7_326), (50_000, 5_000)])
def test_counts_of_the_paper(size, validation):
    labels = uneven(size)
    split = splits.split(fake(labels), settings(dataset="svhn", labels=1000))
    assert len(split.validation) == validation
    assert len(split.labeled) + len(split.unlabeled) == size - validation
    np.testing.assert_array_equal(np.bincount(labels[split.labeled]), [100] * 10)
    everything = np.concatenate([split.validation, split.labeled, split.unlabeled])
    np.testing.assert_array_equal(np.sort(everything), np.arange(size))


def test_proportional():
    labels = uneven(5000)
    split = splits.split(fake(labels), settings(labels=333, stratify="proportional"))
    assert len(split.labeled) == 333
    training = np.setdiff1d(np.arange(5000), split.validation)
    exact = np.bincount(labels[training]) * 333 / len(training)
    assert (np.abs(np.bincount(labels[split.labeled]) - exact) < 1).all()


def test_split_seed_alone_decides():
    source = fake(uneven(500))
    first = splits.split(source, settings(split_seed=3, seed=0))
    same = splits.split(source, settings(split_seed=3, seed=1))
    other = splits.split(source, settings(split_seed=4, seed=0))
    np.testing.assert_array_equal(first.labeled, same.labeled)
    assert not np.array_equal(first.labeled, other.labeled)


def test_zero_labels_is_all():
    split = splits.split(fake(uneven(500)), settings(labels=0, method="supervised"))
    assert (len(split.validation), len(split.labeled), len(split.unlabeled)) == (50, 450, 0)


def test_include_labeled():
    plain = data_lib.load(settings())
    both = data_lib.load(settings(include_labeled=True))
    assert len(both.unlabeled) == len(plain.unlabeled) + 50
    assert set(plain.labeled.rows) <= set(both.unlabeled.rows)
    assert not set(plain.labeled.rows) & set(plain.unlabeled.rows)
    assert not set(both.validation.rows) & set(both.unlabeled.rows)


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"labels": 55}, "--labels: expected a multiple of the 10 classes"),
        ({"labels": 1300}, "--labels: 1300 .* 130 of class '0', which has 121"),
        ({"labels": 2000}, "--labels: expected at most the 1437 images"),
        ({"labels": 5, "stratify": "proportional"}, "each class needs one or more"),
        ({"validation": 0.0}, "--validation"),
        ({"labels": 0}, "needs unlabelled images"),
        ({"augment_shift": 8}, "--augment_shift: expected less than the 8 pixels"),
        ({"split_file": "nowhere.json"}, "--split_file: .*nowhere.json: No such file"),
    ],
)
def test_errors_name_the_flag(changes, match):
    with pytest.raises(config_lib.UserError, match=match):
        data_lib.load(settings(**changes))


def test_saved_split_is_replayed(tmp_path):
    path = str(tmp_path / "split.json")
    first = data_lib.load(settings(split_seed=5))
    first.split.save(path)
    # Whatever would make another split has no say; the size of the images does not matter.
    again = data_lib.load(settings(split_file=path, split_seed=6, validation=0.3, image_size=10))
    for part in splits.PARTS:
        np.testing.assert_array_equal(getattr(again.split, part), getattr(first.split, part))


def test_split_of_other_images_is_refused(tmp_path):
    path = str(tmp_path / "split.json")
    split = data_lib.load(settings()).split
    dataclasses.replace(split, hash="0" * 64).save(path)
    with pytest.raises(config_lib.UserError, match="hash 0000.*not the same images"):
        data_lib.load(settings(split_file=path))


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda c: c["labeled"].append(c["validation"][0]), "each of the 1437 training images"),
        (lambda c: c["unlabeled"].pop(), "each of the 1437 training images"),
        (lambda c: c["labeled"].__setitem__(0, -1), "each of the 1437 training images"),
        (lambda c: c.pop("hash"), "expected a split.json"),
        (lambda c: c["unlabeled"].append(c["labeled"].pop()), "has 49 labelled images"),
    ],
)
def test_damaged_split_file_is_refused(tmp_path, change, match):
    path = tmp_path / "split.json"
    data_lib.load(settings()).split.save(str(path))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    changes = {"labels": 0} if "1437" in match else {}
    with pytest.raises(config_lib.UserError, match=match):
        data_lib.load(settings(split_file=str(path), **changes))
