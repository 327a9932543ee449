"""Whether changing a value in place can be seen through another name.

`x[i] = v` and `xs.append(v)` mean a new value bound to the same name. That is what Python does only where nothing
else can see the old object, so every other case is refused. The question is answered from syntax: which parameters,
globals and other live variables may be or hold the object, following assignments, branches, loops, subscripts,
attributes and the NumPy functions that return views. What else is called may return its arguments, or hold them in its result:
conflicts that rest on that are confirmed by inference, which has seen what was called (`infer.sharing`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

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
_PART = {operator.getitem, getattr, syntax.match_field, syntax.unpack, syntax.item_to_change}
# Operators of which the result may hold what the operands hold, as that of `xs + ys`, or be what a class's own method returns.
_OPERATORS = {
    *IN_PLACE.values(),
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.neg, operator.pos, operator.invert,
}  # fmt: skip
# Operations whose result is new and holds their arguments.
_HOLDING = {syntax.make_tuple, syntax.make_list, syntax.make_dict, syntax.star}
_HOLDING_NAMES = frozenset("enumerate zip reversed iter".split())
_COPYING_NAMES = frozenset("tuple list sorted".split())
# Methods whose result is, or holds, parts of what they are called on.
_PART_NAMES = syntax.VIEWING | {"items", "values", "keys", "get"}
# NumPy functions and methods whose result is a new array. An array copies what is assigned to its elements; a list holds it.
_NEW_ARRAYS = frozenset("zeros ones empty full arange linspace eye zeros_like ones_like empty_like full_like copy".split())

Objects = frozenset[Node]
ANY = syntax.Handing()
"""All calls hand on all that they are given."""


def objects(p: Context, node: Node, through: syntax.Handing | None = None) -> tuple[Objects, Objects]:
    """The objects, by the node that made them, that a value may be (or be a view of), and that it may be or hold.

    Loops make these equations recursive, so they are iterated to the least solution; what is solved is kept.

    Args:
        p: the function.
        node: the value.
        through: the calls that may hand on what they are given: none, `ANY`, or these.
    """
    known: dict[Node, tuple[Objects, Objects]] = p.roots if through is None else p.any_roots if through is ANY else through.objects
    if node in known:
        return known[node]
    open_: dict[Node, Sources] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if top not in known and top not in open_:
            open_[top] = sources = _through(_sources(p, top), top, through)
            stack.extend(n for group in sources for n in group)
    empty: Objects = frozenset()
    now = dict.fromkeys(open_, (empty, empty))

    def look(n: Node) -> tuple[Objects, Objects]:
        return known[n] if n in known else now[n]

    changed = True
    while changed:
        changed = False
        for n in reversed(open_):
            same, part, held, copied, given = open_[n]
            be = frozenset().union(*[look(s)[0] for s in same], *[look(s)[1] for group in (part, given) for s in group])
            be = be if same or part else be | {n}
            hold = be.union(*[look(s)[1] for group in (same, part, held, copied, given) for s in group])
            if (be, hold) != now[n]:
                now[n], changed = (be, hold), True
    known.update(now)
    return known[node]


class Sources(NamedTuple):
    """Where a value may come from.

    Attributes:
        same: what it may be the same as. part: what it may be a part of. held: what it holds.
        copied: of what it is a copy that holds the same elements.
        given: what it may be the same as, a part of or hold, if what is called returns what it is given.
    """

    same: tuple[Node, ...] = ()
    part: tuple[Node, ...] = ()
    held: tuple[Node, ...] = ()
    copied: tuple[Node, ...] = ()
    given: tuple[Node, ...] = ()


def _through(sources: Sources, node: Node, through: syntax.Handing | None) -> Sources:
    """Where a value may come from if only these calls hand on what they are given."""
    if not sources.given or through is ANY:
        return sources
    given = () if through is None else through.calls.get(node, ())
    return sources._replace(given=tuple(g for g in sources.given if g in given))


def _sources(p: Context, node: Node) -> Sources:
    """Where a value may come from."""
    if node in p.flows:
        held, copied = p.extended.get(node, ((), ()))
        return Sources(same=p.flows[node], held=held, copied=copied)
    if node in p.items:
        return Sources(part=(p.items[node],))
    if isinstance(node, Constant) and isinstance(node.value, Graph) and node.value in p.closures:
        defaults = node.value.signature.defaults.values() if node.value.signature else ()
        return Sources(held=(*p.closures[node.value].captured_values(), *defaults))
    if not isinstance(node, Apply):
        return Sources()
    fn, args = node.fn, node.args
    if isinstance(fn, Constant):
        value = fn.value
        if _is_dict(node):
            count = len(args) - len(node.keywords)
            return Sources(copied=args[:count], held=args[count:], given=args if isinstance(value, syntax.FreeName) else ())
        if isinstance(value, syntax.FreeName):
            if value.name in _COPYING_NAMES:
                return Sources(copied=args, given=args)
            return Sources(held=args if value.name in _HOLDING_NAMES else (), given=args)
        if value is syntax.check_bound:
            return Sources(same=args[1:])
        if value is syntax.make_list:  # `[*xs, x]`
            stars = [a for a in args if _applies(a, (syntax.star,))]
            return Sources(held=tuple(a for a in args if a not in stars), copied=tuple(s.args[0] for s in stars))
        if value is syntax.comprehension:
            return Sources(copied=(args[1].value.output,))
        if value in _SAME:
            holds = value is syntax.list_append or (value is syntax.setitem and not is_array(p, args[0]))
            given = args[1:] if value in _OPERATORS else ()
            return Sources(same=args[:1], held=args[-1:] if holds else (), given=given)
        if value in _PART:
            return Sources(part=args[:1])
        if value in _HOLDING:
            return Sources(held=args)
        if isinstance(value, syntax.Syntax):
            return Sources(given=args if value is syntax.double_star else ())
        if value in _OPERATORS or isinstance(value, type):
            return Sources(given=args)
        if isinstance(value, Graph):
            return Sources(given=(fn, *args))
        return Sources()
    if isinstance(fn, Apply) and isinstance(fn.fn, Constant) and fn.fn.value is getattr:
        name = fn.args[1]
        part = isinstance(name, Constant) and name.value in _PART_NAMES
        return Sources(part=(*args, fn.args[0]) if part else (), given=(fn, *args))
    return Sources(given=(fn, *args))


def _is_dict(node: Node) -> bool:
    """Whether a node is `dict(...)`, or makes the dict of a dict comprehension."""
    value = node.fn.value if isinstance(node, Apply) and isinstance(node.fn, Constant) else None
    return value is dict or isinstance(value, syntax.FreeName) and value.name == "dict"


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


class Conflict(NamedTuple):
    """Why a change could be seen.

    Attributes:
        reason: in words.
        other: the other variable's value, where its type tells whether this is a conflict.
        arrays: whether it is one for arrays alone.
        confirm: where it rests on calls that return what they are given, or put it into what they return: whether it is one, of
            arrays (or else of lists), if such calls do.
    """

    reason: str
    other: Node | None = None
    arrays: bool = False
    confirm: Callable[[syntax.Handing, bool], bool] | None = None


def shared(
    p: Context, name: str, node: Node, others: dict[str, Node], iterated: list[Node], entry: bool = False
) -> list[Conflict]:
    """Why a change of `name` in place could be seen from elsewhere.

    Args:
        p: the function.
        name: the variable that is changed.
        node: its value.
        others: the other live variables.
        iterated: what the loops around run over.
        entry: whether `node` is an entry of it.

    Returns:
        The conflicts.
    """
    if p.captured_by.get(name):
        return [Conflict(f"an inner function captures '{name}'")]
    mine, _ = objects(p, node)
    holders = [
        (f"'{other}', which changes while an inner function holds it, may be, or hold, the same object as '{name}'", value)
        for other, value in p.held
    ]
    for reason, value in holders:
        if mine & objects(p, value)[1]:
            return [Conflict(reason)]
    found: list[Conflict] = []
    levels: set[Node] | None = None
    surely: set[Node] = set()
    for root in sorted(mine, key=lambda r: r.name or ""):
        if isinstance(root, Apply) and isinstance(root.fn, Constant) and root.fn.value is syntax.cell_get:
            other = root.attrs["name"]
            what = f"'{name}'" if name == other else f"'{name}' may be part of '{other}', which"
            return [Conflict(f"{what} changes while an inner function holds it")]
        if reason := _foreign(p, root, name):
            levels = levels or {made for made, _ in _levels(p, node, most=True)}
            found.append(Conflict(reason, _outer(root, entry), root not in levels))
            surely |= {root} & levels
    named = [(f"the loop around runs over '{name}'", value) for value in iterated]
    named += [(f"'{other}' may be, or hold, the same object as '{name}'", value) for other, value in sorted(others.items())]
    unknown = []
    for reason, value in named:
        lists, arrays = _meets(p, node, value)
        if lists or arrays:
            found.append(Conflict(reason, None if _is_surely(p, value, mine) else value, not lists))
        if not lists:
            unknown.append((reason, value))
    return found + _unconfirmed(p, name, node, surely, [*holders, *unknown], entry)


def _meets(p: Context, node: Node, other: Node, through: syntax.Handing | None = None) -> tuple[bool, bool]:
    """Whether a value may be, or be held by, another one: as a list, as an array."""
    if objects(p, node, through)[0].isdisjoint(objects(p, other, through)[1]):
        return False, False
    own, theirs = _levels(p, node, True, through=through), _levels(p, other, False, through=through)
    lists = any(theirs.get(place, DEEPEST + 1) <= level for place, level in own.items())
    views = _levels(p, node, True, True, through).keys()
    return lists, not views.isdisjoint(_levels(p, other, False, True, through))


def _comes_from(p: Context, node: Node, root: Node, arrays: bool, through: syntax.Handing) -> bool:
    """Whether a value may be (a view of) what a node makes, or a part of it."""
    return any(made is root for made, _ in _levels(p, node, True, arrays, through))


def _outer(root: Node, entry: bool) -> Node | None:
    """What comes from outside, where its type tells whether it can be what is changed: the `np` of `np.reshape(x, 4)` cannot."""
    return root if isinstance(root, Constant) or entry and isinstance(root, Parameter) else None


def _foreign(p: Context, root: Node, name: str) -> str | None:
    """Why a variable that may be an object must not be changed in place, where that is not the function's own."""
    if isinstance(root, Parameter):
        what = "is" if root.name == name else "may be part of"
        return f"'{name}' {what} the parameter '{root.name}', which belongs to the caller"
    if isinstance(root, Constant) and _is_free(root):
        return f"'{name}' may be part of '{root.value.name}', which comes from outside of the function"
    if isinstance(root, Apply) and not _within(root.graph, p.root):
        return f"'{name}' may be part of a value of the function around this one"
    return None


def _unconfirmed(
    p: Context, name: str, node: Node, surely: set[Node], named: list[tuple[str, Node]], entry: bool
) -> list[Conflict]:
    """The conflicts that there are if calls return what they are given, or hold it in what they return."""
    mine = objects(p, node, ANY)[0]
    found = []
    for root in sorted(mine - surely, key=lambda r: r.name or ""):
        if reason := _foreign(p, root, name):
            seen = lambda calls, arrays, root=root: _comes_from(p, node, root, arrays, calls)  # noqa: E731
            found.append(Conflict(reason, _outer(root, entry), confirm=seen))
    for reason, value in named:
        if mine & objects(p, value, ANY)[1]:
            found.append(Conflict(reason, value, confirm=lambda calls, arrays, value=value: _meets(p, node, value, calls)[arrays]))
    return found


Place = tuple[Node, bool]
"""An object, by the node that makes it; and whether it is of an earlier turn of the loop that makes one in each turn."""


def _levels(p: Context, node: Node, most: bool, views: bool = False, through: syntax.Handing | None = None) -> dict[Place, int]:
    """How deep inside of which objects a value may lie, or what it holds: 0 the object itself, 1 an element of it, ...

    A list is no element of itself, so a value that lies deeper in an object than a list cannot be or hold that list.

    Args:
        p: the function.
        node: the value.
        most: whether to take the deepest place in each object, of the value itself, or else the least deep one, of what it holds.
        views: whether slices are parts of what they are taken of, as of arrays, and not new lists.
        through: the calls that may hand on what they are given.
    """
    known = p.levels if through is None else through.levels
    chain = []
    while (node, most, views) not in known:
        chain.append(node)
        same, *others = _through(_sources(p, node), node, through)
        if len(same) != 1 or any(others) or node in p.flows:
            break
        (node,) = same
    if (node, most, views) not in known:
        known[node, most, views] = _levels_of(p, node, most, views, through)
    known.update(dict.fromkeys(((n, most, views) for n in chain), known[node, most, views]))
    return known[node, most, views]


def _levels_of(p: Context, node: Node, most: bool, views: bool, through: syntax.Handing | None) -> dict[Place, int]:
    """What `_levels` keeps."""
    out: dict[Place, int] = {}
    turns: frozenset[Graph] = frozenset()  # loops of which the way goes through the end of the turn before
    seen, stack = {(node, 0, turns)}, [(node, 0, turns)]
    while stack:
        top, level, turns = stack.pop()
        same, part, held, copied, given = _through(_sources(p, top), top, through)
        before = turns
        if isinstance(top, Parameter) and top in p.flows:
            before = turns | {top.graph}
        if views:
            held, copied = (*held, *copied), ()
        elif part and _is_slice(top):
            part, copied = (), part
        deeper = min(level + 1, DEEPEST) if top in p.items or _applies(top, _PART) else level
        steps = [(s, level, before if k else turns) for k, s in enumerate(same)] + [(s, deeper, turns) for s in part]
        steps += [(s, DEEPEST if most else max(level - 1, 0), turns) for s in given]  # it may be any part, or hold it
        if not (same or part):
            place = top, any(_within(getattr(top, "graph", None), loop) for loop in turns)
            out[place] = max(out.get(place, level), level) if most else min(out.get(place, level), level)
        if level or not most:
            pairs = most and _is_dict(top)  # its entries may be elements of elements of what it was made of
            steps += [(s, DEEPEST if pairs else max(level - 1, 0), turns) for s in held]
            steps += [(s, DEEPEST if pairs else max(level, 1), turns) for s in copied]
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
        same, part, held, *_ = _sources(p, top)
        element = top in p.items or _applies(top, _PART)
        fresh = {*same, *held, *(() if element else part)} - seen
        seen |= fresh
        stack.extend(fresh)
    return False


def _within(graph: Graph | None, root: Graph) -> bool:
    while graph is not None and graph is not root:
        graph = graph.parent
    return graph is root


def check(p: Context, name: str, node: Node, report: Callable[[list[Conflict]], None], within: Node | None = None) -> None:
    """Report `shared` now, and again after each loop around: what flows around a loop is known at its end only.

    Args:
        p: the function.
        name: the variable that is changed.
        node: what is changed: its value, or an entry of that.
        report: takes the conflicts.
        within: where it is an entry, what it is an entry of.
    """
    live = set(p.here)
    for loop in p.loops:
        live |= loop
    others = {v: n for v, n in p.state.env.items() if v in live and v != name and not v.startswith("$")}
    iterated = list(p.iterated)

    def conflicts() -> list[Conflict]:
        found = shared(p, name, node, others, iterated, within is not None)
        if within is not None and not _entries_differ(p, within):
            found.append(Conflict(f"another entry of '{name}' may be, or hold, the same object"))
        return found

    report(reasons := conflicts())
    if p.loops and not any(r.other is None and not r.arrays and r.confirm is None for r in reasons):
        p.checks.append(lambda: report(conflicts()))


def _entries_differ(p: Context, node: Node) -> bool:
    """Whether no two entries of a structure may be, or hold, the same object.

    Each time something is put into it, or all that something holds, that is to be another object: made by another operation, and
    anew in each turn of the loops in which it is put there. What calls return is left to inference.
    """
    placed = _placed(p, node)
    if placed is None:
        return False
    taken: set[Node] = set()
    for value, holder in placed:
        roots = {r for r in objects(p, value)[0] if not isinstance(r, Constant) or _is_free(r)}
        if not taken.isdisjoint(roots) or any(_outlives_a_turn(p, n, holder) for n in (*roots, *_carried(p, value))):
            return False
        taken |= roots
    return True


def _placed(p: Context, node: Node, made_here: bool = False) -> list[tuple[Node, Node]] | None:
    """All that may have been put into a structure, and into which operation's result; None where that cannot be told.

    Args:
        p: the function.
        node: the structure; that of an entry of another one is what all of its entries are made of.
        made_here: whether it is not to be told where a call made the structure, or an object that is in it.
    """
    own = frozenset() if _sources(p, node).part else objects(p, node)[0]
    placed: list[tuple[Node, Node]] = []
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        sources = _sources(p, top)
        copies = (*sources.copied, *(sources.given if _applies(top, _OPERATORS) else ()))
        fresh = {*sources.same, *copies}
        if sources.part:
            outer = _placed(p, sources.part[0], made_here) if top in p.items or _is_entry(top) else None
            if outer is None:
                return None
            fresh = {value for value, _ in outer}
        elif _applies(top, (operator.mul, operator.imul)) or any(not own.isdisjoint(objects(p, c)[0]) for c in copies):
            return None
        held = [h for h in sources.held if not _is_put_back(h)]
        if made_here and not (_is_maker(p, top) and all(_is_maker(p, r) for h in held for r in objects(p, h)[0])):
            return None
        placed += [(c, top) for c in copies if not _applies(top, (syntax.comprehension,))] + [(h, top) for h in held]
        stack.extend(fresh - seen)
        seen |= fresh
    return placed


def is_made_here(p: Context, node: Node) -> bool:
    """Whether a structure and its entries come from displays, comprehensions, operators and what changes lists: from no call."""
    return _placed(p, node, made_here=True) is not None


def _is_maker(p: Context, node: Node) -> bool:
    """Whether a value is surely no result of a call that may hand on something."""
    known = (*_SAME, *_OPERATORS, syntax.check_bound, syntax.make_list, syntax.make_tuple, syntax.comprehension)
    if node in p.flows or node in p.items or _is_entry(node) or _applies(node, known) or is_array(p, node):
        return True
    return isinstance(node, Constant) and not _is_free(node)


def _is_entry(node: Node) -> bool:
    """Whether a node is `x[i]`, to be looked at or changed."""
    return _applies(node, (operator.getitem, syntax.item_to_change)) and not _is_slice(node)


def _is_put_back(node: Node) -> bool:
    """Whether a value is an entry, changed, that goes where it was."""
    while _applies(node, _SAME) or _applies(node, (operator.getitem,)) and _applies(node.args[0], (syntax.list_change,)):
        node = node.args[0]
    taken = _applies(node, (operator.getitem,)) and _applies(node.args[0], (syntax.take_entry,))
    return taken or _applies(node, (syntax.item_to_change,))


def _carried(p: Context, node: Node) -> set[Node]:
    """The parameters of loops through which a value may have come."""
    seen, stack = {node}, [node]
    while stack:
        fresh = set(_sources(p, stack.pop()).same) - seen
        seen |= fresh
        stack.extend(fresh)
    return {n for n in seen if isinstance(n, Parameter) and n in p.flows}


def _outlives_a_turn(p: Context, node: Node, holder: Node) -> bool:
    """Whether a value stays the same while a loop turns in which it is put into something; loops have parameters, branches none."""
    above: list[Graph] = []
    graph = node.graph if isinstance(node, Apply | Parameter) else p.root
    while graph is not None:
        above.append(graph)
        graph = graph.parent
    graph = holder.graph
    if isinstance(node, Parameter) and node in p.flows and _within(graph, node.graph):
        return True
    while graph is not None and graph not in above:
        if graph.params:
            return True
        graph = graph.parent
    return False


def recheck(p: Context) -> None:
    """Run the checks again, a loop being complete."""
    p.roots.clear()
    p.any_roots.clear()
    p.levels.clear()
    for again in p.checks:
        again()
    if not p.loops:
        p.checks.clear()
