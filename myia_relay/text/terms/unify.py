"""Making two types equal, by finding what is unknown in them.

Unification by union-find (J. A. Robinson, "A machine-oriented logic based on the resolution principle", JACM 1965) with an
explicit stack. Pairs that were compared once are not compared again, so types that share their parts cost what they take
in memory. `?` agrees with every size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...abstract.dims import Dim
from .terms import (
    ANY,
    POISON,
    SIZE,
    TYPE,
    ArrowTerm,
    CellTerm,
    DataTerm,
    PolyTerm,
    Rigid,
    TensorTerm,
    TupleTerm,
    Unknown,
    children,
    is_ground,
    prune,
    rebuild,
    rigids_of,
    substituted,
)


class Clash(NamedTuple):
    """Why two types are not equal.

    Attributes:
        reason: "type", "dtype", "rank", "size", "arity", "rigid", "escape", "infinite".
        left: the part of the one type.
        right: the part of the other.
    """

    reason: str
    left: Any
    right: Any

    @property
    def of_shapes(self) -> bool:
        """Whether nothing but shapes is in the way."""
        return self.reason in ("rank", "size")


class Unifier:
    """Makes types equal.

    Attributes:
        woken: relations that wait for an unknown which was found since; the solver tries them again.
        trail: None, or a list of what was bound, for taking it back.
    """

    def __init__(self):
        self.woken: list[Any] = []
        self.trail: list[Unknown] | None = None

    def unify(self, left: Any, right: Any) -> Clash | None:
        """Make two types, shapes, sizes or dtypes equal.

        Returns:
            None, or why they cannot be. What was found up to there stays.
        """
        stack: list[tuple[Any, Any]] = [(left, right)]
        seen: set[tuple[int, int]] | None = None
        while stack:
            a, b = stack.pop()
            a, b = prune(a), prune(b)
            if a is b or a is POISON or b is POISON:
                if a is not b:
                    self._poison(b if a is POISON else a)
                continue
            if a.__class__ is Unknown or b.__class__ is Unknown:
                if a.__class__ is not Unknown or (b.__class__ is Unknown and _first(b, a)):
                    a, b = b, a
                clash = self.bind(a, b)
                if clash is not None:
                    return clash
                continue
            if isinstance(a, int | Dim) or a is ANY:
                if a is not ANY and b is not ANY and a != b:
                    return Clash("size", a, b)
                continue
            if isinstance(a, str):
                if a != b:
                    return Clash("rigid" if isinstance(b, Rigid) else "dtype", a, b)
                continue
            if isinstance(a, Rigid) or isinstance(b, Rigid):
                return Clash("rigid", a, b)
            if isinstance(a, PolyTerm) or isinstance(b, PolyTerm):
                clash = self._polymorphic(a, b)
                if clash is not None:
                    return clash
                continue
            if a.__class__ is not b.__class__:
                return Clash("type", a, b)
            if seen is None:
                seen = set()
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if isinstance(a, tuple):
                if len(a) != len(b):
                    return Clash("rank", a, b)
                pairs = list(zip(reversed(a), reversed(b), strict=True))
                if ANY in a or ANY in b:  # `?` comes last, as it would hide what the others tell
                    pairs.sort(key=lambda pair: prune(pair[0]) is not ANY and prune(pair[1]) is not ANY)
                stack.extend(pairs)
                continue
            clash = _misfit(a, b)
            if clash is not None:
                return clash
            stack.extend(zip(reversed(children(a)), reversed(children(b)), strict=True))
        return None

    def bind(self, unknown: Unknown, value: Any) -> Clash | None:
        """Let an unknown be a part of a type of the same kind, or another unknown.

        Returns:
            None, or why it cannot be.
        """
        clash = self._enter(unknown, value)
        if clash is not None:
            return clash
        unknown.link = value
        if self.trail is not None:
            self.trail.append(unknown)
        if unknown.waiting:
            if value.__class__ is Unknown:
                if value.waiting is None:
                    value.waiting = dict(unknown.waiting)
                else:
                    value.waiting.update(unknown.waiting)
            self.woken.extend(unknown.waiting)
            unknown.waiting = None
        return None

    def _enter(self, unknown: Unknown, value: Any) -> Clash | None:
        """Give the unknowns of a value the level of the one that it becomes; find what must not occur in it."""
        level = unknown.level
        if value.__class__ is Unknown:
            if value.kind != unknown.kind:
                return Clash("type", unknown, value)
            if value.level > level:
                value.level = level
            return None
        if isinstance(value, str | int) or getattr(value, "ground", False):
            return None
        stack, seen = [value], set()
        while stack:
            x = prune(stack.pop())
            if x.__class__ is Unknown:
                if x is unknown:
                    return Clash("infinite", unknown, value)
                if x.level > level:
                    x.level = level
            elif isinstance(x, Rigid | Dim):
                for parameter in [x] if isinstance(x, Rigid) else rigids_of(x):
                    if parameter.level > level:
                        return Clash("escape", parameter, unknown)
            elif not is_ground(x) and id(x) not in seen:
                seen.add(id(x))
                if isinstance(x, PolyTerm):
                    for parameter in x.params:
                        parameter.level = min(parameter.level, level)
                stack.extend(children(x))
        return None

    def _polymorphic(self, a: Any, b: Any) -> Clash | None:
        """Function types of which one has type parameters of its own: the other must be as general."""
        if not isinstance(a, PolyTerm):
            a, b = b, a
        if isinstance(b, PolyTerm):
            if len(a.params) != len(b.params) or any(p.kind != q.kind for p, q in zip(a.params, b.params, strict=True)):
                return Clash("type", a, b)
            return self.unify(a.body, instantiated(b, list(a.params)))
        if not isinstance(b, ArrowTerm):
            return Clash("type", a, b)
        fresh = [Rigid(p.name, p.kind, GENERAL, p.span) for p in a.params]
        clash = self.unify(instantiated(a, fresh), b)
        return clash if clash is None or clash.reason != "escape" else Clash("rigid", clash.left, b)

    def _poison(self, x: Any) -> None:
        """Let what is unknown in a type agree with everything from now on."""
        if x.__class__ is Unknown and x.kind == TYPE:
            self.bind(x, POISON)


GENERAL = (1 << 60) - 1
"""The level of parameters that stand for every type while a function is compared with a polymorphic type."""


def instantiated(poly: PolyTerm, images: list[Any]) -> Any:
    """The body of a polymorphic function type with other types in place of its parameters."""
    table = {
        id(parameter): (image.size if isinstance(image, Rigid) and image.kind == SIZE else image)
        for parameter, image in zip(poly.params, images, strict=True)
    }
    return replaced(poly.body, table)


def replaced(x: Any, table: dict[int, Any]) -> Any:
    """A type with others in place of some parameters, given by their ids.

    Polynomials over several become `ANY` where one is unknown.
    """

    def leaf(part: Any) -> Any:
        if isinstance(part, Dim):
            found = rigids_of(part)
            if not any(id(p) in table for p in found):
                return part
            if len(found) == 1 and part == found[0].size:
                return table[id(found[0])]
            value = substituted(part, lambda p: table.get(id(p), p.size))
            return ANY if value is None else value
        return table.get(id(part), part)

    return rebuild(x, leaf)


def _first(a: Unknown, b: Unknown) -> bool:
    """Whether of two unknowns it is rather the first that is linked to the second: the inner one, with fewer waiting for it."""
    if a.level != b.level:
        return a.level > b.level
    return len(a.waiting or ()) < len(b.waiting or ())


def _misfit(a: Any, b: Any) -> Clash | None:
    """Why two types of one class differ at their roots."""
    match a:
        case DataTerm():
            if a.name != b.name or len(a.args) != len(b.args):
                return Clash("type", a, b)
        case TupleTerm():
            if len(a.elems) != len(b.elems):
                return Clash("arity", a, b)
        case ArrowTerm():
            if len(a.params) != len(b.params):
                return Clash("arity", a, b)
        case CellTerm() | TensorTerm():
            pass
        case _:
            return Clash("type", a, b)
    return None
