"""docs/tutorial.ipynb runs from its first cell to its last, on the embedded digits."""

import os
import pathlib
import re
import sys

import pytest

NOTEBOOK = pathlib.Path(__file__).resolve().parent.parent / "docs" / "tutorial.ipynb"


@pytest.mark.slow
def test_every_cell_runs(tmp_path, monkeypatch):
    # Its commands are `python -m …`, as in an environment that is active.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=1800, resources=place).execute()
    texts = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    first, second = re.findall(r"test error there ([\d.]+)%", texts)
    assert float(second) < float(first) < 50
    assert "exported to models/digits/1" in texts and "Traceback" not in texts
