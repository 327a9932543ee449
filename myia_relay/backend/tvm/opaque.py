"""Kernels that are not loop nests over one expression."""
from ...utils.errors import LoweringError


def lower(lowering, node):
    raise LoweringError(f"the native executor cannot compile {node.fn.name} yet", node.origin)
