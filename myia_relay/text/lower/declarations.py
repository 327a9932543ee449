"""The data types of a module as declarations of the core (`abstract.declared`).

A data type is determined by what its definition says, not by the module that says it: two modules with the same `type` have
the same values, so what one returns is an argument of the other. A pass, or a round trip through text, changes none.

Input: the definitions of a module and the name of a type. Output: its `Declaration`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ...abstract.declared import (
    Arrow,
    Constructed,
    Declaration,
    InstanceOf,
    TypeParameter,
    constructor_class,
    declaration_of,
)
from ...abstract.references import RefTo
from ...abstract.types import Array, Scalar, Type, tuple_of
from ...utils.compiling import once
from ...utils.errors import InternalError, TypeError_
from ..tree import (
    AnySize,
    DataType,
    ExternType,
    FunctionType,
    ModuleTree,
    RefType,
    ShapeExpr,
    TensorType_,
    TupleType,
    TypeExpr,
    TypeParam,
    TypeVar,
)

DefinitionKey: TypeAlias = tuple
"""What a data type and all that its fields mention are, as nested tuples: (its name, ((name, names of parameters,
((constructor, (field, ..)), ..)), ..)). Equal keys mean the same type, in another process too."""


def definition_key(module: ModuleTree, name: str) -> DefinitionKey:
    """The key of a data type of a module."""
    found: dict[str, tuple] = {}
    todo = [name]
    while todo:
        top = todo.pop()
        if top in found:
            continue
        definition = module.types[top]
        if isinstance(definition, ExternType):
            found[top] = (top, tuple(f"a{i}" for i, _ in enumerate(definition.type_params)), None)
            continue
        names = {p: f"a{i}" for i, p in enumerate(definition.type_params)}
        constructors = tuple((c.name, tuple(_encoded(f, names) for f in c.fields)) for c in definition.constructors)
        found[top] = (top, tuple(names.values()), constructors)
        for c in definition.constructors:
            for f in c.fields:
                todo.extend(_mentioned(f))
    return name, tuple(found[n] for n in sorted(found))


def _mentioned(t: TypeExpr) -> list[str]:
    """The data types in a type."""
    found: list[str] = []
    stack: list[Any] = [t]
    while stack:
        match stack.pop():
            case DataType(name=name, args=args):
                found.append(name)
                stack.extend(args)
            case TupleType(fields=fields):
                stack.extend(fields)
            case FunctionType(params=params, result=result):
                stack.extend((*params, result))
            case RefType(content=content):
                stack.append(content)
    return found


def _encoded(t: Any, names: dict[TypeParam, str]) -> tuple:
    """A type as written in a definition, or an argument of one, as nested tuples.

    Raises:
        TypeError_: it has no place in a field.
    """
    match t:
        case TypeVar():
            return "param", names[t.param]
        case TensorType_():
            shape = _encoded(t.shape, names) if isinstance(t.shape, TypeVar) else _sizes(t.shape, names)
            return "tensor", shape, t.dtype if isinstance(t.dtype, str) else _encoded(t.dtype, names)
        case TupleType():
            return "tuple", tuple(_encoded(f, names) for f in t.fields)
        case FunctionType():
            return "fn", tuple(_encoded(p, names) for p in t.params), _encoded(t.result, names)
        case RefType():
            return "ref", _encoded(t.content, names)
        case DataType():
            return "data", t.name, tuple(_encoded(a, names) for a in t.args)
        case ShapeExpr():
            if isinstance(t.sizes, tuple):
                return "shape", _sizes(t.sizes, names)
            return "size", None if isinstance(t.sizes, AnySize) else t.sizes
    raise TypeError_(f"a {type(t).__name__} is no type of a field")


def _sizes(sizes: tuple, names: dict[TypeParam, str]) -> tuple:
    return tuple(
        n if isinstance(n, int) else None if isinstance(n, AnySize) else ("param", names[n.param]) for n in sizes
    )


@once
def declaration(key: DefinitionKey) -> Declaration:
    """The declaration of a data type: the same for equal keys.

    Raises:
        TypeError_: a field is of a type that no record can hold.
    """
    name, definitions = key
    keys = {top: _reached(top, definitions) for top, _, _ in definitions}
    made = {
        top: _KNOWN.get(keys[top]) or Declaration(top, parameters, (__name__, declaration.__name__, keys[top]))
        for top, parameters, _ in definitions
    }
    new = [top for top in made if keys[top] not in _KNOWN]
    for top, _, constructors in definitions:
        if top not in new or constructors is None:
            continue
        for constructor, fields in constructors:
            types = [field_type(f, made) for f in fields]
            cls = made[top].constructor(constructor, *types)
            cls.__relay_constructor__ = (keys[top], constructor)
            cls.__reduce__ = _reduce  # pyright: ignore[reportAttributeAccessIssue]
    _KNOWN.update({keys[top]: made[top] for top in new})
    return made[name]


_KNOWN: dict[DefinitionKey, Declaration] = {}


def _reached(name: str, definitions: tuple) -> DefinitionKey:
    """The key of one of the types in another's key."""
    by_name = {d[0]: d for d in definitions}
    found: dict[str, tuple] = {}
    todo: list[Any] = [("data", name, ())]
    while todo:
        top = todo.pop()
        if top[:1] == ("data",) and top[1] not in found:
            found[top[1]] = by_name[top[1]]
            todo.extend(f for _, fields in by_name[top[1]][2] or () for f in fields)
        todo.extend(part for part in top if isinstance(part, tuple))
    return name, tuple(found[n] for n in sorted(found))


def declared(module: ModuleTree, name: str) -> Declaration:
    """The declaration of a data type of a module."""
    return declaration(definition_key(module, name))


def field_type(form: tuple, declarations: dict[str, Declaration]) -> Type:
    """The type of a field from its form in a key.

    Raises:
        TypeError_: a type that no record can hold.
        InternalError: there is no such form.
    """
    match form:
        case "param", name:
            return TypeParameter(name)
        case "tensor", shape, dtype:
            if shape[:1] == ("param",) or not isinstance(dtype, str) or any(isinstance(n, tuple) for n in shape):
                raise TypeError_("parameters for shapes, sizes and dtypes in fields are not supported yet")
            return tensor_type(shape, dtype)
        case "tuple", parts:
            return tuple_of(*(field_type(p, declarations) for p in parts))
        case "fn", params, result:
            return Arrow(tuple(field_type(p, declarations) for p in params), field_type(result, declarations))
        case "data", name, args:
            return InstanceOf(declarations[name], tuple(field_type(a, declarations) for a in args))
        case "ref", content:
            return RefTo(field_type(content, declarations))
    raise InternalError("text", f"{form[0]} is no form of a type")


def tensor_type(sizes: tuple[int | None, ...], dtype: str) -> Type:
    """The core's type of a tensor; one of rank 0 is a number.

    Raises:
        TypeError_: a size is open.
    """
    if not sizes:
        return Scalar(dtype)
    if None in sizes:
        raise TypeError_("a tensor of unknown size in a field of a data type is not supported yet")
    return Array(dtype, tuple(n for n in sizes if n is not None))


# Pickling. A value refers to its type by what that says, and has no depth.


def _reduce(self: Constructed) -> Any:
    return _unpickled, _pickled(self)


def _pickled(value: Constructed) -> tuple[list, list]:
    """A value as a list of constructors and a list of records: fields are numbers of records, or leaves, which stand in lists."""
    constructors: dict[type, int] = {}
    numbers: dict[int, int] = {}
    records: list[tuple[int, list]] = []
    stack: list[tuple[bool, Any]] = [(False, value)]
    while stack:  # what a record refers to comes before it
        done, top = stack.pop()
        if id(top) in numbers:
            continue
        parts = top.fields if isinstance(top, Constructed) else top
        if not done:
            stack.append((True, top))
            stack.extend((False, part) for part in parts if isinstance(part, Constructed | tuple))
            continue
        form = [numbers[id(p)] if isinstance(p, Constructed | tuple) else [p] for p in parts]
        kind = constructors.setdefault(type(top), len(constructors)) if isinstance(top, Constructed) else -1
        numbers[id(top)] = len(records)
        records.append((kind, form))
    return [c.__relay_constructor__ for c in constructors], records


def _unpickled(constructors: list, records: list) -> Constructed:
    classes = [constructor_class(declaration(key), name) for key, name in constructors]
    made: list[Any] = []
    for kind, form in records:
        parts = [made[p] if isinstance(p, int) else p[0] for p in form]
        made.append(classes[kind](*parts) if kind >= 0 else tuple(parts))
    return made[-1]


__all__ = ["constructor_class", "declaration", "declaration_of", "declared", "definition_key"]
