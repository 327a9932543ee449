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
from typing import Any

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
_SAME = {*IN_PLACE.values(), syntax.annotate, syntax.setitem, syntax.list_append, syntax.list_change}
# Operations whose result is a view or an element of their first argument.
_PART = {operator.getitem, getattr, syntax.match_field, syntax.unpack}
# Operations whose result is new and holds their arguments.
_HOLDING = {syntax.make_tuple, syntax.make_list, syntax.make_dict, syntax.star}
_HOLDING_NAMES = frozenset("enumerate zip reversed iter dict".split())
_COPYING_NAMES = frozenset("tuple list sorted".split())
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
            same, part, held, copied = open_[n]
            be = frozenset().union(*[look(s)[0] for s in same], *[look(s)[1] for s in part])
            be = be if same or part else frozenset([n])
            hold = be.union(*[look(s)[1] for group in (same, part, held, copied) for s in group])
            if (be, hold) != now[n]:
                now[n], changed = (be, hold), True
    known.update(now)
    return known[node]


def _sources(p: Context, node: Node) -> tuple:
    """Nodes that a value may be the same as, a part of, and hold, and those of which it is a copy that holds the same elements."""
    if node in p.flows:
        return p.flows[node], (), (), ()
    if node in p.items:
        return (), (p.items[node],), (), ()
    if isinstance(node, Constant) and isinstance(node.value, Graph) and node.value in p.closures:
        return (), (), tuple(p.closures[node.value].captured_values()), ()
    if not isinstance(node, Apply):
        return (), (), (), ()
    fn, args = node.fn, node.args
    if isinstance(fn, Constant):
        value = fn.value
        if isinstance(value, syntax.FreeName):
            if value.name in _COPYING_NAMES:
                return (), (), (), args
            return (), (), (args if value.name in _HOLDING_NAMES else ()), ()
        if value is syntax.check_bound:
            return args[1:], (), (), ()
        if value is syntax.make_list:  # `[*xs, x]`
            stars = [a for a in args if isinstance(a, Apply) and isinstance(a.fn, Constant) and a.fn.value is syntax.star]
            return (), (), tuple(a for a in args if a not in stars), tuple(s.args[0] for s in stars)
        if value in _SAME:
            holds = value is syntax.list_append or (value is syntax.setitem and not is_array(p, args[0]))
            return args[:1], (), (args[-1:] if holds else ()), ()
        if value in _PART:
            return (), args[:1], (), ()
        if value in _HOLDING:
            return (), (), args, ()
    elif isinstance(fn, Apply) and isinstance(fn.fn, Constant) and fn.fn.value is getattr:
        name = fn.args[1]
        if isinstance(name, Constant) and name.value in _PART_NAMES:
            return (), (*args, fn.args[0]), (), ()
    return (), (), (), ()


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


DEEPEST = 3  # levels of nesting that are told apart
Conflict = tuple[str, "Node | None", bool]
"""A reason; the other variable's value where its type tells whether it is one; whether it is one for arrays alone."""


def shared(p: Context, name: str, node: Node, others: dict[str, Node], iterated: list[Node]) -> list[Conflict]:
    """Why a change of `name` in place could be seen from elsewhere.

    Args:
        p: the function.
        name: the variable that is changed.
        node: its value.
        others: the other live variables.
        iterated: what the loops around run over.

    Returns:
        The conflicts.
    """
    if p.captured_by.get(name):
        return [(f"an inner function captures '{name}'", None, False)]
    mine, _ = objects(p, node)
    for other, value in p.held:
        if mine & objects(p, value)[1]:
            reason = f"'{other}', which changes while an inner function holds it, may be, or hold, the same object as '{name}'"
            return [(reason, None, False)]
    found: list[Conflict] = []
    levels: set[Node] | None = None
    for root in sorted(mine, key=lambda r: r.name or ""):
        if isinstance(root, Apply) and isinstance(root.fn, Constant) and root.fn.value is syntax.cell_get:
            other = root.attrs["name"]
            what = f"'{name}'" if name == other else f"'{name}' may be part of '{other}', which"
            reason = f"{what} changes while an inner function holds it"
            return [(reason, None, False)]
        if isinstance(root, Apply) and _within(root.graph, p.root) or isinstance(root, Constant) and not _is_free(root):
            continue
        levels = levels or {made for made, _ in _levels(p, node, most=True)}
        arrays = root not in levels
        if isinstance(root, Parameter):
            what = "is" if root.name == name else "may be part of"
            found.append((f"'{name}' {what} the parameter '{root.name}', which belongs to the caller", None, arrays))
        elif isinstance(root, Constant):
            found.append((f"'{name}' may be part of '{root.value.name}', which comes from outside of the function", None, arrays))
        elif isinstance(root, Apply):
            found.append((f"'{name}' may be part of a value of the function around this one", None, arrays))
    named = [(f"the loop around runs over '{name}'", value) for value in iterated]
    named += [(f"'{other}' may be, or hold, the same object as '{name}'", value) for other, value in sorted(others.items())]
    for reason, value in named:
        if mine & objects(p, value)[1]:
            own, theirs = _levels(p, node, most=True), _levels(p, value, most=False)
            lists = any(theirs.get(place, DEEPEST + 1) <= level for place, level in own.items())
            arrays = not _levels(p, node, True, views=True).keys().isdisjoint(_levels(p, value, False, views=True))
            if lists or arrays:
                found.append((reason, None if _is_surely(p, value, mine) else value, not lists))
    return found


Place = tuple[Node, bool]
"""An object, by the node that makes it; and whether it is of an earlier turn of the loop that makes one in each turn."""


def _levels(p: Context, node: Node, most: bool, views: bool = False) -> dict[Place, int]:
    """How deep inside of which objects a value may lie, or what it holds: 0 the object itself, 1 an element of it, ...

    A list is no element of itself, so a value that lies deeper in an object than a list cannot be or hold that list.

    Args:
        p: the function.
        node: the value.
        most: whether to take the deepest place in each object, of the value itself, or else the least deep one, of what it holds.
        views: whether slices are parts of what they are taken of, as of arrays, and not new lists.
    """
    chain = []
    while (node, most, views) not in p.levels:
        chain.append(node)
        same, *others = _sources(p, node)
        if len(same) != 1 or any(others) or node in p.flows:
            break
        (node,) = same
    if (node, most, views) not in p.levels:
        p.levels[node, most, views] = _levels_of(p, node, most, views)
    p.levels.update(dict.fromkeys(((n, most, views) for n in chain), p.levels[node, most, views]))
    return p.levels[node, most, views]


def _levels_of(p: Context, node: Node, most: bool, views: bool) -> dict[Place, int]:
    """What `_levels` keeps."""
    out: dict[Place, int] = {}
    turns: frozenset[Graph] = frozenset()  # loops of which the way goes through the end of the turn before
    seen, stack = {(node, 0, turns)}, [(node, 0, turns)]
    while stack:
        top, level, turns = stack.pop()
        same, part, held, copied = _sources(p, top)
        before = turns
        if isinstance(top, Parameter) and top in p.flows:
            before = turns | {top.graph}
        if views:
            held, copied = (*held, *copied), ()
        elif part and _is_slice(top):
            part, copied = (), part
        deeper = min(level + 1, DEEPEST) if top in p.items or _applies(top, _PART) else level
        steps = [(s, level, before if k else turns) for k, s in enumerate(same)] + [(s, deeper, turns) for s in part]
        if not (same or part):
            place = top, any(_within(getattr(top, "graph", None), loop) for loop in turns)
            out[place] = max(out.get(place, level), level) if most else min(out.get(place, level), level)
        if level or not most:
            steps += [(s, max(level - 1, 0), turns) for s in held] + [(s, max(level, 1), turns) for s in copied]
        for step in steps:
            if step not in seen:
                seen.add(step)
                stack.append(step)
    return out


def _applies(node: Node, operations: Any) -> bool:
    """Whether a node applies one of some operations."""
    return isinstance(node, Apply) and isinstance(node.fn, Constant) and node.fn.value in operations


def _is_free(node: Constant) -> bool:
    """Whether a constant is a name from outside of the function."""
    return isinstance(node.value, syntax.FreeName)


def _is_slice(node: Node) -> bool:
    """Whether a node is `x[a:b]`."""
    return _applies(node, (operator.getitem,)) and _applies(node.args[1], (slice,))


def _is_surely(p: Context, node: Node, objects: Objects) -> bool:
    """Whether a value may be or hold one of some objects, whatever types there are: not as an element of something."""
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        if top in objects:
            return True
        same, part, held, _ = _sources(p, top)
        element = top in p.items or _applies(top, _PART)
        fresh = {*same, *held, *(() if element else part)} - seen
        seen |= fresh
        stack.extend(fresh)
    return False


def _within(graph: Graph | None, root: Graph) -> bool:
    while graph is not None and graph is not root:
        graph = graph.parent
    return graph is root


def check(p: Context, name: str, node: Node, report: Callable[[list[Conflict]], None]) -> None:
    """Report `shared` now, and again after each loop around: what flows around a loop is known at its end only."""
    live = set(p.here)
    for loop in p.loops:
        live |= loop
    others = {v: n for v, n in p.state.env.items() if v in live and v != name and not v.startswith("$")}
    iterated = list(p.iterated)
    reasons = shared(p, name, node, others, iterated)
    report(reasons)
    if p.loops and all(other is not None for _, other, _ in reasons):
        p.checks.append(lambda: report(shared(p, name, node, others, iterated)))


def recheck(p: Context) -> None:
    """Run the checks again, a loop being complete."""
    p.roots.clear()
    p.levels.clear()
    for again in p.checks:
        again()
    if not p.loops:
        p.checks.clear()
