"""Whether changing a value in place can be seen through another name.

`x[i] = v` and `xs.append(v)` bind the same name to a new value. Python does the same only if nothing else can see the
old object, so every other case is refused. The question is decided from syntax: which parameters, globals and other
live variables may be or hold the object, following assignments, branches, loops, subscripts, attributes and the NumPy
functions that return views. Any other call may return its arguments, or hold them in its result; conflicts that depend
on that are confirmed by inference, which has seen what was called (`infer.values.sharing`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node, Parameter
from .apart import apart
from .context import ParseContext
from .objects import (
    DEEPEST,
    OPERATORS,
    PART,
    SAME,
    STORES,
    Objects,
    applies,
    copied_by_method,
    is_array,
    is_free,
    is_literal,
    is_own,
    is_slice,
    is_within,
    levels,
    objects,
    sources_of,
    through_calls,
)

_HOLDS_ITSELF = "what is put into '{name}' may be, or hold, '{name}' itself (put a copy of it there: {name}.copy())"
_WAITS = (
    "'{what}', which this statement reads before that and uses afterwards, may be, or hold, the same object as '{name}', so what "
    "it shows depends on the order; write two statements, or copy what is read: {what}.copy()"
)
_RUNS_OVER = "the loop around runs over '{name}'"
OF_THE_CALLER = "'{name}' is the parameter '{name}', which belongs to the caller"


KINDS = ("array", "list", "dict")
ARRAYS = ("array",)
NO_ARRAYS = ("list", "dict")


class Conflict(NamedTuple):
    """A reason why a change could be seen.

    Attributes:
        reason: in words.
        other: the other variable's value, if its type decides whether this is a conflict.
        kinds: for what kinds of changed objects it is one: "array", "list", "dict".
        confirm: where it rests on what calls return and reads give: whether it is one, of an object of a kind, given what inference
            has seen of these.
        named: whether it is one as far as names tell.
        variable: the name of the other variable, if it is one.
        over: what a loop around runs over, if that is the reason; it is none if that is a dict, of which loops see the keys.
    """

    reason: str
    other: Node | None = None
    kinds: tuple[str, ...] = KINDS
    confirm: Callable[[syntax.Handing, str], bool] | None = None
    named: bool = False
    over: Node | None = None
    variable: str = ""


def shared(
    p: ParseContext,
    name: str,
    node: Node,
    others: dict[str, Node],
    iterated: list[Node],
    entry: bool = False,
    beside: Sequence[tuple[str, Node]] = (),
    again: Sequence[tuple[str, Node]] = (),
    stored: Sequence[Node] = (),
) -> list[Conflict]:
    """Why an in-place change of `name` could be seen from elsewhere.

    Args:
        p: the function.
        name: the variable that is changed.
        node: its value.
        others: the other live variables.
        iterated: what the loops around run over.
        entry: whether `node` is an entry of it.
        beside: what else must not hold it, with reasons.
        again: what must not hold it if it is a list or a dict, with reasons: as an array it is read again.
        stored: what is put into it, which must not hold it if it is a list or a dict.

    Returns:
        The conflicts.
    """
    if p.captured_by.get(name):
        return [Conflict(f"an inner function captures '{name}'")]
    mine, _ = objects(p, node)
    holders = [
        (
            f"'{other}', which changes while an inner function holds it, may be, or hold, the same object as '{name}'",
            value,
        )
        for other, value in p.held
    ]
    for reason, value in holders:
        if mine & objects(p, value)[1]:
            return [Conflict(reason)]
    found: list[Conflict] = []
    makers: set[Node] | None = None
    surely: set[Node] = set()
    for root in sorted(mine, key=lambda r: r.name or ""):
        if applies(root, (syntax.cell_get,)):
            other = root.attrs["name"]
            what = f"'{name}'" if name == other else f"'{name}' may be part of '{other}', which"
            return [Conflict(f"{what} changes while an inner function holds it")]
        if reason := _foreign(p, root, name):
            makers = makers or {made for made, _ in levels(p, node, most=True)}
            kinds = KINDS if root in makers else ARRAYS
            seen = _seen_to_come_from(p, node, root) if _rests_on_reads(p, node) else None
            found.append(Conflict(reason, _outer(root, entry), kinds, seen, True))
            surely |= {root} & makers
    runs_over = _RUNS_OVER.format(name=name)
    named = [*beside, *((runs_over, value) for value in iterated)]
    reasons = {f"'{other}' may be, or hold, the same object as '{name}'": other for other in sorted(others)}
    named += [(reason, others[other]) for reason, other in reasons.items()]
    unknown: list[tuple[str, Node, tuple[str, ...]]] = [(reason, value, KINDS) for reason, value in holders]
    cycles = [(_HOLDS_ITSELF.format(name=name), value) for value in stored]
    kinds = [*((*pair, KINDS) for pair in named), *((*pair, NO_ARRAYS) for pair in (*again, *cycles))]
    for reason, value, possible in kinds:
        lists, arrays = meets(p, node, value)
        if lists or arrays and possible == KINDS:
            sure = _is_surely(p, value, mine) and reason != runs_over
            reads = _rests_on_reads(p, node) or _rests_on_reads(p, value)
            seen = _seen_to_meet(p, node, value) if reads else None
            over = value if reason == runs_over else None
            found.append(
                Conflict(
                    reason,
                    None if sure else value,
                    possible if lists else ARRAYS,
                    seen,
                    True,
                    over,
                    reasons.get(reason, ""),
                )
            )
        if not lists:
            unknown.append((reason, value, possible))
    unsure = _unconfirmed(p, name, node, surely, unknown, entry)
    return found + [c._replace(variable=reasons.get(c.reason, "")) for c in unsure]


def meets(p: ParseContext, node: Node, other: Node, through: syntax.Handing | None = None) -> tuple[bool, bool]:
    """Whether a value may be or be held by another one: as a list, as an array."""
    if objects(p, node, through)[0].isdisjoint(objects(p, other, through)[1]):
        return False, False
    own, theirs = levels(p, node, True, through=through), levels(p, other, False, through=through)
    lists = any(theirs.get(place, DEEPEST + 1) <= level for place, level in own.items())
    views = levels(p, node, True, True, through).keys()
    arrays = not views.isdisjoint(levels(p, other, False, True, through))
    if (lists or arrays) and apart(p, node, other, through):
        return False, False
    return lists, arrays


def _rests_on_reads(p: ParseContext, node: Node) -> bool:
    """Whether a value may come from reads `x[i]`, of which inference knows what they give."""
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        same, part, held, copied, _ = sources_of(p, top)
        if part and applies(top, (operator.getitem,)) and not applies(top.args[0], (syntax.unpack,)):
            return True
        fresh = {*same, *part, *held, *copied} - seen
        seen |= fresh
        stack.extend(fresh)
    return False


def _seen_to_meet(p: ParseContext, node: Node, other: Node) -> Callable[[syntax.Handing, str], bool]:
    """Whether a value may be or be held by another one, given what inference has seen."""
    return lambda seen, kind: meets(p, node, other, seen)[kind == "array"]


def _seen_to_come_from(p: ParseContext, node: Node, root: Node) -> Callable[[syntax.Handing, str], bool]:
    """Whether a value may be (a view of) what a node makes, or a part of it, given what inference has seen."""
    return lambda seen, kind: any(made is root for made, _ in levels(p, node, True, kind == "array", seen))


def _outer(root: Node, entry: bool) -> Node | None:
    """What comes from outside, if its type decides whether it can be what is changed: the `np` of `np.reshape(x, 4)`
    cannot.
    """
    return root if isinstance(root, Constant) or entry and isinstance(root, Parameter) else None


def _foreign(p: ParseContext, root: Node, name: str) -> str | None:
    """Why a variable that may be an object must not be changed in place, if the object is not the function's own."""
    if is_own(p, root):
        return None
    if isinstance(root, Parameter):
        what = "is" if root.name == name else "may be part of"
        return f"'{name}' {what} the parameter '{root.name}', which belongs to the caller"
    if isinstance(root, Constant):
        return f"'{name}' may be part of '{root.value.name}', which comes from outside of the function"
    return f"'{name}' may be part of a value of the function around this one"


def _unconfirmed(
    p: ParseContext,
    name: str,
    node: Node,
    surely: set[Node],
    named: list[tuple[str, Node, tuple[str, ...]]],
    entry: bool,
) -> list[Conflict]:
    """The conflicts that exist if calls return their arguments, or hold them in what they return."""
    family = p.families.of(p, node)
    found = []
    for root in sorted(p.families.outsiders.get(family, {}).values(), key=lambda r: r.name or ""):
        if root not in surely:
            reason = _foreign(p, root, name)
            assert reason is not None  # Outsiders are not the function's own.
            found.append(Conflict(reason, _outer(root, entry), confirm=_seen_to_come_from(p, node, root)))
    for reason, value, kinds in named:
        if p.families.of(p, value) is p.families.find(family):
            over = value if reason == _RUNS_OVER.format(name=name) else None
            found.append(Conflict(reason, value, kinds, _seen_to_meet(p, node, value), over=over))
    return found


def _is_surely(p: ParseContext, node: Node, objects: Objects) -> bool:
    """Whether a value may itself be or hold one of some objects, whatever the types are: not only as an element of
    something.
    """
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        if top in objects:
            return True
        same, part, held, *_ = sources_of(p, top)
        element = top in p.items or applies(top, PART)
        fresh = {*same, *held, *(() if element else part)} - seen
        seen |= fresh
        stack.extend(fresh)
    return False


def check(
    p: ParseContext,
    name: str,
    node: Node,
    report: Callable[[list[Conflict]], None],
    within: Node | None = None,
    beside: Sequence[tuple[str, Node]] = (),
    stored: Sequence[Node] = (),
) -> None:
    """Report `shared` now, and again after each enclosing loop: what flows around a loop is known at its end only.

    Args:
        p: the function.
        name: the variable that is changed.
        node: what is changed: its value, or an entry of that.
        report: called with the conflicts.
        within: where it is an entry, what it is an entry of.
        beside: what else must not hold it, with reasons.
        stored: what is put into it.
    """
    live = p.here.union(p.later, *p.loops)
    others = {v: n for v, n in p.state.env.items() if v in live and v != name and not v.startswith("$")}
    iterated = list(p.iterated)
    waiting = [
        (_WAITS.format(what=ast.unparse(at), name=name), value) for at, value in p.waiting if not is_literal(value)
    ]
    again = [pair for pair in waiting if within is None and pair[1] in p.read_again and pair[1] is not node]
    beside = [*beside, *(pair for pair in waiting if within is not None or pair[1] not in p.read_again)]

    def conflicts() -> list[Conflict]:
        found = shared(p, name, node, others, iterated, within is not None, beside, again, stored)
        if within is not None:
            found.append(_twice(p, name, within))
        return found

    report(conflicts())
    if p.loops:
        p.checks.append(lambda: report(conflicts()))


def put_in(method: str, args: Sequence[Node]) -> tuple[Node, ...]:
    """What a method puts into a list, as it is written; not the elements of a list that has a name."""
    if method in ("append", "insert"):
        return tuple(args[-1:])
    displays = [a for a in args if method == "extend" and applies(a, (syntax.make_list, syntax.make_tuple))]
    return tuple(v for a in displays for v in a.args if not applies(v, (syntax.star,)))


def _twice(p: ParseContext, name: str, whole: Node) -> Conflict:
    """That an entry of a structure may be in it twice, which depends on what inference has seen."""
    confirm = lambda seen, kind: not _entries_differ(p, whole, seen)  # noqa: E731
    return Conflict(f"another entry of '{name}' may be, or hold, the same object", confirm=confirm)


def _entries_differ(p: ParseContext, node: Node, through: syntax.Handing | None = None) -> bool:
    """Whether no two entries of a structure can be, or hold, the same object.

    Each time something is put into it, or all that something holds, that is to be another object: made by another operation, and
    anew in each iteration of the loops in which it is put there.

    Args:
        p: the function.
        node: the structure.
        through: the calls that hand on what they are given; none by default.
    """
    placed = _placed(p, node, through=through)
    if placed is None:
        return False
    unknown = None if through is None else through.without(_is_known)
    taken: set[Node] = set()
    for value, holder in placed:
        roots = {r for r in objects(p, value, unknown)[0] if not isinstance(r, Constant) or is_free(r)}
        if (
            not taken.isdisjoint(roots)
            or holder is not None
            and any(_outlives_an_iteration(p, n, holder) for n in (*roots, *_carried(p, value)))
        ):
            return False
        taken |= roots
    return True


def _placed(
    p: ParseContext,
    node: Node,
    made_here: bool = False,
    through: syntax.Handing | None = None,
    busy: tuple[Node, ...] = (),
) -> list[tuple[Node, Node | None]] | None:
    """All that may have been put into a structure, with the operation that put it there; None if that is not known.

    Of an entry of another structure, all entries of that one come first, without an operation: what one of them is, another one
    may hold the content of.

    Args:
        p: the function.
        node: the structure; that of an entry of another one is what all of its entries are made of.
        made_here: whether it is not to be told where a call made the structure, or an object that is in it.
        through: the calls that hand on what they are given. Their results may hold whatever is anywhere in that; but
            `x.copy()` holds what `x` holds.
        busy: the structures of which it is an entry; it may be one of them, in a loop.
    """
    if node in busy:
        return None
    own = frozenset() if sources_of(p, node).part else objects(p, node)[0]
    placed: list[tuple[Node, Node | None]] = []
    depth = 1 + len(busy)
    inside: set[Node] = set()  # what calls were given, and all that it holds
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        sources = sources_of(p, top)
        if top in p.returned:
            placed.append((top, None))  # The caller knows its entries.
            if depth > 1 and p.kept[top.name or ""].stored <= depth:
                return None
        elif applies(top, (syntax.after_call,)) and top.attrs["stored"] <= depth:
            return None
        if not applies(top, OPERATORS):
            sources = through_calls(sources, top, through)
        receiver = copied_by_method(top) if sources.given else None
        copies = (*sources.copied, *(sources.given if receiver is None else (receiver,)))
        if made_here and is_slice(top):  # a new list, or a view, which names tell
            sources = sources._replace(part=(), copied=sources.part)
        stored = sources_of(p, top).given if made_here and applies(top, (syntax.setitem,)) else ()
        held = [h for h in (*sources.held, *stored) if not _is_put_back(h)]
        fresh = {*sources.same, *copies}
        if top in inside:
            fresh |= {*sources.part, *held}
        elif sources.part:
            is_entry = top in p.items or _is_entry(top)
            outer = _placed(p, sources.part[0], made_here, through, (*busy, node)) if is_entry else None
            if outer is None:
                return None
            fresh = {value for value, holder in outer if holder is not None}
            placed += [(value, None) for value in fresh]
        elif applies(top, (operator.mul, operator.imul)) or any(not own.isdisjoint(objects(p, c)[0]) for c in copies):
            return None
        if made_here and not (_is_maker(p, top) and all(_is_maker(p, r, True) for h in held for r in _made(p, h))):
            return None
        placed += [(c, top) for c in copies if not applies(top, (syntax.comprehension,))] + [(h, top) for h in held]
        inside |= fresh if top in inside else set() if _is_known(top) else {*sources.given}
        stack.extend(fresh - seen)
        seen |= fresh
    return placed


def _made(p: ParseContext, node: Node) -> Objects:
    """The objects that a value may be; a slice is new, if it is one of a list."""
    return frozenset([node]) if is_slice(node) else objects(p, node)[0]


def _is_known(node: Node) -> bool:
    """Whether names tell what a value holds that operands hold, wherever inference has seen that it holds some."""
    return applies(node, (*OPERATORS, *STORES)) or copied_by_method(node) is not None


def is_made_here(p: ParseContext, node: Node) -> bool:
    """Whether a structure and its entries come from displays, comprehensions, operators and list methods, not from a call."""
    return _placed(p, node, made_here=True) is not None


def _is_maker(p: ParseContext, node: Node, copies: bool = False) -> bool:
    """Whether a value is certainly not the result of a call that may return its arguments.

    Args:
        p: the function.
        node: the value.
        copies: whether it may be a copy that holds the same entries.
    """
    known = (*SAME, *OPERATORS, syntax.check_bound, syntax.make_list, syntax.make_tuple, syntax.comprehension)
    if (
        node in p.returned
        or node in p.flows
        or node in p.items
        or _is_entry(node)
        or applies(node, known)
        or is_slice(node)
        or is_array(p, node, copies)
    ):
        return True
    return isinstance(node, Constant) and not is_free(node)


def _is_entry(node: Node) -> bool:
    """Whether a node is an `x[i]` that is read or changed."""
    return applies(node, (operator.getitem, syntax.item_to_change)) and not is_slice(node)


def _is_put_back(node: Node) -> bool:
    """Whether a value is an entry that was changed and is put back into its place."""
    while applies(node, SAME) or applies(node, (operator.getitem,)) and applies(node.args[0], (syntax.list_change,)):
        node = node.args[0]
    taken = applies(node, (operator.getitem,)) and applies(node.args[0], (syntax.take_entry,))
    return taken or applies(node, (syntax.item_to_change,))


def _carried(p: ParseContext, node: Node) -> set[Node]:
    """The parameters through which a value may have passed."""
    seen, stack = {node}, [node]
    while stack:
        fresh = set(sources_of(p, stack.pop()).same) - seen
        seen |= fresh
        stack.extend(fresh)
    return {n for n in seen if isinstance(n, Parameter)}


def _outlives_an_iteration(p: ParseContext, node: Node, holder: Node) -> bool:
    """Whether a value stays the same while a loop runs that puts it into something; loops have parameters, branches none."""
    above: list[Graph] = []
    graph = node.graph if isinstance(node, Apply | Parameter) else p.root
    while graph is not None:
        above.append(graph)
        graph = graph.parent
    graph = holder.graph if isinstance(holder, Apply | Parameter) else p.root
    if isinstance(node, Parameter) and node in p.flows and is_within(graph, node.graph):
        return True
    while graph is not None and graph not in above:
        if graph.params:
            return True
        graph = graph.parent
    return False
