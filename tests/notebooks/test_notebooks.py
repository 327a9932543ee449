"""Every notebook runs from its first cell to its last, as a user runs it, and shows what is kept in it.

Those that train do so on little data here, so that only the kinds of what they show can be compared. What the others print
is compared to the letter, without times, and their pictures by their sizes. `python notebooks/store.py` runs notebooks in
full and keeps what they show.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from notebooks.store import LIMIT, clean, code_hash, comparable, execute, impersonal, pictures

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIKENESS = 3.0  # how much larger or smaller a picture may be: fonts and versions of matplotlib differ

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -e '.[test]'")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install -e '.[test]'")


def shortened(notebook) -> bool:
    """Whether the notebook does less when the tests run it."""
    return any("MYIA_RELAY_NOTEBOOK_FAST" in cell.source for cell in notebook.cells if cell.cell_type == "code")


def kinds(cell) -> set[str]:
    """Of what kinds the outputs of a cell are."""
    found = set()
    for output in cell.outputs:
        found |= {output.name} if output.output_type == "stream" else set(output.get("data", {output.output_type: ""}))
    return found


def stale(kept, shown, *, to_the_letter: bool) -> list[str]:
    """What a notebook keeps that a run does not show, and the other way round; one line a cell."""
    wrong = []
    for number, (old, new) in enumerate(zip(kept.cells, shown.cells, strict=True)):
        if old.cell_type != "code":
            continue
        if kinds(old) != kinds(new):
            wrong.append(f"cell {number} keeps {sorted(kinds(old))} and shows {sorted(kinds(new))}")
            continue
        if not to_the_letter or "varies" in old.metadata.get("tags", ()):
            continue
        for a, b in zip(old.outputs, new.outputs, strict=True):
            if comparable(a) != comparable(b):
                wrong.append(f"cell {number} keeps\n{comparable(a)}\nand shows\n{comparable(b)}")
            sizes = pictures(b)
            for kind, size in pictures(a).items():
                if not 1 / LIKENESS < sizes[kind] / size < LIKENESS:
                    wrong.append(f"cell {number} keeps {kind} of {size} bytes and shows one of {sizes[kind]}")
    return wrong


@pytest.mark.sampled(3)
# What jupyter_client and zmq warn of (event loops, their own deprecations) is not ours; a warning inside of the
# notebook does not get here, as it runs in a process of its own.
@pytest.mark.sampled(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_shows_what_it_keeps(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_NOTEBOOK_FAST", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # Jupyter's own files stay out of the user's home, and the checkout is importable without being installed.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    kept = nbformat.read(path, as_version=4)
    shown = clean(execute(path, tmp_path, timeout=300))
    complaints = [o.text for cell in shown.cells for o in cell.get("outputs", ()) if o.get("name") == "stderr"]
    assert not complaints
    assert any("image/png" in o.get("data", {}) for cell in shown.cells for o in cell.get("outputs", ()))
    wrong = stale(kept, shown, to_the_letter=not shortened(kept))
    assert not wrong, f"python notebooks/store.py {path.stem} stores what it shows now:\n" + "\n".join(wrong)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_keeps_outputs_of_its_code(path):
    text = path.read_text("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.outputs_of == code_hash(notebook), f"stale: run python notebooks/store.py {path.stem}"
    assert any(cell.get("outputs") for cell in notebook.cells)
    assert len(text.encode()) <= LIMIT
    outputs = [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    personal = [re.findall(r"/(?:home|root|tmp|Users|var|work)/\S*|ipykernel_\d+", text) for text in outputs]
    assert not any(personal), personal
    assert "error" not in {o.output_type for cell in notebook.cells for o in cell.get("outputs", ())}


def notebook_of(*outputs, tags=()):
    cell = nbformat.v4.new_code_cell("1", outputs=list(outputs), metadata={"tags": list(tags)})
    return nbformat.v4.new_notebook(cells=[cell])


def printed(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def drawn(size):
    return nbformat.v4.new_output("display_data", data={"image/svg+xml": "x" * size})


def test_says_what_is_stale():
    def found(old, new, **options):
        return stale(notebook_of(old, **options), notebook_of(new), to_the_letter=True)

    assert not found(printed("loss 1.5 in 2.3 ms at 0x..."), printed("loss 1.5 in 17 us at 0x7f00aabbccdd"))
    assert found(printed("loss 1.5 in 2.3 ms"), printed("loss 1.6 in 2.3 ms"))
    assert not found(printed("loss 1.5"), printed("loss 1.6"), tags=["varies"])
    assert found(printed("loss 1.5"), drawn(10), tags=["varies"])
    assert not found(drawn(100), drawn(200))
    assert found(drawn(100), drawn(1000))
    assert not stale(notebook_of(printed("a")), notebook_of(printed("b")), to_the_letter=False)


def test_keeps_nothing_of_the_machine():
    assert impersonal('File "/tmp/ipykernel_12/345.py", line 1 at 0x7f00aabbccdd') == 'File "<cell>", line 1 at 0x...'
    html = nbformat.v4.new_output("display_data", data={"text/html": '<div style="x"><svg a="1">y</svg></div>'})
    other = nbformat.v4.new_output("display_data", data={"text/html": "<div><p>table</p></div>"})
    (cell,) = clean(notebook_of(printed("a"), printed("b"), html, other)).cells
    assert cell.outputs[0].text == "ab"  # a stream comes in pieces that depend on the moment
    assert cell.outputs[1].data == {"image/svg+xml": '<svg a="1">y</svg>'}
    assert cell.outputs[2].data == {"text/html": "<div><p>table</p></div>"}
