"""Small programs, compiled as if they were large: the optimisations that only large arrays are worth see random programs too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from myia_relay.backend.tvm import blas, nests, opaque, outline, streams, thin, updates, vectors
from myia_relay.backend.tvm import rows as row_kernels
from myia_relay.opt import fusion, row_picks, row_skips, rows, strips, triangles

LOW = (
    (rows, "LEAST", 2),  # rows of a row kernel
    (rows, "PAYS", 1),
    (row_picks, "FEWEST", 1),
    (row_picks, "HEAVY", 0),
    (row_picks, "OFTEN", 100),
    (row_picks, "SPARSE", 1 << 20),
    (row_skips, "WORTH", 1),
    (row_kernels, "WATCHED", 1),
    (row_kernels, "PARALLEL_WORK", 8),
    (nests, "PARALLEL_WORK", 8),
    (opaque, "PARALLEL_FLOPS", 8),
    (opaque, "PARALLEL_BYTES", 8),
    (updates, "LEAST", 2),
    (vectors, "SHORT", 1),
    (blas, "SMALL", 64),
    (thin, "WORK", 1),
    (thin, "LEAST", 1),
    (streams, "least", lambda: 1),  # bytes of a result that is written past the caches
    (strips, "LEAST", 1),
    (strips, "CACHE", 64),
    (strips, "ROWS", 1),
    (strips, "TIMES", 0),
    (triangles, "LEAST", 2),
    (triangles, "WORK", 1),
    (outline, "SIZE", 4),  # applications of a function that is compiled apart
    (fusion, "GROUP_LIMIT", 4),  # applications of a kernel
)


@contextmanager
def low() -> Iterator[None]:
    """What is compiled meanwhile is compiled as if it were large."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in LOW:
            patch.setattr(module, name, value)
        patch.setenv("MYIA_RELAY_CACHE", "0")  # its keys do not have these
        yield
