"""Every notebook runs from its first cell to its last, as a user runs it, on little data."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -e '.[test]'")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install -e '.[test]'")


def test_there_are_notebooks():
    assert NOTEBOOKS


# What jupyter_client and zmq warn of (event loops, their own deprecations) is not ours; a warning inside of the
# notebook does not get here, as it runs in a process of its own.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_NOTEBOOK_FAST", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # Jupyter's own files stay out of the user's home, and the checkout is importable without being installed.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    pictures = [o for cell in notebook.cells for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
    complaints = [o.text for cell in notebook.cells for o in cell.get("outputs", ()) if o.get("name") == "stderr"]
    assert pictures
    assert not complaints


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kept = [i for i, cell in enumerate(notebook.cells) if cell.get("outputs") or cell.get("execution_count")]
    assert not kept, f"clear the outputs of the cells {kept}: they make every change unreadable"
