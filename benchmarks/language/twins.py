"""The C twins: `twins.c`, compiled by the C compiler of the machine where there is one, and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# No contraction: CPython makes none, and results are compared to the last bit.
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC")
KINDS = {"c_checked": ("-DCHECKED",), "c_wrapping": ()}


def compiler() -> str | None:
    """The C compiler: what CC says, or gcc."""
    return shutil.which(os.environ.get("CC", "gcc"))


def compile_twins(into: Path) -> dict[str, ctypes.CDLL]:
    """Compile both versions.

    Args:
        into: a directory for the libraries.

    Returns:
        kind -> library; empty where the machine has no compiler.
    """
    cc = compiler()
    if cc is None:
        return {}
    out = {}
    for kind, flags in KINDS.items():
        path = into / f"{kind}.so"
        source = Path(__file__).with_name("twins.c")
        subprocess.run([cc, *FLAGS, *flags, "-o", str(path), str(source), "-lm"], check=True)
        out[kind] = ctypes.CDLL(str(path))
    return out


def _pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def call(library: ctypes.CDLL, name: str, arguments: tuple) -> Callable[[], Any]:
    """A program of a library as a function without arguments; its result is as the Python program's."""
    i64 = ctypes.c_int64
    f = getattr(library, name)
    f.restype = i64
    if name == "mandelbrot":
        image, limit = arguments

        def mandelbrot():
            out = image.copy()
            f(i64(out.shape[0]), i64(out.shape[1]), _pointer(out), i64(limit))
            return out

        return mandelbrot
    if name == "edit_distance":
        a, b = arguments
        return lambda: f(i64(len(a)), _pointer(a), i64(len(b)), _pointer(b))
    if name == "nbody":
        positions, velocities, masses, steps, dt = arguments

        def nbody():
            p, v = positions.copy(), velocities.copy()
            f(i64(len(masses)), _pointer(p), _pointer(v), _pointer(masses), i64(steps), ctypes.c_double(dt))
            return p, v

        return nbody
    return lambda: f(*map(i64, arguments))
