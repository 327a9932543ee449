"""Every primitive, whole, by family; importing this package registers them all and checks that none lacks a rule."""

from ..ir.prim import REGISTRY
from ..utils.errors import InternalError
from . import (  # noqa: F401
    batching,
    broadcast,
    control,
    effects,
    elementwise,
    indexing,
    linalg,
    nn,
    reduction,
    shape,
    structure,
)

# Which rules each kind must have. The adjoints of structures, control and effects are in `ad`, not in a vjp rule.
_REQUIRED = {
    "elementwise": ("infer", "vjp", "batch"),
    "injective": ("infer", "vjp", "batch", "lower"),
    "reduce": ("infer", "vjp", "batch", "lower"),
    "opaque": ("infer", "vjp", "batch"),
    "struct": ("infer",),
    "control": ("infer",),
    "effect": ("infer",),
}


def missing_rules() -> list[str]:
    """What the registered primitives lack, one line each: ``erf: no vjp rule``."""
    out = []
    for prim in REGISTRY.values():
        for rule in _REQUIRED[prim.kind]:
            if rule == "vjp" and not prim.differentiable:
                continue
            if getattr(prim, f"{rule}_rule") is None:
                out.append(f"{prim.name}: no {rule} rule")
    return out


for _prim in REGISTRY.values():
    if _prim.kind == "elementwise" and _prim.batch_rule is None:
        _prim.batch(batching.batch_elementwise(_prim))

if _missing := missing_rules():
    raise InternalError("prims", "primitives without their rules: " + "; ".join(_missing))
