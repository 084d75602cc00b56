"""What a search varies: the paper's grid, compositions, and what is refused before any work."""

import pytest

from rat_tf import errors
from rat_tf.methods.options import rat
from rat_tf.tuning import oracles, search_space
from tests.tuning import searches

PAPER = {"channel_weight": 0.001, "affine": 0.1, "thin_plate_spline": 0.1, "flow_field": 0.01}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_grid(name):
    """Ten steps from the step size on, and nothing else is changed."""
    space = searches.parse("", tuner="grid", transforms=f"noise:6,{name}:0.5")
    step = PAPER[name]
    found = [str(config.transforms) for config in space.probes()]
    assert found == [f"noise:6,{name}:{i * step:.6g}" for i in range(1, 11)]


def test_a_trial_has_the_flags_that_its_search_uses():
    text = "adversary=gradient|worst_of, xi=0.1eps|1eps, candidates=2|8"
    found = {
        (config.adversary, str(config.xi), config.candidates)
        for config in searches.parse(text, tuner="grid", transforms="affine:0.3").probes()
    }
    assert found == {
        *(("gradient", xi, rat.CANDIDATES) for xi in ("0.1eps", "1eps")),
        *(("worst_of", "1e-6", candidates) for candidates in (2, 8)),
    }


def test_every_point_is_a_composition():
    space = searches.parse("epsilon.noise=0.5:2:log, xi=1e-6|1e-2", composition=True)
    found = oracles.make("random", space, 20).get_space().space
    points = [
        {hp.name: hp.random_sample(99 * i + k) for k, hp in enumerate(found)} for i in range(200)
    ]
    configs = [space.config(point) for point in points]
    orders = [tuple(c.transforms.epsilons) for c in configs]
    assert all(len(set(order)) == len(order) >= 1 for order in orders)
    assert {len(order) for order in orders} == {1, 2, 3, 4, 5}
    assert {order[0] for order in orders} == set(search_space.COMPOSED)  # each may come first
    ranges = {"noise": (0.5, 2), **{name: (step, 10 * step) for name, step in PAPER.items()}}
    for config in configs:
        for name, epsilon in config.transforms.parts:
            assert 0.999 * ranges[name][0] <= epsilon <= 1.001 * ranges[name][1]


def test_the_place_says_the_order():
    space = searches.parse("", composition=True)
    values = {f"epsilon.{name}": 0.5 for name in search_space.COMPOSED}
    places = {"noise": 0.9, "affine": 0.1, "flow_field": -0.1, "channel_weight": -1}
    values |= {f"place.{name}": places.get(name, -0.5) for name in search_space.COMPOSED}
    assert str(space.config(values).transforms) == "affine:0.5,noise:0.5"
    values |= {"place.noise": -0.9, "place.affine": -0.8}
    assert str(space.config(values).transforms) == "flow_field:0.5"


@pytest.mark.parametrize(
    "text, message",
    [
        ("consistency=0.1:1:log", "--tuner=grid needs a list.*use consistency=0.1:1:log:5"),
        ("consistency=0.1:1", "use consistency=0.1:1:<step>"),
        ("method=rat|rats", "method=rats: --method.*did you mean 'rat'"),
        ("xi=1e-6|small", "xi=small: --xi: expected a number"),
        ("iterations=4:8:3", "iterations=7: --validate_every"),
        ("learning_rate=-1:1:0.5", "--learning_rate: expected a number > 0"),
        ("xi=1|2, xi=3|4", "xi is given twice"),
        ("epsilon.affine=1|2; epsilon.affine=3|4", "epsilon.affine is given twice"),
        ("consistancy=1|2", "changes the result, got 'consistancy'; did you mean 'consistency'"),
        ("epsilon.afine=0.1:1:0.1", "got epsilon.afine; did you mean 'affine'"),
        ("epsilon.flow_field=0.1:1:0.1", "one of noise, affine"),
        ("data_dir=a|b", "a flag that changes the result, got 'data_dir'"),
        ("run_dir=a|b", "a flag that changes the result, got 'run_dir'"),
        ("consistency=0.3", "two values or more, got consistency=0.3"),
        ("consistency=0.1|high", "expected numbers, got consistency"),
        ("transforms=noise:1|noise:2,affine:0.1, epsilon.affine=0.1|0.2", "all set ε"),
    ],
)
def test_mistakes_are_told_before_any_work(text, message):
    with pytest.raises(errors.UserError, match=message):
        searches.parse(text, tuner="grid")


def test_what_the_paper_has_no_grid_for_needs_a_search():
    with pytest.raises(errors.UserError, match="the paper has a grid for.*learning_rate"):
        searches.parse("", tuner="grid", method="supervised")
    with pytest.raises(errors.UserError, match="the paper has a grid for.*epsilon.noise"):
        searches.parse("", tuner="grid", method="vat")


def test_compositions_are_for_methods_that_transform():
    with pytest.raises(errors.UserError, match="--transforms: not used by --method=mean_teacher"):
        searches.parse("", composition=True, method="mean_teacher")
    with pytest.raises(errors.UserError, match="--method=vat needs noise"):
        searches.parse("", composition=True, method="vat")


def test_of_many_combinations_each_value_is_tried():
    """More than are all tried for validity; the mistake is in none of the corners."""
    numbers = "consistency=0.1:10:0.1, entropy_multiplier=0.1:10:0.1, xi=1|small|2"
    with pytest.raises(errors.UserError, match="xi=small: --xi"):
        searches.parse(numbers, tuner="grid")


def test_whole_compositions_may_be_given():
    space = searches.parse("transforms=noise:1|noise:2,affine:0.1, xi=1|2", tuner="grid")
    assert [str(c.transforms) for c in space.probes()][::2] == ["noise:1", "noise:2,affine:0.1"]


def test_numbers_are_in_order_and_have_their_flags_types():
    space = searches.parse("consistency=10|9|0.5; labels=10:30:10; augment_flip=true|False")
    lists = [parameter.values for parameter in space.parameters]
    assert lists == [("0.5", "9", "10"), ("10", "20", "30"), ("true", "False")]
    found = space.shown({"consistency": "9", "labels": "20", "augment_flip": "False"})
    assert found == {"consistency": 9.0, "labels": 20, "augment_flip": False}


def test_numbers_of_a_range_become_what_their_flags_take():
    space = searches.parse("consistency=0.1:1, labels=10:40, xi=1e-6:1e-2:log")
    found = space.shown({"consistency": 0.123456, "labels": 12.7, "xi": 1.23456e-5})
    assert found == {"consistency": 0.1235, "labels": 13, "xi": "1.235e-05"}  # four digits
    scales = [hp.sampling for hp in oracles.make("random", space, 20).get_space().space]
    assert scales == ["linear", "linear", "log"]


def test_another_name_of_a_transformation_is_the_same_parameter():
    changes = {"transforms": "noise:1,tps:1"}
    short = searches.parse("epsilon.tps=1|2", **changes)
    long = searches.parse("epsilon.thin_plate_spline=1|2", **changes)
    assert short.parameters == long.parameters


def test_hyperband_itself_varies_the_steps():
    with pytest.raises(errors.UserError, match="iterations is already varied by --tuner=hyperband"):
        searches.parse("iterations=6|12", tuner="hyperband")
