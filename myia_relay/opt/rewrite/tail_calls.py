"""Tail calls of a function to itself become a loop.

    f(x) = x if c(x) else f(g(x))   =>   f(x): while going: going, result, x = (False, x, _) if c(x) else (True, _, g(x))

A call is in tail position if its result is the function's result, possibly through branches, and no effect follows.
Other calls stay calls. Functions that call each other in tail position are one function after inlining. Like the
recursion that it replaces, the loop raises RecursionError when it goes too deep: CPython's limit is 1,000, this one is
2**20.

Where the result is an array or a list that was made from a parameter by updates (a sum that goes on through the calls), it
takes the parameter's place in what the loop carries.

Source: G. Steele, "Lambda: the ultimate GOTO" (1977).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...abstract.types import INT, Array, List, Struct, tuple_of
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, Parameter
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Effects, Env, Rewriter, lookup
from ..analysis.control import output_parts

LIMIT = 1 << 20
MESSAGE = "maximum recursion depth exceeded"


@dataclass(frozen=True)
class LoopTailCalls:
    """The pass."""

    name: str = "loop_tail_calls"

    def __call__(self, graph: Graph) -> Graph:
        return _Loops().rewrite(graph)


class _Loops(Rewriter):
    acts_on = ()  # but on what calls itself
    mark = LoopTailCalls

    def __init__(self):
        super().__init__()
        self.effects = Effects()
        self.places: dict[int, int] = {}

    def build(self, graph: Graph) -> Graph:
        call = self.tail_call(graph, graph) if graph in self.shells else None
        return super().build(graph) if call is None else self.loop(graph, call)

    def tail_call(self, f: Graph, graph: Graph) -> Apply | None:
        """A call of `f` whose result is that of `graph`; the first found."""
        root = graph.output
        if not isinstance(root, Apply) or any(
            self.effects.of_node(n) for n in graph.nodes[graph.nodes.index(root) + 1 :]
        ):
            return None
        if root.fn is f:
            return root
        if not _is_cond(root):
            return None
        return self.tail_call(f, root.attrs["then"]) or self.tail_call(f, root.attrs["orelse"])

    def loop(self, f: Graph, call: Apply) -> Graph:
        """The function as a loop."""
        self.changed = True
        around, self.places = self.places, self.updated(f)  # what is emitted for this function may hold other loops
        new, env = self.interface(f)
        b = Builder(new, call.origin)
        init = [b.constant(True), b.constant(0), _undef(b, f.output.type), *(env[p] for p in f.params)]
        graphs = []
        for name in ("cond", "body"):
            g = Graph(f"{f.name}.{name}", None, f.origin)
            params = [g.add_parameter(n, x.type) for n, x in zip(["going", "depth", "result"], init)]
            inside: Env = {p: g.add_parameter(p.name, p.type, p.origin) for p in f.params}
            inner = Builder(g, call.origin)
            if name == "cond":
                g.output = params[0]
            else:
                fits = inner.emit(REGISTRY["lt"], (params[1], inner.constant(LIMIT)))
                inner.emit(REGISTRY["check"], (fits,), {"exception": RecursionError, "parts": (MESSAGE,)})
                depth = inner.emit(REGISTRY["add"], (params[1], inner.constant(1, INT)))
                going, result, *args = self.step(inner, f, f, inside)
                g.output = _tuple(inner, [going, depth, result, *args])
            graphs.append(g)
        attrs = {"cond": graphs[0], "body": graphs[1], "carried": len(init)}
        out = b.emit(REGISTRY["while_loop"], tuple(init), attrs)
        new.output = b.emit(REGISTRY["get_item"], (out,), {"index": 2})
        if self.places:
            whole = not isinstance(f.output.type, Struct)
            at = [
                (self.places[k] + 3, out) if k in self.places else (k, new.output)
                for k in range(1 if whole else len(f.output.type.elems))
            ]
            parts = [b.emit(REGISTRY["get_item"], (node,), {"index": i}) for i, node in at]
            new.output = parts[0] if whole else b.emit(REGISTRY["make_struct"], tuple(parts), {"type": f.output.type})
        self.places = around
        return new

    def updated(self, f: Graph) -> dict[int, int]:
        """The parts of the result (all of it is part 0) that are made from parameters by updates, and these parameters."""
        out: dict[int, int] = {}
        parts = f.output.type.elems if isinstance(f.output.type, Struct) else (f.output.type,)
        for k, t in enumerate(parts):
            param = self.beginning(f, f, k) if isinstance(t, Array | List) else None
            if param is not None and param.type == t and f.params.index(param) not in out.values():
                out[k] = f.params.index(param)
        return out

    def beginning(self, f: Graph, graph: Graph, part: int) -> Parameter | None:
        """The parameter from which a part of the result is made by updates, where the function does not go on."""
        root, outs = graph.output, output_parts(graph)
        if not isinstance(f.output.type, Struct) and not (isinstance(root, Apply) and _is_cond(root)):
            outs = (root,)
        if outs is not None:
            node = outs[part]
            while isinstance(node, Apply) and isinstance(node.fn, Primitive) and _updates(node):
                node = node.args[0]
            return node if isinstance(node, Parameter) else None
        if isinstance(root, Apply) and _is_cond(root):
            for branch in (root.attrs["then"], root.attrs["orelse"]):
                param = self.beginning(f, branch, part)
                outer = root.args[1 + branch.params.index(param)] if param is not None else None
                if isinstance(outer, Parameter):
                    return outer
        return None

    def step(self, b: Builder, f: Graph, graph: Graph, env: Env) -> list[Node]:
        """Emit a graph in tail position: whether to go on, the result, the next arguments."""
        root = graph.output
        tail = self.tail_call(f, graph)
        for node in graph.nodes:
            if tail is not None and node is root:
                break
            args = tuple(lookup(env, a) for a in node.args)
            env[node] = self.node(b, node, args, self.inner(node))
        if tail is None:
            result = lookup(env, root)
            whole = not isinstance(f.output.type, Struct)
            kept = {
                j: result if whole else b.emit(REGISTRY["get_item"], (result,), {"index": k})
                for k, j in self.places.items()
            }
            rest = [kept[j] if j in kept else _undef(b, p.type) for j, p in enumerate(f.params)]
            return [b.constant(False), result, *rest]
        args = tuple(lookup(env, a) for a in root.args)
        if root is tail:
            return [b.constant(True), _undef(b, f.output.type), *args]
        branches = {}
        for key in ("then", "orelse"):
            old = root.attrs[key]
            branch = Graph(old.name, None, old.origin)
            inside: Env = {p: branch.add_parameter(p.name, p.type, p.origin) for p in old.params}
            inner = Builder(branch, old.origin)
            branch.output = _tuple(inner, self.step(inner, f, old, inside))
            branches[key] = branch
        b.origin = root.origin
        chosen = b.emit(REGISTRY["cond"], args, branches)
        return [b.emit(REGISTRY["get_item"], (chosen,), {"index": i}) for i in range(2 + len(f.params))]


def _is_cond(node: Apply) -> bool:
    return isinstance(node.fn, Primitive) and node.fn.name == "cond"


def _updates(node: Apply) -> bool:
    """Whether an operation makes an updated version of its first operand."""
    return bool(node.fn.update) or isinstance(node.type, List) and bool(node.args) and node.args[0].type == node.type


def _undef(b: Builder, t) -> Node:
    if isinstance(t, Struct):  # part by part: executors have placeholders for leaves only
        return b.emit(REGISTRY["make_struct"], tuple(_undef(b, e) for e in t.elems), {"type": t})
    return b.emit(REGISTRY["undef"], (), {"type": t})


def _tuple(b: Builder, parts: list[Node]) -> Node:
    return b.emit(REGISTRY["make_struct"], tuple(parts), {"type": tuple_of(*[p.type for p in parts])})


__all__ = ["LIMIT", "MESSAGE", "LoopTailCalls"]
