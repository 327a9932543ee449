"""All primitives with their rules, by family. Importing this package registers them and checks that none lacks a rule."""

from ..ir.prim import REGISTRY
from ..utils.errors import InternalError
from .ops import (  # noqa: F401
    control,
    data,
    effects,
    elementwise,
    examples,
    fourier,
    indexing,
    linalg,
    lists,
    nn,
    ordering,
    random,
    reduction,
    registered,
    shape,
    special,
    structure,
)
from .ops.integers import bits, products, quantisation  # noqa: F401
from .ops.matrices import factorisations, systems  # noqa: F401
from .rules import batching, broadcast, forward  # noqa: F401

# Which rules each kind must have. The adjoints of structures, control and effects are in `ad`, not in a vjp rule.
_REQUIRED = {
    "elementwise": ("infer", "vjp", "jvp", "batch"),
    "injective": ("infer", "vjp", "jvp", "batch", "lower"),
    "reduce": ("infer", "vjp", "jvp", "batch", "lower"),
    "opaque": ("infer", "vjp", "jvp", "batch"),
    "struct": ("infer",),
    "control": ("infer",),
    "effect": ("infer",),
}


def missing_rules() -> list[str]:
    """What the registered primitives lack, one line each: ``erf: no vjp rule``."""
    out = []
    for prim in REGISTRY.values():
        for rule in _REQUIRED[prim.kind]:
            if rule in ("vjp", "jvp") and not prim.differentiable:
                continue
            if getattr(prim, f"{rule}_rule") is None:
                out.append(f"{prim.name}: no {rule} rule")
    return out


for _prim in REGISTRY.values():
    if _prim.axes is not None:
        _prim.batch(batching.from_axes(_prim))
    if _prim.kind == "elementwise" and _prim.jvp_rule is None and _prim.vjp_rule is not None:
        _prim.jvp(forward.elementwise(_prim))

if _missing := missing_rules():
    raise InternalError("prims", "primitives without their rules: " + "; ".join(_missing))
