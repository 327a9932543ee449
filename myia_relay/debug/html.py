"""What notebooks show of functions, models, data sets and errors: HTML with neither scripts nor styles from elsewhere."""

from __future__ import annotations

import base64
import inspect
import struct
import zlib
from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from .tables import html_table

SHOWN = 12  # pictures of a data set
SIDE = 56  # pixels that a picture is wide


def function_html(what: str, function: Any, rows: list[list[str]]) -> str:
    """A function: what it is, its source, and a table.

    Args:
        what: a title.
        function: where the source is.
        rows: of the table, the first its head.
    """
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        source = ""
    text = f'<pre style="margin:4px 0">{escape(inspect.cleandoc(source))}</pre>' if source else ""
    return f"<p><b>{escape(what)}</b></p>{text}{html_table(rows) if len(rows) > 1 else ''}"


def arrays_html(what: str, arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    """Named arrays: their types, and what is in them."""
    rows = [["name", "type", "numbers", "mean", "deviation", "least", "greatest"]]
    for name, array in arrays:
        kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        row = [name, kind, f"{array.size:,}"]
        if array.size and array.dtype.kind in "fiu":
            wide = array.astype(np.float64)
            row += [f"{v:.4g}" for v in (wide.mean(), wide.std(), wide.min(), wide.max())]
        rows.append(row + [""] * (7 - len(row)))
    return f"<p><b>{escape(what)}</b></p>{html_table(rows)}"


def images_html(what: str, images: np.ndarray, labels: np.ndarray) -> str:
    """The first images of a data set with their labels; without images (C, H, W) or (H, W) the title alone."""
    cells = []
    for image, label in zip(images[:SHOWN], labels[:SHOWN]):
        pixels = image if image.ndim == 3 else image[None]
        if pixels.ndim != 3 or pixels.shape[0] not in (1, 3) or 0 in pixels.shape:
            break
        data = base64.b64encode(png(pixels)).decode()
        cells.append(
            f'<span style="display:inline-block;text-align:center;margin:2px"><img width="{SIDE}" '
            f'style="image-rendering:pixelated" src="data:image/png;base64,{data}"/><br/>{escape(str(label))}</span>'
        )
    return f"<p><b>{escape(what)}</b></p>{''.join(cells)}"


def png(pixels: np.ndarray) -> bytes:
    """An image (1 or 3, height, width) as a PNG file; its least number is black, its greatest white."""
    least, greatest = float(np.nanmin(pixels)), float(np.nanmax(pixels))
    scaled = np.nan_to_num((pixels.astype(np.float64) - least) / ((greatest - least) or 1.0)) * 255
    rows = np.moveaxis(scaled.round().astype(np.uint8), 0, -1)
    height, width, channels = rows.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    chunks = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
