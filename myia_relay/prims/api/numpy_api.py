"""The complete tables of NumPy's and `math`'s functions, and of the methods, attributes and subscripts of arrays.

    IMPLEMENTATIONS[np.tanh](b, x)        METHODS["sum"](b, x, axis=0)        getitem(b, x, (slice(None), i))

The entries are in the modules imported here, by family; see `prims.api.implementations` for how they are called.
"""

from __future__ import annotations

import builtins

from ...ir.build import Builder, Var
from ..ops.indexing import index_add
from . import (  # noqa: F401  importing fills the tables
    math_api,
    nn_api,
    numpy_creation,
    numpy_elementwise,
    numpy_indexing,
    numpy_linalg,
    numpy_reductions,
    numpy_shape,
)
from .arithmetic import divmod_
from .implementations import IMPLEMENTATIONS, METHODS, Implementation, implements, method
from .library import factorisations, fourier, ordering  # noqa: F401
from .nn_api import NN_OPS
from .operators import index_
from .promotion import cast, operand
from .subscripts import getitem, setitem

implements(builtins.divmod)(lambda b, x, y: divmod_(b, operand(b, x), operand(b, y)))


def as_index(b: Builder, x: Var) -> Var:
    """An int operand of `range` or a subscript, as a Python int."""
    return index_(b, x)


__all__ = [
    "IMPLEMENTATIONS",
    "METHODS",
    "NN_OPS",
    "Implementation",
    "as_index",
    "cast",
    "getitem",
    "index_add",
    "implements",
    "method",
    "setitem",
]
