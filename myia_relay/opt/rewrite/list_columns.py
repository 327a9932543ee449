"""Lists that are only read are read from their columns: no entry of theirs is ever made.

    rows = list_of_rows(lengths, xs); rows[i][j]          =>    xs[starts[i] + j]
    pairs = list_of_records(a, b); p, q = pairs[k]        =>    a[k], b[k]
    arrays = list_of_records(list_of_rows(...)); arrays[k]  =>  all[starts[k] : starts[k] + n]

What a program gets as lists of rows and of records comes as columns (`infer.arguments.columns`). Making the lists costs a block
of memory for each row, more than most programs do with one. A list may stay columns if every use of it, also in loops, branches
and functions, takes its length or an entry, and if entries that are lists are used likewise, or read as a whole.

Input: a typed graph; in it, lists that arguments became. Output: the same, without those of them that are only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...abstract.types import INT, List, NoneT, Scalar, Struct, holds, is_array_entry
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, Parameter, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, Rewriter, emit_like, lookup
from ...ir.sizes import with_own_sizes
from ...prims.ops.list_functions import emit, length, new, number, op, over
from .control import pack

MAKERS = ("list_of_records", "list_of_rows")
COPIERS = (
    "list_slice",
    "list_concat",
    "list_repeat",
    "list_to_array",
)  # take as long as it takes to make a row for them


@dataclass(frozen=True)
class ReadColumns:
    """The pass."""

    name: str = "list_columns"

    def __call__(self, graph: Graph) -> Graph:
        return _ReadFromColumns().rewrite(graph)


# --- which lists may stay columns -------------------------------------------------------------------------------------


class _Uses:
    """Looks at the uses of values; memoised by value."""

    def __init__(self) -> None:
        self.users: dict[Graph, dict[Node, list[tuple[Apply, int]]]] = {}
        self.known: dict[Node, bool] = {}

    def of(self, value: Node, graph: Graph) -> list[tuple[Apply, int]] | None:
        """The applications that use a value, and as which argument; None where it is returned."""
        if graph.output is value:
            return None
        if graph not in self.users:
            users = self.users[graph] = {}
            for node in graph.nodes:
                for k, arg in enumerate(node.args):
                    users.setdefault(arg, []).append((node, k))
        return self.users[graph].get(value, [])

    def only_read(self, value: Node, graph: Graph) -> bool:
        """Whether all that happens to a list, or to a record with lists, is that parts of it are read."""
        found = self.known.get(value)
        if found is None:
            self.known[value] = False  # it is asked for again only in a recursion, which hands it on
            users = self.of(value, graph)
            found = self.known[value] = users is not None and all(self.reads(node, k, graph) for node, k in users)
        return found

    def reads(self, node: Apply, k: int, graph: Graph) -> bool:
        """Whether an application only reads its argument number `k`."""
        if applies(node, "list_len"):
            return True
        if applies(node, "list_get", "get_item"):
            return not k and (not holds(node.type, List) or self.only_read(node, graph))
        if applies(node, *MAKERS):
            return self.only_read(node, graph)
        if applies(node, *COPIERS):
            t = node.args[k].type
            return isinstance(t, List) and isinstance(t.elem, Scalar)
        inner = list(taking(node, k))
        return bool(inner) and all(self.only_read(p, g) for g, p in inner)


def taking(node: Apply, k: int) -> Iterator[tuple[Graph, Parameter]]:
    """The graphs that an application runs with its argument number `k`, unchanged, and their parameters for it."""
    if isinstance(node.fn, Graph):
        yield node.fn, node.fn.params[k]
    elif applies(node, "cond") and k >= 1:
        for name in ("then", "orelse"):
            yield node.attrs[name], node.attrs[name].params[k - 1]
    elif applies(node, "while_loop") and k >= node.attrs["carried"]:
        for name in ("cond", "body"):
            yield node.attrs[name], node.attrs[name].params[k]
    elif applies(node, "for_loop") and k >= 3 + node.attrs["carried"]:
        yield node.attrs["body"], node.attrs["body"].params[k - 2]


# --- values that are not made -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Records:
    """A list of records: a list for each part, None for what is None."""

    elem: Struct
    columns: tuple[_List | None, ...]


@dataclass(frozen=True)
class _Rows:
    """A list of lists: where each begins among the entries of all, and how many it has."""

    starts: Node
    lengths: Node
    entries: _List


@dataclass(frozen=True)
class _RowOfAll:
    """A list: some of the entries of another one."""

    entries: _List
    start: Node
    count: Node


@dataclass(frozen=True)
class _AllElements:
    """The elements of all arrays of a list, as one list: an array, of which parts are taken without a copy."""

    array: Node


@dataclass(frozen=True)
class _Fields:
    """A record: its parts, None for what is None."""

    type: Struct
    parts: tuple[_Value | None, ...]


_List: TypeAlias = "Node | _Records | _Rows | _RowOfAll | _AllElements"
_Value: TypeAlias = "Node | _Records | _Rows | _RowOfAll | _AllElements | _Fields"


def _length(b: Builder, xs: _List | None) -> Node:
    if isinstance(xs, _Records):
        return _length(b, next(c for c in xs.columns if c is not None))
    if isinstance(xs, _Rows):
        return length(b, xs.lengths)
    if isinstance(xs, _RowOfAll):
        return xs.count
    assert xs is not None
    return length(b, _made(b, xs))


def _get(b: Builder, xs: _List, k: Node) -> _Value:
    """An entry."""
    if isinstance(xs, _Records):
        parts = tuple(None if column is None else _get(b, column, k) for column in xs.columns)
        return _Fields(xs.elem, parts) if holds(xs.elem, List) else _made(b, _Fields(xs.elem, parts))
    if isinstance(xs, _Rows):
        return _RowOfAll(xs.entries, emit(b, "list_get", xs.starts, k), emit(b, "list_get", xs.lengths, k))
    if isinstance(xs, _RowOfAll):
        return _get(b, xs.entries, op(b, "add", xs.start, k))
    return emit(b, "list_get", _made(b, xs), k)


def _made(b: Builder, value: _Value) -> Node:
    """A value as a node: a row of numbers, a record of numbers."""
    if isinstance(value, _RowOfAll):
        return emit(b, "list_slice", _made(b, value.entries), value.start, value.count, number(b, 1))
    if isinstance(value, _AllElements):
        return b.emit(REGISTRY["list_from_array"], (value.array,))
    if isinstance(value, _Fields):
        parts = [b.emit(REGISTRY["none"], ()) if part is None else _made(b, part) for part in value.parts]
        return b.emit(REGISTRY["make_struct"], tuple(parts), {"type": value.type})
    assert isinstance(value, Node)
    return value


def _nodes(value: _Value | None) -> list[Node]:
    """The nodes that a value consists of."""
    if value is None:
        return []
    if isinstance(value, _Records | _Fields):
        return [n for part in (value.columns if isinstance(value, _Records) else value.parts) for n in _nodes(part)]
    if isinstance(value, _Rows):
        return [value.starts, value.lengths, *_nodes(value.entries)]
    if isinstance(value, _RowOfAll):
        return [value.start, value.count, *_nodes(value.entries)]
    return [value.array if isinstance(value, _AllElements) else value]


def _with(value: Any, nodes: Iterator[Node]) -> Any:
    """The same value of other nodes."""
    if value is None:
        return None
    if isinstance(value, _Records):
        return _Records(value.elem, tuple(_with(column, nodes) for column in value.columns))
    if isinstance(value, _Fields):
        return _Fields(value.type, tuple(_with(part, nodes) for part in value.parts))
    if isinstance(value, _Rows):
        return _Rows(next(nodes), next(nodes), _with(value.entries, nodes))
    if isinstance(value, _RowOfAll):
        start, count = next(nodes), next(nodes)
        return _RowOfAll(_with(value.entries, nodes), start, count)
    return _AllElements(next(nodes)) if isinstance(value, _AllElements) else next(nodes)


def _shape(value: _Value | None) -> Any:
    """What two values have in common that differ only in their nodes."""
    if value is None or isinstance(value, Node):
        return None if value is None else value.type
    if isinstance(value, _AllElements):
        return _AllElements, value.array.type
    parts = {_Records: "columns", _Fields: "parts"}.get(type(value))
    inside = getattr(value, parts) if parts else (value.entries,)  # pyright: ignore[reportAttributeAccessIssue]
    return type(value), getattr(value, "elem", getattr(value, "type", None)), tuple(map(_shape, inside))


# --- the rewriting ----------------------------------------------------------------------------------------------------


class _ReadFromColumns(Rewriter):
    acts_on = MAKERS

    def __init__(self) -> None:
        super().__init__()
        self.uses = _Uses()
        self.made: dict[Any, Graph] = {}  # graphs for arguments that are not made

    def build(self, graph: Graph) -> Graph:
        new, env = self.interface(graph)
        return self.filled(graph, new, env)

    def filled(self, graph: Graph, new: Graph, env: Mapping[Node, _Value]) -> Graph:
        """A graph rebuilt into a new one, where some of its parameters are values that are not made."""
        there: Env = {}
        values: dict[Node, _Value] = {}

        def put(node: Node, value: _Value) -> None:
            if isinstance(value, Node):
                there[node] = value
            else:
                values[node] = value

        for param, value in env.items():
            put(param, value)
        builder = Builder(new)
        for node in graph.nodes:
            builder.origin = node.origin
            if applies(node, *MAKERS) and self.uses.only_read(node, graph):
                self.changed = True
                put(node, self.columns(builder, node, [values.get(a) or lookup(there, a) for a in node.args]))
            elif any(a in values for a in node.args):
                put(node, self.read(builder, node, [values.get(a) or lookup(there, a) for a in node.args]))
            else:
                args = tuple(lookup(there, a) for a in node.args)
                there[node] = self.node(builder, node, args, self.inner(node))
        new.output = lookup(there, graph.output)
        return new

    def columns(self, b: Builder, node: Apply, args: list[Any]) -> _Value:
        """A list that arguments became, as what it consists of."""
        if applies(node, "list_of_records"):
            at = iter(args)
            elem = node.attrs["elem"]
            if is_array_entry(elem) and isinstance(rows := args[0], _Rows) and isinstance(flat := rows.entries, Apply):
                if applies(flat, "list_from_array"):
                    at = iter([_Rows(rows.starts, rows.lengths, _AllElements(flat.args[0])), *args[1:]])
            return _Records(elem, tuple(None if isinstance(e, NoneT) else next(at) for e in elem.elems))
        lengths, entries = args
        return _Rows(_starts(b, lengths), lengths, entries)

    def read(self, b: Builder, node: Apply, args: list[Any]) -> _Value:
        """What replaces an application to values that are not made."""
        if applies(node, "list_len"):
            return _length(b, args[0])
        if applies(node, "list_get"):
            return _get(b, args[0], args[1])
        if applies(node, "get_item"):
            found = args[0].parts[node.attrs["index"]]
            return b.emit(REGISTRY["none"], ()) if found is None else found
        if (
            applies(node, "list_to_array")
            and isinstance(row := args[0], _RowOfAll)
            and isinstance(row.entries, _AllElements)
        ):
            attrs = {"axis": 0, "length": node.attrs["size"]}  # an array that is an entry of a list has all elements
            return b.emit(REGISTRY["dynamic_slice"], (row.entries.array, row.start), attrs)
        if applies(node, *COPIERS):
            return emit_like(b, node, [_made(b, a) for a in args], self.inner(node))
        attrs, fn = dict(node.attrs), node.fn
        if isinstance(node.fn, Graph):
            fn = self.taken(node.fn, args)
        elif applies(node, "cond"):
            attrs |= {name: self.taken(node.attrs[name], args[1:]) for name in ("then", "orelse")}
        elif applies(node, "while_loop"):
            attrs |= {name: self.taken(node.attrs[name], args) for name in ("cond", "body")}
        else:
            body = node.attrs["body"]
            attrs["body"] = self.taken(body, [body.params[0], *args[3:]])
        return emit_like(b, node, [n for a in args for n in _nodes(a)], attrs, fn)

    def taken(self, graph: Graph, args: list[Any]) -> Graph:
        """A graph that takes what some of its arguments consist of."""
        key = graph, *(None if isinstance(a, Node) else _shape(a) for a in args)
        if key not in self.made:
            new = Graph(graph.name, None, graph.origin)
            new.flags = dict(graph.flags)
            env: dict[Node, _Value] = {}
            for param, arg in zip(graph.params, args, strict=True):
                if isinstance(arg, Node):
                    env[param] = new.add_parameter(param.name, param.type, param.origin)
                else:
                    parts = [new.add_parameter(param.name, n.type, param.origin) for n in _nodes(arg)]
                    env[param] = _with(arg, iter(parts))
            # Both graphs may come to stand in one.
            self.made[key] = with_own_sizes(self.filled(graph, new, env))
        return self.made[key]


def _starts(b: Builder, lengths: Node) -> Node:
    """Where lists that lie one behind the other begin, from their lengths."""
    made = pack(b, [new(b, INT), number(b, 0)])

    def step(b: Builder, k: Node, made: Node, lengths: Node) -> Node:
        starts, start = (b.emit(REGISTRY["get_item"], (made,), {"index": i}) for i in range(2))
        after = op(b, "add", start, emit(b, "list_get", lengths, k))
        return pack(b, [emit(b, "list_push", starts, start), after])

    return b.emit(REGISTRY["get_item"], (over(b, length(b, lengths), made, [lengths], step),), {"index": 0})


__all__ = ["ReadColumns"]
