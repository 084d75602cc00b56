"""Results: read from folders, grouped by protocol, with their statistics; and what is named."""

import json
import math
import os
import pathlib

import numpy as np
import pytest

from rat_tf.experiments import comparison, paper, results, tables
from tests.experiments import reference, run_folders


def test_mean_and_standard_deviation(tmp_path):
    errors = [0.031, 0.042, 0.029, 0.050]
    for seed, error in enumerate(errors):
        run_folders.write(tmp_path / str(seed), error, seed=seed)
    ((group,), problems) = run_folders.read(tmp_path)
    percent = [100 * error for error in errors]
    mean = sum(percent) / 4
    assert group.mean == pytest.approx(mean)
    assert group.std == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in percent) / 3))
    assert problems == []


def test_welch():
    random = np.random.default_rng(1)
    for n1, n2 in ((3, 3), (5, 3), (2, 10)):
        a, b = random.normal(5, 1, n1), random.normal(6, 3, n2)
        stats = [f(x) for x in (a, b) for f in (np.mean, lambda x: np.std(x, ddof=1), len)]
        assert results.welch(a, b) == pytest.approx(reference.welch(*stats))
        row = paper.Row("vat", "svhn", 1000, "VAT", 5.32, 0.25)
        expected = reference.welch(*stats[:3], 5.32, 0.25, 5)
        assert results.welch_paper(a, row) == pytest.approx(expected)


def test_no_test_without_spread_or_with_one_seed():
    assert results.welch([1.0], [2.0, 3.0]) is None
    assert results.welch([1.0, 1.0], [2.0, 2.0]) is None
    row = paper.Row("mixmatch", "cifar10", 250, "MixMatch", 11.8, None)
    assert results.welch_paper(np.array([1.0, 2.0]), row) is None


def test_vat_is_its_noise(tmp_path):
    run_folders.write(tmp_path / "a", 0.1, method="vat", transforms="noise:2,affine:1")
    run_folders.write(tmp_path / "b", 0.1, method="vat", transforms="noise:2", seed=1)
    assert len(run_folders.read(tmp_path)[0]) == 1


def test_the_same_seeds_twice_count_once_and_are_named(tmp_path):
    run_folders.write(tmp_path / "a", 0.1)
    run_folders.write(tmp_path / "b", 0.2)
    ((group,), (problem,)) = run_folders.read(tmp_path)
    assert len(group.results) == 1
    assert "/b: skipped" in problem and "/a" in problem and "20.00" in problem


def test_rows_made_by_different_code_are_named(tmp_path):
    for seed, commit in enumerate(("abc", "def")):
        folder = run_folders.write(tmp_path / str(seed), 0.1, seed=seed)
        pathlib.Path(folder, "environment.json").write_text(json.dumps({"git_commit": commit}))
    _, (problem,) = run_folders.read(tmp_path)
    assert "abc, def" in problem


def test_a_row_in_which_some_runs_share_a_split_is_named(tmp_path):
    for seed, split in ((0, 1), (1, 1), (2, 3)):
        run_folders.write(tmp_path / str(seed), 0.1, seed=seed, split_seed=split)
    _, (problem,) = run_folders.read(tmp_path)
    assert "share a split" in problem and "1, 1, 3" in problem


def test_what_cannot_be_used_is_named(tmp_path):
    def folder(name, **flags):
        return pathlib.Path(run_folders.write(tmp_path / name, 0.1, **flags))

    (folder("good") / "environment.json").write_text("[]")
    (folder("tuned") / "search.json").write_text("{}")
    for name, text in (
        ("cut", '{"test_err'),
        ("nan", run_folders.result(float("nan"))),
        ("large", run_folders.result(7)),
        ("text", run_folders.result("0.1")),
        ("short", '{"test_error": 0.1}'),
        ("list", "[1]"),
    ):
        (folder(name) / "result.json").write_text(text)
    (folder("partial", steps=[5, 10]) / "result.json").unlink()
    (folder("flagless") / "flags.cfg").unlink()
    (folder("odd") / "flags.cfg").write_text("--labels=many\n")
    (folder("empty") / "flags.cfg").write_text("")
    groups, problems = run_folders.read(tmp_path)
    (group,) = groups
    assert group.results[0].folder.endswith("good") and group.results[0].commit is None
    assert {os.path.basename(problem.partition(":")[0]) for problem in problems} == {
        *("cut", "nan", "large", "text", "short", "list", "partial", "flagless"),
        *("odd", "empty", "tuned", "good"),
    }
    assert any("at step 10 of 500,000" in problem for problem in problems)


def test_without_test_images_the_validation_error_is_reported_and_said_to_be_that(tmp_path):
    for seed in range(2):
        folder = run_folders.write(tmp_path / f"a{seed}", 0.1, seed=seed)
        pathlib.Path(folder, "result.json").write_text(run_folders.result(None))
    run_folders.write(tmp_path / "b", 0.1, seed=0)  # the set has got test images
    groups, problems = run_folders.read(tmp_path)
    assert not problems
    found = {group.part: group.errors.tolist() for group in groups}
    assert found == {"validation": [50, 50], "test": [10]}
    sections, _ = comparison.sections(groups)
    notes = {section.part: tables.table(section).notes[0] for section in sections}
    assert notes["test"].startswith("Test error in %") and "no test images" not in notes["test"]
    assert notes["validation"].startswith("Validation error in %")
    assert "The set has no test images" in notes["validation"]


def test_a_result_without_a_readable_curve_counts_and_is_named(tmp_path):
    folder = run_folders.write(tmp_path / "a", 0.1, steps=[10])
    for text in ("step,seconds,val_error\n10,1,zero\n", "step,seconds\n10,1,7\n", "step\n1\n"):
        pathlib.Path(folder, "metrics.csv").write_text(text)
        ((group,), (problem,)) = run_folders.read(tmp_path)
        assert group.mean == pytest.approx(10) and "metrics.csv" in problem
