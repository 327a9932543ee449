"""Switching optimisations off through the environment, to measure their effect:
`MYIA_RELAY_WITHOUT=soa_kernels,vector_loops`.

Programs compute the same without them. The variable is read when a program is compiled, and files of compiled programs
are kept apart by it.
"""

from __future__ import annotations

import functools
import os

from .errors import ValueError_, nearest

VARIABLE = "MYIA_RELAY_WITHOUT"
OPTIMISATIONS = {
    "accumulate": "sums of adjoints go on through inner loops",
    "partial_sums": "the cotangent of a part is added to that part of the sum alone",
    "nested_updates": "what is added to a part of a part is added there alone, in derived code",
    "batch_products": "products in a loop with a matrix that it does not change are one product, where they can be",
    "blas": "products of matrices are calls of a library",
    "colour_jacobians": "directions of a Jacobian that do not meet share a pass",
    "computed_matrices": "a matrix that is computed only to be multiplied by a vector is never stored",
    "delay_updates": "updates of arrays come after what reads the old values",
    "direct_conv": "convolutions read shifted copies of an image, not a matrix of its patches",
    "distinct_gathers": "rows that are picked, perhaps several times, are computed once, in the order of memory",
    "dead_fills": "arrays that a loop writes from end to end are not filled before",
    "check_elimination": "checks and overflow flags that range analysis decides are dropped",
    "exchanged_buffers": "loops that exchange arrays run several iterations as one, and copy none",
    "fuse_epilogues": "what follows a convolution element by element is computed where its result is still in registers or caches",
    "fusion": "arrays that one kernel reads are computed inside of it, and kernels over arrays of one shape are one",
    "hoist_invariants": "what does not change in a loop is computed before it",
    "in_place": "arrays are changed in place where nobody looks at the old ones",
    "join_pads": "sums of padded arrays that lie one behind the other are written part by part",
    "masked_updates": "cheap changes of what a mask selects are choices, without lists of positions",
    "unroll_and_jam": "inner while loops of eight iterations run together",
    "packed_products": "matrices by which every iteration of a loop multiplies are packed before it",
    "parts": "products read rows and columns of a matrix where they are",
    "preallocate_tapes": "tapes of known length are arrays of the memory plan",
    "soa_kernels": "arrays of short rows are computed row by row, in the lanes of vectors",
    "if_conversion": "small branches between integers are choices without a jump",
    "small_products": "products of small matrices are written out",
    "induction_variables": "counters of loops are formulas of the index",
    "nontemporal_stores": "results that are larger than the caches are written past them",
    "row_blocks": "sums over many rows of data go block by block",
    "read_quotients": "derived code reads a quotient in place of its numerator, where that need not be kept then",
    "redundant_loops": "loops and branches that are a part of others are not run again",
    "skinny_products": "products of matrices of few rows are computed without copying them",
    "triangular_products": "what is zero in a triangular matrix is not multiplied, and what is not read of a product not computed",
    "sparse_updates": "a step of descent changes only the rows of a table that its gradient has",
    "sum_products": "sums of products over the iterations of a loop are one product, in derived code",
    "recursive_sums": "sums of adjoints go on through recursive calls",
    "recursive_inlining": "several levels of recursive calls are one",
    "vnni": "integers of 8 and 16 bits are multiplied and added by one instruction",
    "madd": "pairs of integers of 16 bits are multiplied and added by one instruction",
    "winograd": "convolutions by 3x3 windows take a quarter of the multiplications, with a larger error: `kernels/winograd.py`",
    "vector_loops": "counted loops over numbers run in the lanes of vectors",
}
"""What can be left out, by name."""


def is_left_out(name: str) -> bool:
    """Whether the environment leaves an optimisation out.

    Raises:
        ValueError_: it names something that there is not.
    """
    return name in _names(os.environ.get(VARIABLE, ""))


@functools.lru_cache(8)
def _names(text: str) -> frozenset[str]:
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    for name in sorted(names - OPTIMISATIONS.keys()):
        raise ValueError_(f"{VARIABLE}: there is no optimisation {name!r}{nearest(name, list(OPTIMISATIONS))}")
    return names
