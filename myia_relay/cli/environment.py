"""What there is to work with: versions, processors, threads, the cache, data. Nothing is compiled, downloaded or written."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..utils.errors import LoweringError
from ..utils.files import CACHE_VARIABLE, SIZE_VARIABLE, cache_root, programs_limit

_PACKAGES = (
    "numpy",
    "apache-tvm",
    "scipy-openblas32",
    "safetensors",
    "ml_dtypes",
    "astor",
    "tqdm",
    "click",
    "rich",
    "matplotlib",
)


def sections() -> dict[str, list[tuple[str, str]]]:
    """Everything, by subject: rows of a name and a text."""
    return {
        "versions": _versions(),
        "targets": _targets(),
        "threads": _threads(),
        "cache": cache(),
        "data": _data(),
    }


def version(package: str) -> str:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _versions() -> list[tuple[str, str]]:
    return [
        ("python", f"{platform.python_version()} ({platform.python_implementation()}), {platform.platform()}"),
        ("myia_relay", version("myia_relay")),
        *((package, version(package)) for package in _PACKAGES),
    ]


def _targets() -> list[tuple[str, str]]:
    flags = _cpu_flags()
    vectors = next((v for v in ("avx512f", "avx2", "avx", "sve", "asimd", "sse2") if v in flags), "unknown")
    return [("cpu", f"{platform.machine()}, vectors: {vectors}"), ("native", _native()), ("products", _kernels())]


def _native() -> str:
    """What there is of the native executor on this system."""
    from ..backend.native.library import supported
    from ..pipeline import native_compiler

    try:
        native_compiler()
    except LoweringError as error:
        return error.message
    if supported():
        return "yes; programs are kept between processes"
    return "by TVM's loader; each process compiles, because files of programs are for Linux on x86-64"


def _kernels() -> str:
    """The processor for which OpenBLAS multiplies matrices, which an environment variable may have chosen."""
    from ..backend.native.library import kernels

    try:
        name = kernels()
    except (ImportError, OSError, AttributeError) as error:
        return f"no OpenBLAS: {error}"
    forced = os.environ.get("OPENBLAS_CORETYPE")
    return f"OpenBLAS for {name}" + (
        f" (OPENBLAS_CORETYPE={forced}; without it the processor decides)" if forced else ""
    )


def _cpu_flags() -> set[str]:
    """The instruction sets that Linux reports; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return set()
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return set(match[1].split()) if match else set()


def _threads() -> list[tuple[str, str]]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    variables = [name for name in ("OMP_NUM_THREADS", "TVM_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ]
    return [
        ("cores", f"{os.cpu_count()}, of which this process may use {usable}"),
        *((name, os.environ[name]) for name in variables),
    ]


def cache() -> list[tuple[str, str]]:
    """Where compiled programs are kept, and how many."""
    root, limit = cache_root(), programs_limit()
    files, size = contents(root)
    what = f"{files} files, {size / 1e6:,.1f} MB" if root.is_dir() else "not there yet"
    origin = CACHE_VARIABLE if os.environ.get(CACHE_VARIABLE) else "the default; set " + CACHE_VARIABLE + " to move it"
    kept, bytes_ = contents(root / "programs")
    programs = f"{kept} compiled programs, {bytes_ / 1e6:,.1f} of at most {limit / 1e6:,.0f} MB ({SIZE_VARIABLE})"
    return [
        ("folder", f"{root} ({origin})"),
        ("holds", what),
        ("programs", programs if limit else "kept nowhere: switched off"),
        ("unkept", "programs that return functions or use what is not found by a name; see docs/deployment.md"),
    ]


def contents(root: Path) -> tuple[int, int]:
    """The number of files in a folder and their bytes; files that vanish meanwhile or cannot be read count nothing."""
    files = size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            files += 1
    return files, size


def _data() -> list[tuple[str, str]]:
    from ..model import datasets

    rows = [(datasets.DATA_VARIABLE, os.environ.get(datasets.DATA_VARIABLE) or "not set")]
    for name in ("mnist", "fashion_mnist"):
        try:
            place = datasets.find(name)
            rows.append((name, str(place) if place else "not here; downloaded when first used"))
        except datasets.DatasetError as error:
            rows.append((name, str(error)))
    return [*rows, ("digits", "part of the package")]


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table, drawn with rich. In a pipe or a file there are neither colours nor padding.

    Args:
        columns: the heads of the columns; empty ones are not shown. Numbers stand at the right.
        rows: the cells, which are never cut off.
        title: a line above the table.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(box=None, show_header=any(columns), pad_edge=False, padding=(0, 2, 0, 0))
    for k, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[k], (int, float)) for row in rows)
        table.add_column(column, justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    console = Console(highlight=False, width=10_000)  # lines that are too long are left to the terminal
    if title:
        console.print(Text(title, style="bold"))
    with console.capture() as text:
        console.print(table)
    indent = "  " if title else ""
    for line in text.get().splitlines():
        print(f"{indent}{line.rstrip()}")
