"""Whether changing a value in place can be seen through another name.

`x[i] = v` and `xs.append(v)` mean a new value bound to the same name. That is what Python does only where nothing
else can see the old object, so every other case is refused. The question is answered from syntax: which parameters,
globals and other live variables may be or hold the object, following assignments, branches, loops, subscripts,
attributes and the NumPy functions that return views. What a called function does with its arguments is not looked at.
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
# Operations whose result is (the object of) their first argument.
_SAME = {*IN_PLACE.values(), syntax.annotate, syntax.setitem, syntax.list_append}
# Operations whose result is a view or an element of their first argument.
_PART = {operator.getitem, getattr, syntax.match_field, syntax.unpack}
# Operations whose result is new and holds their arguments.
_HOLDING = {syntax.make_tuple, syntax.make_list, syntax.make_dict, syntax.star}
_HOLDING_NAMES = frozenset("enumerate zip reversed iter tuple list dict sorted".split())
# NumPy functions and methods that return their argument, a view of it, or its elements.
_PART_NAMES = frozenset(
    "asarray asanyarray ascontiguousarray reshape ravel transpose swapaxes squeeze view diagonal expand_dims "
    "atleast_1d atleast_2d atleast_3d moveaxis rollaxis broadcast_to flip fliplr flipud rot90 split hsplit vsplit "
    "array_split items values keys get real imag".split()
)# NumPy functions and methods whose result is a new array. An array copies what is assigned to its elements; a list holds it.
_NEW_ARRAYS = frozenset("zeros ones empty full arange linspace eye zeros_like ones_like empty_like full_like copy".split())

Objects = frozenset[Node]


def objects(p: Context, node: Node) -> tuple[Objects, Objects]:
    """The objects, by the node that made them, that a value may be (or be a view of), and that it may be or hold.

    Loops make these equations recursive, so they are iterated to the least solution; what is solved is kept.
    """
    known: dict[Node, tuple[Objects, Objects]] = p.roots
    if node in known:
        return known[node]
    open_: dict[Node, tuple] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if top not in known and top not in open_:
            open_[top] = _sources(p, top)
            stack.extend(n for group in open_[top] for n in group)
    empty: Objects = frozenset()
    now = dict.fromkeys(open_, (empty, empty))

    def look(n: Node) -> tuple[Objects, Objects]:
        return known[n] if n in known else now[n]

    changed = True
    while changed:
        changed = False
        for n in reversed(open_):
            same, part, held = open_[n]
            be = frozenset().union(*[look(s)[0] for s in same], *[look(s)[1] for s in part])
            be = be if same or part else frozenset([n])
            hold = be.union(*[look(s)[1] for group in (same, part, held) for s in group])
            if (be, hold) != now[n]:
                now[n], changed = (be, hold), True
    known.update(now)
    return known[node]


def _sources(p: Context, node: Node) -> tuple:
    """Nodes that a value may be the same as, a part of, and hold."""
    if node in p.flows:
        return p.flows[node], (), ()
    if node in p.items:
        return (), (p.items[node],), ()
    if isinstance(node, Constant) and isinstance(node.value, Graph) and node.value in p.closures:
        return (), (), tuple(p.closures[node.value].captured_values())
    if not isinstance(node, Apply):
        return (), (), ()
    fn, args = node.fn, node.args
    if isinstance(fn, Constant):
        value = fn.value
        if isinstance(value, syntax.FreeName):
            return (), (), (args if value.name in _HOLDING_NAMES else ())
        if value is syntax.check_bound:
            return args[1:], (), ()
        if value in _SAME:
            holds = value is syntax.list_append or (value is syntax.setitem and not is_array(p, args[0]))
            return args[:1], (), (args[-1:] if holds else ())
        if value in _PART:
            return (), args[:1], ()
        if value in _HOLDING:
            return (), (), args
    elif isinstance(fn, Apply) and isinstance(fn.fn, Constant) and fn.fn.value is getattr:
        name = fn.args[1]
        if isinstance(name, Constant) and name.value in _PART_NAMES:
            return (), (*args, fn.args[0]), ()
    return (), (), ()


def is_array(p: Context, node: Node) -> bool:
    """Whether a value is, on every way that it can have come here, an array that a NumPy function made."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        if top in p.flows:
            stack.extend(p.flows[top])
            continue
        if not isinstance(top, Apply):
            return False
        fn = top.fn
        if isinstance(fn, Constant) and fn.value in (*_SAME, syntax.check_bound):
            stack.append(top.args[1 if fn.value is syntax.check_bound else 0])
        elif isinstance(fn, Apply) and isinstance(fn.fn, Constant) and fn.fn.value is getattr:
            name = fn.args[1]
            if not (isinstance(name, Constant) and name.value in _NEW_ARRAYS):
                return False
        else:
            return False
    return True


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
    mine, _ = objects(p, node)
    for other, value in p.held:
        if mine & objects(p, value)[1]:
            return f"'{other}', which an inner function assigns to, may be, or hold, the same object as '{name}'"
    for root in sorted(mine, key=lambda r: r.name or ""):
        if isinstance(root, Apply) and isinstance(root.fn, Constant) and root.fn.value is syntax.cell_get:
            return f"'{name}' may be part of '{root.attrs['name']}', which an inner function assigns to"
        if isinstance(root, Parameter):
            what = "is" if root.name == name else "may be part of"
            return f"'{name}' {what} the parameter '{root.name}', which belongs to the caller"
        if isinstance(root, Constant) and isinstance(root.value, syntax.FreeName):
            return f"'{name}' may be part of '{root.value.name}', which comes from outside of the function"
        if isinstance(root, Apply) and not _within(root.graph, p.root):
            return f"'{name}' may be part of a value of the function around this one"
    for other, value in sorted(others.items()):
        if mine & objects(p, value)[1]:
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
