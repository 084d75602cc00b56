"""Hints for misspelt names: the nearest one, or none."""

from rat_tf import errors

KNOWN = ("labeled", "unlabeled", "test")


def test_the_nearest_name_is_the_hint():
    assert errors.did_you_mean("labelled", KNOWN) == "; did you mean 'labeled'?"
    assert errors.did_you_mean("unlabelled", iter(KNOWN)) == "; did you mean 'unlabeled'?"


def test_without_a_near_name_there_is_none():
    assert errors.did_you_mean("photos", KNOWN) == ""
    assert errors.did_you_mean("labelled", ()) == ""


def test_the_cutoff_says_how_near():
    assert errors.did_you_mean("text files", KNOWN) == ""
    assert errors.did_you_mean("text files", KNOWN, cutoff=0.3) == "; did you mean 'test'?"
