"""The plan of a sweep: the runs that a line asks for, and what is refused."""

import pytest

from rat_tf import errors
from rat_tf.config import flag_values
from rat_tf.experiments import paper
from rat_tf.experiments import plan as plan_lib
from rat_tf.methods.options import rat

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")
DIGITS = "configs/digits50.cfg"


def plan(root="runs", given=None, vary=(), seeds="", split_per_seed=False, flagfiles=(DIGITS,)):
    return plan_lib.plan(
        flagfiles, given or {}, plan_lib.axes(vary, seeds), str(root), split_per_seed
    )


def test_all_combinations_with_folders_of_their_own():
    planned = plan(vary=["method=rat|vat; labels=20|50", "transforms=noise:1|noise:2,affine:2"])
    assert len(planned) == 8 and len({run.config.run_dir for run in planned}) == 8
    combinations = {(r.config.method, r.config.labels, str(r.config.transforms)) for r in planned}
    assert len(combinations) == 8 and ("vat", 20, "noise:2,affine:2") in combinations
    assert plan(seeds="2")[1].config.run_dir == "runs/digits50/rat-seed1"  # as training names it


@pytest.mark.parametrize(
    ("vary", "seeds", "expected"),
    [
        (["seed=0..2|7"], "", ["0", "1", "2", "7"]),
        ([], "3", ["0", "1", "2"]),
        ([], "2..4", ["2", "3", "4"]),
        (["seed=1|1"], "", ["1"]),
    ],
)
def test_seeds(vary, seeds, expected):
    assert plan_lib.axes(vary, seeds) == {"seed": expected}


def test_arguments_make_the_planned_config():
    """What training would make of the command is the config that was checked."""
    given = {"iterations": "200", "tensorboard": "false", "adversary": "gradient"}
    for run in plan(given=given, vary=["xi=1e-6|1e-2"]):
        values = flag_values.of_arguments(run.arguments())
        assert flag_values.to_config(values, given=run.flags) == run.config
        assert run.config.iterations == 200 and not run.config.tensorboard


def test_a_flag_that_one_method_has_no_use_for_is_left_out_there():
    given = {"ascent": "steepest", "adversary": "gradient"}
    planned = plan(given=given, vary=["method=rat|supervised; xi=1e-6|1e-2"])
    found = [(r.config.method, r.config.xi and str(r.config.xi), r.config.ascent) for r in planned]
    assert found == [
        ("rat", "1e-6", "steepest"),
        ("rat", "0.01", "steepest"),
        ("supervised", None, None),
    ]
    assert not {"xi", "ascent"} & planned[2].flags.keys()


def test_a_flag_that_one_search_has_no_use_for_is_left_out_there():
    searches = "adversary=gradient|worst_of|both; candidates=2|8; xi=0.1eps|1eps"
    planned = plan(vary=[searches])
    found = [(r.config.adversary, r.config.candidates, str(r.config.xi)) for r in planned]
    expected = [("gradient", rat.CANDIDATES, xi) for xi in ("0.1eps", "1eps")]
    expected += [("worst_of", candidates, "1e-6") for candidates in (2, 8)]
    expected += [("both", c, xi) for c in (2, 8) for xi in ("0.1eps", "1eps")]
    assert found == expected
    assert len({run.config.run_dir for run in planned}) == len(planned)
    with pytest.raises(errors.UserError, match="--xi: not used by --adversary=worst_of, got 0.1e"):
        plan(given={"adversary": "worst_of"}, vary=["xi=0.1eps|1eps"])


def test_a_share_of_the_images_is_checked_with_the_plan():
    with pytest.raises(errors.UserError, match="--adversary_share: .*whole number of the 50"):
        plan(vary=["adversary_share=0.01|0.5"])


def test_the_same_run_written_in_two_ways_is_one():
    assert len(plan(vary=["learning_rate=1e-3|0.001"])) == 1
    planned = plan(vary=["method=rat|vat; transforms=noise:1|noise:1,affine:0.3"])
    assert [run.config.method for run in planned] == ["rat", "rat", "vat"]


def test_one_split_for_all_seeds_unless_asked_otherwise():
    assert [run.config.split_seed for run in plan(seeds="3")] == [1, 1, 1]
    planned = plan(seeds="3", split_per_seed=True)
    assert [(run.config.seed, run.config.split_seed) for run in planned] == [(0, 1), (1, 2), (2, 3)]
    assert not {r.config.run_dir for r in planned} & {r.config.run_dir for r in plan(seeds="3")}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vary": ["metod=rat"]}, ["--vary", "'metod'", "'method'"]),
        ({"vary": ["method"]}, ["--vary", "'method'"]),
        ({"vary": ["method=rat||vat"]}, ["--vary", "<value>|<value>"]),
        ({"vary": ["method=rat|vta"]}, ["--method", "'vta'", "'vat'"]),
        ({"vary": ["labels=20|many"]}, ["labels", "many"]),
        ({"vary": ["seed=1"], "seeds": "2"}, ["--seed", "twice"]),
        ({"vary": ["consistency=0.1:1"]}, ["--vary", "a sweep", "use consistency=0.1:1:<step>"]),
        ({"seeds": "0"}, ["--seeds", "'0'"]),
        ({"seeds": "4..2"}, ["--seeds", "4..2"]),
        ({"given": {"seed": "1"}, "seeds": "2"}, ["--seed", "given and varied"]),
        ({"given": {"run_dir": "x"}}, ["--run_dir", "--runs"]),
        (
            {"given": {"xi": "1"}, "vary": ["method=supervised|random"]},
            ["--xi", "not used by any run"],
        ),
        ({"flagfiles": ("configs/missing.cfg",)}, ["missing.cfg"]),
        ({"given": {"iterations": "1009"}}, ["--validate_every", "--iterations=1009"]),
    ],
)
def test_mistakes_are_named_before_anything_runs(changes, words):
    with pytest.raises(errors.UserError) as error:
        plan(**changes)
    assert [word for word in words if word not in str(error.value)] == [], error.value


def test_beside_the_paper_a_flag_goes_to_the_methods_that_use_it():
    planned = plan_lib.plan_paper("table5", {"dataset": "svhn", "xi": "0.1eps"}, {}, "runs")
    found = {run.config.method: run.config.xi and str(run.config.xi) for run in planned}
    assert found["rat"] == found["vat"] == "0.1eps" and found["supervised"] is None
    with pytest.raises(errors.UserError, match="--sharpening: not used"):
        plan_lib.plan_paper("table5", {"sharpening": "0.1"}, {}, "runs")


def test_a_table_of_the_paper():
    seeds = plan_lib.axes([], "5")
    planned = plan_lib.plan_paper("table5", {"dataset": "svhn", "data_dir": "d"}, seeds, "runs")
    assert len(planned) == 9 * 5
    assert {run.config.dataset for run in planned} == {"svhn"}
    assert {run.config.data_dir for run in planned} == {"d"}
    everything = {
        run.config.run_dir
        for name in paper.TABLES
        for run in plan_lib.plan_paper(name, {}, {}, "runs")
    }
    assert len(everything) == len(paper.rows())  # no two rows share a folder
    few = plan_lib.plan_paper("figure2", {"labels": "250", "method": "rat"}, {}, "runs")
    assert [(r.config.dataset, r.config.labels, str(r.config.transforms)) for r in few] == [
        ("svhn", 250, "noise:5,affine:0.6"),
        ("cifar10", 250, "noise:6,affine:1"),
    ]


@pytest.mark.parametrize(
    ("name", "given", "vary", "words"),
    [
        ("tabel5", {}, [], ["--paper", "'tabel5'", "'table5'"]),
        ("table4", {"dataset": "svhn"}, [], ["table4", "no row", "--dataset=svhn"]),
        ("table5", {}, ["labels=1|2"], ["--labels", "--paper=table5"]),
    ],
)
def test_mistakes_with_the_paper(name, given, vary, words):
    with pytest.raises(errors.UserError) as error:
        plan_lib.plan_paper(name, given, plan_lib.axes(vary), "runs")
    assert [word for word in words if word not in str(error.value)] == [], error.value
