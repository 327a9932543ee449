"""Derivatives of trees: values of algebraic data types that are made at run time, of any shape.

    t = Node(l, r)    =>   dl = dt.left;  dr = dt.right         (zero where dt is None)
    l = t.left        =>   dt = Node(dl, None)

A cotangent (or tangent) of a tree is a tree of the tangents' family (see `abstract.family`). It has the same shape,
except that None stands for the zero of a whole subtree. What a branch reads of a record becomes one record at the end
of the branch (`cotangents.Record`). Sums of cotangents are recursive functions (`prims.ops.data_functions`). All of
this consists of ordinary operations, which can be differentiated again in the same way.
"""

from __future__ import annotations

from ..abstract.types import Data, has_tangent, tangent
from ..ir.build import Builder
from ..ir.node import Apply, Node
from ..prims.ops import data_functions as data
from .common.cotangents import Cotangent, Record
from .forward.forward import RULES as FORWARD
from .forward.forward import Forward
from .reverse.reverse import RULES, Adjoint


def _tangent(record: Node) -> Data:
    """The type of tangents of a record that can have one."""
    found = tangent(record.type)
    assert isinstance(found, Data)
    return found


def _part(b: Builder, ct: Record | Node, variant: int, indices: list[int]) -> dict[int, Cotangent]:
    """The cotangents of some leaves of a record."""
    if isinstance(ct, Record):
        return {k: ct.parts.get(k) for k in indices}
    return dict(zip(indices, data.parts_or_zeros(b, ct, variant, indices), strict=True))


def _make(adjoint: Adjoint, node: Apply, ct: Record | Node) -> None:
    active = [k for k, a in enumerate(node.args) if a in adjoint.acts]
    for k, part in _part(adjoint.builder, ct, node.attrs["variant"], active).items():
        adjoint.accumulate(node.args[k], part, "data_make")


def _field(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    (record,) = node.args
    adjoint.accumulate(record, Record(_tangent(record), node.attrs["variant"], {node.attrs["index"]: ct}), "data_field")


def _as(adjoint: Adjoint, node: Apply, ct: Cotangent) -> None:
    adjoint.accumulate(node.args[0], ct, "data_as")


RULES.update({"data_make": _make, "data_field": _field, "data_as": _as})


def _make_forward(f: Forward, b: Builder, node: Apply, args, tangents):
    out = b.emit(node.fn, args, node.attrs)
    parts = {k: t for k, t in enumerate(tangents) if t is not None}
    return out, Record(_tangent(node), node.attrs["variant"], parts)


def _field_forward(f: Forward, b: Builder, node: Apply, args, tangents):
    index, out = node.attrs["index"], b.emit(node.fn, args, node.attrs)
    if not has_tangent(node.type):
        return out, None
    return out, _part(b, tangents[0], node.attrs["variant"], [index])[index]


def _as_forward(f: Forward, b: Builder, node: Apply, args, tangents):
    return b.emit(node.fn, args, node.attrs), tangents[0]


FORWARD.update({"data_make": _make_forward, "data_field": _field_forward, "data_as": _as_forward})

__all__: list[str] = []
