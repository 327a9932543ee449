"""OpenBLAS, with LAPACK in it, from PyPI's `scipy-openblas32`: the library that compiled code and reference implementations call.

It is opened with global symbols, so that machine code finds its functions by name, and set to one thread: several threads call it
at once, each on its own part. Integers have 32 bits, and names begin with `scipy_`: `scipy_cblas_dgemm`, `scipy_LAPACKE_dgetrf`.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from pathlib import Path


@functools.cache
def openblas() -> ctypes.CDLL:
    """Open OpenBLAS with global symbols, single-threaded; call before running code that uses it.

    Raises:
        ImportError: `scipy-openblas32` is not installed.
    """
    import scipy_openblas32

    directory = Path(scipy_openblas32.get_lib_dir())
    names = ["libscipy_openblas.so", "libscipy_openblas.dylib", "libscipy_openblas.dll"]
    path = next((directory / name for name in names if (directory / name).exists()), None)
    if path is None:
        full = "fullname" in inspect.signature(scipy_openblas32.get_library).parameters
        path = directory / scipy_openblas32.get_library(fullname=True) if full else None
    if path is None or not path.exists():
        raise ImportError(f"no OpenBLAS library in {directory}")
    lib = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    lib.scipy_openblas_set_num_threads(1)
    lib.scipy_LAPACKE_set_nancheck(0)  # NaN is passed on, as NumPy does, and not refused
    return lib


__all__ = ["openblas"]
