"""The grammar of --vary and --search, against values written by hand."""

import pytest

from rat_tf import errors
from rat_tf.config import ranges


def parse(text, kind):
    ((name, values),) = ranges.split("--vary", text)
    return ranges.parse("--vary", name, values, kind)


@pytest.mark.parametrize(
    "text, kind, expected",
    [
        ("xi=0.5eps | 1e-6", "str", ["0.5eps", "1e-6"]),
        ("method=rat", "str", ["rat"]),
        ("transforms=noise:1|noise:1,affine:0.3", "str", ["noise:1", "noise:1,affine:0.3"]),
        ("mixup=true|False", "bool", ["true", "False"]),
        ("mixup=1|0", "bool", ["1", "0"]),
        ("seed=1|1", "int", ["1"]),
        ("seed=0..2|7", "int", ["0", "1", "2", "7"]),
        ("seed=-1..1", "int", ["-1", "0", "1"]),
        ("consistency=1..3", "float", ["1", "2", "3"]),
        ("consistency=0.1:0.5:0.1", "float", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("consistency=0:1:0.4", "float", ["0", "0.4", "0.8"]),  # the stop only if a step ends there
        ("consistency=1:3:1|0.5", "float", ["1", "2", "3", "0.5"]),
        ("consistency=0.01:1:log:3", "float", ["0.01", "0.1", "1"]),
        ("xi=1e-6:1e-2:log:3", "str", ["1e-06", "0.0001", "0.01"]),
        ("labels=10:40:10", "int", ["10", "20", "30", "40"]),
        ("labels=10:40:log:3", "int", ["10", "20", "40"]),
        ("labels=1:3:log:9", "int", ["1", "2", "3"]),  # what is the same when rounded is there once
        ("iterations=1000000:2000000:500000", "int", ["1000000", "1500000", "2000000"]),
    ],
)
def test_lists(text, kind, expected):
    found = parse(text, kind)
    assert list(found.values) == expected
    found.check_list("--vary", "a sweep")


@pytest.mark.parametrize(
    "text, kind, low, high, log, write",
    [
        ("consistency=0.1:1", "float", 0.1, 1, False, "use consistency=0.1:1:<step>"),
        ("labels=10:40", "int", 10, 40, False, "use labels=10:40:<step>"),
        ("xi=1e-6 : 1e-2 : log", "str", 1e-6, 1e-2, True, "use xi=1e-06:0.01:log:5"),
    ],
)
def test_ranges(text, kind, low, high, log, write):
    found = parse(text, kind)
    assert (found.values, found.low, found.high, found.log) == ((), low, high, log)
    with pytest.raises(errors.UserError, match=f"--vary: a sweep needs a list of values.*{write}$"):
        found.check_list("--vary", "a sweep")


@pytest.mark.parametrize("separator", ["; ", ", ", ";"])
def test_parameters_are_separated_by_semicolons_or_commas(separator):
    text = separator.join(["transforms=noise:1|noise:2,affine:2", "epsilon.affine=0.1:1", "seed=1"])
    assert ranges.split("--search", text) == [
        ("transforms", "noise:1|noise:2,affine:2"),
        ("epsilon.affine", "0.1:1"),
        ("seed", "1"),
    ]
    assert ranges.split("--search", " ") == []


@pytest.mark.parametrize(
    "text, kind, message",
    [
        ("method", "str", r"expected <flag>=<value>\|<value>.*got 'method'"),
        ("method=", "str", r"expected <flag>=<value>\|<value>.*got 'method='"),
        ("method=rat||vat", "str", r"expected <value>\|<value>.*got method=rat\|\|vat"),
        ("seed=4..2", "int", "expected a <= b in <a>..<b>, got seed=4..2"),
        ("seed=0..99999", "int", "expected at most 10000 values"),
        ("consistency=1:0.1:0.1", "float", "expected start < stop, got consistency=1:0.1:0.1"),
        ("consistency=0:1:log:3", "float", "start > 0"),
        ("consistency=0.1:1:0.1:5", "float", "<start>:<stop>:<step>"),
        ("consistency=0.1:nan", "float", "<start>:<stop>:<step>"),
        ("consistency=0.1:1|2", "float", "<start>:<stop>:<step>"),
        ("consistency=0.1:1:2", "float", "0 < step <= stop - start"),
        ("consistency=0.1:1:log:1", "float", "a count >= 2"),
        ("consistency=0:1:1e-5", "float", "at most 10000 values"),
        ("consistency=0.1|high", "float", r"expected numbers, got consistency=0.1\|high"),
        ("labels=20|many", "int", "expected whole numbers, got"),
        ("labels=10:11:0.5", "int", "expected whole numbers, got"),
        ("augment_flip=true|maybe", "bool", "expected true or false, got"),
        ("augment_flip=0:1", "bool", "expected"),
        ("augment_flip=0..1", "bool", "expected true or false"),
    ],
)
def test_mistakes(text, kind, message):
    with pytest.raises(errors.UserError, match=f"--vary: .*{message}"):
        parse(text, kind)


def test_a_text_becomes_what_its_flag_takes():
    found = [ranges.convert(*given) for given in [("3", "int"), ("3", "float"), ("3", "str")]]
    assert found == [3, 3.0, "3"] and [type(value) for value in found] == [int, float, str]
    assert ranges.convert("True", "bool") is True and ranges.convert("f", "bool") is False
