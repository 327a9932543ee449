"""Runs notebooks and keeps their outputs in them, so that they can be looked at on the web.

    python notebooks/store.py                     # all
    python notebooks/store.py 02_language 04_compiler

What is kept says nothing of the machine: no paths, no addresses, no version of the kernel. `tests/notebooks` runs the
notebooks again and compares what they show with what is kept, by `comparable` and `pictures`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
LIMIT = 300_000  # bytes of a notebook with its outputs

# The same for everyone, whatever ran the notebook.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_CELL_FILES = re.compile(r"/\S*?/ipykernel_\d+/\d+\.py")
_ADDRESSES = re.compile(r"\b0x[0-9a-f]{6,}\b")

# What differs from run to run and from machine to machine: numbers with the unit of a time, a speed or a share.
_MEASURED = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?\s*(?:(?:[nµum]?s|Gflop/s|[GMk]?B/s|/s|%)(?![A-Za-z]))")
_SIZES = re.compile(r"\b_size\d+")  # names of sizes that values decide: counted up in a process


_PICTURE_IN_HTML = re.compile(r"<div[^<>]*>(<svg\b.*</svg>)</div>\s*", re.DOTALL)


def execute(path: Path, folder: Path | str, *, timeout: int = 900) -> Any:
    """The notebook after a run in a fresh kernel, with `folder` as its working directory."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return notebook


def clean(notebook: Any) -> Any:
    """The notebook without what belongs to the machine that it ran on, in the form in which it is kept."""
    import nbformat

    notebook.metadata = {**METADATA, "outputs_of": code_hash(notebook)}
    for number, cell in enumerate([cell for cell in notebook.cells if cell.cell_type == "code"], 1):
        cell.execution_count = number
        merged: list[Any] = []
        for output in cell.outputs:
            output.pop("transient", None)
            if output.output_type == "execute_result":
                output.execution_count = number
            if "text" in output:
                output.text = impersonal(output.text)
                # A stream arrives in pieces that depend on the moment.
                if merged and merged[-1].output_type == "stream" and merged[-1].name == output.name:
                    merged[-1].text += output.text
                    continue
            if "data" in output:
                output.data = nbformat.from_dict(_kept(output.data))
            merged.append(output)
        cell.outputs = merged
    return notebook


def _kept(data: dict[str, Any]) -> dict[str, Any]:
    """Of the forms of one output those that are kept.

    A drawing in a frame of HTML is kept as a drawing: web sites that show notebooks take it out of HTML. Where a picture is
    there as such, HTML that contains it once more is left out.
    """
    texts = {kind: impersonal(value) for kind, value in data.items() if isinstance(value, str) and kind != "image/png"}
    data = {**data, **texts}
    if "image/png" in data:
        data["image/png"] = _smaller(data["image/png"])
    html = data.get("text/html")
    if html is not None and (drawing := _PICTURE_IN_HTML.fullmatch(html)):
        data["image/svg+xml"] = drawing[1]
        del data["text/html"]
    elif html is not None and "image/png" in data and "data:image/png" in html:
        del data["text/html"]
    return data


def _smaller(picture: str) -> str:
    """A PNG with a palette of colours, which is a third of the size; as it is where that is no smaller."""
    from PIL import Image

    data, out = base64.b64decode(picture), io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return base64.b64encode(min(data, out.getvalue(), key=len)).decode()


def code_hash(notebook: Any) -> str:
    """A hash of the code of a notebook: outputs are those of this code, or they are stale."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def impersonal(text: str) -> str:
    """A text without addresses and names of temporary files."""
    return _ADDRESSES.sub("0x...", _CELL_FILES.sub("<cell>", text))


def comparable(output: Any) -> str:
    """The text of an output, as far as two runs of one notebook agree in it; "" if it has none."""
    if output.output_type == "stream":
        text = output.text
    else:
        data = output.get("data", {})
        if "image/png" in data or "image/svg+xml" in data or "text/html" in data:
            return ""  # a picture or table is held by its presence and its size
        text = data.get("text/plain", "")
    return _SIZES.sub("_size", _MEASURED.sub("~", impersonal(text)))


def pictures(output: Any) -> dict[str, int]:
    """The sizes of the pictures and tables of an output in bytes, by their kind."""
    data = output.get("data", {})
    sizes = {}
    for kind in ("image/png", "image/svg+xml", "text/html"):
        if kind in data:
            value = "".join(data[kind])
            sizes[kind] = len(base64.b64decode(value)) if kind == "image/png" else len(value.encode())
    return sizes


def main() -> None:
    """Run the notebooks that are named, or all, and write them with their outputs.

    Raises:
        SystemExit: a notebook has become too large.
    """
    import nbformat

    parser = argparse.ArgumentParser(description="Run notebooks and keep their outputs in them.")
    parser.add_argument("names", nargs="*", help="file names without .ipynb; all without")
    names = parser.parse_args().names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            notebook = clean(execute(path, folder))
        text = nbformat.writes(notebook, indent=1) + "\n"
        path.write_text(text, "utf-8")
        print(f"{name}: {len(text.encode()) / 1000:.0f} kB")
        if len(text.encode()) > LIMIT:
            raise SystemExit(f"{path.name} has more than {LIMIT // 1000} kB: show less, or smaller pictures")


if __name__ == "__main__":
    main()
