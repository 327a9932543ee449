"""Types as the checker computes with them: terms with unknown parts.

A term is a tensor, a tuple, a function, a reference, an instance of a data type, or a parameter. A shape is a tuple of
sizes, or a parameter of kind Shape; a size is an int, `ANY`, a polynomial over declared sizes (`Dim`), or unknown; a dtype
is a name or a parameter of kind BaseType. What inference has to find is an `Unknown` of one of these kinds, which union-find
links to what it was found to be. Levels say which `let` an unknown belongs to, as in D. Rémy, "Extension of ML type
inference with a sorted equation theory on types" (1992), so that generalisation looks at no environment.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...abstract.dims import Dim, evaluate, symbol
from ..span import Span
from ..tree import ANY_SIZE, AnySize

TYPE, SHAPE, SIZE, BASE = "Type", "Shape", "ShapeVar", "BaseType"
"""The kinds of types, as Relay's text names them."""

GENERIC = 1 << 60
"""The level of what a scheme abstracts over."""


ANY = ANY_SIZE
"""The size that agrees with any other: `?`."""


class Unknown:
    """A part of a type that inference has to find.

    Attributes:
        kind: of which kind it is.
        level: how deep in `let` the outermost binding stands whose type it is part of.
        link: what it was found to be, None as long as it is unknown.
        waiting: the relations that are tried again once it is found.
    """

    __slots__ = ("kind", "level", "link", "waiting")

    def __init__(self, kind: str, level: int):
        self.kind, self.level = kind, level
        self.link: Any = None
        self.waiting: dict[Any, None] | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} {id(self) % 10000}>" if self.link is None else repr(self.link)


_numbers = itertools.count(1)


class Rigid:
    """A declared type parameter: it stands for every type of its kind, and is equal to itself alone.

    Attributes:
        name: as declared.
        kind: of which kind it is.
        level: how deep in `let` the function stands that declares it.
        span: where it is declared.
        size: for a `ShapeVar` the size as a polynomial.
        implicit: whether it is a bare name among the sizes of a shape.
    """

    __slots__ = ("__weakref__", "implicit", "kind", "level", "name", "size", "span")

    def __init__(self, name: str, kind: str, level: int, span: Span | None = None, implicit: bool = False):
        self.name, self.kind, self.level, self.span, self.implicit = name, kind, level, span, implicit
        self.size: Dim | None = None
        if kind == SIZE:
            key = f"{name}{MARK}{next(_numbers)}"
            self.size = symbol(key)
            SIZES[key] = self

    def __repr__(self) -> str:
        return self.name


MARK = "\N{MIDDLE DOT}"
SIZES: weakref.WeakValueDictionary[str, Rigid] = weakref.WeakValueDictionary()
"""Name of a symbol -> the parameter of kind ShapeVar that it is."""


@dataclass(frozen=True, eq=False, slots=True)
class TensorTerm:
    """`Tensor[shape, dtype]`; a scalar is a tensor of shape ()."""

    shape: Any
    dtype: Any
    ground: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class TupleTerm:
    """A tuple of types."""

    elems: tuple[Any, ...]
    ground: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ArrowTerm:
    """A function: types of parameters and of the result."""

    params: tuple[Any, ...]
    result: Any
    ground: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class CellTerm:
    """A reference to a cell."""

    elem: Any
    ground: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class DataTerm:
    """An instance of a data type: `List[int32]`."""

    name: str
    args: tuple[Any, ...]
    ground: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PolyTerm:
    """A function type with type parameters of its own: `fn<A>(A) -> A`.

    Attributes:
        params: the parameters.
        body: the function type.
        relations: what must hold of them: names of relations, and the types that they are about.
    """

    params: tuple[Rigid, ...]
    body: ArrowTerm
    relations: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    ground: bool = False


class Poison:
    """The type of an expression with an error, which agrees with everything, so that no error follows from another."""

    __slots__ = ()
    ground = True

    def __repr__(self) -> str:
        return "_"


POISON = Poison()

Term: TypeAlias = Any
"""A type: one of the classes above."""

COMPOUND = (TensorTerm, TupleTerm, ArrowTerm, CellTerm, DataTerm, PolyTerm)


def is_ground(x: Any) -> bool:
    """Whether a part of a type has neither unknowns nor parameters in it, so that nothing need be looked for there."""
    cls = x.__class__
    if cls is int or cls is str or cls is AnySize:
        return True
    if cls is tuple:
        for part in x:
            inner = part.__class__
            if inner is not int and inner is not AnySize and not getattr(part, "ground", False):
                return False
        return True
    return getattr(x, "ground", False)


def tensor(shape: Any, dtype: Any) -> TensorTerm:
    """The type of a tensor."""
    return TensorTerm(shape, dtype, isinstance(dtype, str) and is_ground(shape))


def scalar(dtype: Any) -> TensorTerm:
    """The type of a tensor of shape ()."""
    if isinstance(dtype, str):
        found = _SCALARS.get(dtype)
        if found is None:
            found = _SCALARS[dtype] = TensorTerm((), dtype, True)
        return found
    return TensorTerm((), dtype)


_SCALARS: dict[str, TensorTerm] = {}


def tuple_term(elems: Iterable[Any]) -> TupleTerm:
    """The type of a tuple."""
    elems = tuple(elems)
    return TupleTerm(elems, all(map(is_ground, elems)))


def arrow(params: Iterable[Any], result: Any) -> ArrowTerm:
    """The type of a function."""
    params = tuple(params)
    return ArrowTerm(params, result, is_ground(result) and all(map(is_ground, params)))


def cell(elem: Any) -> CellTerm:
    """The type of a reference."""
    return CellTerm(elem, is_ground(elem))


def instance(name: str, args: Iterable[Any] = ()) -> DataTerm:
    """An instance of a data type."""
    args = tuple(args)
    return DataTerm(name, args, all(map(is_ground, args)))


UNIT = tuple_term(())
BOOL = scalar("bool")


def prune(x: Any) -> Any:
    """What a part of a type is, as far as it is known; links are shortened on the way."""
    if x.__class__ is not Unknown or x.link is None:
        return x
    root = x.link
    while root.__class__ is Unknown and root.link is not None:
        root = root.link
    while x.__class__ is Unknown and x.link is not None and x.link is not root:
        x.link, x = root, x.link
    return root


def children(x: Any) -> tuple[Any, ...]:
    """The parts of a compound type or of a shape."""
    match x:
        case tuple():
            return x
        case TensorTerm():
            return (x.shape, x.dtype)
        case TupleTerm():
            return x.elems
        case ArrowTerm():
            return (*x.params, x.result)
        case CellTerm():
            return (x.elem,)
        case DataTerm():
            return x.args
        case PolyTerm():
            return (x.body, *(args for _, args in x.relations))
    return ()


def rigids_of(size: Any) -> list[Rigid]:
    """The declared sizes that a polynomial depends on."""
    if not isinstance(size, Dim):
        return []
    return [found for name in sorted(size.symbols()) if (found := SIZES.get(name)) is not None]


def unknowns(*parts: Any) -> Iterator[Unknown]:
    """The unknowns in parts of types, each once, in order of occurrence."""
    seen: set[int] = set()
    stack = list(reversed(parts))
    while stack:
        x = prune(stack.pop())
        if x.__class__ is Unknown:
            if id(x) not in seen:
                seen.add(id(x))
                yield x
        elif not is_ground(x) and id(x) not in seen:
            seen.add(id(x))
            stack.extend(reversed(children(x)))


def parameters(*parts: Any) -> Iterator[Rigid]:
    """The declared parameters in parts of types, each once, those of functions types with parameters of their own left out."""
    seen: set[int] = set()
    stack = list(reversed(parts))
    while stack:
        x = prune(stack.pop())
        found = [x] if isinstance(x, Rigid) else rigids_of(x)
        for parameter in found:
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter
        if not found and not is_ground(x) and id(x) not in seen:
            seen.add(id(x))
            if isinstance(x, PolyTerm):
                seen.update(map(id, x.params))
            stack.extend(reversed(children(x)))


def rebuild(x: Any, leaf: Callable[[Any], Any]) -> Any:
    """A type with unknowns, parameters and polynomials replaced by what `leaf` says of them; what does not change is shared.

    Args:
        x: a type, a shape, a size or a dtype.
        leaf: an `Unknown`, `Rigid` or `Dim` -> what stands in its place.
    """
    memo: dict[int, Any] = {}

    def of(x: Any) -> Any:
        x = prune(x)
        if isinstance(x, Unknown | Rigid | Dim):
            return leaf(x)
        if is_ground(x):
            return x
        key = id(x)
        if key in memo:
            return memo[key][1]
        match x:
            case tuple():
                out: Any = tuple(map(of, x))
                if all(map(_same, out, x)):
                    out = x
            case TensorTerm():
                shape, dtype = of(x.shape), of(x.dtype)
                out = x if shape is x.shape and dtype is x.dtype else tensor(shape, dtype)
            case TupleTerm():
                elems = of(x.elems)
                out = x if elems is x.elems else tuple_term(elems)
            case ArrowTerm():
                params, result = of(x.params), of(x.result)
                out = x if params is x.params and result is x.result else arrow(params, result)
            case CellTerm():
                elem = of(x.elem)
                out = x if elem is x.elem else cell(elem)
            case DataTerm():
                args = of(x.args)
                out = x if args is x.args else instance(x.name, args)
            case PolyTerm():
                body = of(x.body)
                relations = tuple((name, of(args)) for name, args in x.relations)
                out = PolyTerm(x.params, body, relations)
            case _:
                out = x
        memo[key] = (x, out)  # keeps x alive, so that its id stays its own
        return out

    return of(x)


def _same(a: Any, b: Any) -> bool:
    return a is b


def resolved(x: Any) -> Any:
    """A type without links to what was found."""
    return rebuild(x, lambda leaf: leaf)


def loosest(a: Any, b: Any) -> Any:
    """What two types that agree have in common: `?` for a size that is `?` in one of them."""
    a, b = prune(a), prune(b)
    if a is b:
        return a
    if a is ANY or b is ANY:
        return ANY
    if isinstance(a, TensorTerm) and isinstance(b, TensorTerm):
        return tensor(loosest(a.shape, b.shape), a.dtype)
    if isinstance(a, TupleTerm) and isinstance(b, TupleTerm):
        return tuple_term(map(loosest, a.elems, b.elems))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(map(loosest, a, b))
    return a


def substituted(size: Dim, images: Callable[[Rigid], Any]) -> Any:
    """A polynomial with sizes in place of declared ones.

    Returns:
        The size, `ANY` if one of them is, None if one is not known yet.
    """
    values: dict[str, Any] = {}
    for parameter in rigids_of(size):
        value = prune(images(parameter))
        if value is ANY or isinstance(value, Unknown):
            values[MARK] = ANY if value is ANY and values.get(MARK, ANY) is ANY else None
            continue
        values[str(parameter.size)] = value
    if MARK in values:
        return values[MARK]
    return evaluate(size, lambda name: values[name])
