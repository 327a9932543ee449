"""Operators for the compiler's primitives: `prim.NAME(x.., attributes)` is the primitive NAME, as typed graphs have it.

Relay has no operator for everything that the compiler computes: `prim.expm1(%x)`, `prim.dynamic_index(%x, %i, axis=0)`. Where it
has one, that is what `relay.to_text` writes. The relation is the primitive's own, on the types at hand, which must be known
down to the sizes. The attributes are those of the primitive, by its names.

`prim.check(%ok, %a, .., exception="OverflowError", parts=[..])` raises an exception unless `%ok` holds, at its line. The parts
of the message are texts, and lists [operand, conversion, format] (see `utils.raising`). Its value is `()`.
"""

from __future__ import annotations

import builtins
import inspect
from typing import Any

import numpy as np

from ....abstract.dims import Dim
from ....abstract.types import Array, NoneT, Scalar, Struct, Type
from ....ir.build import Builder, Var
from ....ir.prim import REGISTRY, Primitive
from ....prims.api.promotion import strong
from ....utils.errors import TypeError_
from ...terms.show import show
from ...terms.solver import Facts
from ...terms.terms import ANY, TensorTerm, TupleTerm, prune, scalar, tensor, tuple_term, unknowns
from ..declare import DERIVATIONS, Attr, RelayOperator
from ..staged import array

PREFIX = "prim"
KINDS = ("elementwise", "injective", "reduce", "opaque")
NOT_WRITTEN = {"call_operator", "operator_kernel"}  # their attributes are objects
FAILING = frozenset({"check"})
FAILING_OPERATORS = frozenset(f"{PREFIX}.{name}" for name in FAILING)
"""Operators whose place in the order of evaluation matters, as they may raise."""
NUMPY_ERRORS = {"LinAlgError": np.linalg.LinAlgError}


def has_operator(prim: Primitive) -> bool:
    """Whether there is an operator for a primitive: it computes arrays or numbers from such, and attributes say the rest."""
    return prim.name in FAILING or prim.kind in KINDS and not prim.effect and prim.name not in NOT_WRITTEN


def exception_named(name: str) -> type[Exception]:
    """An exception that `prim.check` raises.

    Raises:
        TypeError_: there is none of this name.
    """
    found = NUMPY_ERRORS.get(name) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        return found
    raise TypeError_(f"prim.check: there is no built-in exception '{name}'")


def type_of_term(facts: Facts, term: Any) -> Type:
    """A type of the core.

    Raises:
        Waiting: it is not known yet.
        TypeError_: it is none that primitives work on.
    """
    term = prune(term)
    for x in unknowns(term):
        raise facts.wait(x)
    if isinstance(term, TupleTerm):
        return Struct("tuple", tuple(type_of_term(facts, e) for e in term.elems))
    if isinstance(term, TensorTerm):
        shape, dtype = prune(term.shape), prune(term.dtype)
        if isinstance(shape, tuple) and isinstance(dtype, str):
            sizes = tuple(map(prune, shape))
            if all(isinstance(s, int | Dim) for s in sizes) and ANY not in sizes:
                return Array(dtype, sizes) if sizes else Scalar(dtype)
        for part in (shape, dtype, *(shape if isinstance(shape, tuple) else ())):
            if not isinstance(part, int | str | Dim | tuple) and part is not ANY:
                raise facts.wait(part)  # a parameter that is declared
    raise TypeError_(f"{facts.name} takes tensors of known sizes, and this is {show(term)}")


def term_of_type(t: Type) -> Any:
    """The term of a primitive's result.

    Raises:
        TypeError_: it has none.
    """
    if isinstance(t, Scalar):
        return scalar(t.dtype)
    if isinstance(t, Array):
        return tensor(t.shape, t.dtype)
    if isinstance(t, Struct):
        return tuple_term(map(term_of_type, t.elems))
    if isinstance(t, NoneT):
        return tuple_term(())
    raise TypeError_(f"a primitive that gives {t} has no operator")


def _given(prim: Primitive, attrs: dict[str, Any]) -> dict[str, Any]:
    if prim.name in FAILING:
        return {**attrs, "exception": exception_named(attrs["exception"])}
    return attrs


def _fitting(prim: Primitive, args: list[Any], attrs: dict[str, Any]) -> Any:
    """`prim.infer_rule` of numbers or, where it takes no numbers, of arrays without axes, and which of them they are."""
    try:
        return prim.infer_rule(*args, **attrs), False
    except Exception:
        as_arrays = [Array(t.dtype, ()) if isinstance(t, Scalar) else t for t in args]
        if prim.kind == "elementwise" or as_arrays == args:
            raise
        return prim.infer_rule(*as_arrays, **attrs), True


def primitive_operator(name: str) -> RelayOperator | None:
    """The operator for a primitive; None if there is none."""
    prim = REGISTRY.get(name)
    if prim is None or not has_operator(prim):
        return None

    def relation(facts: Facts) -> None:
        types = [type_of_term(facts, facts.arg(k)) for k in range(facts.count)]
        attrs = _given(prim, {n: facts.attr(n) for n in prim.attr_names})
        facts.gives(term_of_type(_fitting(prim, types, attrs)[0]))

    def function(b: Builder, *args: Any, **attrs: Any) -> Any:
        given = _given(prim, {**prim.attr_defaults, **attrs})
        values = [strong(x) if isinstance(x, Var) else x for x in args]
        if prim.name in FAILING:
            b.emit(prim, [x.node for x in values], given)
            return ()
        if _fitting(prim, [x.type for x in values], given)[1]:
            values = [array(x) for x in values]
        out = Var(b, b.emit(prim, [x.node for x in values], given))
        if isinstance(out.type, Struct):
            return tuple(out[k] for k in range(len(out.type.elems)))
        return out

    parameters = inspect.signature(prim.reference).parameters.values()
    positional = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    attrs = {n: Attr("any", prim.attr_defaults[n]) if n in prim.attr_defaults else Attr("any") for n in prim.attr_names}
    return RelayOperator(
        f"{PREFIX}.{name}",
        (*positional, *variadic),
        relation,
        function,
        attrs,
        optional=len(variadic),
        variadic=bool(variadic),
        doc=(prim.__doc__ or "").strip().split("\n")[0],
    )


DERIVATIONS[PREFIX] = primitive_operator

__all__ = ["FAILING", "FAILING_OPERATORS", "PREFIX", "exception_named", "has_operator", "primitive_operator"]
