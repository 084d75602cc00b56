"""Images that occur more than once."""

import types

import numpy as np

from rat_tf.data import duplicates, examples
from tests.data import make


def test_two_labels_and_copies_in_other_parts():
    """Images 0 to 9; 3 is there twice with one label, 4 twice and 5 three times with two."""
    pixels = make.pixels(10)
    which = np.array([0, 1, 2, 3, 3, 4, 4, 5, 5, 5, 6, 6])
    labels = np.array([0, 1, 0, 1, 1, 0, 1, 1, 0, 1, -1, 0])
    train = examples.Examples(pixels[which], labels, name="image {}".format)
    part = examples.Examples(pixels[[3, 7, 8]], np.array([1, 0, 1]))
    data = types.SimpleNamespace(
        train=train, labeled=train.take(np.arange(6)), unlabeled=train.take(np.arange(6, 12)),
        validation=part.take([]), test=part,
    )  # fmt: skip
    two, copies = duplicates.found(data)
    assert two == "2 images have two labels, such as image 5 and image 6: keep the right one"
    assert copies == "training sees copies of 1 of the 3 test images"
    data.train = train.take(np.array([0, 1, 2, 3, 4, 10, 11]))
    data.test = part.take([1, 2])
    assert not list(duplicates.found(data))
