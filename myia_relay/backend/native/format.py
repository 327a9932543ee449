"""What Python has to know of a native program, as JSON: types, signatures, sites.

Input: a `ProgramSignature` (and other things made of types). Output: lists and strings for JSON, with arrays separate;
and the reverse. What has no form in JSON raises `Unportable`. This module contains nothing of TVM.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import json
import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...abstract.declared import constructor_class, declaration_of
from ...abstract.dims import Dim
from ...abstract.families import family_of
from ...abstract.family import Family
from ...abstract.types import Array, Data, List, NoneT, Ref, Scalar, Str, Struct, Type, Undefined, numpy_dtype
from ...utils.attributes import has_own
from ...utils.pickling import main_or
from ...utils.source import Loc, Origin
from .entry import ProgramSignature
from .sites import Elements, Entries, Number, Parts, Site, StaticOperand


class Unportable(Exception):
    """Something that has no form outside of this process."""


SINGLE: dict[str, Type] = {"none": NoneT(), "str": Str(), "undefined": Undefined()}


# --- dimensions, classes, types ---------------------------------------------------------------------------------------


def encode_dim(d: Any) -> Any:
    """A dimension."""
    if not isinstance(d, Dim):
        return int(d)
    atoms = {name: [op, [encode_dim(o) for o in operands]] for name, (op, operands) in d.atoms.items()}
    return [[[list(monomial), c] for monomial, c in sorted(d.terms.items())], atoms]


def decode_dim(data: Any) -> Any:
    """The dimension that `encode_dim` has encoded."""
    if isinstance(data, int):
        return data
    terms, atoms = data
    return Dim(
        {tuple(monomial): c for monomial, c in terms},
        {name: (op, tuple(decode_dim(o) for o in operands)) for name, (op, operands) in atoms.items()},
    )


def encode_class(cls: Any) -> Any:
    """A class, by the name it is found under; a constructor of a declared type by how its declaration is made.

    Raises:
        Unportable: it is not found by its name.
    """
    if cls is None:
        return None
    if (declaration := declaration_of(cls)) is not None and declaration.made_by is not None:
        return [*declaration.made_by, cls.__name__]
    module, name = getattr(cls, "__module__", None), getattr(cls, "__qualname__", "<locals>")
    if not isinstance(cls, type) or not isinstance(module, str) or _named(module, name) is not cls:
        raise Unportable(f"{cls!r} is not found by its name")
    return [main_or(module), name]


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def decode_class(data: Any) -> Any:
    """The class; its module is imported where it was not.

    Raises:
        Unportable: there is no such class here.
    """
    if data is None:
        return None
    module, name, *declared = data
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise Unportable(f"the class {module}.{name} is needed, and {error}") from error
    found = _named(module, name)
    if declared and callable(found):
        form, constructor = declared
        declaration: Any = found(_as_tuples(form))
        return constructor_class(declaration, constructor)
    if not isinstance(found, type):
        raise Unportable(f"the class {module}.{name} is needed, and it is not there")
    return found


def _as_tuples(data: Any) -> Any:
    return tuple(map(_as_tuples, data)) if isinstance(data, list) else data


def encode_type(t: Any) -> Any:
    """A type of a value. Which model a reference is to is left out.

    Raises:
        Unportable: files do not hold values of this type.
    """
    kind = type(t)
    if kind is Scalar:
        return ["scalar", t.dtype, t.weak]
    if kind is Array:
        return ["array", t.dtype, [encode_dim(d) for d in t.shape]]
    if kind is Struct and t.kind in ("tuple", "list", "dict", "record", "union", "array"):
        return ["struct", t.kind, [encode_type(e) for e in t.elems], list(t.fields), encode_class(t.cls)]
    if kind is Ref:
        return ["ref", list(t.names), [encode_type(e) for e in t.elems]]
    if kind is List:
        return ["list", encode_type(t.elem)]
    if kind is Data:
        return ["data", *_encode_family(t.family), t.nullable]
    for name, single in SINGLE.items():
        if t == single:
            return [name]
    raise Unportable(f"a value of type {t}")


def decode_type(data: Any) -> Type:
    """The type that `encode_type` has encoded."""
    kind, *rest = data
    if kind == "scalar":
        return Scalar(rest[0], rest[1])
    if kind == "array":
        return Array(rest[0], tuple(map(decode_dim, rest[1])))
    if kind == "struct":
        return Struct(rest[0], tuple(map(decode_type, rest[1])), tuple(rest[2]), decode_class(rest[3]))
    if kind == "ref":
        return Ref(None, tuple(rest[0]), tuple(_decode_array(e) for e in rest[1]))
    if kind == "list":
        return List(decode_type(rest[0]))
    if kind == "data":
        return Data(_decode_family(*rest[:4]), rest[4])
    return SINGLE[kind]


def _encode_family(family: Family) -> list:
    """One of its classes, how it is derived from that class's family, a hash of what its values hold, and for an instance of a
    declared type what stands for its parameters.

    Raises:
        Unportable: the family belongs to one compilation.
    """
    origin, role = family.derived_from or (family, "")
    if any(f.local for f in origin.reachable()):
        raise Unportable(f"a value of type {origin.name}, in which there are functions")
    args = None if origin.instance_of is None else [encode_type(t) for t in origin.instance_of[1]]
    return [encode_class(origin.variants[0].cls), role, _definition(origin), args]


def _decode_family(cls: Any, role: str, definition: str, args: list | None) -> Family:
    """The family here of a class.

    Raises:
        Unportable: its values hold something else here.
    """
    found = decode_class(cls)
    declaration = declaration_of(found)
    if declaration is not None and args is not None:
        family = declaration.instance(*map(decode_type, args))
    else:
        family = family_of(found)
    if family is None or _definition(family) != definition:
        raise Unportable(
            f"the fields of the class {found.__qualname__} have other types, or it is found beside other classes"
        )
    return getattr(family, role) if role else family


def _definition(family: Family) -> str:
    """A hash of the classes and the types of the fields of a family, and of all that it refers to."""
    families = family.reachable()

    def form(t: Type) -> list:
        if isinstance(t, Data):
            return ["data", families.index(t.family), t.nullable]
        if isinstance(t, Struct):
            return [t.kind, [form(e) for e in t.elems], list(t.fields), encode_class(t.cls)]
        return encode_type(t)

    found = [[[encode_class(v.cls), list(v.fields), [form(t) for t in v.types]] for v in f.variants] for f in families]
    return hashlib.blake2b(json.dumps(found).encode(), digest_size=16).hexdigest()


def _decode_array(data: Any) -> Array:
    t = decode_type(data)
    assert isinstance(t, Array)
    return t


def encode_number(value: Any) -> Any:
    """A number, a string or None, to the last bit.

    Raises:
        Unportable: it is something else.
    """
    if value is None or isinstance(value, bool | str) and type(value) in (bool, str):
        return value
    if type(value) is int:
        return ["int", str(value)]
    if type(value) is float:
        return ["float", value.hex()]
    if isinstance(value, np.generic):
        return ["scalar", value.dtype.name, value.tobytes().hex()]
    raise Unportable(f"the value {value!r}")


def decode_number(data: Any) -> Any:
    """What `encode_number` has encoded."""
    if not isinstance(data, list):
        return data
    kind, *rest = data
    if kind == "scalar":
        return np.frombuffer(bytes.fromhex(rest[1]), numpy_dtype(rest[0]))[0]
    return int(rest[0]) if kind == "int" else float.fromhex(rest[0])


# --- sites ------------------------------------------------------------------------------------------------------------


def _encode_operand(operand: Any) -> Any:
    if isinstance(operand, StaticOperand):
        return ["known", encode_number(operand.value)]
    if isinstance(operand, Number):
        return ["number", operand.slot, encode_type(operand.type)]
    if isinstance(operand, Elements):
        return ["elements", operand.slot, operand.dtype, list(operand.sizes)]
    if isinstance(operand, Entries):
        return ["entries", operand.slot, encode_type(operand.type)]
    if isinstance(operand, Parts):
        return ["parts", encode_type(operand.type), [_encode_operand(p) for p in operand.parts]]
    raise Unportable("an operand of a message")


def _decode_operand(data: Any) -> Any:
    kind, *rest = data
    if kind == "known":
        return StaticOperand(decode_number(rest[0]))
    if kind == "number":
        return Number(rest[0], decode_type(rest[1]))
    if kind == "elements":
        return Elements(rest[0], rest[1], tuple(rest[2]))
    if kind == "entries":
        entries = decode_type(rest[1])
        assert isinstance(entries, List)
        return Entries(rest[0], entries)
    structure = decode_type(rest[0])
    assert isinstance(structure, Struct)
    return Parts(structure, tuple(map(_decode_operand, rest[1])))


def encode_text(parts: tuple) -> list:
    """The parts of a message, as `utils.raising.format_parts` has them.

    Raises:
        Unportable: a part is not of this form.
    """
    for part in parts:
        if not isinstance(part, str) and not all(p is None or isinstance(p, int | str) for p in part):
            raise Unportable(f"the message {parts!r}")
    return [part if isinstance(part, str) else list(part) for part in parts]


def decode_text(data: list) -> tuple:
    """The parts that `encode_text` has encoded."""
    return tuple(part if isinstance(part, str) else tuple(part) for part in data)


def encode_site(site: Site) -> list:
    """A place where Python takes over."""
    stack = site.origin.call_stack() if site.origin is not None else []
    places = [[loc.file, loc.line, loc.col, loc.end_line, loc.end_col, loc.function] for loc in stack]
    cls = site.exception
    if cls is not None and getattr(builtins, cls.__name__, None) is cls:
        exception = cls.__name__
    else:
        exception = encode_class(cls)
    data = [[_encode_operand(o) for o in site.operands], encode_text(site.text), places, exception, site.end]
    if site.call is not None:
        data.append([encode_call(*site.call), [_encode_operand(r) for r in site.results]])
    return data


def decode_site(data: list) -> Site:
    """The site that `encode_site` has encoded."""
    operands, text, places, exception, end, *call = data
    origin = None
    for place in reversed(places):
        origin = Origin(Loc(*place), "call", origin)
    cls = getattr(builtins, exception) if isinstance(exception, str) else decode_class(exception)
    site = Site(tuple(map(_decode_operand, operands)), decode_text(text), origin, cls, end)
    if call:
        (encoded, results) = call[0]
        site = replace(site, call=decode_call(encoded), results=tuple(map(_decode_operand, results)))
    return site


def encode_call(op: Any, attrs: tuple, kinds: tuple[str, ...], levels: tuple) -> list:
    """What is called of a registered operator, which is found by its name.

    Raises:
        Unportable: the operator is not found by its name.
    """
    module, name = op.__module__, op.__qualname__
    if _named(module, name) is not op:
        raise Unportable(f"the operator {op.name} is not found by its name")
    return [module, name, [[key, encode_number(v)] for key, v in attrs], list(kinds), [list(b) for b in levels]]


def decode_call(data: list) -> tuple:
    """What `encode_call` has encoded.

    Raises:
        Unportable: there is no such operator here.
    """
    module, name, attrs, kinds, levels = data
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise Unportable(f"the operator {module}.{name} is needed, and {error}") from error
    op = _named(module, name)
    if not has_own(op, "__relay_operator__"):
        raise Unportable(f"the operator {module}.{name} is needed, and it is not there")
    pairs = tuple((key, decode_number(value)) for key, value in attrs)
    return op, pairs, tuple(kinds), tuple(map(tuple, levels))


# --- signatures -------------------------------------------------------------------------------------------------------


KNOWN = {"params", "output", "symbols", "results", "state_slots", "arena", "presets", "sites", "by_object", "regions"}
KNOWN |= {"frames", "needs", "heap", "list_head", "block", "checks", "trace"}


def encode_signature(s: ProgramSignature, blobs: list[np.ndarray]) -> dict[str, Any]:
    """A signature; the arrays that it refers to are appended to `blobs`.

    Raises:
        Unportable: the program has what files do not hold: checked accesses, other objects.
    """
    if s.checks is not None:
        raise Unportable("a program with checks of its accesses to memory")
    if unknown := {f.name for f in fields(s)} - KNOWN:
        raise Unportable(f"a program with {', '.join(unknown)}, which this file does not write")
    presets = []
    for slot, value in s.presets.items():
        if isinstance(value, np.ndarray):
            presets.append([slot, "array", len(blobs)])
            blobs.append(value)
        elif isinstance(value, np.dtype):
            presets.append([slot, "dtype", value.name])
        elif value is np.ndarray:
            presets.append([slot, "class", None])
        else:
            raise Unportable(f"a program that refers to {value!r}")
    return {
        "params": [encode_type(t) for t in s.params],
        "output": encode_type(s.output),
        "symbols": s.symbols,
        "results": s.results,
        "slots": s.state_slots,
        "arena": encode_dim(s.arena),
        "presets": presets,
        "sites": [encode_site(site) for site in s.sites],
        "by_object": s.by_object,
        "regions": s.regions,
        "frames": s.frames,
        "needs": s.needs,
        "block": s.block,
        "heap": s.heap,
        "list_head": s.list_head,
        "trace": s.trace,
    }


def decode_signature(data: dict[str, Any], blobs: list[np.ndarray]) -> ProgramSignature:
    """The signature that `encode_signature` has encoded."""
    values = {"array": lambda k: blobs[k], "dtype": numpy_dtype, "class": lambda _: np.ndarray}
    return ProgramSignature(
        params=[decode_type(t) for t in data["params"]],
        output=decode_type(data["output"]),
        symbols=data["symbols"],
        results=[tuple(r) if isinstance(r, list) else r for r in data["results"]],
        state_slots=data["slots"],
        arena=decode_dim(data["arena"]),
        presets={slot: values[kind](value) for slot, kind, value in data["presets"]},
        sites=[decode_site(site) for site in data["sites"]],
        by_object=data["by_object"],
        regions=data["regions"],
        frames=tuple(data["frames"]) if data["frames"] is not None else None,
        needs=data["needs"],
        block=data["block"],
        heap=data.get("heap"),
        list_head=data.get("list_head"),
        trace=data.get("trace"),
    )
