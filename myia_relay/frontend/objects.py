"""Which objects a value may be, or hold: determined from syntax.

The analysis follows assignments, branches, loops, subscripts, attributes, and the NumPy functions that return views.
Any other call may return its arguments, or hold them in its result; that is decided where inference has seen the call
(`ir.syntax.Handing`).
"""

from __future__ import annotations

import ast
import operator
from typing import Any, NamedTuple, Protocol, TypeGuard

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node, Parameter

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
SAME = {
    *IN_PLACE.values(),
    syntax.annotate,
    syntax.setitem,
    syntax.after_call,
    syntax.read_again,
    syntax.update_at,
    syntax.change_array,
    syntax.list_append,
    syntax.list_change,
}
# Where the front end does not know what is stored, inference does: an array holds nothing.
STORES = {syntax.setitem, syntax.after_call}
# Operations whose result is a view or an element of their first argument.
PART = {operator.getitem, getattr, syntax.match_field, syntax.item_to_change}
# Operators whose result may hold what the operands hold, like that of `xs + ys`, or be what a class's own method
# returns.
OPERATORS = {
    *IN_PLACE.values(),
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.neg, operator.pos, operator.invert,
}  # fmt: skip
# Operations whose result is new and holds their arguments; the elements of starred ones.
_HOLDING = {syntax.make_tuple, syntax.make_list, syntax.make_dict}
# Operations whose result is new, and which hold what their first argument holds: what is taken out of that is a part of it.
_SPREADING = {syntax.unpack, syntax.star, syntax.double_star}
# Builtins whose result is new, and makes tuples that hold elements of the arguments; that hold the elements; or both: an iterator
# of the argument itself.
_HOLDING_NAMES = frozenset(("enumerate", "zip"))
_COPYING_NAMES = frozenset(("tuple", "list", "sorted"))
_ITERATING_NAMES = frozenset(("reversed", "iter"))
# What makes numbers, truth values, exceptions or slices, of which nothing can be changed.
_UNCHANGEABLE = {
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.is_, operator.is_not, operator.not_,
    operator.contains, isinstance, bool, slice, AssertionError,
}  # fmt: skip
# Methods whose result is or holds parts of the receiver -> how much deeper in that an element of an element of the result lies:
# `items` wraps them in tuples.
_PART_METHODS = {**dict.fromkeys(syntax.VIEWING, 0), "values": 0, "keys": 0, "items": -1, "get": 1}
# NumPy functions and methods whose result is a new array. An array copies what is assigned to its elements; a list
# holds it.
_NEW_ARRAYS = frozenset(
    "zeros ones empty full arange linspace eye zeros_like ones_like empty_like full_like copy".split()
)
_COPY = frozenset(["copy"])

Objects = frozenset[Node]


class ParseFacts(Protocol):
    """What this module uses of the function that is being parsed: attributes of `frontend.context.ParseContext`."""

    root: Graph
    returned: set[Node]
    families: Families
    flows: dict[Node, tuple[Node, ...]]
    entered: dict[Graph, int]
    items: dict[Node, Node]
    extended: dict[Node, tuple[tuple[Node, ...], tuple[Node, ...]]]
    closures: dict[Graph, Any]
    solved: syntax.Solved
    loops: list[set[str]]
    marks: list[tuple[tuple[int, ...], int]]
    checks: list[Any]


def objects(p: ParseFacts, node: Node, through: syntax.Handing | None = None) -> tuple[Objects, Objects]:
    """The objects, given by the nodes that made them, that a value may be (or be a view of), and that it may be or
    hold.

    Loops make these equations recursive, so they are iterated to the least solution; solutions are cached.

    Args:
        p: the function.
        node: the value.
        through: the calls that may return or hold their arguments; none by default.
    """
    known = _solved(p, through).objects
    node = origin_of(p, node, through)
    if node in known:
        return known[node]
    open_: dict[Node, list[tuple[Node, ...]]] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if top not in known and top not in open_:
            groups = through_calls(sources_of(p, top), top, through)
            open_[top] = sources = [tuple(origin_of(p, n, through) for n in group) for group in groups]
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


def _solved(p: ParseFacts, through: syntax.Handing | None) -> syntax.Solved:
    """The solution that is already known."""
    return p.solved if through is None else through.solved


def origin_of(p: ParseFacts, node: Node, through: syntax.Handing | None = None) -> Node:
    """The earlier value that is certainly the same object as a value, on every path that leads here; or the value
    itself.

    As redundant φ functions are removed in M. Braun et al., "Simple and Efficient Construction of Static Single
    Assignment Form" (CC 2013), section 3.1: programs of many changes stay as small as those of none.
    """
    known = _solved(p, through).origin
    waiting, stack = set(), [node]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        same, *others = through_calls(sources_of(p, top), top, through)
        if same and not any(others) and top not in waiting:
            waiting.add(top)
            stack.extend(s for s in same if s not in known and s not in waiting)
            continue
        # A value that is still being solved belongs to an enclosing loop: it stands for itself.
        origins = set() if any(others) else {_end(known, s) for s in same} - {top}
        known[top] = origins.pop() if len(origins) == 1 else top
    return _end(known, node)


def _end(known: dict[Node, Node], node: Node) -> Node:
    """Where a chain of origins ends."""
    while (before := known.get(node, node)) is not node:
        node = before
    return node


class Sources(NamedTuple):
    """Where a value may come from.

    Attributes:
        same: what it may be the same as. part: what it may be a part of. held: what it holds.
        copied: of what it is a copy that holds the same elements.
        given: what it may be the same as, a part of or hold, if callees return their arguments.
    """

    same: tuple[Node, ...] = ()
    part: tuple[Node, ...] = ()
    held: tuple[Node, ...] = ()
    copied: tuple[Node, ...] = ()
    given: tuple[Node, ...] = ()


def through_calls(sources: Sources, node: Node, through: syntax.Handing | None) -> Sources:
    """Where a value may come from if only the given calls return or hold their arguments, and only the given reads give views."""
    if through is not None and sources.part and node not in through.views:
        if node in through.copies:
            return sources._replace(part=(), copied=sources.part)
        if node in through.fresh:
            return Sources()
    if not sources.given:
        return sources
    if through is not None and node in through.makes:
        made, receiver = tuple(g for g in sources.given if g in through.makes[node]), copied_by_method(node)
        if applies(node, STORES):
            return sources._replace(given=(), held=made)
        return sources._replace(given=(), copied=(*sources.copied, *(made if receiver is None else (receiver,))))
    given = () if through is None else through.calls.get(node, ())
    found = tuple(g for g in sources.given if g in given)
    return sources._replace(given=(), held=found) if applies(node, STORES) else sources._replace(given=found)


def is_literal(node: Node) -> bool:
    """Whether a value is a number, a string, ...: its identity cannot be observed."""
    return isinstance(node, Constant) and (
        node.value is None or isinstance(node.value, (int, float, complex, str, bytes))
    )


def sources_of(p: ParseFacts, node: Node) -> Sources:
    """Where a value may come from.

    This is the one rule for all constructs: what is not known to be new may be, or hold, whatever it is given.
    """
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
    if not isinstance(fn, Constant):
        method = _part_method(node)
        return Sources(part=() if method is None else (*args, fn.args[0]), given=(fn, *args))
    value = fn.value
    if value in _UNCHANGEABLE:
        return Sources()
    if isinstance(value, syntax.Syntax):
        return _sources_of_syntax(p, node, value)
    if value in SAME:  # an operator in place
        return Sources(same=args[:1], given=args[1:])
    if value in PART:
        return Sources() if _is_grid(node) else Sources(part=args[:1])
    if isinstance(value, Graph):
        return Sources(given=(fn, *args))
    name = _called_name(node)
    if name == "dict":  # the elements of dicts and of pairs, and the values of keywords
        count = len(args) - len(node.keywords)
        return Sources(copied=args[:count], held=args[count:], given=args)
    if name in _ITERATING_NAMES:
        return Sources(held=args, copied=args, given=args)
    if name in _COPYING_NAMES:
        return Sources(copied=args, given=args)
    return Sources(held=args if name in _HOLDING_NAMES else (), given=args)


def _sources_of_syntax(p: ParseFacts, node: Apply, value: syntax.Syntax) -> Sources:
    """Where the result of a construct may come from; that of a branch or a loop is taken apart, and its parts flow (`p.flows`)."""
    args = node.args
    if value is syntax.setitem:  # inference knows what is an array, which holds nothing
        return Sources(same=args[:1], given=() if is_array(p, args[0]) else args[-1:])
    if value is syntax.list_append:
        return Sources(same=args[:1], held=args[-1:])
    if value is syntax.after_call:
        return Sources(same=args[:1], given=args[2:])
    if value in SAME:
        return Sources(same=args[:1])
    if value is syntax.check_bound:
        return Sources(same=args[1:])
    if value in _HOLDING:
        stars = [a for a in args if applies(a, (syntax.star,))]
        return Sources(held=tuple(a for a in args if a not in stars), copied=tuple(s.args[0] for s in stars))
    if value in _SPREADING:
        return Sources(copied=args[:1])
    if value is syntax.comprehension:
        return Sources(copied=(args[1].value.output,))
    return Sources(part=args[:1]) if value in PART else Sources()


def _part_method(node: Node) -> str | None:
    """The `m` of `x.m(...)`, where the result is or holds parts of `x`."""
    method = node.fn if isinstance(node, Apply) else None
    if not applies(method, (getattr,)) or not isinstance(method.args[1], Constant):
        return None
    return method.args[1].value if method.args[1].value in _PART_METHODS else None


def _called_name(node: Node) -> str:
    """The name of the builtin or of the function from outside that a node calls; "" for any other node."""
    if not isinstance(node, Apply) or not isinstance(node.fn, Constant):
        return ""
    value = node.fn.value
    return value.name if isinstance(value, syntax.FreeName) else getattr(value, "__name__", "")


def is_array(p: ParseFacts, node: Node, copies: bool = False) -> bool:
    """Whether a value is, on every path that leads here, an array that a NumPy function made.

    Args:
        p: the function.
        node: the value.
        copies: whether `x.copy()` counts as one, whatever `x` is.
    """
    known = p.solved.arrays
    if (node, copies) not in known:
        known[node, copies] = _is_array(p, node, copies)
    return known[node, copies]


def _is_array(p: ParseFacts, node: Node, copies: bool) -> bool:
    """The computation that `is_array` caches."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        top = stack.pop()
        if not p.solved.arrays.get((top, copies), True):
            return False
        if top in seen or (top, copies) in p.solved.arrays:
            continue
        seen.add(top)
        if top in p.flows:
            stack.extend(p.flows[top])
            continue
        if not isinstance(top, Apply):
            return False
        fn = top.fn
        if applies(top, (*SAME, syntax.check_bound)):
            stack.append(top.args[1 if fn.value is syntax.check_bound else 0])
        elif (receiver := copied_by_method(top)) is not None:
            stack.extend(() if copies else (receiver,))
        elif not _is_grid(top) and not (
            isinstance(fn, Apply) and applies(fn, (getattr,)) and _is_named(fn.args[1], _NEW_ARRAYS)
        ):
            return False
    return True


def _is_grid(node: Node) -> bool:
    """Whether a value is an array that indexing makes: `np.mgrid[0:3, 0:4]`."""
    if not applies(node, (operator.getitem,)) or not applies(of := node.args[0], (getattr,)):
        return False
    return _is_named(of.args[1], _GRIDS) and isinstance(of.args[0], Constant)


_GRIDS = frozenset(("mgrid", "r_", "c_"))


def row_of_array(p: ParseFacts, node: Node) -> tuple[Node, Any] | None:
    """Which array of the program's own a value is a row of, by unpacking, and which row; None where it is none.

    Rows are different objects, though they share the memory of the array.
    """
    row = origin_of(p, node)
    if applies(row, (operator.getitem,)) and applies(whole := row.args[0], (syntax.unpack,)):
        at = row.args[1]
        if isinstance(at, Constant) and is_array(p, whole.args[0]):
            return origin_of(p, whole.args[0]), at.value
    return None


DEEPEST = 3  # levels of nesting that are distinguished
Place = tuple[Node, bool]
"""An object, given by the node that makes it; and whether it is from an earlier iteration of the loop around that node."""


def levels(
    p: ParseFacts, node: Node, most: bool, views: bool = False, through: syntax.Handing | None = None
) -> dict[Place, int]:
    """How deep inside which objects a value may be, or what it holds: 0 the object itself, 1 an element of it, ...

    A list is no element of itself, so a value that lies deeper in an object than a list cannot be or hold that list.

    Args:
        p: the function.
        node: the value.
        most: whether to take the deepest place in each object, of the value itself, or else the least deep one, of what
        it holds.
        views: whether slices are parts of what they are taken of, as of arrays, and not new lists.
        through: the calls that may hand on what they are given.
    """
    known = _solved(p, through).levels
    key = origin_of(p, node, through), most, views
    if key not in known:
        known[key] = _levels_of(p, *key, through)
    return known[key]


def _levels_of(p: ParseFacts, node: Node, most: bool, views: bool, through: syntax.Handing | None) -> dict[Place, int]:
    """The computation that `levels` caches."""
    out: dict[Place, int] = {}
    # With the outermost of the loops that the path passes through the end of: the content was made in an earlier
    # iteration.
    stack: list[tuple[Node, int, Graph | None]] = [(node, 0, None)]
    seen = set(stack)
    while stack:
        top, level, iteration = stack.pop()
        same, part, held, copied, given = through_calls(sources_of(p, top), top, through)
        before = iteration
        if isinstance(top, Parameter) and top in p.flows:
            before = iteration or top.graph
        if not views and part and is_slice(top):
            part, copied = (), part
        deeper = _level_of_part(p, top, level, most)
        steps = [(s, level, before if k else iteration) for k, s in enumerate(same)] + [
            (s, deeper, iteration) for s in part
        ]
        steps += [
            (s, DEEPEST if most else max(level - 1, 0), iteration) for s in given
        ]  # It may be any part, or hold it.
        if not (same or part):
            place = top, iteration is not None
            out[place] = max(out.get(place, level), level) if most else min(out.get(place, level), level)
        if level or not most:
            pairs = (
                most and _called_name(top) == "dict"
            )  # Its entries may be elements of elements of what it was made from.
            steps += [(s, DEEPEST if pairs else max(level - 1, 0), iteration) for s in held]
            steps += [(s, DEEPEST if pairs else max(level, 1), iteration) for s in copied]
        for source, at, around in steps:
            origin = origin_of(p, source, through)
            step = (
                origin,
                at,
                around if around is not None and is_within(getattr(origin, "graph", None), around) else None,
            )
            if step not in seen:
                seen.add(step)
                stack.append(step)
    return out


def _level_of_part(p: ParseFacts, node: Node, level: int, most: bool) -> int:
    """How deep in what a value is a part of something lies that is so deep in the value; the most, or else the least."""
    if node in p.items or applies(node, PART):
        return min(level + 1, DEEPEST)
    more = _PART_METHODS.get(_part_method(node) or "", 0)
    return min(level + max(more, 0), DEEPEST) if most else max(level + more, 0)


class Families:
    """Values that may be related to each other, whatever calls return: each value is in one family with all that it
    comes from. This is a coarse answer, but computed in almost linear time (union-find), however long a program is.

    Attributes:
        parent: value -> another one of its family, on the way to the one that stands for it.
        outsiders: for each family, what the function has not made itself, by name.
        joined: the values that are in a family with all that they come from.
    """

    def __init__(self):
        self.parent: dict[Node, Node] = {}
        self.outsiders: dict[Node, dict[Any, Node]] = {}
        self.joined: dict[Node, None] = {}

    def of(self, p: ParseFacts, node: Node) -> Node:
        """The family of a value: its representative."""
        stack = [node]
        while stack:
            top = stack.pop()
            if top in self.joined or is_literal(top):
                continue
            self.joined[top] = None
            sources = sources_of(p, top)
            if not (sources.same or sources.part) and not is_own(p, top):
                name = top.value.name if isinstance(top, Constant) and is_free(top) else top
                self.outsiders.setdefault(self.find(top), {})[name] = top
            for source in (s for group in sources for s in group if not is_literal(s)):
                self.join(top, source)
                stack.append(source)
        return self.find(node)

    def find(self, node: Node) -> Node:
        """The representative of a value's family so far."""
        while (above := self.parent.get(node, node)) is not node:
            self.parent[node] = node = self.parent.get(above, above)
        return node

    def join(self, one: Node, other: Node) -> None:
        """Make two families one."""
        one, other = self.find(one), self.find(other)
        if one is not other:
            few, many = sorted((one, other), key=lambda n: len(self.outsiders.get(n, ())))
            self.parent[few] = many
            if few in self.outsiders:
                self.outsiders[many].update(self.outsiders.pop(few))


def applies(node: Any, operations: Any) -> TypeGuard[Apply]:
    """Whether a node applies one of some operations."""
    return isinstance(node, Apply) and isinstance(node.fn, Constant) and node.fn.value in operations


def _is_named(node: Node, names: frozenset[str]) -> bool:
    """Whether a value is an attribute with one of some names."""
    return isinstance(node, Constant) and node.value in names


def copied_by_method(node: Node) -> Node | None:
    """The `x` of `x.copy()`."""
    method = node.fn if isinstance(node, Apply) and not node.args else None
    return method.args[0] if applies(method, (getattr,)) and _is_named(method.args[1], _COPY) else None


def is_free(node: Constant) -> bool:
    """Whether a constant is a name from outside of the function."""
    return isinstance(node.value, syntax.FreeName)


def is_slice(node: Node) -> bool:
    """Whether a node is `x[a:b]`."""
    return applies(node, (operator.getitem,)) and applies(node.args[1], (slice,))


def is_own(p: ParseFacts, root: Node) -> bool:
    """Whether an object was made by the function itself, or is one that it hands back to its caller."""
    if root in p.returned:
        return True
    if isinstance(root, Apply):
        return is_within(root.graph, p.root)
    return isinstance(root, Constant) and not is_free(root)


def is_within(graph: Graph | None, root: Graph) -> bool:
    """Whether a graph is another one, or in it."""
    while graph is not None and graph is not root:
        graph = graph.parent
    return graph is root


def loop_begins(p: ParseFacts, initial: list[Node]) -> None:
    """Save what is known: results inside a loop may change when its end is known.

    Args:
        p: the function.
        initial: the values that the loop starts with.
    """
    for node in initial:
        origin_of(p, node)
        p.families.of(p, node)
    p.marks.append((p.solved.mark(), len(p.families.joined)))


def loop_ends(p: ParseFacts) -> None:
    """Forget results found inside a loop, now that it is complete; when all loops are, run the checks again."""
    solved, joined = p.marks.pop()
    p.solved.forget(solved)
    syntax.forget(p.families.joined, joined)
    if not p.loops:
        for again in p.checks:
            again()
        p.checks.clear()
