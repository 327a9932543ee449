"""Operations on run-time lists that derivatives and transforms emit: loops over lists, sums, whole gradients.

    accumulate(ds, i, d)    ds[i] += d, where an entry may be a tree, or a list
    whole(xs, ds)           ds as long as xs, and each of its entries whole

The cotangent of a list is a list that may be shorter: the entries that it lacks are zero. Sums of entries that hold
trees or lists are primitives (`list_accumulate`) until everything is differentiated; then they are replaced by what is
here (`ad.lists.without_sums`).

Input: staged lists. Output: nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...abstract.types import INT, Data, List, NoneT, Struct, Type, has_tangent, holds, is_array_entry, tuple_of
from ...ir.build import Builder
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from . import data_functions as data


def emit(b: Builder, name: str, *args: Node) -> Node:
    """Apply a primitive of lists."""
    prim = REGISTRY[name]
    return b.emit(prim, args, {"elem": args[0].type.elem} if "elem" in prim.attr_names else {})


def op(b: Builder, name: str, *args: Node) -> Node:
    """Apply a primitive of numbers."""
    return b.emit(REGISTRY[name], args)


def number(b: Builder, value: int) -> Node:
    """An int."""
    return b.constant(value, INT)


def length(b: Builder, xs: Node) -> Node:
    """The length of a list."""
    return emit(b, "list_len", xs)


def new(b: Builder, elem: Type) -> Node:
    """An empty list."""
    return b.emit(REGISTRY["list_new"], (), {"elem": elem})


def over(b: Builder, count: Node, start: Node, constants: list[Node], step: Callable) -> Node:
    """`for k in range(count): start = step(builder, k, start, *constants)`."""
    body = Graph("list", None, b.origin)
    k = body.add_parameter("k", INT)
    carried = body.add_parameter("ds", start.type)
    rest = [body.add_parameter(f"x{i}", c.type) for i, c in enumerate(constants)]
    inner = Builder(body, b.origin)
    out = step(inner, k, carried, *rest)
    body.output = inner.emit(REGISTRY["make_struct"], (out,), {"type": tuple_of(out.type)})
    args = (number(b, 0), count, number(b, 1), start, *constants)
    loop = b.emit(REGISTRY["for_loop"], args, {"body": body, "carried": 1})
    return b.emit(REGISTRY["get_item"], (loop,), {"index": 0})


def is_plain(elem: Type) -> bool:
    """Whether entries are numbers and arrays, whose sums back ends know."""
    return not holds(elem, Data) and not holds(elem, List)


def zeros(b: Builder, t: Type) -> Node:
    """Zero of a tangent type."""
    if isinstance(t, List):
        return new(b, t.elem)
    if isinstance(t, Struct):
        return b.emit(REGISTRY["make_struct"], tuple(zeros(b, e) for e in t.elems), {"type": t})
    return data.zero(b, t)


def parts(b: Builder, x: Node) -> list[Node]:
    """The parts of a structure."""
    return [b.emit(REGISTRY["get_item"], (x,), {"index": i}) for i in range(len(x.type.elems))]


def total(b: Builder, functions: data.Functions, x: Node, y: Node) -> Node:
    """The sum of two tangents of a value."""
    t = x.type
    if isinstance(t, Struct):
        sums = [total(b, functions, p, q) for p, q in zip(parts(b, x), parts(b, y), strict=True)]
        return b.emit(REGISTRY["make_struct"], tuple(sums), {"type": t})
    if isinstance(t, List):
        return over(
            b, length(b, y), x, [y], lambda b, k, xs, ys: accumulate(b, functions, xs, k, emit(b, "list_get", ys, k))
        )
    if isinstance(t, Data):
        return functions.add(b, x, y)
    return x if isinstance(t, NoneT) else op(b, "add", x, y)


def accumulate(b: Builder, functions: data.Functions, ds: Node, index: Node, d: Node) -> Node:
    """`list_accumulate` of entries of any type."""
    if is_plain(ds.type.elem):
        return emit(b, "list_accumulate", ds, index, d)
    wide = resize(b, ds, op(b, "maximum", length(b, ds), op(b, "add", index, number(b, 1))))
    old = emit(b, "list_get", wide, index)
    if holds(ds.type.elem, List):  # nothing else has the entry then, and it is changed in place
        wide = emit(b, "list_set", wide, index, zeros(b, ds.type.elem))
    return emit(b, "list_set", wide, index, total(b, functions, old, d))


def resize(b: Builder, ds: Node, count: Node) -> Node:
    """`list_resize` of entries of any type."""
    elem = ds.type.elem
    if not holds(elem, List):
        return emit(b, "list_resize", ds, count)
    shorter = emit(b, "list_truncate", ds, count)
    more = op(b, "sub", count, length(b, shorter))
    return over(b, more, shorter, [], lambda b, k, ds: emit(b, "list_push", ds, zeros(b, elem)))


def at(b: Builder, ds: Node, index: Node) -> Node:
    """`list_at` of entries of any type."""
    elem = ds.type.elem
    if not holds(elem, List):
        return emit(b, "list_at", ds, index)
    there = op(b, "lt", index, length(b, ds))
    return data.choose(b, there, lambda b, x: emit(b, "list_get", *x), lambda b, _: zeros(b, elem), [ds, index])


def gradient(t: Type) -> Type:
    """The type of the gradient by a value, as users get it."""
    if is_array_entry(t):
        return t if has_tangent(t) else NoneT()
    if isinstance(t, Struct):
        return Struct(t.kind, tuple(map(gradient, t.elems)), t.fields, t.cls)
    if isinstance(t, List):
        return List(gradient(t.elem)) if has_tangent(t.elem) else NoneT()
    if isinstance(t, Data):
        return Data(t.family.gradient, t.nullable) if has_tangent(t) else NoneT()
    return t if t.is_float else NoneT()


def whole(b: Builder, functions: data.Functions, x: Node, d: Node) -> Node:
    """The gradient by a value as users get it, from its cotangent: with all of its zeros."""
    t = x.type
    if is_array_entry(t):
        if not has_tangent(t):
            return b.emit(REGISTRY["none"], ())
        elements, *sizes = parts(b, x)
        made = [whole(b, functions, elements, parts(b, d)[0]), *sizes]
        return b.emit(REGISTRY["make_struct"], tuple(made), {"type": t})
    if isinstance(t, Struct):
        made = [whole(b, functions, p, q) for p, q in zip(parts(b, x), parts(b, d), strict=True)]
        return b.emit(REGISTRY["make_struct"], tuple(made), {"type": gradient(t)})
    if isinstance(t, Data):
        return functions.whole(b, x, d) if has_tangent(t) else d
    if not isinstance(t, List) or not has_tangent(t):
        return d
    if is_plain(t.elem):
        return emit(b, "list_resize", d, length(b, x))

    def entry(b: Builder, k: Node, out: Node, xs: Node, ds: Node) -> Node:
        return emit(b, "list_push", out, whole(b, functions, emit(b, "list_get", xs, k), at(b, ds, k)))

    return over(b, length(b, x), new(b, gradient(t.elem)), [x, d], entry)


__all__ = ["accumulate", "at", "emit", "gradient", "is_plain", "length", "number", "op", "over", "resize", "whole"]
