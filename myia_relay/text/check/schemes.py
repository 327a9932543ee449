"""Schemes: abstraction over what is open in a type, and instances of it.

Generalisation is that of Hindley and Milner with levels; relations that cannot be decided become part of the scheme, as in
M. Odersky, M. Sulzmann, M. Wehr, "Type inference with constrained types" (TAPOS 1999).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...abstract.dims import Dim
from ...utils.errors import TypeError_
from ..span import Span, loc
from ..terms.show import show
from ..terms.solver import Facts, Solver, TypeRelation
from ..terms.terms import (
    BASE,
    GENERIC,
    POISON,
    SIZE,
    Rigid,
    Unknown,
    is_ground,
    parameters,
    prune,
    rebuild,
    rigids_of,
    substituted,
    unknowns,
)
from .checked import Scheme
from .clashes import declared


def instantiate(
    solver: Solver, scheme: Scheme, span: Span | None, given: tuple[Any, ...] = ()
) -> tuple[Any, tuple[Any, ...]]:
    """A scheme's type with new unknowns for its parameters; what must hold of them is demanded.

    Args:
        solver: takes the relations.
        scheme: the scheme.
        span: the place of the use.
        given: types for the first parameters.

    Returns:
        The type, and what stands for each parameter.
    """
    if scheme.is_plain:
        return scheme.type, ()
    fresh = tuple(Unknown(p.kind, solver.level) for p in scheme.params[len(given) :])
    images = (*given, *fresh)
    table = {id(p): image for p, image in zip(scheme.params, images, strict=True)}
    computed: dict[Dim, Any] = {}

    def image(parameter: Rigid) -> Any:
        return table.get(id(parameter), parameter.size)

    def leaf(part: Any) -> Any:
        if not isinstance(part, Dim):
            return table.get(id(part), part)
        found = rigids_of(part)
        if len(found) == 1 and part == found[0].size:
            return image(found[0])
        if not any(id(p) in table for p in found):
            return part
        value = substituted(part, image)
        if value is None:
            value = computed.get(part)
            if value is None:
                value = computed[part] = Unknown(SIZE, solver.level)
                sizes = tuple(map(image, found))
                solver.add(TypeRelation("a size", _size, sizes, value, {"size": part, "of": found}, span))
        return value

    def change(x: Any) -> Any:
        return x if is_ground(x) else rebuild(x, leaf)

    t = change(scheme.type)
    for relation in scheme.relations:
        solver.add(relation.copied(change, span))
    return t, images


def _size(facts: Facts) -> None:
    """A polynomial over sizes of which some were not known."""
    of, args = facts.attr("of"), facts.relation.args
    table = {id(p): size for p, size in zip(of, args, strict=True)}
    known = [facts.known(size) for size in args]  # asked of all, to wait for all
    if all(known):
        facts.gives(substituted(facts.attr("size"), lambda p: table[id(p)]))


def generalise(
    solver: Solver, pending: list[TypeRelation], types: Iterable[Any], own: Iterable[Rigid], span: Span | None
) -> tuple[list[Rigid | Unknown], list[TypeRelation]]:
    """Abstract over what is open at a level above the present one.

    Args:
        solver: is at the level of what stands around.
        pending: the relations that came up at the level above.
        types: the types that are generalised together.
        own: declared parameters.
        span: the place, for errors.

    Returns:
        The parameters of the scheme, and its relations.
    """
    level = solver.level
    own = list(own)
    params: list[Rigid | Unknown] = [*own]
    reached: set[int] = {id(p) for p in own}
    for x in unknowns(*types):
        if x.level > level:
            reached.add(id(x))
            params.append(x)
    demanded: set[tuple[int, Any]] = set()
    narrowest: dict[int, list[Any]] = {}
    for r in pending:
        if not r.done and "accepted" in r.attrs:
            narrowest.setdefault(id(prune(r.args[0].dtype)), []).append(r.attrs["accepted"])
    open_: list[tuple[TypeRelation, list[Unknown]]] = []
    for relation in pending:
        if relation.done:
            continue
        if "accepted" in relation.attrs:  # those of what became one dtype since are the same
            key = (id(prune(relation.args[0].dtype)), relation.attrs["accepted"])
            stronger = (set(o) < set(key[1]) for o in narrowest[key[0]])
            if key in demanded or any(stronger):
                relation.done = True
                continue
            demanded.add(key)
        within = list(unknowns(relation.args, relation.result))
        local = [x for x in within if x.level > level]
        stuck = [x for x in relation.waits if isinstance(x, Rigid) and x.kind != BASE]
        if stuck and not any(isinstance(x, Unknown) for x in relation.waits):
            relation.done = True
            solver.unifier.unify(relation.result, POISON)
            solver.report(_too_specific(relation, stuck[0]))
        elif local or any(p.level > level for p in parameters(relation.args, relation.result)):
            open_.append((relation, within))
        else:
            solver.pending[-1].append(relation)
    relations = []
    changed = True
    while changed and open_:
        changed, rest = False, []
        for relation, within in open_:
            if not within or any(id(x) in reached or x.level <= level for x in within):
                changed = True
                relations.append(relation)
                for x in within:
                    if x.level > level and id(x) not in reached:
                        reached.add(id(x))
                        params.append(x)
            else:
                rest.append((relation, within))
        open_ = rest
    for relation, _ in open_:
        solver.report(unsolved(relation, span))
        solver.unifier.unify(relation.result, POISON)
        relation.done = True
    for relation in relations:
        relation.done = True
    for p in params:
        if isinstance(p, Unknown):
            p.level = GENERIC
    return params, relations


def unsolved(relation: TypeRelation, span: Span | None) -> TypeError_:
    """The error that nothing decides whether a relation holds."""
    shown = ", ".join(show(a) for a in relation.args)
    return TypeError_(
        f"the types of {relation.name} cannot be inferred here: of its arguments ({shown}) not enough is known, and no "
        "call will tell more; annotate what it is applied to, let %x: float32 = ..",
        loc(relation.span or span),
    )


def _too_specific(relation: TypeRelation, rigid: Rigid) -> TypeError_:
    declare = ", or declare the relation: where Broadcast(..)" if relation.family == "Broadcast" else ""
    return TypeError_(
        f"{relation.name} needs to know more of '{rigid.name}', which is declared and so stands for every "
        f"{'shape' if rigid.kind == 'Shape' else 'type'}: its arguments are ({', '.join(map(show, relation.args))}); declare "
        f"what it is, or leave the annotation out{declare}",
        loc(relation.span),
        *declared(rigid),
    )
