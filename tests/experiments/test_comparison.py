"""Which runs stand in one table and row, which is the best, and the paper's numbers beside them."""

import pathlib

import numpy as np
import pytest

from rat_tf.config import flag_values
from rat_tf.experiments import comparison, paper, results, tables
from tests.experiments import reference, run_folders

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")


def test_runs_of_one_row_differ_in_seeds_and_machines_only(tmp_path):
    run_folders.write(tmp_path / "a", 0.1, seed=0)
    elsewhere = {"data_dir": "elsewhere", "steps_per_execution": 4}
    run_folders.write(tmp_path / "b", 0.2, seed=1, split_seed=7, **elsewhere)
    spelt_out = {"transforms": "noise:1,affine:0.60"}  # the default
    run_folders.write(tmp_path / "c", 0.3, seed=2, **spelt_out)
    run_folders.write(tmp_path / "d", 0.4, seed=3, xi="1e-3")
    groups, _ = run_folders.read(tmp_path)
    assert [len(group.results) for group in groups] == [3, 1]
    (section,), _ = comparison.sections(groups)
    assert [line.name for line in section.lines] == ["RAT (xi 1e-6)", "RAT (xi 0.001)"]


def test_runs_that_cannot_be_compared_are_in_tables_of_their_own(tmp_path):
    for number, flags in enumerate(({}, {"iterations": 100_000}, {"image_size": 16})):
        run_folders.write(tmp_path / str(number), 0.1, **flags)
    found, _ = comparison.sections(run_folders.read(tmp_path)[0])
    assert len(found) == 3 and len({section.title for section in found}) == 3
    assert any("images of 16×16" in section.title for section in found)


def test_a_folder_is_named_without_its_path_unless_another_has_the_same_name(tmp_path):
    def titles(*folders):
        where = tmp_path / str(len(folders))
        for number, folder in enumerate(folders):
            run_folders.write(where / str(number), 0.1, dataset=f"folder:{folder}", image_size=32)
        found, _ = comparison.sections(run_folders.read(where)[0])
        return [section.title.partition(",")[0] for section in found]

    assert titles("a/pets") == ["pets"]
    assert titles("a/pets", "b/pets") == ["folder:a/pets", "folder:b/pets"]


def test_all_labels_are_as_many_as_there_were(tmp_path):
    folder = run_folders.write(tmp_path / "a", 0.1, labels=0)
    pathlib.Path(folder, "result.json").write_text(run_folders.result(0.1, labels=77))
    (section,), _ = comparison.sections(run_folders.read(tmp_path)[0])
    assert section.lines[0].labels == 77


def test_bold_needs_three_seeds(tmp_path):
    run_folders.write_seeds(tmp_path, "supervised", [10.0, 11.0, 12.5])
    run_folders.write_seeds(tmp_path, "rat", [3.0, 4.0, 3.5])
    run_folders.write_seeds(tmp_path, "vat", [3.0, 5.0])
    (section,), _ = comparison.sections(run_folders.read(tmp_path)[0])
    lines = {line.name: line for line in section.lines}
    assert [name for name, line in lines.items() if line.best] == ["RAT"]
    behind = lines["Supervised"]
    assert behind.behind == pytest.approx(33.5 / 3 - 3.5)
    expected = reference.welch(33.5 / 3, np.std([10, 11, 12.5], ddof=1), 3, 3.5, 0.5, 3)
    assert behind.p_behind == pytest.approx(expected)
    text = tables.markdown(tables.table(section))
    assert "| RAT | 50 | **3.50 ± 0.50** | 3 | — |" in text
    assert "| VAT | 50 | 4.00 ± 1.41 | 2 | +0.50 (p = " in text
    assert all(word in text for word in ("mean ±", "Bold:", "Behind the best:", "p: Welch"))


def test_nothing_is_bold_where_a_row_of_fewer_seeds_is_lower(tmp_path):
    run_folders.write_seeds(tmp_path, "rat", [3.0, 4.0, 3.5])
    run_folders.write_seeds(tmp_path, "vat", [1.0, 2.0])
    (section,), _ = comparison.sections(run_folders.read(tmp_path)[0])
    text = tables.markdown(tables.table(section))
    assert "**" not in text and "| VAT | 50 | 1.50 ± 0.71 | 2 | −2.00 (p = " in text


def test_nothing_is_bold_without_rivals(tmp_path):
    run_folders.write_seeds(tmp_path, "rat", [3.0, 4.0, 3.5])
    (section,), _ = comparison.sections(run_folders.read(tmp_path)[0])
    assert not section.lines[0].best


def test_the_papers_numbers_stand_beside_ours(tmp_path):
    rat, vat = (run_folders.row_of("table5", name, "svhn") for name in ("rat_rampup", "vat"))
    run_folders.write_row(tmp_path, rat, [2.9, 3.0, 3.1])
    run_folders.write_row(tmp_path, vat, [5.0], iterations=100_000)
    groups, _ = run_folders.read(tmp_path)
    found, left_out = comparison.sections(groups, "table5")
    assert left_out == []
    by_title = {section.title: section for section in found}
    svhn = by_title["SVHN, wrn-28-2, 500,000 steps"]
    assert len(svhn.lines) == 9 and [line.name for line in svhn.lines if line.group] == [
        "RAT with ε-rampup"
    ]
    assert svhn.lines[-1].unlike == ()
    cells = tables.table(svhn).rows[-1]
    p = reference.welch(3.0, 0.1, 3, 2.86, 0.07, 5)
    assert cells[2:4] == ("3.00 ± 0.10", "3")
    assert cells[4:] == ("2.86 ± 0.07", f"+0.14 (p = {p:.3f})")
    assert tables.table(svhn).rows[0][2:4] == ("—", "0")  # Supervised has no runs
    short = by_title["SVHN, wrn-28-2, 100,000 steps"]
    (vat,) = (line for line in short.lines if line.group)
    assert vat.unlike == ("--iterations=100000 (paper: 500000)",)
    assert "[a] not the paper's protocol: --iterations=100000" in tables.table(short).notes[1]
    assert len(by_title["CIFAR-10, wrn-28-2, 500,000 steps"].lines) == 9  # all without runs


def test_runs_that_are_not_in_the_table_are_named(tmp_path):
    row = run_folders.row_of("table8", "mixmatch", "cifar10", 4000)
    run_folders.write_row(tmp_path, row, [6.0])
    found, left_out = comparison.sections(run_folders.read(tmp_path)[0], "table5")
    assert len(left_out) == 1 and "mixmatch" in left_out[0] and "not in Table 5" in left_out[0]


def test_every_row_of_the_paper_is_recognised():
    groups = {}
    for row in paper.rows():
        config = flag_values.config_of_file(row.path, labels=row.labels)
        groups[row.path, row.labels] = results.Group((results.Result("folder", config, row.mean),))
    found, _ = comparison.sections(groups.values())
    lines = [line for section in found for line in section.lines]
    assert {(line.row.path, line.row.labels): line.group for line in lines} == groups
    assert len(lines) == len(groups) and {line.unlike for line in lines} == {()}


def test_the_papers_numbers_are_there_in_any_folder(tmp_path, monkeypatch):
    run_folders.write_row(tmp_path, run_folders.row_of("table5", "vat", "svhn"), [5.0])
    monkeypatch.chdir(tmp_path)
    ((section,), _) = comparison.sections(run_folders.read(tmp_path)[0])
    assert section.lines[0].row.mean == 5.32
