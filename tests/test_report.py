"""The command: all files of a report, and mistakes in one line."""

import base64
import csv
import html.parser
import io
import pathlib
import re

import numpy as np
import pytest
from matplotlib import image as images

from rat_tf import report
from rat_tf.config import cli
from rat_tf.experiments import paper
from tests import browser, runs
from tests.experiments import run_folders

pytestmark = pytest.mark.usefixtures("in_the_projects_folder")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.links, self.ids = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "src":
                self.images.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "id":
                self.ids.append(value)


def test_all_files(tmp_path, capsys):
    random = np.random.default_rng(0)
    for table in ("table9", "table10"):
        for row in paper.TABLES[table].rows[::3]:
            run_folders.write_row(tmp_path / "runs", row, row.mean + random.normal(0, row.std, 3))
    broken = run_folders.write(tmp_path / "runs" / "<broken>", 0.1)
    pathlib.Path(broken, "result.json").write_text("{")
    example = next((tmp_path / "runs" / "svhn" / "rat_rampup").iterdir())
    images.imsave(example / "summary.png", random.random((20, 30, 3)))
    output = tmp_path / "report"
    report.main([str(tmp_path / "runs")], "figure2", str(output))
    assert "&lt;broken&gt;" in (output / "report.html").read_text()
    assert "<broken>" in capsys.readouterr().err

    page = Page((output / "report.html").read_text())
    assert len(page.images) == 3  # two of labels, one example; no curves
    # A click on a figure shows it in full size; nothing leads out of the page.
    assert page.links == [f"#{name}" for name in page.ids] and len({*page.ids}) == 3
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
        (["configs"], "has no run folders"),
        (["configs", "--paper=table6"], "--paper"),
        (["configs", "--output=README.md"], "--output"),
    ],
)
def test_mistakes_end_with_one_line(arguments, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended, cli.user_errors():
        folders = [a for a in arguments if not a.startswith("-")]
        flags = dict(a[2:].split("=") for a in arguments if a.startswith("-"))
        report.main(folders, flags.get("paper", ""), flags.get("output", str(tmp_path / "r")))
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "") and not (tmp_path / "r").exists()
    assert err.startswith("error: ") and words in err.splitlines()[-1]


def test_the_command(tmp_path):
    run_folders.write_seeds(tmp_path / "runs", "rat", [3.0, 4.0, 3.5])
    arguments = tmp_path / "runs", f"--output={tmp_path / 'r'}"
    status, out, err = runs.command("rat_tf.report", *arguments)
    assert (status, err) == (0, "")
    assert "| RAT | 50 | 3.50 ± 0.50 | 3 |" in out


@browser.needed
@pytest.mark.parametrize("width", [420, 1400])
def test_a_browser_shows_the_page(tmp_path, width):
    name = "a method with a name that is long, " * 5
    run_folders.write_seeds(tmp_path / name, "rat", [3.0, 4.0, 3.5])
    (example, *_) = (path.parent for path in (tmp_path / name).rglob("flags.cfg"))
    images.imsave(example / "summary.png", np.ones((20, 3000, 3)))
    report.main([str(tmp_path)], "", str(tmp_path / "r"))
    found, broken, sticking_out, messages = browser.look(tmp_path / "r" / "report.html", width)
    assert (found, broken, messages) == (1, 0, []) and sticking_out <= 0
