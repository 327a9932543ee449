"""Small programs, compiled as if they were large: the optimisations that only large arrays are worth see random programs too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from myia_relay.backend.tvm.host import outline, vector_loops
from myia_relay.backend.tvm.kernels import blas, nests, nontemporal, opaque, skinny_products, updates
from myia_relay.backend.tvm.kernels import soa as row_kernels
from myia_relay.backend.tvm.kernels.products import panels
from myia_relay.opt.analysis import fusion
from myia_relay.opt.kernels import (
    packed_products,
    row_blocks,
    row_gathers,
    soa_kernels,
    triangular_products,
    zero_blocks,
)

LOW = (
    (soa_kernels, "LEAST", 2),  # rows of a row kernel
    (soa_kernels, "PAYS", 1),
    (row_gathers, "FEWEST", 1),
    (row_gathers, "HEAVY", 0),
    (row_gathers, "OFTEN", 100),
    (row_gathers, "SPARSE", 1 << 20),
    (zero_blocks, "WORTH", 1),
    (row_kernels, "WATCHED", 1),
    (row_kernels, "PARALLEL_WORK", 8),
    (nests, "PARALLEL_WORK", 8),
    (opaque, "PARALLEL_FLOPS", 8),
    (opaque, "PARALLEL_BYTES", 8),
    (updates, "LEAST", 2),
    (vector_loops, "SHORT", 1),
    (blas, "SMALL", 64),
    (skinny_products, "WORK", 1),
    (skinny_products, "LEAST", 1),
    (panels, "WORK", 1),
    (panels, "LEAST", 1),
    (packed_products, "WORK", 1),
    (packed_products, "LEAST", 1),
    (packed_products, "ROWS", (1, 128)),
    (packed_products, "ITERATIONS", 1),
    (nontemporal, "least", lambda: 1),  # bytes of a result that is written past the caches
    (row_blocks, "LEAST", 1),
    (row_blocks, "CACHE", 64),
    (row_blocks, "ROWS", 1),
    (row_blocks, "TIMES", 0),
    (triangular_products, "LEAST", 2),
    (triangular_products, "WORK", 1),
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
