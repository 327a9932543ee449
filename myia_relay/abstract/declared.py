"""Algebraic data types that a program declares, with type parameters: one family for each instance.

The classes of `abstract.families` get the types of their fields from annotations. Here they are declared:

    lists = Declaration("List", ("a",))
    nil = lists.constructor("Nil")
    cons = lists.constructor("Cons", TypeParameter("a"), InstanceOf(lists, (TypeParameter("a"),)))

    lists.instance(INT)                     the family List[int]
    nil(), cons(1, nil())                   values in Python, and in compiled code, where `cons` makes a List[int]
    lists.at(nil, INT)                      the constructor of a List[int], for compiled code

All instances share the classes of the constructors. Compiled code finds the instance that a constructor makes from the
types of what it is given (`solve`). Where these leave a parameter open, as `nil()` does, the value keeps its structure in its
type until it meets a value of an instance. Functions are fields of a type `Arrow`; as the functions of a program are known to
its compilation only, an instance with such fields is made anew by each compilation (`Instances`).

Input: declarations, types. Output: families.
"""

from __future__ import annotations

import copyreg
import importlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ..utils.compiling import compiling
from ..utils.errors import TypeError_
from .family import Family
from .references import RefTo, reference_of, reference_type
from .types import Data, List, Struct, Type, holds, leaves

MOST_PARTS = 1000  # of the types for the parameters of one instance
MOST_INSTANCES = 100  # of one declaration that one instance refers to; more come from a type that grows


@dataclass(frozen=True)
class TypeParameter(Type):
    """A type parameter in the declaration of a field."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class InstanceOf(Type):
    """An instance of a declared type, as the type of a field."""

    declaration: Declaration
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return self.declaration.text(self.args)


@dataclass(frozen=True)
class Arrow(Type):
    """The type of functions, as the type of a field."""

    params: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"fn ({', '.join(map(str, self.params))}) -> {self.result}"


class ConstructorClass(type):
    """The class of the constructors of declared types: they are pickled by how their declaration is made."""


class Constructed(metaclass=ConstructorClass):
    """Base class of the constructors of declared types."""

    __relay_declaration__: Declaration
    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the classes that a declaration makes

    @property
    def constructor(self) -> str:
        """The name of the constructor."""
        return type(self).__name__

    @property
    def fields(self) -> tuple:
        """The values of the fields."""
        return tuple(getattr(self, name) for name in fields_of(type(self)))

    def __eq__(self, other: object) -> bool:
        """Whether two values have the same constructors and equal fields; of any depth, arrays as wholes."""
        pairs: list[tuple[Any, Any]] = [(self, other)]
        for a, b in pairs:
            if a is b:
                continue
            if isinstance(a, Constructed):
                if type(a) is not type(b):
                    return False
                pairs.extend(zip(a.fields, b.fields, strict=True))
            elif isinstance(a, tuple) and isinstance(b, tuple):
                if len(a) != len(b):
                    return False
                pairs.extend(zip(a, b, strict=True))
            elif isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
                if not np.array_equal(a, b):
                    return False
            elif not a == b:
                return False
        return True

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # fields may be arrays

    def __repr__(self) -> str:
        parts: list[str] = []
        stack: list[Any] = [self]
        while stack:
            top = stack.pop()
            if isinstance(top, _Punctuation):
                parts.append(top)
            elif isinstance(top, Constructed):
                parts.append(top.constructor)
                inner: list[Any] = [_Punctuation("(")]
                for k, value in enumerate(top.fields):
                    inner += [_Punctuation(", "), value] if k else [value]
                stack.extend(reversed([*inner, _Punctuation(")")]))
            else:
                parts.append(repr(top))
        return "".join(parts)


class _Punctuation(str):
    """Punctuation in the text of a value."""


def fields_of(cls: type) -> tuple[str, ...]:
    """The names of the fields of a constructor."""
    return tuple(cls.__dict__["__dataclass_fields__"])


class Declaration:
    """An algebraic data type with type parameters.

    Attributes:
        name: its name.
        parameters: the names of its parameters.
        constructors: the classes of its constructors -> the types of their fields.
        made_by: the module and the name of a function, and an argument with which it gives this declaration in any process; None
            if there is no such function.
    """

    def __init__(self, name: str, parameters: Iterable[str] = (), made_by: tuple[str, str, tuple] | None = None):
        self.name, self.parameters, self.made_by = name, tuple(parameters), made_by
        self.constructors: dict[type, tuple[Type, ...]] = {}

    def constructor(self, name: str, *types: Type, fields: Iterable[str] | None = None, module: str = "") -> type:
        """Add a constructor.

        Args:
            name: its name.
            *types: the types of its fields; `TypeParameter`, `InstanceOf`, `Arrow` and `RefTo` may occur in them.
            fields: the names of the fields; f0, f1, ... by default.
            module: what its class gives as its module.

        Returns:
            The class of its values, a frozen dataclass.
        """
        names = tuple(f"f{k}" for k in range(len(types))) if fields is None else tuple(fields)
        assert len(names) == len(types)
        cls = make_dataclass(name, names, bases=(Constructed,), frozen=True, eq=False, repr=False)
        cls.__module__ = module or __name__
        if self.made_by is not None:
            cls.__module__, cls.__qualname__ = __name__, f"{name}_{next(_NUMBERS)}"
            _NAMED[cls.__qualname__] = cls
        cls.__relay_declaration__ = self
        self.constructors[cls] = types
        return cls

    def text(self, args: Iterable[Type]) -> str:
        """The name of an instance."""
        inner = ", ".join(map(str, args))
        return f"{self.name}[{inner}]" if inner else self.name

    def instance(self, *args: Type) -> Family:
        """The family for these types in place of the parameters.

        Raises:
            TypeError_: their number is wrong, or the instance would refer to ever larger ones.
        """
        return EVERYWHERE.of(self, args)

    def at(self, cls: type, *args: Type) -> ConstructorAt:
        """A constructor of a certain instance, to be called in compiled code."""
        return ConstructorAt(self, cls, args)

    def has_arrows(self) -> bool:
        """Whether functions are among what its values hold."""
        todo: list[Declaration] = [self]
        seen: set[Declaration] = {self}
        for declaration in todo:
            for t in (t for types in declaration.constructors.values() for t in types):
                for part in parts_of(t):
                    if isinstance(part, Arrow):
                        return True
                    if isinstance(part, InstanceOf) and part.declaration not in seen:
                        seen.add(part.declaration)
                        todo.append(part.declaration)
        return False


class ConstructorAt:
    """A constructor of one instance of a declared type.

    Attributes:
        declaration: the declared type.
        cls: the class of the constructor.
        args: the types for the parameters.
    """

    def __init__(self, declaration: Declaration, cls: type, args: tuple[Type, ...]):
        self.declaration, self.cls, self.args = declaration, cls, args

    def __call__(self, *values: Any) -> Any:
        return self.cls(*values)


def constructor_class(declared: Declaration, name: str) -> type[Constructed]:
    """The class of the values of a constructor."""
    return next(cls for cls in declared.constructors if cls.__name__ == name)


def _reduced(cls: type) -> Any:
    declaration = declaration_of(cls)
    if declaration is None or declaration.made_by is None:
        return cls.__qualname__  # found under its name
    module, name, argument = declaration.made_by
    return _remade, (getattr(importlib.import_module(module), name), argument, cls.__name__)


def _remade(make: Callable[[Any], Declaration], argument: Any, name: str) -> type[Constructed]:
    return constructor_class(make(argument), name)


copyreg.pickle(ConstructorClass, _reduced)  # pyright: ignore[reportArgumentType]

_NUMBERS = itertools.count(1)
_NAMED: WeakValueDictionary[str, type] = WeakValueDictionary()  # by qualified name


def __getattr__(name: str) -> type:
    """A constructor by its qualified name.

    cloudpickle sends a class by value, its declaration with it, unless the class is found under its name in its module; then
    it asks `copyreg`. A class that came by value would be another than the module's, and overwrite it in the same process.

    Raises:
        AttributeError: there is none.
    """
    found = _NAMED.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def declaration_of(cls: type) -> Declaration | None:
    """The declaration that a class is a constructor of."""
    return cls.__dict__.get("__relay_declaration__")


def parts_of(t: Type) -> list[Type]:
    """A type and all types in it."""
    found = [t]
    for part in found:
        if isinstance(part, Struct):
            found.extend(part.elems)
        elif isinstance(part, InstanceOf):
            found.extend(part.args)
        elif isinstance(part, Arrow):
            found += [*part.params, part.result]
        elif isinstance(part, List):
            found.append(part.elem)
        elif isinstance(part, RefTo):
            found.append(part.content)
    return found


def substituted(t: Type, env: Mapping[Type, Type]) -> Type:
    """A type in which other types stand in place of parameters."""
    if t in env:
        return env[t]
    if isinstance(t, Struct):
        return Struct(t.kind, tuple(substituted(e, env) for e in t.elems), t.fields, t.cls)
    if isinstance(t, InstanceOf):
        return InstanceOf(t.declaration, tuple(substituted(a, env) for a in t.args))
    if isinstance(t, Arrow):
        return Arrow(tuple(substituted(p, env) for p in t.params), substituted(t.result, env))
    if isinstance(t, RefTo):
        return RefTo(substituted(t.content, env))
    return List(substituted(t.elem, env)) if isinstance(t, List) else t


def as_declared(t: Type) -> Type:
    """A type of compiled code as declarations have it: families as instances.

    Raises:
        TypeError_: a family is no instance; a reference refers to functions, say.
    """
    if isinstance(t, Data):
        if t.family.instance_of is None:
            raise TypeError_(f"a reference to {t} is not supported yet")
        declaration, args = t.family.instance_of
        return InstanceOf(declaration, tuple(map(as_declared, args)))
    if (cls := reference_of(t)) is not None:
        return RefTo(cls.content)
    if isinstance(t, Struct):
        return Struct(t.kind, tuple(map(as_declared, t.elems)), t.fields, t.cls)
    if isinstance(t, InstanceOf):
        return InstanceOf(t.declaration, tuple(map(as_declared, t.args)))
    if isinstance(t, RefTo):
        return RefTo(as_declared(t.content))
    return List(as_declared(t.elem)) if isinstance(t, List) else t


class Instances:
    """The instances of declared types that have been asked for.

    Args:
        arrow: the type of the values of a function type; None: there are no functions.
        base: where instances are made in which no functions are.
    """

    def __init__(self, arrow: Callable[[Arrow], Type] | None = None, base: Instances | None = None):
        self.arrow, self.base = arrow, base
        self.made: dict[tuple, Family] = {}
        self._unfinished: dict[tuple, Family] = {}

    def of(self, declaration: Declaration, args: Iterable[Type]) -> Family:
        """The family of an instance.

        Raises:
            TypeError_: the number of types is wrong, or the instance would refer to ever larger ones.
        """
        args = tuple(self.type(a) for a in args)
        if len(args) != len(declaration.parameters):
            raise TypeError_(
                f"{declaration.name} has {len(declaration.parameters)} type parameters, and is given {len(args)}"
            )
        known = self.made.get((declaration, args))
        if known is not None:
            return known
        own = declaration.has_arrows() or any(is_local(a) for a in args)
        if self.base is not None and not own:
            return self.base.of(declaration, args)
        with compiling():
            key = declaration, args
            return self.made.get(key) or self._unfinished.get(key) or self._expand(*key)

    def type(self, t: Type) -> Type:
        """A type in which instances are families, and function types the types of functions.

        Raises:
            TypeError_: a function exists in compiled code only.
        """
        if isinstance(t, InstanceOf):
            return Data(self.of(t.declaration, t.args))
        if isinstance(t, Arrow):
            if self.arrow is None:
                raise TypeError_(f"a value of type {t} exists in compiled code only")
            return self.arrow(t)
        if isinstance(t, RefTo):
            return reference_type(as_declared(t.content))
        if isinstance(t, Struct):
            return Struct(t.kind, tuple(self.type(e) for e in t.elems), t.fields, t.cls)
        return List(self.type(t.elem)) if isinstance(t, List) else t

    def _expand(self, declaration: Declaration, args: tuple[Type, ...]) -> Family:
        """Make an instance, and those that it refers to.

        Raises:
            TypeError_: it refers to ever larger ones.
        """
        outermost = not self._unfinished  # the types of functions ask for instances, too
        todo: list[tuple[Family, Declaration, tuple[Type, ...]]] = []

        def start(declaration: Declaration, args: tuple[Type, ...]) -> Family:
            count = sum(d is declaration for d, _ in self._unfinished)
            if count > MOST_INSTANCES or sum(len(parts_of(a)) for a in args) > MOST_PARTS:
                raise TypeError_(
                    f"an instance of {declaration.name} refers to ever larger instances of it: {declaration.text(args)[:200]}"
                )
            family = Family(list(declaration.constructors), True, declaration.text(args))
            family.instance_of = (declaration, args)
            self._unfinished[declaration, args] = family
            todo.append((family, declaration, args))
            return family

        def found(t: Type) -> Type:
            if isinstance(t, InstanceOf):
                inner = tuple(found(a) for a in t.args)
                own = t.declaration.has_arrows() or any(is_local(a) for a in inner)
                if self.base is not None and not own:
                    return Data(self.base.of(t.declaration, inner))
                key = t.declaration, inner
                return Data(self.made.get(key) or self._unfinished.get(key) or start(*key))
            if isinstance(t, Struct):
                return Struct(t.kind, tuple(map(found, t.elems)), t.fields, t.cls)
            return List(found(t.elem)) if isinstance(t, List) else self.type(t)

        try:
            first = start(declaration, args)
            for family, d, types in todo:
                env: dict[Type, Type] = dict(zip(map(TypeParameter, d.parameters), types, strict=True))
                for variant in family.variants:
                    own = d.constructors[variant.cls]
                    variant.fields = fields_of(variant.cls)
                    variant.types = tuple(found(substituted(t, env)) for t in own)
                    variant.place_leaves()
            if outermost:  # now, so that other threads see complete families only
                self.made.update(self._unfinished)
        finally:
            if outermost:
                self._unfinished.clear()
        return first


EVERYWHERE = Instances()


def is_local(t: Type) -> bool:
    """Whether a type belongs to one compilation: functions are among its values."""
    return holds(t, Data) and any(
        f.local for leaf in _all_leaves(t) if isinstance(leaf, Data) for f in leaf.family.reachable()
    )


def _all_leaves(t: Type) -> list[Type]:
    found = leaves(t)
    for leaf in found:
        if isinstance(leaf, List):
            found.extend(leaves(leaf.elem))
    return found


# Which instance a value is of.


class OpenType(Type):
    """A parameter that is still open; compared by identity.

    Attributes:
        found: what it stands for, as soon as that is known.
    """

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: Type | None = None


def solve(todo: list[tuple[Type, Any]], view: Callable[[Any], Any]) -> None:
    """Find open parameters from values.

    Args:
        todo: types with open parameters in them, and values of these types; extended.
        view: what a value is: a type; a constructor of a declared type (its class and the values of its fields); a structure (a
            `Struct` without parts, and the parts); or None where nothing is known of it.
    """
    for t, value in todo:
        while isinstance(t, OpenType) and t.found is not None:
            t = t.found
        if not is_open(t):
            continue
        seen = view(value)
        if isinstance(seen, Data) and seen.family.instance_of is not None:
            declaration, args = seen.family.instance_of
            seen = InstanceOf(declaration, args)
        if isinstance(seen, Type):
            _match(t, seen)
        elif seen is not None:
            form, values = seen
            if isinstance(form, Struct):
                if isinstance(t, RefTo) and (cls := reference_of(form)) is not None:
                    _match(t.content, cls.content)
                    continue
                if isinstance(t, OpenType):
                    t.found = t = Struct(form.kind, tuple(OpenType() for _ in values), form.fields, form.cls)
                if isinstance(t, Struct) and len(t.elems) == len(values):
                    todo.extend(zip(t.elems, values, strict=True))
                continue
            declaration = declaration_of(form)
            if declaration is None:
                continue
            if isinstance(t, OpenType):
                t.found = t = InstanceOf(declaration, tuple(OpenType() for _ in declaration.parameters))
            if isinstance(t, InstanceOf) and t.declaration is declaration:
                env: dict[Type, Type] = dict(zip(map(TypeParameter, declaration.parameters), t.args, strict=True))
                todo.extend(
                    (substituted(f, env), v) for f, v in zip(declaration.constructors[form], values, strict=True)
                )


def _match(t: Type, seen: Type) -> None:
    """Find open parameters from a type."""
    pairs = [(t, seen)]
    for t, seen in pairs:
        if isinstance(t, OpenType):
            if t.found is None:
                t.found = seen
            else:
                pairs.append((t.found, seen))
        elif isinstance(t, Struct) and isinstance(seen, Struct) and len(t.elems) == len(seen.elems):
            pairs.extend(zip(t.elems, seen.elems, strict=True))
        elif isinstance(t, List) and isinstance(seen, List):
            pairs.append((t.elem, seen.elem))
        elif isinstance(t, RefTo) and isinstance(seen, RefTo):
            pairs.append((t.content, seen.content))
        elif isinstance(t, RefTo) and (cls := reference_of(seen)) is not None:
            pairs.append((t.content, cls.content))
        elif isinstance(t, InstanceOf):
            if isinstance(seen, Data) and seen.family.instance_of is not None:
                seen = InstanceOf(*seen.family.instance_of)
            if isinstance(seen, InstanceOf) and seen.declaration is t.declaration:
                pairs.extend(zip(t.args, seen.args, strict=True))


def is_open(t: Type) -> bool:
    """Whether a parameter in a type is still open."""
    return any(isinstance(p, OpenType) and (p.found is None or is_open(p.found)) for p in parts_of(t))


def closed(t: Type) -> Type:
    """A type with what its parameters were found to stand for."""
    found: dict[Type, Type] = {
        p: closed(p.found) for p in parts_of(t) if isinstance(p, OpenType) and p.found is not None
    }
    return substituted(t, found) if found else t


def instance_args(cls: type, values: Iterable[Any], view: Callable[[Any], Any]) -> tuple[Type, ...] | None:
    """The types for the parameters of a constructor with these fields; None where one stays open."""
    declaration: Declaration = cls.__dict__["__relay_declaration__"]
    top = InstanceOf(declaration, tuple(OpenType() for _ in declaration.parameters))
    env: dict[Type, Type] = dict(zip(map(TypeParameter, declaration.parameters), top.args, strict=True))
    fields = [substituted(t, env) for t in declaration.constructors[cls]]
    solve(list(zip(fields, values, strict=True)), view)
    return None if is_open(top) else tuple(closed(a) for a in top.args)


__all__ = [
    "EVERYWHERE",
    "InstanceOf",
    "Arrow",
    "Constructed",
    "Declaration",
    "ConstructorAt",
    "Instances",
    "TypeParameter",
    "declaration_of",
    "instance_args",
    "is_local",
]
