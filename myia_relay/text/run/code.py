"""What compiled code sees of a function of a module: an object that inference calls (`ModuleEntry`).

A call from text goes to the graph of a definition directly: the checker has made sure that the arguments fit. A call from
elsewhere, from Python or under `grad`, comes here. Python numbers take the declared dtype, everything else must have it, and
what stands for type parameters is found from the types of the arguments.

Input: values of inference. Output: a call of the graph of the definition.
"""

from __future__ import annotations

import functools
from typing import Any

from ...abstract.declared import Arrow, Constructed, InstanceOf
from ...abstract.references import reference_class
from ...abstract.types import Array, Data, Scalar, Struct, Type, tuple_of
from ...infer.arguments.python_numbers import fits, number
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.engine.records import adapt
from ...infer.language.registry import of_class
from ...infer.objects.references import open_heap, refuse
from ...infer.values.treedef import describe
from ...infer.values.values import ClosureVal, Dyn, Seq, Static, TaggedUnion, Val
from ...ir.node import Graph
from ...ir.prim import REGISTRY
from ...utils.errors import CompileError, ShapeError, TypeError_, nearest
from ...utils.source import Origin
from ..check.checked import Checked, Scheme
from ..check.schemes import instantiate
from ..lower.constructs import as_number
from ..lower.lower import Lowered
from ..lower.types import TypeValue, ground
from ..terms.show import show
from ..terms.solver import Solver
from ..terms.terms import (
    ANY,
    TYPE,
    ArrowTerm,
    CellTerm,
    DataTerm,
    TensorTerm,
    TupleTerm,
    arrow,
    instance,
    prune,
    resolved,
    scalar,
    tensor,
    tuple_term,
    unknowns,
)
from ..terms.unify import Clash

DEFAULTS = {"int64": "int32", "float64": "float32", "bool": "bool"}
"""The dtype of a Python number where nothing is declared: that of the literal."""


class ModuleEntry:
    """A definition of a module, for inference.

    Args:
        lowered: the module.
        name: of the definition.
        module: the `Module`.
    """

    def __init__(self, lowered: Lowered, name: str, module: Any):
        self.lowered, self.name, self.module = lowered, name, module
        self.__name__ = name

    @property
    def checked(self) -> Checked:
        """The module with its types."""
        return self.lowered.checked

    @property
    def scheme(self) -> Scheme:
        """The type of the definition."""
        return self.checked.schemes[self.name]

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(p.local.name for p in self.checked.tree.definitions[self.name].function.params)

    def __relay_graph__(self) -> Graph:
        """The parsed graph, which says what its parameters are called."""
        return self.lowered.graph(self.name)

    def __relay_description__(self) -> list:
        """What it is, in any process: its module, and where it was written, which errors tell."""
        function = self.checked.tree.definitions[self.name].function
        source = function.span.source if function.span is not None else None
        return ["definition", self.name, self.module.text, source and [source.name, source.text]]

    def __repr__(self) -> str:
        return f"@{self.name}"


@of_class(ModuleEntry)
async def call_entry(engine: Engine, frame: Frame, entry: ModuleEntry, args, kwargs, origin: Origin, site) -> Val:
    """Call a definition with values that the checker has not seen.

    Raises:
        TypeError_: the arguments do not fit.
    """
    engine.open_sizes |= entry.lowered.leaves_open
    values = positional(entry, list(args), dict(kwargs))
    t, types = entry.scheme.type, []
    needed = entry.lowered.needs.of_global(entry.name)
    if not entry.scheme.is_plain:
        t, images = instance_for(entry, values)
        env = {id(p): image for p, image in zip(entry.scheme.params, images, strict=True)}
        # The arguments decide what their types mention, if by functions that are not checked.
        decided = {id(u) for u in unknowns(*t.params)}
        free = {id(u): tuple_of() for u in unknowns(t.result) if u.kind == TYPE and id(u) not in decided}
        if not (free and engine.undecided.setdefault(entry.lowered.graph(entry.name), False)):
            free = {}
        types = [Static(TypeValue.of(ground(env[id(p)], free, entry.lowered.declaration))) for p in needed]
    given = [
        taken(engine, frame, v, p, f"argument '{name}' of @{entry.name}", entry)
        for v, p, name in zip(values, t.params, entry.names, strict=True)
    ]
    for content in entry.lowered.heaps.contents:
        open_heap(engine, frame, reference_class(content))
    closure = ClosureVal(entry.lowered.graph(entry.name), None, ())
    result = await engine.call(frame, closure, [*types, *given], {}, origin, site)
    refuse(engine, frame, [result], f"is in the result of @{entry.name}, and is not kept after the call")
    return result


def positional(entry: ModuleEntry, args: list, kwargs: dict[str, Any]) -> list:
    """Arguments in the order of the parameters.

    Raises:
        TypeError_: there are too many or too few, or one is given twice.
    """
    names = entry.names
    for name in names[len(args) :]:
        if name in kwargs:
            args.append(kwargs.pop(name))
    if kwargs:
        name = next(iter(kwargs))
        what = "is given twice" if name in names else f"is no parameter of @{entry.name}{nearest(name, names)}"
        raise TypeError_(f"'{name}' {what}")
    if len(args) != len(names):
        listed = f" ({', '.join(f'%{n}' for n in names)})" if names else ""
        raise TypeError_(
            f"@{entry.name} takes {len(names)} argument{'' if len(names) == 1 else 's'}{listed}, and is given {len(args)}"
        )
    return args


# What stands for type parameters.


def instance_for(entry: ModuleEntry, values: list[Val]) -> tuple[ArrowTerm, tuple[Any, ...]]:
    """The type of a polymorphic definition at a call, and what stands for its parameters.

    Raises:
        TypeError_: the arguments do not fit.
    """  # noqa: DOC501 (a function makes the exception)
    errors: list[CompileError] = []
    solver = Solver(errors.append)
    t, images = instantiate(solver, entry.scheme, None)
    assert isinstance(t, ArrowTerm)
    literal: list[tuple[Any, Any]] = []
    for v, p, name in zip(values, t.params, entry.names, strict=True):
        found = term_of(v, solver, entry, literal)
        clash = solver.unify(p, found)
        if clash is not None:
            raise misfit(f"argument '{name}' of @{entry.name}", p, found, clash)
    for unknown, dtype in literal:  # Python numbers take the dtype that the others have
        if not isinstance(prune(unknown), TensorTerm):
            solver.unify(unknown, scalar(DEFAULTS[dtype]))
    if errors:
        raise errors[0]
    return resolved(t), tuple(map(resolved, images))


def misfit(what: str, wanted: Any, found: Any, clash: Clash) -> CompileError:
    """The error for an argument of another type."""
    kind = ShapeError if clash.of_shapes else TypeError_
    return kind(f"{what} is {show(wanted)}, and is given {show(found)}")


def term_of(value: Val, solver: Solver, entry: ModuleEntry, literal: list[tuple[Any, Any]]) -> Any:
    """The type of a value, as far as it is known; Python numbers are unknown, and noted."""
    if isinstance(value, Dyn):
        if isinstance(value.type, Scalar) and value.type.weak:
            unknown = solver.fresh()
            literal.append((unknown, value.type.dtype))
            return unknown
        return term_of_type(value.type, solver)
    if isinstance(value, Seq) and value.kind == "tuple":
        return tuple_term(term_of(e, solver, entry, literal) for e in value.elems)
    if isinstance(value, Seq) and value.kind == "record" and issubclass(value.cls, Constructed):
        scheme = entry.checked.constructors.get(value.cls.__name__)
        if scheme is not None:
            t, _ = instantiate(solver, scheme, None)
            if isinstance(t, ArrowTerm) and len(t.params) == len(value.elems):
                for e, p in zip(value.elems, t.params, strict=True):
                    solver.unify(p, term_of(e, solver, entry, literal))
                return t.result
            return t
    if isinstance(value, Static):
        function = getattr(value.value, "__relay_function__", value.value)
        if isinstance(function, ModuleEntry):
            return instantiate(solver, function.scheme, None)[0]
    return solver.fresh()


def term_of_type(t: Type, solver: Solver) -> Any:
    """A type of the core as a term; sizes that a run decides are open."""
    if isinstance(t, Scalar):
        return scalar(t.dtype)
    if isinstance(t, Array):
        return tensor(tuple(n if isinstance(n, int) else ANY for n in t.shape), t.dtype)
    if isinstance(t, Struct):
        return tuple_term(term_of_type(e, solver) for e in t.elems)
    if isinstance(t, Data) and t.family.instance_of is not None:
        t = InstanceOf(*t.family.instance_of)
    if isinstance(t, InstanceOf):
        return instance(t.declaration.name, [term_of_type(a, solver) for a in t.args])
    if isinstance(t, Arrow):
        return arrow([term_of_type(p, solver) for p in t.params], term_of_type(t.result, solver))
    return solver.fresh()


# Arguments as the definition declares them.


def taken(engine: Engine, frame: Frame, value: Val, t: Any, what: str, entry: ModuleEntry) -> Val:
    """An argument as a definition takes it.

    Raises:
        TypeError_: it is of another type.
    """
    t = prune(t)
    value = as_number(frame, value)
    match t:
        case TensorTerm():
            if isinstance(value, Dyn) and isinstance(value.type, Scalar | Array):
                return _tensor(frame, value, t, what)
        case TupleTerm():
            if isinstance(value, Seq) and len(value.elems) == len(t.elems):
                parts = zip(value.elems, t.elems, strict=True)
                return Seq(
                    "tuple",
                    tuple(taken(engine, frame, v, e, f"part {k} of {what}", entry) for k, (v, e) in enumerate(parts)),
                )
        case DataTerm():
            made = ground(t, {}, entry.lowered.declaration)
            if isinstance(value, Seq) and value.kind == "record" and made is not None:
                return Dyn(adapt(frame, value, Data(engine.families.instances.of(made.declaration, made.args)), what))
            return value
        case ArrowTerm() | CellTerm():
            return _function(value)
        case _:
            if isinstance(value, Dyn) and isinstance(value.type, Scalar) and value.type.weak:
                return _tensor(frame, value, scalar(DEFAULTS[value.type.dtype]), what)
            return _function(value)
    if isinstance(value, TaggedUnion):
        return value
    raise TypeError_(f"{what} is {show(t)}, and is given {describe(value)}")


def _function(value: Val) -> Val:
    """A function of a module that needs no type parameters, as calls in text have it."""
    if isinstance(value, Static):
        entry = getattr(value.value, "__relay_function__", value.value)
        if isinstance(entry, ModuleEntry) and not entry.lowered.needs.of_global(entry.name):
            return ClosureVal(entry.lowered.graph(entry.name), None, ())
    return value


def _tensor(frame: Frame, value: Dyn, t: TensorTerm, what: str) -> Val:
    dtype, shape = prune(t.dtype), prune(t.shape)
    have = value.type
    if isinstance(have, Scalar) and have.weak:
        wanted = dtype if isinstance(dtype, str) else DEFAULTS[have.dtype]
        if not fits(have.dtype, wanted) or (isinstance(shape, tuple) and shape):
            raise TypeError_(f"{what} is {show(t)}, and is given {'a' if have.dtype != 'int64' else 'an'} {have}")
        if value.known:
            return frame.constant(number(value.known_value, wanted, what))
        return Dyn(frame.builder.emit(REGISTRY["cast"], (value.node,), {"dtype": wanted, "weak": False}))
    if isinstance(dtype, str) and have.dtype != dtype:
        raise TypeError_(f"{what} is {show(t)}, and is given {show(term_of_type(have, Solver(lambda e: None)))}")
    if isinstance(shape, tuple):
        wrong = len(shape) != len(have.shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(map(prune, shape), have.shape, strict=True)
        )
        if wrong:
            raise ShapeError(f"{what} is {show(t)}, and is given {show(term_of_type(have, Solver(lambda e: None)))}")
    return value
