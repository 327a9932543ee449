"""Ownership of references to run-time lists.

A scope owns the lists that its applications make, until their last use. The last user of a list may take the reference
over (`given`); otherwise it is dropped there. Parameters are borrowed unless the caller has passed the reference on.
Results do not depend on any of this: a superfluous reference costs a copy, and memory until the call ends.

Source: S. Ullrich and L. de Moura, "Counting Immutable Beans" (IFL 2019); A. Reinking et al., "Perceus" (PLDI 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....abstract.types import List, Struct, Type
from ....ir.node import Apply, Graph, Node
from .list_blocks import drop, dup, holds_list, shared


@dataclass(eq=False)
class Reference:
    """A reference that a scope owns: the expression of the block's address, its type, and the position of its last use."""

    address: Any
    type: List
    last: int
    gone: bool = False


class References:
    """The references that a scope owns, by the expression of their address."""

    def __init__(self) -> None:
        self.by_value: dict[int, Reference] = {}
        self.ending: dict[int, list[Reference]] = {}


def enter(lowering: Any, scope: Any, given: Any) -> None:
    """A scope begins: it owns the lists among the parameters that were given to it."""
    if not any(holds_list(n.type) for n in (*scope.graph.params, *scope.graph.nodes)):
        return
    scope.references = References()
    for param, mine in zip(scope.graph.params, given):
        if mine and holds_list(param.type):
            register(lowering, scope, param, -1)


def register(lowering: Any, scope: Any, node: Node, position: int) -> None:
    """The scope owns the lists in a node's value, until their last use."""
    for path, leaf, address in list_leaves(scope.env[node], node.type):
        last = last_position(scope, node, path)
        reference = Reference(address, leaf, last)
        scope.references.by_value[id(address)] = reference
        if last <= position:
            end(lowering, reference)
        else:
            scope.references.ending.setdefault(last, []).append(reference)


def list_leaves(value: Any, t: Type, path: tuple = ()) -> list:
    """(path, type, address) of each list in a lowered value."""
    if isinstance(t, List):
        return [(path, t, value)]
    if isinstance(t, Struct) and holds_list(t):
        pairs = enumerate(zip(value, t.elems, strict=True))
        return [leaf for i, (v, e) in pairs for leaf in list_leaves(v, e, (*path, i))]
    return []


def last_position(scope: Any, node: Node, path: tuple) -> int:
    """The position of the last application that uses a part of a value."""
    best, seen, stack = -1, set(), [(node, path)]
    while stack:
        top, path = stack.pop()
        if (top, path) in seen:
            continue
        seen.add((top, path))
        for user in scope.fusion.users.get(top, ()):
            if isinstance(user, Graph):
                return len(scope.graph.nodes)
            name = getattr(user.fn, "name", "")
            if name == "get_item":
                if not path or path[0] == user.attrs["index"]:
                    stack.append((user, path[1:]))
            elif name == "make_struct":
                stack.append((user, ()))
            else:
                best = max(best, scope.position[user])
        if scope.graph.output is top:
            return len(scope.graph.nodes)
    return best


def end(lowering: Any, reference: Reference) -> None:
    """A reference is not needed any more."""
    if not reference.gone:
        drop(lowering.block, shared(lowering), lowering.state.address, reference.address, reference.type)


OWNING = ("cond", "while_loop", "for_loop", "tape_pop")
"""What makes lists besides list operations and calls."""


def after(lowering: Any, scope: Any, node: Apply) -> None:
    """An application is emitted: its value's lists have an owner, and those that it was the last to use have none."""
    position = scope.position[node]
    for reference in scope.references.ending.pop(position, ()):
        end(lowering, reference)
    owning = isinstance(node.fn, Graph) or node.fn.name in OWNING or node.fn.name.startswith("list_")
    if owning and holds_list(node.type):
        register(lowering, scope, node, position)


def mine(lowering: Any, address: Any, at: Apply | None) -> Reference | None:
    """The reference to a list if this scope owns it and `at` is the last to use it (None: the scope's end)."""
    scope = lowering.scope
    found = scope.references.by_value.get(id(address)) if scope.references is not None else None
    position = scope.position[at] if at is not None else len(scope.graph.nodes)
    return found if found is not None and not found.gone and found.last == position else None


def given(lowering: Any, address: Any, at: Apply | None) -> Any:
    """A reference to a list that is passed on: this scope's own if it no longer needs it, otherwise an additional one."""
    reference = mine(lowering, address, at)
    if reference is not None and (at is None or _is_there_once(lowering, address, at)):
        reference.gone = True
    else:
        dup(lowering.block, address)
    return address


def _is_there_once(lowering: Any, address: Any, at: Apply) -> bool:
    """Whether a list is in no more than one place among the arguments of an application."""
    found = (leaf for n in at.args if holds_list(n.type) for leaf in list_leaves(lowering.value(n), n.type))
    return sum(a is address for _, _, a in found) == 1


def donate(lowering: Any, node: Apply, given_: list[bool]) -> list[bool]:
    """`given_`, with True for arguments that are lists which `node` is the last to use: what it runs owns them now."""
    if lowering.scope.references is None:
        return given_
    out = list(given_)
    for k, arg in enumerate(node.args):
        if isinstance(arg.type, List):
            address = lowering.value(arg)
            reference = mine(lowering, address, node)
            out[k] = False
            if reference is not None and _is_there_once(lowering, address, node):
                out[k] = reference.gone = True
        elif holds_list(arg.type):
            out[k] = False
    return out


def take_initial(lowering: Any, node: Apply, args: Any) -> None:
    """The cells of a loop own the lists that it starts with."""
    for arg in args:
        for _, _, address in list_leaves(lowering.value(arg), arg.type):
            given(lowering, address, node)


def leave(lowering: Any, scope: Any) -> None:
    """A scope ends: the receiver of its result owns the lists in it."""
    output = scope.graph.output
    for _, _, address in list_leaves(lowering.value(output), output.type):
        given(lowering, address, None)
