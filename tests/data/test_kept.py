"""Validation images stay validation by content, whatever happens to the files around them."""

import dataclasses
import json

import numpy as np
import pytest

from rat_tf import config as config_lib
from rat_tf import errors
from rat_tf.data import examples, sources, splits


def settings(**changes):
    return config_lib.Config(dataset="digits", method="supervised", **{"labels": 0, **changes})


def source(labels, values):
    """Images of one pixel pair that encodes their value, two classes."""
    pixels = np.array([divmod(v, 256) for v in values], np.uint8).reshape(-1, 2, 1, 1)
    train = examples.Examples(pixels, np.array(labels, np.int64))
    return sources.Source(train, train.take([]), train.take([]), ("a", "b"))


def later(seed):
    """A set in which 40 of 100 images have a label, and the same reordered with 80 labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(100) % 2
    before = source(np.where(np.arange(100) < 40, labels, -1), np.arange(100))
    order = rng.permutation(100)
    after = source(np.where(order < 80, labels[order], -1), order)
    return before, after, order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_added_labels_leave_validation_and_training_images_apart(seed, share):
    before, after, order = later(seed)
    first = splits.split(before, settings(validation=0.2, split_seed=seed))
    second = splits.split(after, settings(validation=share, split_seed=seed + 7), first)
    validation, labeled = set(order[second.validation]), set(order[second.labeled])
    assert set(first.validation) <= validation  # nothing was lost
    assert not validation & set(first.labeled)  # the weights know these labels
    # 8 before, a share of 80 now, and 40 are new.
    assert len(validation) == min(max(round(share * 80), 8), 48)
    assert validation | labeled == set(range(80)) and not validation & labeled


def test_copies_of_a_validation_image_are_validation_images_too():
    before, _, _ = later(0)
    first = splits.split(before, settings(validation=0.2))
    copied = first.validation[0]
    values = [*range(100), copied, copied]
    labels = [*before.train.labels, 0, 1]  # one of them with another label
    second = splits.split(source(labels, values), settings(validation=0.1), first)
    assert {100, 101} <= set(second.validation)


def test_removed_images_are_not_missed():
    before, _, _ = later(0)
    first = splits.split(before, settings(validation=0.2))
    kept = np.setdiff1d(np.arange(100), first.validation[:3])
    second = splits.split(source(before.train.labels[kept], kept), settings(validation=0.2), first)
    assert set(kept[second.validation]) == set(first.validation[3:])


def test_the_file_keeps_what_is_needed_and_files_without_it_are_read(tmp_path):
    before, after, order = later(0)
    path = tmp_path / "split.json"
    first = splits.split(before, settings(validation=0.2))
    first.save(str(path))
    again = splits.read(str(path))
    assert again.content == first.content and again.digest == first.digest
    content = json.loads(path.read_text())
    del content["content"]  # as the first version wrote it
    path.write_text(json.dumps(content))
    old = splits.read(str(path))
    same = splits.split(before, settings(validation=0.2, split_seed=9), old)
    np.testing.assert_array_equal(same.validation, first.validation)
    with pytest.raises(errors.UserError, match="--init_from: the images have changed"):
        splits.split(after, settings(), old)
    own = dataclasses.replace(after, validation=after.train.take([0]))
    assert not len(splits.split(own, settings(), old).validation)


@pytest.mark.parametrize("wrong", [5, "x", {"validation": 5}])
def test_a_damaged_content_is_refused(tmp_path, wrong):
    before, _, _ = later(0)
    path = tmp_path / "split.json"
    splits.split(before, settings()).save(str(path))
    path.write_text(json.dumps({**json.loads(path.read_text()), "content": wrong}))
    with pytest.raises(errors.UserError, match="--init_from: .*json: content: expected"):
        splits.read(str(path), "--init_from")


def with_validation(found, labels, values):
    """The source with validation images of its own."""
    return dataclasses.replace(found, validation=source(labels, values).train)


def test_images_of_a_validation_folder_stay_validation_in_the_training_folder():
    before = with_validation(source(np.arange(100) % 2, np.arange(100)), [0, 1, 0], [200, 201, 202])
    first = splits.split(before, settings())
    values = [*range(100), 200, 201, 202]
    after = source([*before.train.labels, 0, 1, 0], values)
    # Of the others all have been trained with; they are not used for validation.
    second = splits.split(after, settings(validation=0.5), first)
    assert list(second.validation) == [100, 101, 102]


def test_a_validation_folder_without_images_that_were_trained_with():
    before = source(np.arange(100) % 2, np.arange(100))
    first = splits.split(before, settings(validation=0.2))
    rest = np.setdiff1d(np.arange(100), first.validation)
    new = with_validation(source(rest % 2, rest), first.validation % 2, first.validation)
    assert not len(splits.split(new, settings(), first).validation)
    trained = with_validation(source(rest % 2, rest), rest[:2] % 2, rest[:2])
    with pytest.raises(errors.UserError, match="2 of the validation images of this set have been"):
        splits.split(trained, settings(), first)


def test_no_image_is_left_for_validation():
    labels = np.arange(10) % 2
    before = with_validation(source(labels, np.arange(10)), [0, 1], [200, 201])
    first = splits.split(before, settings())
    with pytest.raises(errors.UserError, match="--init_from: the labels of all images of this set"):
        splits.split(source(labels, np.arange(10)), settings(validation=0.2), first)
