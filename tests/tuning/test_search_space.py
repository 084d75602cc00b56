"""What a search varies: the paper's grid, compositions, and what is refused before any work."""

import pytest

from rat_tf import errors, transforms
from tests.tuning import searches

PAPER = {"channel_weight": 0.001, "affine": 0.1, "thin_plate_spline": 0.1, "flow_field": 0.01}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_grid(name):
    """Ten steps from the step size on, and nothing else is changed."""
    space = searches.parse("", grid=True, transforms=f"noise:6,{name}:0.5")
    step = PAPER[name]
    found = [config.transforms for config in space.probes()]
    assert found == [f"noise:6,{name}:{i * step:.6g}" for i in range(1, 11)]


def test_every_point_is_a_composition():
    space = searches.parse("epsilon.noise=0.5:2:log, xi=1e-6|1e-2", composition=True)
    found = space.hyperparameters().space
    points = [
        {hp.name: hp.random_sample(99 * i + k) for k, hp in enumerate(found)} for i in range(200)
    ]
    configs = [space.config(point) for point in points]
    orders = [tuple(t.name for t in c.transform().transforms) for c in configs]
    assert all(len(set(order)) == len(order) >= 1 for order in orders)
    assert {len(order) for order in orders} == {1, 2, 3, 4, 5}
    assert {order[0] for order in orders} == set(transforms.REGISTRY)  # each may come first
    ranges = {"noise": (0.5, 2), **{name: (step, 10 * step) for name, step in PAPER.items()}}
    for config in configs:
        for transform in config.transform().transforms:
            low, high = ranges[transform.name]
            assert 0.999 * low <= transform.epsilon <= 1.001 * high


def test_the_place_says_the_order():
    space = searches.parse("", composition=True)
    values = {f"epsilon.{name}": 0.5 for name in transforms.REGISTRY}
    places = {"noise": 0.9, "affine": 0.1, "flow_field": -0.1, "channel_weight": -1}
    values |= {f"place.{name}": places.get(name, -0.5) for name in transforms.REGISTRY}
    assert space.config(values).transforms == "affine:0.5,noise:0.5"
    values |= {"place.noise": -0.9, "place.affine": -0.8}
    assert space.config(values).transforms == "flow_field:0.5"


@pytest.mark.parametrize(
    "text, message",
    [
        ("consistency=0.1:1:log", "write consistency=0.1:1:log:5"),
        ("consistency=0.1:1", "write consistency=0.1:1:<step>"),
        ("method=rat|rats", "method=rats: --method.*did you mean 'rat'"),
        ("xi=1e-6|small", "xi=small: --xi: expected a number"),
        ("iterations=4:8:3", "iterations=7: --validate_every"),
        ("learning_rate=-1:1:0.5", "--learning_rate: expected a number > 0"),
        ("xi=1|2, xi=3|4", "twice"),
        ("transforms=noise:1|noise:2,affine:0.1, epsilon.affine=0.1|0.2", "the same ε twice"),
    ],
)
def test_mistakes_are_told_before_any_work(text, message):
    with pytest.raises(errors.UserError, match=message):
        searches.parse(text, grid=True)


def test_what_the_paper_has_no_grid_for_needs_a_search():
    with pytest.raises(errors.UserError, match="the paper has a grid for.*learning_rate"):
        searches.parse("", grid=True, method="supervised")
    with pytest.raises(errors.UserError, match="the paper has a grid for.*epsilon.noise"):
        searches.parse("", grid=True, method="vat")


def test_compositions_are_for_methods_that_transform():
    with pytest.raises(errors.UserError, match="not mean_teacher"):
        searches.parse("", composition=True, method="mean_teacher")


def test_of_many_combinations_each_value_is_tried():
    """More than are all tried for validity; the mistake is in none of the corners."""
    numbers = "consistency=0.1:10:0.1, entropy_multiplier=0.1:10:0.1, xi=1|small|2"
    with pytest.raises(errors.UserError, match="xi=small: --xi"):
        searches.parse(numbers, grid=True)


def test_whole_compositions_may_be_given():
    space = searches.parse("transforms=noise:1|noise:2,affine:0.1, xi=1|2", grid=True)
    assert [c.transforms for c in space.probes()][::2] == ["noise:1", "noise:2,affine:0.1"]
