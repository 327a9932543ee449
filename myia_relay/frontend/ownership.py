"""Whether changing a value in place can be seen through another name.

`x[i] = v` and `xs.append(v)` mean a new value bound to the same name. That is what Python does only where nothing else can
see the old object, so every other case is refused. The question is answered from syntax: which parameters, globals and other live
variables may share storage with the value, following assignments, branches, loops, subscripts, attributes and the NumPy
functions that return views. What a called function does with its arguments is not looked at.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node, Parameter
from .context import Context

IN_PLACE = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
# Operations whose result may be (part of), or hold, any of their arguments.
_SHARING = {
    operator.getitem,
    getattr,
    syntax.make_tuple,
    syntax.make_list,
    syntax.make_dict,
    syntax.unpack,
    syntax.star,
    syntax.check_bound,
    syntax.annotate,
    syntax.match_field,
}
_FIRST_ONLY = {*IN_PLACE.values(), syntax.annotate, operator.getitem, getattr, syntax.match_field}
# Builtins, NumPy functions and methods of arrays that return their argument, a view of it, or its elements.
_VIEWS = frozenset(
    "enumerate zip reversed iter tuple list dict sorted asarray asanyarray ascontiguousarray reshape ravel transpose swapaxes "
    "squeeze view diagonal expand_dims atleast_1d atleast_2d atleast_3d moveaxis rollaxis broadcast_to flip fliplr flipud rot90 "
    "split hsplit vsplit array_split items values keys get real imag".split()
)


def roots(p: Context, node: Node) -> frozenset[Node]:
    """The values whose storage a value may share: itself, or what it was taken from."""
    known = p.roots
    stack = [node]
    open_: set[Node] = set()
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        sources = _sources(p, top)
        missing = [s for s in sources if s not in known and s not in open_]
        if missing and top not in open_:
            open_.add(top)
            stack.extend(missing)
            continue
        stack.pop()
        found: set[Node] = set()
        for source in sources:
            found |= known.get(source, frozenset())
        known[top] = frozenset(found if sources else {top})
    return known[node]


def _sources(p: Context, node: Node) -> tuple[Node, ...]:
    if node in p.flows:
        return p.flows[node]
    if not isinstance(node, Apply):
        return ()
    fn = node.fn
    if isinstance(fn, Constant):
        value = fn.value
        if value in (syntax.setitem, syntax.list_append):
            return (node.args[0], node.args[-1])
        if _hashable(value) and value in _FIRST_ONLY:
            return node.args[:1]
        if _hashable(value) and value in _SHARING:
            return node.args
        if isinstance(value, syntax.FreeName) and value.name in _VIEWS:
            return node.args
    elif isinstance(fn, Apply) and isinstance(fn.fn, Constant) and fn.fn.value is getattr:
        name = fn.args[1]
        if isinstance(name, Constant) and name.value in _VIEWS:
            return (*node.args, fn.args[0])
    return ()


def _hashable(value) -> bool:
    return isinstance(value, syntax.Syntax) or callable(value)


def shared(p: Context, name: str, node: Node, others: dict[str, Node]) -> str | None:
    """Why a change of `name` in place could be seen from elsewhere, or None.

    Args:
        p: the function.
        name: the variable that is changed.
        node: its value.
        others: the other live variables.
    """
    if p.captured_by.get(name):
        return f"an inner function captures '{name}'"
    mine = roots(p, node)
    for root in sorted(mine, key=lambda r: r.name or ""):
        if isinstance(root, Parameter):
            what = "is" if root.name == name else "may be part of"
            return f"'{name}' {what} the parameter '{root.name}', which belongs to the caller"
        if isinstance(root, Constant) and isinstance(root.value, syntax.FreeName):
            return f"'{name}' may be part of '{root.value.name}', which comes from outside of the function"
        if isinstance(root, Apply) and not _within(root.graph, p.root):
            return f"'{name}' may be part of a value of the function around this one"
    for other, value in sorted(others.items()):
        if mine & roots(p, value):
            return f"'{other}' may be, or hold, the same object as '{name}'"
    return None


def _within(graph: Graph | None, root: Graph) -> bool:
    while graph is not None and graph is not root:
        graph = graph.parent
    return graph is root


def check(p: Context, name: str, node: Node, report: Callable[[str | None], None]) -> None:
    """Report `shared` now, and again after each loop around: what flows around a loop is known at its end only."""
    live = set(p.here)
    for loop in p.loops:
        live |= loop
    others = {v: n for v, n in p.state.env.items() if v in live and v != name}
    reason = shared(p, name, node, others)
    report(reason)
    if reason is None and p.loops:
        p.checks.append(lambda: report(shared(p, name, node, others)))


def recheck(p: Context) -> None:
    """Run the checks again, a loop being complete."""
    p.roots.clear()
    for again in p.checks:
        again()
    if not p.loops:
        p.checks.clear()
