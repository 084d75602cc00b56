"""Reports: grouping, statistics from their definitions, what is named, and the files written."""

import base64
import csv
import html.parser
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.special
from matplotlib import image as images

from rat_tf import config as config_lib
from rat_tf import flag_values, paper, report, runs
from rat_tf.reporting import comparison, curves, results, tables

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def in_the_projects_folder(monkeypatch):
    monkeypatch.chdir(ROOT)


def write(folder, error, config=None, steps=(), **flags):
    """The folder of a finished run, as training leaves it."""
    config = config or config_lib.Config(**{"dataset": "digits", "labels": 50, **flags})
    run = runs.Run(str(folder))
    os.makedirs(run.folder)
    pathlib.Path(run.flags).write_text(config.flagfile())
    pathlib.Path(run.result).write_text(json.dumps({"test_error": error}))
    lines = "".join(f"{step},{step / 10},{1 / step}\n" for step in steps)
    pathlib.Path(run.metrics).write_text("step,seconds,val_error\n" + lines)
    return run.folder


def write_row(folder, row: paper.Row, errors, **flags):
    """Runs of one row of the paper."""
    for seed, error in enumerate(errors):
        config = flag_values.config_of_file(row.path, labels=row.labels, seed=seed, **flags)
        write(folder / row.dataset / row.config / f"{row.labels}-{seed}", error / 100, config)


def read(folder):
    found, problems = results.read(results.find([str(folder)]))
    groups, odd = results.group(found)
    return groups, problems + odd


def row_of(table, config, dataset, labels=None):
    (found,) = (
        r
        for r in paper.TABLES[table].rows
        if (r.config, r.dataset) == (config, dataset) and labels in (None, r.labels)
    )
    return found


# ---- statistics, from the definitions


def t_test_p(t: float, freedom: float) -> float:
    """Two-sided p of Student's t: the incomplete beta function I_x(ν/2, 1/2), x = ν/(ν+t²)."""
    return scipy.special.betainc(freedom / 2, 0.5, freedom / (freedom + t**2))


def welch_by_definition(m1, s1, n1, m2, s2, n2):
    v1, v2 = s1**2 / n1, s2**2 / n2
    freedom = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
    return t_test_p((m1 - m2) / math.sqrt(v1 + v2), freedom)


def test_mean_and_standard_deviation(tmp_path):
    errors = [0.031, 0.042, 0.029, 0.050]
    for seed, error in enumerate(errors):
        write(tmp_path / str(seed), error, seed=seed)
    ((group,), problems) = read(tmp_path)
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
        assert results.welch(a, b) == pytest.approx(welch_by_definition(*stats))
        row = paper.Row("vat", "svhn", 1000, "VAT", 5.32, 0.25)
        expected = welch_by_definition(*stats[:3], 5.32, 0.25, 5)
        assert results.welch_paper(a, row) == pytest.approx(expected)


def test_no_test_without_spread_or_with_one_seed():
    assert results.welch([1.0], [2.0, 3.0]) is None
    assert results.welch([1.0, 1.0], [2.0, 2.0]) is None
    row = paper.Row("mixmatch", "cifar10", 250, "MixMatch", 11.8, None)
    assert results.welch_paper(np.array([1.0, 2.0]), row) is None


# ---- what makes a row


def test_runs_of_one_row_differ_in_seeds_and_machines_only(tmp_path):
    write(tmp_path / "a", 0.1, seed=0)
    write(tmp_path / "b", 0.2, seed=1, split_seed=7, data_dir="elsewhere", steps_per_execution=4)
    write(tmp_path / "c", 0.3, seed=2, transforms="noise:1,affine:0.60")  # the default, spelt out
    write(tmp_path / "d", 0.4, seed=3, xi="1e-3")
    groups, _ = read(tmp_path)
    assert [len(group.results) for group in groups] == [3, 1]
    (section,), _ = comparison.sections(groups)
    assert [line.name for line in section.lines] == ["RAT (xi=1e-6)", "RAT (xi=1e-3)"]


def test_vat_is_its_noise(tmp_path):
    write(tmp_path / "a", 0.1, method="vat", transforms="noise:2,affine:1")
    write(tmp_path / "b", 0.1, method="vat", transforms="noise:2", seed=1)
    assert len(read(tmp_path)[0]) == 1


def test_runs_that_cannot_be_compared_are_in_tables_of_their_own(tmp_path):
    for number, flags in enumerate(({}, {"iterations": 100_000}, {"image_size": 16})):
        write(tmp_path / str(number), 0.1, **flags)
    found, _ = comparison.sections(read(tmp_path)[0])
    assert len(found) == 3 and len({section.title for section in found}) == 3
    assert any("image_size=16" in section.title for section in found)


def test_the_same_seeds_twice_count_once_and_are_named(tmp_path):
    write(tmp_path / "a", 0.1)
    write(tmp_path / "b", 0.2)
    ((group,), (problem,)) = read(tmp_path)
    assert len(group.results) == 1
    assert "/b: left out" in problem and "/a" in problem and "20.00" in problem


def test_rows_made_by_different_code_are_named(tmp_path):
    for seed, commit in enumerate(("abc", "def")):
        folder = write(tmp_path / str(seed), 0.1, seed=seed)
        pathlib.Path(folder, "environment.json").write_text(json.dumps({"git_commit": commit}))
    _, (problem,) = read(tmp_path)
    assert "abc, def" in problem


def test_a_row_in_which_some_runs_share_a_split_is_named(tmp_path):
    for seed, split in ((0, 1), (1, 1), (2, 3)):
        write(tmp_path / str(seed), 0.1, seed=seed, split_seed=split)
    _, (problem,) = read(tmp_path)
    assert "share a split" in problem and "1, 1, 3" in problem


def test_what_cannot_be_used_is_named(tmp_path):
    pathlib.Path(write(tmp_path / "good", 0.1), "environment.json").write_text("[]")
    pathlib.Path(write(tmp_path / "tuned", 0.1), "search.json").write_text("{}")
    for name, text in (
        ("cut", '{"test_err'),
        ("none", '{"test_error": null}'),
        ("nan", '{"test_error": NaN}'),
        ("list", "[1]"),
    ):
        pathlib.Path(write(tmp_path / name, 0.1), "result.json").write_text(text)
    os.remove(os.path.join(write(tmp_path / "partial", 0.1, steps=[5, 10]), "result.json"))
    os.remove(os.path.join(write(tmp_path / "flagless", 0.1), "flags.cfg"))
    pathlib.Path(write(tmp_path / "odd", 0.1), "flags.cfg").write_text("--labels=many\n")
    groups, problems = read(tmp_path)
    assert len(groups) == 1
    assert {os.path.basename(problem.partition(":")[0]) for problem in problems} == {
        *("cut", "none", "nan", "list", "partial", "flagless", "odd", "tuned")
    }
    assert any("at step 10 of 500,000" in problem for problem in problems)


def test_a_result_without_a_readable_curve_counts_and_is_named(tmp_path):
    folder = write(tmp_path / "a", 0.1, steps=[10])
    for text in ("step,val_error\n10,zero\n", "step,val_error\n10,0.1,7\n"):
        pathlib.Path(folder, "metrics.csv").write_text(text)
        ((group,), (problem,)) = read(tmp_path)
        assert group.mean == pytest.approx(10) and "metrics.csv" in problem


def test_all_labels_are_as_many_as_there_were(tmp_path):
    folder = write(tmp_path / "a", 0.1, labels=0)
    pathlib.Path(folder, "result.json").write_text('{"test_error": 0.1, "labels": 77}')
    (section,), _ = comparison.sections(read(tmp_path)[0])
    assert section.lines[0].labels == 77


# ---- bold, behind, beside the paper


def three(tmp_path, method, errors, **flags):
    for seed, error in enumerate(errors):
        write(tmp_path / f"{method}{seed}", error / 100, method=method, seed=seed, **flags)


def test_bold_needs_three_seeds(tmp_path):
    three(tmp_path, "supervised", [10.0, 11.0, 12.5])
    three(tmp_path, "rat", [3.0, 4.0, 3.5])
    three(tmp_path, "vat", [3.0, 5.0])
    (section,), _ = comparison.sections(read(tmp_path)[0])
    lines = {line.name: line for line in section.lines}
    assert [name for name, line in lines.items() if line.best] == ["RAT"]
    behind = lines["Supervised"]
    assert behind.behind == pytest.approx(33.5 / 3 - 3.5)
    expected = welch_by_definition(33.5 / 3, np.std([10, 11, 12.5], ddof=1), 3, 3.5, 0.5, 3)
    assert behind.p_behind == pytest.approx(expected)
    text = tables.markdown(tables.table(section))
    assert "| RAT | 50 | **3.50 ± 0.50** | 3 | — |" in text
    assert "| VAT | 50 | 4.00 ± 1.41 | 2 | +0.50 (p = " in text


def test_nothing_is_bold_where_a_row_of_fewer_seeds_is_lower(tmp_path):
    three(tmp_path, "rat", [3.0, 4.0, 3.5])
    three(tmp_path, "vat", [1.0, 2.0])
    (section,), _ = comparison.sections(read(tmp_path)[0])
    text = tables.markdown(tables.table(section))
    assert "**" not in text and "| VAT | 50 | 1.50 ± 0.71 | 2 | −2.00 (p = " in text


def test_nothing_is_bold_without_rivals(tmp_path):
    three(tmp_path, "rat", [3.0, 4.0, 3.5])
    (section,), _ = comparison.sections(read(tmp_path)[0])
    assert not section.lines[0].best


def test_the_papers_numbers_stand_beside_ours(tmp_path):
    row = row_of("table5", "rat_rampup", "svhn")
    write_row(tmp_path, row, [2.9, 3.0, 3.1])
    write_row(tmp_path, row_of("table5", "vat", "svhn"), [5.0], iterations=100_000)
    groups, _ = read(tmp_path)
    found, left_out = comparison.sections(groups, "table5")
    assert left_out == []
    by_title = {section.title: section for section in found}
    svhn = by_title["SVHN, wrn-28-2, 500,000 steps"]
    assert len(svhn.lines) == 9 and [line.name for line in svhn.lines if line.group] == [
        "RAT with ε-rampup"
    ]
    assert svhn.lines[-1].unlike == ()
    cells = tables.table(svhn).rows[-1]
    p = welch_by_definition(3.0, 0.1, 3, 2.86, 0.07, 5)
    assert cells[2:4] == ("3.00 ± 0.10", "3")
    assert cells[5:] == ("2.86 ± 0.07", f"+0.14 (p = {p:.3f})")
    assert tables.table(svhn).rows[0][2:4] == ("—", "0")  # Supervised has no runs
    short = by_title["SVHN, wrn-28-2, 100,000 steps"]
    (vat,) = (line for line in short.lines if line.group)
    assert vat.unlike == ("--iterations=100000 (paper: 500000)",)
    assert "[a] not the paper's protocol: --iterations=100000" in tables.table(short).notes[1]
    assert len(by_title["CIFAR-10, wrn-28-2, 500,000 steps"].lines) == 9  # all without runs


def test_runs_that_are_not_in_the_table_are_named(tmp_path):
    write_row(tmp_path, row_of("table8", "mixmatch", "cifar10", 4000), [6.0])
    found, left_out = comparison.sections(read(tmp_path)[0], "table5")
    assert len(left_out) == 1 and "mixmatch" in left_out[0] and "not in Table 5" in left_out[0]


def test_every_row_of_the_paper_is_recognised(tmp_path):
    for row in paper.rows():
        config = flag_values.config_of_file(row.path, labels=row.labels)
        group = results.Group((results.Result("folder", config, row.mean),))
        ((section,), _) = comparison.sections([group])
        (line,) = section.lines
        assert (line.row.path, line.row.labels, line.unlike) == (row.path, row.labels, ())


def test_elsewhere_there_are_no_numbers_of_the_paper(tmp_path, monkeypatch):
    write_row(tmp_path, row_of("table5", "vat", "svhn"), [5.0])
    monkeypatch.chdir(tmp_path)
    ((section,), _) = comparison.sections(read(tmp_path)[0])
    assert section.lines[0].row is None and section.lines[0].name == "VAT"
    with pytest.raises(config_lib.UserError, match="project's folder"):
        comparison.sections(read(tmp_path)[0], "table5")


# ---- figures and files


def test_curves(tmp_path):
    write(tmp_path / "a", 0.1, steps=[10, 20, 40])
    write(tmp_path / "b", 0.2, steps=[10, 20], seed=1)
    write(tmp_path / "c", 0.3, labels=20)
    (section,), _ = comparison.sections(read(tmp_path)[0])
    ours, theirs = curves.against_labels(section.lines)
    assert ours == {
        "RAT": [(20, pytest.approx(30), None), (50, pytest.approx(15), pytest.approx(50**0.5))]
    }
    assert theirs == {}
    assert curves.against_labels(section.lines[:1]) == ({}, {})  # a point is no line
    panels = curves.training(section.lines)
    assert list(panels) == [50]  # the other has no validation yet
    steps, mean, std = panels[50]["RAT"]
    assert steps == [10, 20] and mean == pytest.approx([10, 5]) and std == pytest.approx([0, 0])


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.links = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "src":
                self.images.append(value)
            elif name == "href":
                self.links.append(value)


def test_all_files(tmp_path, capsys):
    random = np.random.default_rng(0)
    for table in ("table9", "table10"):
        for row in paper.TABLES[table].rows[::3]:
            write_row(tmp_path / "runs", row, row.mean + random.normal(0, row.std, 3))
    broken = write(tmp_path / "runs" / "<broken>", 0.1)
    pathlib.Path(broken, "result.json").write_text("{")
    example = next((tmp_path / "runs" / "svhn" / "rat_rampup").iterdir())
    images.imsave(example / "summary.png", random.random((20, 30, 3)))
    output = tmp_path / "report"
    report.main([str(tmp_path / "runs")], "figure2", str(output))
    assert "&lt;broken&gt;" in (output / "report.html").read_text()
    assert "<broken>" in capsys.readouterr().err

    page = Page((output / "report.html").read_text())
    assert page.links == [] and len(page.images) == 3  # two of labels, one example; no curves
    for source in page.images:
        kind, _, data = source.partition(",")
        assert kind == "data:image/png;base64"
        assert images.imread(io.BytesIO(base64.b64decode(data))).ndim == 3
    assert not {"script", "link"} & set(page.tags)

    with open(output / "tables.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 60
    (line,) = (
        x for x in lines if (x["method"], x["dataset"], x["labels"]) == ("VAT", "svhn", "250")
    )
    errors = np.array(line["errors"].split(), float)
    assert float(line["error"]) == pytest.approx(errors.mean(), rel=1e-5)
    assert float(line["std"]) == pytest.approx(errors.std(ddof=1), rel=1e-4)
    assert (float(line["paper"]), float(line["paper_std"])) == (7.24, 0.30)
    tex = (output / "tables.tex").read_text()
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 4
    body = re.sub(r"\\[%&_$#{}]|\$[^$]*\$", "", tex)
    assert not set("±−εΠ_%#") & set(body), "characters that LaTeX would stumble over"
    for one in re.findall(r"\\begin\{tabular\}\{(l r*|lr*)\}(.*?)\\end\{tabular\}", tex, re.S):
        for row in (r for r in one[1].splitlines() if "&" in r):
            assert row.replace(r"\&", "").count("&") == len(one[0]) - 1
    assert "| Π-Model, paper | 25.51 ± 1.67 |" in (output / "tables.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected run folders"),
        (["nowhere"], "nowhere"),
        (["configs"], "holds no run"),
        (["configs", "--paper=table6"], "--paper"),
        (["configs", "--output=README.md"], "--output"),
    ],
)
def test_mistakes_end_with_one_line(arguments, words, tmp_path, capsys):
    with pytest.raises(config_lib.UserError, match=words):
        folders = [a for a in arguments if not a.startswith("-")]
        flags = dict(a[2:].split("=") for a in arguments if a.startswith("-"))
        report.main(folders, flags.get("paper", ""), flags.get("output", str(tmp_path / "r")))
    assert not (tmp_path / "r").exists()


def test_the_command(tmp_path):
    three(tmp_path / "runs", "rat", [3.0, 4.0, 3.5])
    command = [sys.executable, "-m", "rat_tf.report"]
    done = subprocess.run(
        [*command, str(tmp_path / "runs"), f"--output={tmp_path / 'r'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "| RAT | 50 | 3.50 ± 0.50 | 3 |" in done.stdout
    done = subprocess.run([*command, "nowhere"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("error: ")
