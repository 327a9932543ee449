"""Where files of datasets are kept, and how they are fetched."""

from __future__ import annotations

import os
import urllib.request
import zlib
from pathlib import Path

from ..utils.files import cache_root
from ..utils.progress import progress

DATA_VARIABLE = "MYIA_RELAY_DATA"
"""Names the folder around the folders of datasets."""
TIMEOUT = 10.0
"""Seconds to wait for a mirror to answer, and for each piece of a file."""
GZIP_MAGIC = b"\x1f\x8b"


class DatasetError(OSError):
    """A dataset that cannot be had, or a file of one that is damaged; the message says what to do."""


def cache_dir() -> Path:
    """Where downloaded datasets are kept: `datasets` in the project's cache folder."""
    return cache_root() / "datasets"


def local_dir(*names: str) -> Path | None:
    """A dataset's folder in `$MYIA_RELAY_DATA`, if there is one.

    Args:
        names: what it may be called.

    Raises:
        DatasetError: `$MYIA_RELAY_DATA` is not a folder.
    """
    root = os.environ.get(DATA_VARIABLE)
    if not root:
        return None
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DatasetError(f"{DATA_VARIABLE} is {str(root)!r}, which is not a folder")
    return next((root / n for n in names if (root / n).is_dir()), None)


def stored(folder: Path, name: str) -> Path | None:
    """A file's path in a folder, uncompressed for preference."""
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def gunzip(data: bytes, limit: int) -> bytes:
    """Uncompress a gzip file of at most `limit` bytes.

    Raises:
        zlib.error: it is damaged.
        ValueError: it is larger, or ends too early.
    """
    stream = zlib.decompressobj(wbits=31)
    out = stream.decompress(data, limit + 1)
    if len(out) > limit:
        raise ValueError(f"more than {limit} bytes inside")
    if not stream.eof:
        raise ValueError("it ends too early")
    return out


def fetch(url: str, desc: str, limit: int) -> bytes:
    """Download one URL into memory, with a progress bar.

    Raises:
        OSError: it cannot be reached.
        ValueError: it is larger than `limit`, or the connection ended too early.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "myia_relay"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        total = int(response.headers.get("Content-Length") or 0)
        pieces, size = [], 0
        with progress(total=total or None, desc=desc, unit="B", unit_scale=True) as bar:
            while piece := response.read(1 << 16):
                pieces.append(piece)
                size += len(piece)
                bar.update(len(piece))
                if size > limit:
                    raise ValueError(f"more than {limit} bytes: not the file we look for")
    if total and size != total:
        raise ValueError(f"the connection ended after {size} of {total} bytes")
    return b"".join(pieces)
