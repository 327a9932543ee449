"""`python -m benchmarks loops`: loops over rows, columns and slices of arrays, beside NumPy and Numba.

The same text runs in all systems, on one thread: under CPython with NumPy, under Numba (where it is installed, and compiles the
text), and here. Each round measures all of them; reported are medians, and the medians of the ratios of each round. Compiling is
measured apart. Results are compared.
"""

from .main import main

__all__ = ["main"]
