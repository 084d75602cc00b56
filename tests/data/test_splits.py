import dataclasses
import json

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import data as data_lib
from rat_tf import errors
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
        ({"labels": 1290}, "--labels: 1290 .* 129 of class '0', which has 121"),
        ({"labels": 5, "stratify": "proportional"}, "each class needs at least one"),
        ({"labels": 0}, "needs unlabelled images"),
        ({"augment_shift": 8}, "--augment_shift: expected less than the 8 pixels"),
        ({"split_file": "nowhere.json"}, "--split_file: .*nowhere.json: No such file"),
    ],
)
def test_errors_name_the_flag(changes, match):
    with pytest.raises(errors.UserError, match=match):
        data_lib.load(settings(**changes))


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"labels": 1300}, "--labels: expected at most the 1293 images"),  # 1437 without a tenth
        ({"validation": 0.0}, "--validation: .* 0 of 1437 labelled images is none.*validation/"),
        ({"split_file": __file__}, "--split_file: .*not valid JSON"),
    ],
)
def test_what_sizes_tell_is_an_error_before_images_are_read(monkeypatch, changes, match):
    monkeypatch.setattr(sources, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(errors.UserError, match=match):
        data_lib.load(settings(**changes))


def test_a_validation_part_leaves_all_labels(monkeypatch):
    listing = sources.find(settings())
    own = dataclasses.replace(listing, validation=listing.test)
    splits.check(own, settings(labels=1430, validation=0.0))
    with pytest.raises(errors.UserError, match="at most the 1437 images"):
        splits.check(own, settings(labels=1440))


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
    with pytest.raises(
        errors.UserError, match="hash 0000.*the images, files or labels have changed"
    ):
        data_lib.load(settings(split_file=path))


def damaged(path, part, value):
    """Writes the split of the digits with something else as one part; the labels that it has."""
    content = {k: np.array(v).tolist() for k, v in vars(data_lib.load(settings()).split).items()}
    content[part] = value(content) if callable(value) else value
    path.write_text(json.dumps(content))
    return len(content["labeled"]) if isinstance(content["labeled"], list) else 0


@pytest.mark.parametrize(
    "part, value, found",
    [
        ("labeled", "abc", "'abc'"),
        ("labeled", None, "None"),
        ("unlabeled", {"0": 1}, "{'0': 1}"),
        ("validation", [[0, 1], [2]], r"\[0, 1\]"),
        ("validation", [3, 1.0], "1.0"),
        ("validation", ["7"], "'7'"),
        ("validation", [True], "True"),
        ("labeled", [5, -1, -2], "-1"),
        ("labeled", [10**30], "10000"),
        ("hash", 5, "5"),
        ("hash", None, "None"),
    ],
)
def test_a_split_file_of_other_types_is_refused(tmp_path, part, value, found):
    damaged(tmp_path / "split.json", part, value)
    with pytest.raises(errors.UserError, match=f"split.json: {part}: expected .* found {found}"):
        splits.read(str(tmp_path / "split.json"))


@pytest.mark.parametrize("text", ["", "[]", "null", "5", "{", "[" * 100_000, "\0"])
def test_a_split_file_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(errors.UserError, match="split.json: .*expected the split.json of a run"):
        splits.read(str(tmp_path / "split.json"))


@pytest.mark.parametrize(
    "part, value, match",
    [
        ("labeled", lambda c: [*c["labeled"], 1437], "of the 1437 training images, found 1437"),
        ("labeled", lambda c: [*c["labeled"], c["validation"][3]], r"found index \d+ 2 times"),
        ("unlabeled", lambda c: c["unlabeled"][1:], r"found index \d+ 0 times"),
    ],
)
def test_a_split_file_of_other_indices_is_refused(tmp_path, part, value, match):
    path = tmp_path / "split.json"
    labels = damaged(path, part, value)
    with pytest.raises(errors.UserError, match=f"--split_file: .*json: expected .*{match}"):
        data_lib.load(settings(split_file=str(path), labels=labels))


def test_another_number_of_labels_than_in_the_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "split.json"
    labels = damaged(path, "labeled", lambda c: c["labeled"][1:])
    monkeypatch.setattr(sources, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(errors.UserError, match="--labels: .* has 49 labelled images"):
        data_lib.load(settings(split_file=str(path), labels=labels + 1))


@pytest.mark.parametrize(
    "parts, match",
    [
        ([[], [0, 1], [2, 3]], "expected validation images"),
        ([[0, 1], [], [2, 3]], "labelled images of every class, found none of 'k0'"),
        ([[1], [0], [2, 3]], "labelled images of every class, found none of 'k1'"),
        ([[0], [1, 2], [3]], "a label in labeled, found index 2 without one"),
        ([[3], [0, 1], [2]], "a label in validation, found index 3 without one"),
    ],
)
def test_a_split_file_that_nothing_can_be_trained_by_is_refused(tmp_path, parts, match):
    source = fake([0, 1, -1, -1], classes=2)
    path = str(tmp_path / "split.json")
    splits.Split(*(np.array(part, int) for part in parts), source.train.hash).save(path)
    with pytest.raises(errors.UserError, match=f"--split_file: .*{match}"):
        splits.load(path, source, settings(labels=0))


def test_a_split_file_without_validation_serves_a_set_with_its_own(tmp_path):
    source = fake([0, 1, 1, -1], classes=2)
    path = str(tmp_path / "split.json")
    parts = [np.array(part, int) for part in ([], [0, 1], [2, 3])]
    splits.Split(*parts, source.train.hash).save(path)
    own = dataclasses.replace(source, validation=source.train.take([0]))
    np.testing.assert_array_equal(splits.load(path, own, settings(labels=0)).unlabeled, [2, 3])
