"""Promise: the notebooks run from beginning to end, each draws its figures, and no output is kept."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize(("name", "figures"), [("four_hospitals", 4), ("one_hospital", 5)])
def test_a_notebook_runs(name, figures, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    drawn = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(drawn) == figures
