"""README: its example runs as it stands, its links and commands exist, a newcomer can read it."""

import pathlib
import re

import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGES[0].read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "steps_per_epoch=1000" in code
    exec(code.replace("steps_per_epoch=1000", "steps_per_epoch=2"), {})
    assert re.fullmatch(r"test error [\d.]+%\n", capsys.readouterr().out)
    assert tf.keras.models.load_model("digits.keras").count_params()


def test_it_is_short():
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_commands_exist(page):
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", prose):
        assert "://" in target or (page.parent / target).exists(), target
    for module in re.findall(r"python -m ((?:rat_tf|export|benchmarks)[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for flagfile in re.findall(r"python .*--flagfile=(configs/[\w./]+\.cfg)", text):
        assert (ROOT / flagfile).exists(), flagfile
