"""Families of algebraic data types: which frozen dataclasses belong together, and the types of their fields.

Idea: dataclasses that occur together in the annotation of a field (`left: "Leaf | Node"`, `next: "Cell | None"`, a
common base class) are the variants of one family. If a family refers to itself, directly or through others, its values
have no fixed shape. They are then run-time values of one type, `Data(family)`, whatever their shape. The types of the
fields come from the annotations, which must determine them completely (`float`, `int`, `bool`, `Tensor[Float, (10,)]`,
tuples, other dataclasses, None). A family with an annotation that does not (`np.ndarray`, `Any`, `Tensor[Float,
("n",)]`) is not a type: its values keep their structure in their types, like dataclasses that are not recursive.

Annotations are resolved where the class was defined: names in its module or, for a class made in a function, the
variables of that function, which are recorded when a function beside the class is decorated (`note_scope`).

Input: classes. Output: `family_of(cls)`, a `Family`, or None.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..utils.compiling import compiling
from ..utils.errors import OverflowError_, TypeError_
from .annotations import annotated_type, no_field
from .declared import declaration_of
from .family import Family, Variant
from .types import Array, Data, NoneT, Scalar, Struct, Type, is_static_shape, numpy_dtype, tuple_of

_MARK = "__relay_family__"  # the class attribute that holds what is known of a class
_SCOPE = "__relay_scope__"  # the variables of the function in which a class was made


class FieldError(TypeError_):
    """A field is given a value that does not fit its annotation; with structures in types the program may be valid."""

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


class Misfit(TypeError_):
    """A value that does not fit the annotations of its family; the message says where."""

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


class Vague(Exception):
    """An annotation that does not determine a type."""


def is_record_class(cls: Any) -> bool:
    """Whether a class can be a variant: a frozen dataclass."""
    return isinstance(cls, type) and "__dataclass_fields__" in cls.__dict__ and cls.__dataclass_params__.frozen


def family_of(cls: type) -> Family | None:
    """The recursive family that a class belongs to; None if it belongs to none.

    Values of such a class are `Data`. Constant time after the first look at a class.
    """
    known = cls.__dict__.get(_MARK)
    if known is None:
        if not is_record_class(cls) or declaration_of(cls) is not None:
            return None
        with compiling():
            if _MARK not in cls.__dict__:
                discover(neighbours(cls))
        return family_of(cls)
    family: Family | None = known[0]
    if family is not None and not family.holds():
        with compiling():
            for variant in family.variants:
                if variant.cls.__dict__.get(_MARK, (None,))[0] is family:
                    type.__delattr__(variant.cls, _MARK)
        return family_of(cls)
    return family if family is not None and family.recursive else None


def neighbours(cls: type) -> list[type]:
    """The dataclasses defined beside a class: one without recursive fields may be a variant of another's family."""
    namespace = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    scope = cls.__dict__.get(_SCOPE, {})
    found = [c for c in [*namespace.values(), *scope.values()] if is_record_class(c) and c.__module__ == cls.__module__]
    return list(dict.fromkeys([*found, cls]))


def note_scope(namespace: dict[str, Any]) -> None:
    """Record the variables of a function, for the annotations of the dataclasses that were made in it."""
    local = [c for c in namespace.values() if is_record_class(c) and "<locals>" in c.__qualname__]
    if not local:
        return
    names = set()
    for cls in local:
        for f in fields(cls):
            names.update(_strings(f.type))
    scope = {n: v for n, v in namespace.items() if n in names or v in local}
    for cls in local:
        if not scope.items() <= cls.__dict__.get(_SCOPE, {}).items():
            type.__setattr__(cls, _SCOPE, {**cls.__dict__.get(_SCOPE, {}), **scope})


def _strings(annotation: Any) -> Iterator[str]:
    """The names in the forward references of an annotation."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            yield from (n.id for n in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(n, ast.Name))
        except SyntaxError:
            return
        for part in [n.value for n in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(n, ast.Constant)]:
            if isinstance(part, str):
                yield from _strings(part)
    for part in getattr(annotation, "__args__", ()):
        yield from _strings(part)


@dataclass(frozen=True)
class _Form:
    """A resolved annotation: a type, or a choice of classes and None, or a tuple of forms."""

    type: Type | None = None
    classes: tuple[type, ...] = ()
    nullable: bool = False
    parts: tuple[_Form, ...] | None = None

    def mentioned(self) -> Iterator[_Form]:
        if self.classes:
            yield self
        for part in self.parts or ():
            yield from part.mentioned()


class _Reader:
    """Reads the annotations of one class; `evidence` records what names referred to."""

    def __init__(self, cls: type):
        self.cls = cls
        module = sys.modules.get(cls.__module__)
        self.globals = vars(module) if module is not None else {}
        self.locals = {cls.__name__: cls, **cls.__dict__.get(_SCOPE, {})}
        self.evidence: list[tuple] = []

    def forms(self) -> dict[str, _Form]:
        """The forms of the fields.

        Raises:
            Vague: one of them determines no type.
        """
        return {f.name: self.form(f.type) for f in fields(self.cls)}

    def form(self, annotation: Any) -> _Form:
        if isinstance(annotation, typing.ForwardRef):
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            return self.form(self.evaluate(annotation))
        if annotation is None or annotation is types.NoneType:
            return _Form(nullable=True)
        if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
            classes = self.variants(annotation)
            if classes:
                return _Form(classes=classes)
        if getattr(annotation, "triangle", None):
            raise no_field(annotation, "a field")
        concrete = annotated_type(annotation)
        if concrete is None and isinstance(annotation, type) and issubclass(annotation, np.generic):
            concrete = Scalar(np.dtype(annotation).name) if np.dtype(annotation).kind in "fiub" else None
        if concrete is not None:
            if not is_static_shape(concrete):
                raise Vague(annotation)
            return _Form(concrete)
        meaning = getattr(annotation, "__value__", annotation)  # `type Tree = Leaf | Node` of Python 3.12
        if meaning is not annotation:
            return self.form(meaning)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            return self.union([self.form(a) for a in args])
        if origin is tuple and args and Ellipsis not in args:
            return _Form(parts=() if args == ((),) else tuple(self.form(a) for a in args))
        raise Vague(annotation)

    def union(self, parts: list[_Form]) -> _Form:
        if any(p.type is not None or p.parts is not None for p in parts):
            raise Vague(parts)
        classes = tuple(dict.fromkeys(c for p in parts for c in p.classes))
        return _Form(classes=classes, nullable=any(p.nullable for p in parts))

    def evaluate(self, text: str) -> Any:
        for name in set(_strings(text)):
            if name not in self.locals and name in self.globals:
                self.evidence.append((self.globals, name, self.globals[name]))
        try:
            return eval(text, dict(self.globals), self.locals)
        except Exception:  # a name that is not bound here, "'Leaf' | Node", which is no union, ...
            raise Vague(text) from None

    def variants(self, cls: type) -> tuple[type, ...]:
        """The dataclasses that an annotation with a class allows: it and those derived from it.

        Raises:
            Vague: one of them is a dataclass that is not frozen.
        """
        if cls.__module__ == "builtins" or cls is object:
            return ()
        out, queue = [], [cls]
        for top in queue:
            if is_record_class(top):
                out.append(top)
            elif "__dataclass_fields__" in top.__dict__:
                raise Vague(top)
            below = tuple(type.__subclasses__(top))
            self.evidence.append((None, top, below))
            queue.extend(c for c in below if c not in queue)
        return tuple(out)


def discover(classes: list[type]) -> None:
    """Find the families of classes, and of all that their fields mention, and mark the classes with them."""
    forms: dict[type, dict[str, _Form] | None] = {}
    evidence: dict[type, list[tuple]] = {}
    todo = list(classes)
    while todo:
        cls = todo.pop()
        if cls in forms:
            continue
        before = cls.__dict__.get(_MARK, (None,))[0]
        if before is not None:
            todo.extend(v.cls for v in before.variants)
        reader = _Reader(cls)
        try:
            forms[cls] = reader.forms()
        except Vague:
            forms[cls] = None
        evidence[cls] = reader.evidence
        for form in _mentions(forms[cls]):
            todo.extend(form.classes)
    below = {cls: {c for form in _mentions(f) for c in form.classes} for cls, f in forms.items()}
    reach = _reachable(below)
    order = dict.fromkeys([c for f in forms.values() for form in _mentions(f) for c in form.classes] + list(forms))
    families: dict[type, Family] = {}
    for group in _groups(forms):
        members = [c for c in order if c in group]
        family = Family(members, any(c in reach[c] for c in members))
        family.evidence = [e for c in members for e in evidence[c]]
        families.update(dict.fromkeys(members, family))
    clear = {c: f for c, f in forms.items() if f is not None}
    sound = {c for c in clear if all(d in clear for d in reach[c])}
    usable = [f for f in dict.fromkeys(families.values()) if all(v.cls in sound for v in f.variants)]
    for v in (v for family in usable for v in family.variants):
        v.fields = tuple(clear[v.cls])
        v.types = tuple(_type(f, families, clear) for f in clear[v.cls].values())
        v.place_leaves()
    for cls, family in families.items():  # last, so that other threads see complete families only
        type.__setattr__(cls, _MARK, (family if family in usable else None,))


def _mentions(forms: dict[str, _Form] | None) -> Iterator[_Form]:
    for form in (forms or {}).values():
        yield from form.mentioned()


def _reachable(below: dict[type, set[type]]) -> dict[type, set[type]]:
    out = {}
    for cls in below:
        seen: set[type] = set()
        stack = list(below[cls])
        while stack:
            top = stack.pop()
            if top not in seen:
                seen.add(top)
                stack.extend(below[top])
        out[cls] = seen
    return out


def _groups(forms: dict[type, dict[str, _Form] | None]) -> list[list[type]]:
    """Classes that occur together in an annotation, merged to groups."""
    leader = {cls: cls for cls in forms}

    def find(c: type) -> type:
        while leader[c] is not c:
            c = leader[c]
        return c

    for f in forms.values():
        for form in _mentions(f):
            first = find(form.classes[0])
            for other in form.classes[1:]:
                leader[find(other)] = first
    out: dict[type, list[type]] = {}
    for cls in forms:
        out.setdefault(find(cls), []).append(cls)
    return list(out.values())


def _type(form: _Form, families: dict[type, Family], forms: dict[type, dict[str, _Form]]) -> Type:
    """The type of a field."""
    if form.type is not None:
        return form.type
    if form.parts is not None:
        return tuple_of(*[_type(p, families, forms) for p in form.parts])
    if not form.classes:
        return NoneT()
    family = families[form.classes[0]]
    if not family.recursive and len(family.variants) == 1 and not form.nullable:
        inner = forms[form.classes[0]]
        types_ = tuple(_type(f, families, forms) for f in inner.values())
        return Struct("record", types_, tuple(inner), form.classes[0])
    return Data(family, form.nullable)


def misfit(record: Any, value: Any, t: Type) -> None:
    """Report a value in a record (None: of an argument itself) that is not of the type in its annotation.

    Raises:
        Misfit: always.
    """
    kind = type(value).__name__ if value is not None else "None"
    if record is None:
        raise Misfit(f"a {kind} is passed where a value of {t} was")
    names = [f.name for f in fields(record) if getattr(record, f.name, None) is value]
    where = f"the field '{names[0]}' of {type(record).__name__}" if names else f"a field of {type(record).__name__}"
    hint = ""
    if isinstance(t, Array):
        have = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else kind
        raise Misfit(f"{where} is annotated as an array {t}, and holds {have}")
    if str(t) == "float" and isinstance(value, int | np.floating):
        hint = "; make it a float, or annotate the field with what it holds"
    raise Misfit(f"{where} is annotated {t}, and holds {kind} {value!r}"[:200] + hint)


def check_tree(root: Any, t: Data) -> None:
    """Check a tree against the annotations of its family; each object once, without recursion.

    Raises:
        Misfit: something does not fit; the message says what.
    """
    if root is None and t.nullable:
        return
    if type(root) not in t.family.numbers:
        misfit(None, root, t)
    queue, seen = [(root, t.family)], {id(root)}
    for obj, family in queue:
        variant = family.variant(type(obj))
        todo = [(getattr(obj, name), ft) for name, ft in zip(variant.fields, variant.types, strict=True)]
        for value, ft in todo:
            if isinstance(ft, Data):
                if value is None and ft.nullable or id(value) in seen:
                    continue
                if type(value) not in ft.family.numbers:
                    misfit(obj, value, ft)
                seen.add(id(value))
                queue.append((value, ft.family))
            elif isinstance(ft, Struct):
                kind = ft.cls if ft.kind == "record" else tuple
                if type(value) is not kind or kind is tuple and len(value) != len(ft.elems):
                    misfit(obj, value, ft)
                parts = [getattr(value, n) for n in ft.fields] if ft.kind == "record" else value
                todo.extend(zip(parts, ft.elems, strict=True))
            elif not _is_of(value, ft):
                misfit(obj, value, ft)


def _is_of(value: Any, t: Type) -> bool:
    if isinstance(t, Scalar):
        if not t.weak:
            return type(value) is numpy_dtype(t.dtype).type
        if type(value) is not {"float64": float, "int64": int, "bool": bool}[t.dtype]:
            return False
        if t.dtype == "int64" and not -(2**63) <= value < 2**63:
            raise OverflowError_(f"the integer {value} in a tree does not fit into 64 bits")
        return True
    if isinstance(t, Array):
        return type(value) is np.ndarray and value.dtype == numpy_dtype(t.dtype) and value.shape == t.shape
    return isinstance(t, NoneT) and value is None


def annotation_type(annotation: Any) -> Data | None:
    """The type of values whose annotation says that they are of a recursive family; None if it does not."""
    try:
        nullable, classes = _members(annotation)
    except Vague:
        return None
    found = {family_of(c) for c in classes}
    if len(found) != 1 or None in found:
        return None
    return Data(found.pop(), nullable)


@functools.lru_cache(maxsize=512)
def _members_of(annotation: Any) -> tuple[bool, tuple[type, ...]]:
    if annotation is None or annotation is types.NoneType:
        return True, ()
    if hasattr(annotation, "__value__"):
        return _members(annotation.__value__)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [_members(a) for a in typing.get_args(annotation)]
        return any(n for n, _ in parts), tuple(c for _, cs in parts for c in cs)
    if isinstance(annotation, type):
        return False, _Reader(annotation).variants(annotation)
    raise Vague(annotation)


def _members(annotation: Any) -> tuple[bool, tuple[type, ...]]:
    try:
        return _members_of(annotation)
    except TypeError:  # not hashable
        raise Vague(annotation) from None


__all__ = ["Family", "Misfit", "Variant", "annotation_type", "family_of", "is_record_class", "note_scope"]
