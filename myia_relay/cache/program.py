"""Serialisation of compiled programs: machine code, what Python has to know of it, and its dependencies.

A file is a shared object. Its payload, which no loader reads, is a length, a description in JSON, and the arrays that
the code refers to. Free names are stored with their paths and descriptions of their values; a program is valid if all
of these match. The dependencies of a program from a file are checked at every call, like those of one that was
compiled.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from ..abstract.types import INT, Data, List, Struct, Type
from ..abstract.words import constant, constants
from ..backend.native import format
from ..backend.native.elf import payload_of
from ..backend.native.entry import Entry
from ..backend.native.format import Unportable
from ..backend.native.library import Library
from ..infer.engine.dependencies import Dependency, Hidden, code_of, content, type_of_hidden
from ..infer.engine.program import ArgumentChange, Program
from ..infer.values.treedef import ConstInfo, Identity, TreeDef
from ..ir.node import Constant, Graph
from ..ir.walk import graphs_reachable
from ..pipeline import Compiled
from .describe import describe
from .paths import Paths

VERSION = 1
ALIGN = 64
_LENGTH = struct.Struct("<Q")


class LoadedProgram:
    """A native program from a file; it is called like `backend.tvm.program.NativeProgram`.

    Attributes:
        name: of the function it was made from.
        source: the Python source of its caller.
        repeatable: see `pipeline.Compiled`.
    """

    def __init__(self, name: str, entry: Entry, size: int, repeatable: bool):
        self.name, self.entry, self.size, self.repeatable = name, entry, size, repeatable
        self.call, self.into = entry.call, entry.into
        self.source = entry.call.source

    def __call__(self, *values: Any) -> Any:
        return self.call(*values)

    def explain(self) -> str:
        """Where it comes from, as text."""
        return f"native program {self.name}\n  loaded from a file of {self.size:,} bytes, not compiled in this process"


# --- treedefs --------------------------------------------------------------------------------------------------------


def encode_treedef(treedef: TreeDef) -> list:
    """A treedef of arguments or results.

    Raises:
        Unportable: it holds functions or other things of this process.
    """
    tag, info = treedef.tag, treedef.info
    parts = [encode_treedef(p) for p in treedef.parts]
    if tag == "dyn":
        data: Any = format.encode_type(info)
    elif tag == "const":
        data = [format.encode_type(info.type), format.encode_number(info.value)]
    elif tag == "static":
        if info.value is not None and type(info.value) is not str:
            raise Unportable(f"a result that holds {info.value!r}")
        data = info.value
    elif tag == "seq":
        data = [info[0], list(info[1]), format.encode_class(info[2])]
    elif tag == "text":
        data = format.encode_text(info)
    elif tag == "columns":
        data = format.encode_type(info)
    elif tag in ("again", "never", "choice", "listed"):
        data = info
    else:
        raise Unportable(f"a {tag} as an argument or a result")
    return [tag, data, parts]


def decode_treedef(data: list) -> TreeDef:
    """The treedef that `encode_treedef` has encoded."""
    tag, info, parts = data
    if tag in ("dyn", "columns"):
        info = format.decode_type(info)
    elif tag == "const":
        info = ConstInfo(format.decode_type(info[0]), format.decode_number(info[1]))
    elif tag == "static":
        info = Identity(info)
    elif tag == "seq":
        info = (info[0], tuple(info[1]), format.decode_class(info[2]))
    elif tag == "text":
        info = format.decode_text(info)
    return TreeDef(tag, info, tuple(map(decode_treedef, parts)))


def describe_type(t: Type) -> Any:
    """The description of an argument's type, with those of the model, optimiser or classes it refers to."""
    spec = getattr(t, "spec", None)
    return [format.encode_type(t), describe_spec(spec) if spec is not None else None, *map(describe, classes_of(t))]


def records_in(t: Type) -> list[type]:
    """The classes of the records in a type."""
    parts = t.elems if isinstance(t, Struct) else [t.elem] if isinstance(t, List) else []
    own = [t.cls] if isinstance(t, Struct) and t.kind == "record" else []
    return list(dict.fromkeys([*own, *(cls for part in parts for cls in records_in(part))]))


def classes_of(t: Type) -> list[type]:
    """The classes of the algebraic data types in a type: code may depend on all that they are, such as their methods."""
    if isinstance(t, Data):
        return [v.cls for family in t.family.reachable() for v in family.variants]
    parts = t.elems if isinstance(t, Struct) else [t.elem] if isinstance(t, List) else []
    return list(dict.fromkeys(cls for part in parts for cls in classes_of(part)))


FOLLOWING = ("dependencies", "by_path", "draws", "inits", "state", "rows", "flops")
"""What a model's specification says that follows from its function or its type, or that code does not depend on."""


def describe_spec(spec: Any) -> Any:
    """The description of what a reference refers to: a model's function and parameters, an optimiser's kind.

    Raises:
        Unportable: something that it depends on has changed since it was made.
    """
    dependencies = getattr(spec, "dependencies", ())
    if not all(d.holds() for d in dependencies):
        raise Unportable("a model that was made before something it depends on changed")
    parts = []
    for name, value in sorted(vars(spec).items()):
        if name in FOLLOWING:
            continue
        if name == "types":
            parts.append([name, [format.encode_type(t) for t in value]])
        else:
            parts.append([name, describe_spec(value) if hasattr(value, "ref") else describe(value)])
    return [type(spec).__name__, parts]


def functions_of(spec: Any) -> list[Any]:
    """The functions of the models that a reference leads to: where further paths begin."""
    if hasattr(spec, "function"):
        return [spec.function]
    return [f for _, value in sorted(getattr(spec, "__dict__", {}).items()) for f in functions_of(value)]


def describe_treedef(treedef: TreeDef, statics: list[Any]) -> list:
    """The description of an argument's treedef; functions and other static values in it are appended to `statics`.

    Raises:
        Unportable: it has none.
    """
    tag, info = treedef.tag, treedef.info
    if tag == "dyn":
        data: Any = describe_type(info)
        statics += [*classes_of(info), *functions_of(getattr(info, "spec", None))]
    elif tag == "const":
        data = [format.encode_type(info.type), format.encode_number(info.value)]
    elif tag == "static":
        statics.append(info.value)
        data = describe(info.value)
    elif tag == "seq":
        data = [info[0], list(info[1]), describe(info[2])]
        if info[2] is not None:
            statics.append(info[2])
    elif tag == "columns":
        data = [describe_type(info), *map(describe, records_in(info))]
        statics += records_in(info)
    elif tag in ("again", "listed"):
        data = info
    else:
        raise Unportable(f"a {tag} as an argument")
    return [tag, data, [describe_treedef(p, statics) for p in treedef.parts]]


# --- dependencies -----------------------------------------------------------------------------------------------------


def _held(d: Dependency, value: Any) -> Any:
    """The description of a dependency's value."""
    if d.type is not None:
        return ["type", *describe_type(d.type)]
    if d.kind in ("code", "members"):
        return describe(d.place)
    if d.kind == "content":
        return describe(tuple(value) if value is not None else None)
    return describe(value)


def _leads_on(d: Dependency) -> Any:
    """Starts of further paths: the value of a dependency, or the classes that it is about.

    A tree leads to the classes of its family, whatever its shape.
    """
    if isinstance(d.type, Data):
        return classes_of(d.type)
    return d.place if d.kind == "members" else d.value


def encode_dependencies(dependencies: list[Dependency], roots: list[Any]) -> list[list]:
    """Dependencies: kind, path of the place, name, description of the value.

    Raises:
        Unportable: there is no way from the roots to a place, or no description of a value.
    """
    paths, out = Paths(roots), []
    for d in dependencies:
        if _in_library(d.place):  # this package's sources are part of every key
            continue
        out.append([d.kind, paths.path(d.place), d.name, _held(d, d.value)])
        paths.add(_leads_on(d))
    return out


LIBRARY = (
    *("myia_relay.library.", "myia_relay.model.layers.", "myia_relay.prims.", "myia_relay.random"),
    "myia_relay.importers.onnx.operators.",
    "numpy.",  # whose version is a part of every key, too
)


def _in_library(place: Any) -> bool:
    """Whether a place is one of this package's functions that are written in the language, or belongs to their module, or to
    NumPy, as the classes of results of `np.linalg` do.
    """
    module = place.get("__name__") if type(place) is dict else getattr(place, "__module__", None)
    return isinstance(module, str) and module.startswith(LIBRARY)


def decode_dependencies(data: list[list], roots: list[Any]) -> list[Dependency] | None:
    """The dependencies in this process; None if one of them has another value than it had."""
    paths, out = Paths.of_values(roots), []
    for kind, path, name, held in data:
        try:
            place = paths.place(path)
            d = Dependency(kind, place, name, None)
            value = code_of(place) if kind == "code" else content(place) if kind == "content" else d.read()
            d = Dependency(kind, place, name, value, type_of_hidden(value))
            if json.loads(json.dumps(_held(d, value))) != held:
                return None
        except (LookupError, AttributeError, TypeError, ValueError, Unportable):
            return None
        out.append(d)
        paths.values.append(_leads_on(d))
    return out


# --- programs ---------------------------------------------------------------------------------------------------------


def pack(compiled: Compiled, name: str, extra: dict[str, Any], dependencies: list[list], hidden: list[int]) -> bytes:
    """A compiled program as the contents of a file.

    Args:
        compiled: made by the native executor, in this process.
        name: of its function.
        extra: more for the description.
        dependencies: see `encode_dependencies`.
        hidden: for each hidden argument the number of the dependency that it is found in.

    Raises:
        Unportable: it cannot be written.
    """
    from ..backend.tvm.tir import machine

    native: Any = compiled.run
    if getattr(native, "code", None) is None:
        raise Unportable("machine code that is not linked here")
    blobs: list[np.ndarray] = []
    description = {
        "version": VERSION,
        "name": name,
        "signature": format.encode_signature(native.entry.signature, blobs),
        "result": encode_treedef(compiled.program.result),
        "returned": compiled.returned,
        "which": list(compiled.numbers.items()),
        "unread": sorted(compiled.unread),
        "repeatable": compiled.repeatable,
        "changes": [[c.position, c.name, c.plan, c.results] for c in compiled.program.changes],
        "dependencies": dependencies,
        "hidden": hidden,
        "words": _words(compiled.program.graph),
        **extra,
    }
    blobs += description.pop("arrays", [])
    return machine.linked(native.code, _payload(description, blobs))


def _words(graph: Graph) -> list[str]:
    """The strings whose codes are constants of a program."""
    codes: set[int] = set()
    for g in graphs_reachable(graph):
        used = [g.output, *(a for node in g.nodes for a in node.args)]
        codes.update(a.value for a in used if isinstance(a, Constant) and a.type == INT)
    return sorted(text for code in codes if (text := constants.get(code)))


def _payload(description: dict[str, Any], blobs: list[np.ndarray]) -> bytes:
    arrays, at = [], 0
    for blob in blobs:
        arrays.append([blob.dtype.name, list(blob.shape), at])
        at += -(-blob.nbytes // ALIGN) * ALIGN
    text = json.dumps({**description, "arrays": arrays}, separators=(",", ":"), allow_nan=False).encode()
    parts = [_LENGTH.pack(len(text)), text, bytes(-(_LENGTH.size + len(text)) % ALIGN)]
    for blob in blobs:
        data = np.ascontiguousarray(blob).tobytes()
        parts += [data, bytes(-len(data) % ALIGN)]
    return b"".join(parts)


def unpack(data: bytes | memoryview) -> tuple[dict[str, Any], memoryview]:
    """The description in a file's contents, and the offset of its arrays.

    Raises:
        ValueError: it is no file of ours, or a damaged one, or one of another version.
    """
    payload = payload_of(data)
    (length,) = _LENGTH.unpack_from(payload)
    description = json.loads(bytes(payload[_LENGTH.size : _LENGTH.size + length]))
    if description.get("version") != VERSION:
        raise ValueError("the library was written by another version of this compiler")
    return description, payload[-(-(_LENGTH.size + length) // ALIGN) * ALIGN :]


def arrays_of(description: dict[str, Any], rest: memoryview) -> list[np.ndarray]:
    """Copies of the arrays in a file."""
    out = []
    for name, shape, at in description["arrays"]:
        dtype = format.numpy_dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        array = aligned(shape, dtype)
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(rest, np.uint8, count * dtype.itemsize, at)
        out.append(array)
    return out


def aligned(shape: list[int], dtype: np.dtype) -> np.ndarray:
    """An uninitialised contiguous array whose data start on a 64-byte boundary."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(size + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size].view(dtype).reshape(shape)


def program_of(
    description: dict[str, Any], arrays: list[np.ndarray], file: int | bytes, size: int, dependencies: list[Dependency]
) -> Compiled:
    """The compiled program that belongs to a description.

    Args:
        description: see `unpack`.
        arrays: see `arrays_of`.
        file: the code: a descriptor, or the contents; see `Library`.
        size: of the file.
        dependencies: as they are here.

    Raises:
        Unportable: a class that it needs is not here.
        OSError, ImportError: the code cannot be loaded.
    """
    for text in description["words"]:
        constant(text)
    signature = format.decode_signature(description["signature"], arrays)
    entry = Entry(Library(file, signature.needs), signature)
    hidden = [Hidden(dependencies[k], None) for k in description["hidden"]]
    changes = tuple(
        ArgumentChange(k, name, plan, tuple(map(tuple, at))) for k, name, plan, at in description["changes"]
    )
    program = Program(None, decode_treedef(description["result"]), hidden, dependencies, changes)
    returned = [(kind, index) for kind, index in description["returned"]]
    run = LoadedProgram(description["name"], entry, size, description.get("repeatable", False))
    return Compiled(
        program, run, {}, returned, {}, dict(description["which"]), frozenset(description.get("unread", ()))
    )
