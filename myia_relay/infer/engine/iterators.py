"""Iterators are exhausted by their first use. A second use, which would find nothing left in Python, is refused.

    pairs = zip(xs, ys)
    for x, y in pairs: ...
    return list(pairs)      # an empty list in Python

Idea: for inference an iterator is what it iterates over, so it could be used again. Each iterator therefore records the
applications that used it: more than one only where they are in different arms of an `if`. An application inside a loop or
comprehension may run more than once; if the iterator was made outside of that loop, the use is refused too. Input: an
application of the parsed graph, before it is evaluated. Source: "iterator" in the glossary of the Python documentation.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph
from ...utils.errors import TypeError_
from ..values.values import Iter, TaggedUnion, Val
from .frames import Frame

# Operations that inspect an object without iterating over it, and constructs that iterate over their first argument
# only.
LOOKS = (operator.is_, operator.is_not, operator.not_, isinstance, type, bool)
WHOLE = (S.star, S.unpack, S.make_tuple, S.make_list, S.make_dict, S.format_)
FIRST = (S.for_, S.comprehension)


def iterators_in(value: Val) -> list[Iter]:
    """The iterators that a value is, or may be."""
    options = value.options if isinstance(value, TaggedUnion) else (value,)
    return [o for o in options if isinstance(o, Iter) and o.is_iterator]


def note_made(engine: Any, node: Apply, value: Val) -> Val:
    """Record where an iterator was made, if the value of an application is one; returns the value."""
    if isinstance(value, Iter | TaggedUnion):
        for iterator in iterators_in(value):
            engine.iterators = True
            iterator.once.graph = iterator.once.graph or node.graph
    return value


def refuse_captured(function: Graph, captured: Iterable[Val]) -> None:
    """Refuse a call of an inner function that uses an iterator of the enclosing function.

    Raises:
        TypeError_: with advice.
    """
    if any(map(iterators_in, captured)):
        raise TypeError_(
            f"{function.name} uses an iterator of the function around it, which only its first call would find unused; "
            "make a list of it first"
        )


def use_up(engine: Any, frame: Frame, node: Apply) -> None:
    """Record the iterators that an application uses.

    Raises:
        TypeError_: it is an iterator that is used up, or may be.
    """  # noqa: DOC501 (a function makes the exception)
    op = node.fn.value if isinstance(node.fn, Constant) else None
    if not engine.iterators or op in LOOKS or isinstance(op, S.Syntax) and op not in WHOLE and op not in FIRST:
        return
    seen: set[int] = set()
    for argument in node.args[:1] if op in FIRST else node.args:
        for iterator in iterators_in(engine.value(frame, argument)):
            once = iterator.once
            once.graph = once.graph or node.graph
            others = [user for user in once.users if user is not node]
            if id(once) in seen or not all(_apart(user, node) for user in others) or _repeated(node.graph, once.graph):
                raise used_up(iterator)
            seen.add(id(once))
            once.users = [*others, node]


def _apart(a: Apply, b: Apply) -> bool:
    """Whether two applications are in different arms of one `if`, so that a run reaches one of them at most."""
    outside: Graph | None = None
    for one, other in zip(_around(a.graph), _around(b.graph), strict=False):
        if one is not other:
            return outside is not None and any(_is_if(node, one, other) for node in outside.nodes)
        outside = one
    return False


def _is_if(node: Apply, one: Graph, other: Graph) -> bool:
    """Whether an application is an `if` with these arms."""
    if not isinstance(node.fn, Constant) or node.fn.value is not S.if_:
        return False
    arms = [arm.value for arm in node.args[1:] if isinstance(arm, Constant)]
    return any(arm is one for arm in arms) and any(arm is other for arm in arms)


def _around(graph: Graph | None) -> list[Graph]:
    """The graphs around a graph, the outermost first, and itself."""
    found = []
    while graph is not None:
        found.append(graph)
        graph = graph.parent
    return found[::-1]


def _repeated(graph: Graph | None, made: Graph) -> bool:
    """Whether code in a graph may run several times for each run of the graph `made` around it."""
    while graph is not None and graph is not made:
        if graph.flags.get("repeats"):
            return True
        graph = graph.parent
    return False


def used_up(iterator: Iter) -> TypeError_:
    """The error for a second use."""
    what = {"iterator": "an iterator"}.get(iterator.kind, f"what {iterator.kind}() makes")
    return TypeError_(
        f"{what} can be gone over only once, and this is, or may be, a second time; make a list of it first"
    )
