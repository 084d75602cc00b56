"""The tables of docs/evidence.md: ε by validation on seeds of their own, tests on the others."""

import pathlib

import numpy as np
import pytest
import scipy.stats

from benchmarks import evidence, evidence_arms, evidence_figures, evidence_records
from rat_tf import errors
from tests.experiments import run_folders

GRADIENT = "gradient, paper, ξ = 1e-6"  # the defaults of RAT
VALIDATION = {("rat", 0.1): 0.2, ("rat", 0.3): 0.1, ("random", 0.3): 0.4, ("random", 0.6): 0.3}
TEST = {("rat", 0.3): [4.0, 5.0, 7.0], ("random", 0.6): [6.0, 6.5, 9.5], ("rat", 0.1): [1.0]}
TEST["random", 0.3] = [8.0, 9.0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tuning runs have seed 100; their test errors, all 0, must not be looked at."""
    folder = tmp_path_factory.mktemp("runs")

    def write(method, epsilon, seed, error, validation):
        flags = {"method": method, "transforms": f"affine:{epsilon}", "image_size": 8}
        path = folder / f"{method}-{epsilon}-{seed}"
        run_folders.write(path, error / 100, seed=seed, split_seed=seed + 1, **flags)
        rows = f"step,seconds,val_error\n10,1,{validation + 0.05}\n20,2,{validation}\n30,3,0.9\n"
        pathlib.Path(path, "metrics.csv").write_text(rows)

    for (method, epsilon), validation in VALIDATION.items():
        write(method, epsilon, 100, 0, validation)
    for (method, epsilon), found in TEST.items():
        for seed, error in enumerate(found):
            write(method, epsilon, seed, error, 0.5)
    return evidence_arms.experiments(evidence.records([str(folder)]), tuning=100)


def test_epsilon_is_chosen_by_the_tuning_runs(made):
    ((_, transforms),) = made.items()
    arms = transforms["affine",]
    assert {name: arm.epsilon for name, arm in arms.items()} == {GRADIENT: (0.3,), "Random": (0.6,)}
    assert arms[GRADIENT].validation((0.3,)) == pytest.approx(10)
    assert list(arms[GRADIENT].errors.values()) == pytest.approx(TEST["rat", 0.3])


def test_differences_and_their_tests(made):
    ((_, transforms),) = made.items()
    rat, random = TEST["rat", 0.3], TEST["random", 0.6]
    differences, p, welch = evidence.paired(
        *(transforms["affine",][n].errors for n in (GRADIENT, "Random"))
    )
    np.testing.assert_allclose(differences, np.subtract(rat, random))
    assert p == pytest.approx(scipy.stats.ttest_rel(rat, random).pvalue)
    assert welch == pytest.approx(scipy.stats.ttest_ind(rat, random, equal_var=False).pvalue)
    text = evidence.table(transforms)
    line = f"| affine | 6 | {GRADIENT} | 0.3 | 10.0 | 5.33 ± 1.53 | 3 | −2.00 ± 0.50 | 0.020 |"
    assert line in text
    assert "| affine | 6 | Random at that ε | 0.3 | 40.0 | 8.50 ± 0.71 | 2 | +2.25 ± 0.35 |" in text


def test_figures(made, tmp_path):
    for name in ("epsilon", "errors", "steps"):
        path = tmp_path / f"{name}.png"
        getattr(evidence_figures, f"{name}_figure")(str(path), made)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_compositions_and_objectives_are_told_apart(tmp_path, capsys):
    shared = {"image_size": 8, "seed": 100, "split_seed": 101}
    described = {
        "two": {"transforms": "affine:0.3,channel:0.5"},
        "other": {"transforms": "affine:0.3,channel:0.25"},
        "one": {"transforms": "affine:0.3"},
        "sure": {"transforms": "affine:0.3", "target_threshold": 0.8},
        "none": {"method": "supervised"},
    }
    for place, (name, flags) in enumerate(described.items()):
        run_folders.write(tmp_path / name, 0.1, **{"method": "random", **flags, **shared})
        rows = f"step,seconds,val_error\n10,1,0.{place + 1}\n"
        pathlib.Path(tmp_path / name, "metrics.csv").write_text(rows)
    found = evidence.records([str(tmp_path)])
    assert not capsys.readouterr().err
    plain, confident = evidence_arms.experiments(found, tuning=100).values()
    assert list(plain) == [(), ("affine",), ("affine", "channel_weight")]
    assert plain["affine", "channel_weight"]["Random"].epsilon == (0.3, 0.5)
    assert list(confident) == [("affine",)]
    assert "| affine + channel_weight | 7 | Random | 0.3 + 0.5 | 10.0 | – | 0 |" in evidence.table(
        plain
    )
    grid = evidence.grid_table(plain)
    assert "| affine + channel_weight | Random | 0.3 + 0.25 | 20.0 | 1 |" in grid
    for name in ("epsilon", "errors", "steps"):
        getattr(evidence_figures, f"{name}_figure")(str(tmp_path / f"{name}.png"), {"plain": plain})
    assert (tmp_path / "steps.png").exists()


def test_two_runs_of_one_seed_are_not_one_arm(tmp_path):
    for name, shift, epsilon in (("a", 1, 0.3), ("b", 2, 0.6)):
        flags = {"method": "random", "transforms": f"affine:{epsilon}", "augment_shift": shift}
        run_folders.write(tmp_path / name, 0.1, seed=0, split_seed=1, **flags)
    for places in ([tmp_path], [tmp_path / "a", tmp_path / "b"]):
        with pytest.raises(errors.UserError, match="flags differ: expected --augment_shift=1, got"):
            evidence.records(list(map(str, places)))
    found = evidence.records([str(tmp_path / "a")])
    with pytest.raises(errors.UserError, match="one run of each method, ε and seed"):
        evidence_arms.experiments([*found, *found], tuning=100)


def test_searches_have_names_of_their_own(tmp_path):
    described = {
        "gradient, steepest, ξ = ε": {"ascent": "steepest", "xi": "1eps"},
        "gradient, paper, ξ = 0.1ε": {"xi": "0.1eps"},
        "worst of 4, paper": {"adversary": "worst_of"},
        "VAT, paper, ξ = 1e-6": {"method": "vat"},
    }
    for name, flags in described.items():
        run_folders.write(tmp_path / name, 0.1, transforms="noise:1", **flags)
    assert {record.method for record in evidence.records([str(tmp_path)])} == set(described)


def test_records_stand_in_for_runs(tmp_path, capsys):
    described = {
        "affine": {"method": "random", "transforms": "affine:0.3,channel:0.25", "seed": 100},
        "worst": {"adversary": "worst_of", "candidates": 8, "transforms": "flow:1e-3", "seed": 2},
        "none": {"method": "supervised", "seed": 1},
    }
    for name, flags in described.items():
        run_folders.write(tmp_path / "runs" / name, 0.0712, split_seed=3, image_size=8, **flags)
        rows = "step,seconds,val_error\n10,1,0.25\n20,2,0.125\n"
        pathlib.Path(tmp_path, "runs", name, "metrics.csv").write_text(rows)
    found = evidence.records([str(tmp_path / "runs")])
    # What earlier pages told of a run: no curve.
    told = evidence_records.Record("svhn", "Random", "affine:0.3", 6, None, 0, 1, (), (), 8.7)
    path = str(tmp_path / "records.csv")
    evidence_records.write(path, [*found, told])
    again = evidence.records([path])
    assert sorted(again, key=repr) == sorted([*found, told], key=repr)
    kept = {record.method: record for record in again if record is not told and record.steps}
    assert kept["Random"].parts == (("affine", 0.3), ("channel_weight", 0.25))
    assert kept["worst of 8, paper"].parameters == 128 and kept["Supervised"].parts == ()
    assert kept["Supervised"].test == 7.12 and kept["Supervised"].validation == (25, 12.5)
    # 50 + 50 images: clean and adversarial pass, forward and two gradients each; 8 candidates.
    assert kept["Random"].passes == 3 * 100 + 3 * 50 and kept["Supervised"].passes is None
    assert kept["worst of 8, paper"].passes == kept["Random"].passes + 8 * 50
    tables = [
        evidence.table(arms)
        for arms in evidence_arms.experiments([*found, told], tuning=100).values()
    ]
    same = evidence_arms.experiments(again, tuning=100)
    assert sorted(map(evidence.table, same.values())) == sorted(tables)
    assert any("| affine | 6 | Random | 0.3 | – | 8.70 | 1 |" in text for text in tables)

    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(errors.UserError, match="other.csv is no file of records"):
        evidence.records([str(tmp_path / "other.csv")])
