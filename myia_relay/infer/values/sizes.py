"""The form in which arrays whose sizes values decide leave the graph in which these are bound.

A dimension has a meaning only where it is bound (`bind_dim`). What leaves a branch, an iteration or a function, and what is
given to a function, is therefore the array's numbers as a run-time list, and its sizes; where it arrives its sizes are bound
anew. In a treedef that is "sized", with the dtype and the shape, in which None stands for such a size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...abstract.dims import is_run_time, product, symbols
from ...abstract.types import Array
from ...ir.build import Builder, Var
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from ...ir.sizes import bound_in
from ...prims.api.promotion import bind_size, size_value
from .treedef import TreeDef, sized


def hide_sizes(treedef: TreeDef, graph: Graph | None = None) -> TreeDef:
    """A treedef without dimensions that a graph binds; without any that values decide, where no graph is given."""
    if not any(isinstance(t := leaf.info, Array) and any(map(is_run_time, t.shape)) for leaf in treedef.leaves()):
        return treedef
    names = None if graph is None else bound_in(graph)
    return _mapped(treedef, lambda d: is_run_time(d) and (names is None or not names.isdisjoint(symbols(d))))


def _mapped(treedef: TreeDef, hidden: Callable[[Any], bool]) -> TreeDef:
    if treedef.tag == "dyn":
        t = treedef.info
        if not isinstance(t, Array) or not any(map(hidden, t.shape)):
            return treedef
        return sized(t.dtype, tuple(None if hidden(d) else d for d in t.shape))
    if not treedef.parts or treedef.tag == "sized":
        return treedef
    return TreeDef(treedef.tag, treedef.info, tuple(_mapped(p, hidden) for p in treedef.parts))


def returned_leaves(treedef: TreeDef, nodes: list[Node]) -> Iterator[tuple[int, Node]]:
    """The numbers of the leaves that a function returns, and what they are at the call; arrays that are made there are left out.

    Args:
        treedef: of the result.
        nodes: the leaves of the value that was put together at the call.
    """
    index, at = 0, iter(nodes)
    stack = [treedef]
    while stack:
        top = stack.pop()
        if top.tag == "dyn":
            yield index, next(at)
            index += 1
        elif top.tag == "sized":
            next(at)
            index += len(top.parts)
        else:
            stack.extend(reversed(top.parts))


def pack_array(b: Builder, node: Node, treedef: TreeDef) -> list[Node]:
    """The leaves of an array in the form of a "sized" treedef."""
    array = Var(b, node)
    flat = array if array.ndim == 1 else REGISTRY["reshape"](array, shape=(product(array.shape),))
    sizes = [size_value(b, d).node for d, known in zip(array.shape, treedef.info[1], strict=True) if known is None]
    return [REGISTRY["list_from_array"](flat, same=True).node, *(sizes if array.ndim > 1 else ())]


def unpack_array(b: Builder, info: Any, leaves: list[Node]) -> Node:
    """The array of which these are the leaves; its sizes are bound here."""
    dtype, shape = info
    numbers, *given = (Var(b, n) for n in leaves)
    if len(shape) == 1:
        given = [REGISTRY["list_len"](numbers)]
    sizes = iter([bind_size(b, n) for n in given])
    shape = tuple(next(sizes) if d is None else d for d in shape)
    flat = REGISTRY["list_to_array"](numbers, size=product(shape), same=True)
    return (flat if len(shape) == 1 else REGISTRY["reshape"](flat, shape=shape)).node
