"""Promise: notebooks run to their end and draw their figures, as the book shows them; no output is kept."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize(("name", "figures"), [("four_hospitals", 4), ("one_hospital", 6)])
def test_a_notebook_runs(name, figures, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    here = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=here).execute()
    page, files = MarkdownExporter().from_notebook_node(notebook)
    assert len([one for one in files["outputs"] if one.endswith(".png")]) == figures
    assert page.count("<table") >= 3
    drawn = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(drawn) == figures
