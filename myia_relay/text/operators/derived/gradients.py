"""Operators for derivatives: `grad.NAME(x.., dout, attributes)` is a tuple of the cotangents of NAME's arguments.

    y = nn.conv2d(x, w)   =>   (dx, dw) = grad.nn.conv2d(x, w, dy)

`transform.Gradient` writes them where an operator has no shorter rule. The implementation is the request `vjp` of the
operator's own implementation, which `ad.expand` replaces by the adjoint program, so there is one derivative of each primitive in
the compiler. As
these operators are operators themselves, they have derivatives of every order: `grad.grad.NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....abstract.types import Struct, has_tangent, tuple_of
from ....ir.build import Builder, Var
from ....ir.node import Graph
from ....ir.prim import REGISTRY
from ....prims.ops.control import vjp
from ...terms.solver import Facts
from ...terms.terms import tuple_term
from ..declare import DERIVATIONS, OPERATORS, RelayOperator

PREFIX = "grad"


def _relation(facts: Facts) -> None:
    facts.gives(tuple_term(facts.arg(k) for k in range(facts.count - 1)))


def _parts(x: Any) -> Any:
    """A staged value as a tree of leaves."""
    if isinstance(x, Var) and isinstance(x.type, Struct):
        return tuple(_parts(x[k]) for k in range(len(x.type.elems)))
    return tuple(map(_parts, x)) if isinstance(x, tuple | list) else x


def _leaves(x: Any) -> list[Var]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, tuple) else [x]


def _rebuilt(x: Any, leaves: list[Var]) -> Any:
    return tuple(_rebuilt(part, leaves) for part in x) if isinstance(x, tuple) else leaves.pop(0)


def cotangents(base: RelayOperator) -> Callable[..., Any]:
    """The implementation of the derivative of an operator."""

    def function(b: Builder, *args: Any, **attrs: Any) -> Any:
        given, dout = _parts(tuple(args[:-1])), _parts(args[-1])
        leaves = _leaves(given)
        graph = Graph(f"{base.name}.forward")
        inner = Builder(graph)
        params = [Var(inner, graph.add_parameter(f"x{k}", leaf.type)) for k, leaf in enumerate(leaves)]
        made = _parts(base.function(inner, *_rebuilt(given, list(params)), **attrs))
        results = [r.node for r in _leaves(made)]
        if len(results) > 1:
            struct = tuple_of(*(r.type for r in results))
            graph.output = inner.emit(REGISTRY["make_struct"], results, {"type": struct})
        else:
            graph.output = results[0]
        wrt = tuple(k for k, leaf in enumerate(leaves) if has_tangent(leaf.type))
        seeds = [d.node for r, d in zip(results, _leaves(dout), strict=True) if has_tangent(r.type)]
        found = Var(b, b.emit(vjp, [*(x.node for x in leaves), *seeds], {"graph": graph, "wrt": wrt}))
        zero = OPERATORS["zeros_like"].function
        out = [found[wrt.index(k)] if k in wrt else zero(b, leaf) for k, leaf in enumerate(leaves)]
        return _rebuilt(given, out)

    function.__doc__ = f"The cotangents of the arguments of {base.name}."
    return function


def derivative(name: str) -> RelayOperator | None:
    """The operator for the derivative of an operator; None if there is none."""
    base = OPERATORS.get(name)
    if base is None or not base.staged:
        return None
    return RelayOperator(
        f"{PREFIX}.{base.name}",
        (*base.args, "dout"),
        _relation,
        cotangents(base),
        base.attrs,
        optional=base.optional,
        variadic=base.variadic,
        doc=f"The cotangents of the arguments of {base.name}.",
    )


DERIVATIONS[PREFIX] = derivative
