"""Writes the types that were found into a tree: those of the parameters and results of all functions.

What inference left open becomes a declared parameter, and Broadcast relations between such become `where` clauses, so that the
text says the most general type. A type on which another relation depends, which no text can state, is left out, as the
checker finds it again; a size that follows from named ones by arithmetic is written as `?`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...abstract.dims import Dim
from ..terms.solver import TypeRelation
from ..terms.terms import (
    ANY,
    BASE,
    SHAPE,
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
    prune,
    rigids_of,
    unknowns,
)
from ..tree import (
    ANY_SIZE,
    Body,
    DataType,
    Expression,
    Function,
    FunctionType,
    Kind,
    Let,
    ModuleTree,
    RefType,
    RelationClause,
    ShapeExpr,
    TensorType_,
    TupleType,
    TypeExpr,
    TypeParam,
    TypeVar,
)
from ..walk import expressions, rewritten, walk
from .checked import Checked, Scheme

NAMES = {TYPE: "ABCDEFGH", SHAPE: "stuvw", SIZE: "nmkpq", BASE: "abcde"}


def annotated(checked: Checked) -> ModuleTree:
    """A module with the types of all functions written."""
    tree = checked.tree
    out = {
        name: replace(d, function=_definition(checked, d.function, checked.schemes[name]))
        for name, d in tree.definitions.items()
    }
    return tree.with_definitions(out)


def written(checked: Checked, t: Any) -> TypeExpr | None:
    """A type as it is written; None where a part of it is not known, or belongs to no declaration."""
    return TypeWriter(checked).type(t)


def _definition(checked: Checked, function: Function, scheme: Scheme) -> Function:
    """A definition, and the functions within it, with their types."""
    writers: dict[Function, tuple[TypeWriter, Scheme | None]] = {}
    outer = TypeWriter(checked)
    outer.open(scheme, function)
    writers[function] = outer, scheme
    # Functions within see the parameters of those around them.
    stack: list[tuple[Expression, TypeWriter]] = [(function.body, outer)]
    while stack:
        top, writer = stack.pop()
        for e, own in _inner(checked, top):
            inner = writer
            if own is not None:
                inner = TypeWriter(checked, writer)
                inner.open(own, e)
            writers[e] = inner, own
            stack.append((e.body, inner))

    return _rebuilt(checked, function, writers)


def _inner(checked: Checked, e: Expression) -> Iterator[tuple[Function, Scheme | None]]:
    """The outermost functions within an expression, and the schemes of those that have one."""
    own: dict[Function, Scheme] = {}
    stack: list[Expression] = [e]
    while stack:
        top = stack.pop()
        if isinstance(top, Function):
            found = checked.instances.get(top)
            yield top, own.get(top) or (found.scheme if found is not None else None)
            continue
        if isinstance(top, Body):
            for s in top.statements:
                if isinstance(s, Let) and isinstance(s.value, Function):
                    own[s.value] = checked.locals[s.local]
        stack.extend(expressions(top))


def _rebuilt(checked: Checked, function: Function, writers: dict) -> Function:
    """A function with the types of all functions within."""
    order: list[Function] = []

    def visit(e: Expression) -> Expression:
        if isinstance(e, Function):
            order.append(e)
        return e

    rewritten(function, visit)
    originals = iter(order)  # `rewritten` hands on functions whose bodies have changed, in the same order

    def change(e: Expression) -> Expression:
        if not isinstance(e, Function):
            return e
        original = next(originals)
        writer, scheme = writers[original]
        return writer.function(e, checked.types[original], scheme)

    out = rewritten(function, change)
    assert isinstance(out, Function)
    return out


class TypeWriter:
    """Writes types within a function.

    Attributes:
        checked: what is known.
        params: what stands for the open parts of types here.
        new: those among them that the function at hand declares.
        taken: names in use.
        relations: what is declared of them.
    """

    def __init__(self, checked: Checked, around: TypeWriter | None = None):
        self.checked = checked
        self.params: dict[int, TypeParam] = dict(around.params) if around is not None else {}
        self.taken: set[str] = set(around.taken) if around is not None else set()
        self.new: list[TypeParam] = []
        self.relations: list[TypeRelation] = []

    def open(self, scheme: Scheme, function: Function) -> None:
        """Name what a scheme abstracts over, as far as a text can say what holds of it."""
        self.taken |= {p.name for f in walk(function) if isinstance(f, Function) for p in f.type_params}
        blocked: set[int] = set()
        for relation in scheme.relations:
            if not _is_writable(relation):
                blocked.update(map(id, unknowns(relation.args, relation.result)))
        shown = {id(x) for x in unknowns(scheme.type)}
        relations = [r for r in scheme.relations if r.family == "Broadcast" and "accepted" not in r.attrs]
        # What a relation is about must be named as a whole, or not at all.
        changed = True
        while changed:
            changed = False
            for relation in relations:
                within = {id(x) for x in unknowns(relation.args, relation.result)}
                if (within - shown or within & blocked) and within - blocked:
                    blocked |= within
                    changed = True
        for x in scheme.params:
            if isinstance(x, Unknown) and id(x) in shown and id(x) not in blocked:
                param = TypeParam(self._name(x.kind), x.kind)  # pyright: ignore[reportArgumentType]
                self.params[id(x)] = param
                self.new.append(param)
        seen: set[tuple] = set()
        for relation in relations:
            within = list(unknowns(relation.args, relation.result))
            key = tuple(map(_identity, (*relation.args, relation.result)))
            if within and all(id(x) in self.params for x in within) and key not in seen:
                seen.add(key)
                self.relations.append(relation)

    def _name(self, kind: str) -> str:
        names = NAMES[kind]
        found = next(n for n in _numbered(names) if n not in self.taken)
        self.taken.add(found)
        return found

    def function(self, function: Function, t: Any, scheme: Scheme | None) -> Function:
        """A function with its types; annotations that are there stay."""
        t = prune(t)
        if not isinstance(t, ArrowTerm):
            return function
        params = tuple(
            replace(p, annotation=self.type(found)) if p.annotation is None else p
            for p, found in zip(function.params, t.params, strict=True)
        )
        result = self.type(t.result) if function.result is None else function.result
        if scheme is None or not self.new:
            return replace(function, params=params, result=result)
        declared = [p for p in function.type_params if not p.implicit]
        implicit = [p for p in function.type_params if p.implicit]
        clauses = list(function.relations)
        if not any(c.args is None for c in clauses):
            for relation in self.relations:
                own = (*relation.args, relation.result)
                if list(map(_identity, own)) == list(map(_identity, (*t.params, t.result))):
                    clauses.append(RelationClause("Broadcast"))
                    continue
                types = [self.type(x) for x in own]
                if all(x is not None for x in types):
                    clauses.append(RelationClause("Broadcast", tuple(x for x in types if x is not None)))
        return replace(
            function,
            params=params,
            result=result,
            type_params=(*declared, *self.new, *implicit),
            relations=tuple(clauses),
        )

    # Types.

    def type(self, t: Any) -> TypeExpr | None:
        """A type as it is written; None where it cannot be."""
        t = prune(t)
        match t:
            case TensorTerm():
                shape, dtype = self._shape(t.shape), self._dtype(t.dtype)
                return None if shape is None or dtype is None else TensorType_(shape, dtype)
            case TupleTerm():
                fields = self._all(t.elems)
                return None if fields is None else TupleType(fields)
            case ArrowTerm():
                parts = self._all((*t.params, t.result))
                return None if parts is None else FunctionType(parts[:-1], parts[-1])
            case PolyTerm():
                return self._poly(t)
            case CellTerm():
                elem = self.type(t.elem)
                return None if elem is None else RefType(elem)
            case DataTerm():
                args = tuple(map(self._argument, t.args))
                return (
                    None if any(a is None for a in args) else DataType(t.name, tuple(a for a in args if a is not None))
                )
            case Rigid() | Unknown():
                return self._variable(t)
        return None

    def _all(self, parts: Iterable[Any]) -> tuple[TypeExpr, ...] | None:
        found = tuple(map(self.type, parts))
        return None if any(f is None for f in found) else tuple(f for f in found if f is not None)

    def _variable(self, x: Rigid | Unknown) -> TypeVar | None:
        param = self.params.get(id(x))
        if param is None and isinstance(x, Rigid):
            param = self.checked.parameters.get(x)
        return None if param is None else TypeVar(param)

    def _shape(self, shape: Any) -> Any:
        shape = prune(shape)
        if not isinstance(shape, tuple):
            return self._variable(shape)
        sizes = tuple(map(self._size, shape))
        return None if any(s is None for s in sizes) else sizes

    def _size(self, size: Any) -> Any:
        size = prune(size)
        if isinstance(size, Unknown):
            return self._variable(size)
        if isinstance(size, Dim):
            found = rigids_of(size)
            if len(found) == 1 and size == found[0].size:
                return self._variable(found[0])
            return ANY_SIZE
        return ANY_SIZE if size is ANY else size

    def _dtype(self, dtype: Any) -> Any:
        dtype = prune(dtype)
        return dtype if isinstance(dtype, str) else self._variable(dtype)

    def _argument(self, x: Any) -> TypeExpr | None:
        """An argument of a data type, of whatever kind."""
        x = prune(x)
        match x:
            case tuple():
                sizes = self._shape(x)
                return None if sizes is None else ShapeExpr(sizes)
            case str():
                return TensorType_((), x)
            case int() | Dim():
                size = self._size(x)
                return size if isinstance(size, TypeVar) else ShapeExpr(size)
        return ShapeExpr(ANY_SIZE) if x is ANY else self.type(x)

    def _poly(self, t: PolyTerm) -> TypeExpr | None:
        kinds: list[tuple[str, Kind]] = [(p.name, p.kind) for p in t.params]  # pyright: ignore[reportAssignmentType]
        params = tuple(TypeParam(name, kind) for name, kind in kinds)
        inner = TypeWriter(self.checked)
        inner.params = {**self.params, **{id(p): q for p, q in zip(t.params, params, strict=True)}}
        parts = inner._all((*t.body.params, t.body.result))
        clauses = []
        for name, types in t.relations:
            args = inner._all(types)
            if args is None:
                return None
            clauses.append(RelationClause(name, args))
        return None if parts is None else FunctionType(parts[:-1], parts[-1], params, tuple(clauses))


def _is_writable(relation: TypeRelation) -> bool:
    return "accepted" in relation.attrs or relation.family == "Broadcast"


def _identity(x: Any) -> Any:
    """What tells types of relations apart."""
    x = prune(x)
    if isinstance(x, TensorTerm):
        return _identity(x.shape), _identity(x.dtype)
    return tuple(map(_identity, x)) if isinstance(x, tuple) else x if isinstance(x, str | int) else id(x)


def _numbered(names: str) -> Iterator[str]:
    yield from names
    number = 1
    while True:
        yield f"{names[0]}{number}"
        number += 1
