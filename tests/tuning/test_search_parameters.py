"""One parameter of --search: the values that a text stands for, and texts that are none."""

import keras_tuner as kt
import pytest

from rat_tf import errors
from rat_tf.tuning import search_parameters

USED = ("noise", "affine", "thin_plate_spline")


def parse(text):
    name, _, values = text.partition("=")
    return search_parameters.parse(name, values, USED)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("consistency=0.1:0.5:0.1", [0.1, 0.2, 0.3, 0.4, 0.5]),  # 0.3, not 0.30000000000000004
        ("consistency=0:1:0.4", [0.0, 0.4, 0.8]),  # the stop only if a step ends there
        ("consistency=0.01:1:log:3", [0.01, 0.1, 1.0]),
        ("labels=10:40:10", [10, 20, 30, 40]),
        ("labels=10:40:log:3", [10, 20, 40]),
        ("labels=1:3:log:9", [1, 2, 3]),  # what is the same when rounded is there once
        ("consistency=10|9|0.5", [0.5, 9.0, 10.0]),  # by number, not by letter
        ("xi=0.5eps | 1e-6", ["0.5eps", "1e-6"]),
        ("augment_flip=true|False", [True, False]),
        ("epsilon.tps=1|2", [1.0, 2.0]),
    ],
)
def test_some_values(text, expected):
    parameter = parse(text)
    found = [parameter.value(value) for value in parameter.values]
    assert found == expected and [type(v) for v in found] == [type(v) for v in expected]
    assert parameter.ends() == parameter.values


def test_another_name_of_a_transformation_is_the_same_parameter():
    assert parse("epsilon.tps=1|2") == parse("epsilon.thin_plate_spline=1|2")


@pytest.mark.parametrize(
    "text, sampling",
    [("consistency=0.1:1", "linear"), ("xi=1e-6:1e-2:log", "log"), ("labels=10:40", "linear")],
)
def test_all_values_of_a_range(text, sampling):
    space = kt.HyperParameters()
    parse(text).add_to(space)
    (found,) = space.space
    assert (found.min_value, found.max_value) == parse(text).ends()
    assert found.sampling == sampling


def test_a_number_becomes_what_its_flag_takes():
    assert parse("consistency=0.1:1").value(0.123456) == 0.1235  # four digits
    assert parse("labels=10:40").value(12.7) == 13
    assert parse("xi=1e-6:1e-2:log").value(1.23456e-5) == "1.235e-05"


@pytest.mark.parametrize(
    "text, message",
    [
        ("consistancy=1|2", "no flag 'consistancy'; did you mean 'consistency'"),
        ("epsilon.afine=0.1:1:0.1", "got epsilon.afine; did you mean 'affine'"),
        ("epsilon.flow_field=0.1:1:0.1", "one of noise, affine"),
        ("data_dir=a|b", "data_dir says where"),
        ("run_dir=a|b", "run_dir says where"),
        ("consistency=1:0.1:0.1", "start < stop"),
        ("consistency=0:1:log:3", "start > 0"),
        ("consistency=0.3", "expected consistency=<start>:<stop>:<step>"),
        ("consistency=0.1:1:0.1:5", "expected consistency=<start>:<stop>:<step>"),
        ("consistency=0.1:nan", "expected consistency=<start>:<stop>:<step>"),
        ("consistency=0.1:1:2", "a step > 0 and <= stop - start"),
        ("consistency=0.1:1:log:1", "a count >= 2"),
        ("consistency=0:1:1e-5", "has 100001 values"),
        ("consistency=1|2|1", "has a value twice"),
        ("consistency=0.1|high", "consistency takes numbers, got 'high'"),
        ("labels=10:11:0.5", "labels takes whole numbers, got '10.5'"),
        ("augment_flip=true|maybe", "takes true or false"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(errors.UserError, match=message):
        parse(text)
