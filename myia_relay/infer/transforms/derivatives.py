"""Derivatives beyond gradients, inside compiled code: `jvp`, `vjp`, Jacobians, Hessians.

As in `infer.transforms.transforms`, inference only emits requests, nodes with the typed graph of the function, and
`ad.expand` replaces them. A Jacobian is one `jacobian` node, with a graph of one `jvp` (or `vjp`) in it, so it is one
program (`ad.jacobian.jacobian`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.types import Array, Data, Scalar, Type, has_tangent, tangent, total, tuple_of
from ...ir.build import Builder, Var, as_type
from ...ir.node import Graph, Node
from ...ir.prim import REGISTRY
from ...prims.api.promotion import unwrap, with_size
from ...prims.ops.control import jacobian as P_jacobian
from ...prims.ops.control import jvp as P_jvp
from ...prims.ops.control import vjp as P_vjp
from ...prims.ops.data_functions import zero
from ...prims.rules.broadcast import broadcast_to, match_kind, reshape
from ...utils.errors import GradError, ShapeError, TypeError_, nearest
from ...utils.source import Origin
from ..engine.engine import Engine
from ..engine.frames import Frame, Specialisation, explode
from ..language.calls import call_value
from ..language.registry import derived
from ..objects.leaves import to_option
from ..objects.lists import refuse_run_time, refuse_run_time_result
from ..values.kinds import is_data
from ..values.treedef import TreeDef, describe, tree_structure
from ..values.values import NONE_VAL, Derived, Dyn, Seq, Static, Val, elements
from .requests import (
    gradient_value,
    graph_of,
    holds_sized,
    leaf_count,
    parameter_names,
    positions,
    refuse_data,
    refuse_unions,
    require_differentiable,
    specialise_call,
    static_names,
    whole_gradient,
)


@dataclass
class Staged:
    """A function's typed graph, ready to be differentiated.

    Attributes:
        spec: the specialisation.
        operands: the arguments of its graph.
        treedefs: by position, treedefs of the arguments that it is differentiated by; all of their numbers are leaves.
        starts: by position, where their leaves start among the operands.
        place: the place that errors show.
    """

    spec: Specialisation
    operands: list[Node]
    treedefs: dict[int, TreeDef]
    starts: dict[int, int]
    place: Origin

    def varying(self, index: int) -> list[int]:
        """The operands that are leaves of an argument and have tangents."""
        start, count = self.starts[index], sum(1 for _ in self.treedefs[index].leaves())
        found = [i for i in range(start, start + count) if has_tangent(self.operands[i].type)]
        refuse_unions(self.operands[i].type for i in found)
        return found

    def floats(self, index: int) -> list[int]:
        """The operands that are float leaves of an argument without trees."""
        found = self.varying(index)
        refuse_data([self.operands[i].type for i in found], "by an argument")
        return found

    def tree(self, index: int, by_operand: Mapping[int, Node | Val]) -> Val:
        """The argument's tree with values for its float leaves, and None for everything else."""
        count = sum(1 for _ in self.treedefs[index].leaves())
        nodes = [by_operand.get(self.starts[index] + k) for k in range(count)]
        return gradient_value(self.treedefs[index], iter(nodes))

    def tangents(self) -> list[Type]:
        """The types of the tangents of the result's leaves that have one."""
        found = [leaf.info for leaf in self.spec.returns.leaves() if has_tangent(leaf.info)]
        refuse_unions(found)
        return list(map(tangent, found))

    def results(self) -> list[Scalar | Array]:
        """Types of the float leaves of a result without trees."""
        found = self.tangents()
        refuse_data(found, "of the result")
        return [t for t in found if isinstance(t, Scalar | Array)]  # lists were refused before

    def result_tree(self, values: Iterator[Val]) -> Val:
        """The result's tree with a value for each leaf that has a tangent, and None for everything else."""

        def go(treedef: TreeDef) -> Val:
            if treedef.tag == "dyn":
                return next(values) if has_tangent(treedef.info) else NONE_VAL
            if treedef.tag == "seq":
                return Seq(treedef.info[0], tuple(go(p) for p in treedef.parts), treedef.info[1], treedef.info[2])
            return NONE_VAL

        return go(self.spec.returns)


async def stage(
    engine: Engine, frame: Frame, fn: Val, args, chosen, origin: Origin, site, sized: bool = False
) -> Staged:
    """Specialise a function for arguments, some of which it is to be differentiated by.

    Args:
        engine, frame, fn, args, origin, site: as of calls.
        chosen: the positions of those.
        sized: whether the function may return arrays whose sizes it decides itself.
    """
    dynamic = tuple(i in chosen for i in range(len(args)))
    refuse_run_time([args[i] for i in chosen], "a derivative other than grad")
    spec, nodes = await specialise_call(engine, frame, fn, args, {}, origin, site, frame.context, dynamic, sized=sized)
    refuse_run_time_result(spec.returns, "a derivative other than grad")
    counts = [leaf_count(frame, fn, True)]
    counts += [leaf_count(frame, a, not d) for a, d in zip(args, dynamic, strict=True)]
    starts = {i: sum(counts[: i + 1]) for i in chosen}
    treedefs = {i: tree_structure(args[i], [], False, frame.captured) for i in chosen}
    operands = [*nodes, *(frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items())]
    place, graph = origin, graph_of(engine, fn)
    if origin.loc is None and graph is not None:
        place = graph.output.origin if graph.output.origin.loc else graph.origin
    frame.at(place)
    return Staged(spec, operands, treedefs, starts, place)


def positional(engine: Engine, fn: Val, args, kwargs: dict[str, Val], what: str) -> list[Val]:
    """The arguments by position, including those given by keyword.

    Raises:
        TypeError_: a keyword argument has no position, or one before it is missing.
    """
    args, names = list(args), parameter_names(engine, fn)
    for name in names[len(args) :]:
        if name not in kwargs:
            break
        args.append(kwargs[name])
    left = [k for k in kwargs if k not in names[: len(args)]]
    if left:
        raise TypeError_(
            f"{what}: pass '{left[0]}' by position, or all parameters before it too{nearest(left[0], names)}"
        )
    return args


def aligned(frame: Frame, value: Val, treedef: TreeDef, what: str) -> list[Node | None]:
    """The leaves of a tangent (or cotangent) of a value with this treedef, one for each leaf of the treedef.

    None stands for zero, of a part or of the whole; what is not a float has the tangent None. Whether a tree's tangent has
    its shape is checked at run time.

    Raises:
        TypeError_: the structures or dtypes differ.
        ShapeError: the shapes differ.
    """
    if isinstance(value, Static) and value.value is None:
        return [None] * sum(1 for _ in treedef.leaves())
    if treedef.tag == "dyn":
        t = treedef.info
        if not has_tangent(t):
            return [None]
        if isinstance(t, Data):
            if is_data(value) and value.type.family.tangent is t.family.tangent:
                return [value.node]
            raise TypeError_(f"{what} is {describe(value)} where {t} belongs")
        if not isinstance(value, Dyn) or not isinstance(value.type, Scalar | Array):
            raise TypeError_(f"{what} is {describe(value)} where {t} belongs")
        have = value.type
        var = frame.var(value)
        if len(have.shape) == len(t.shape):
            for axis, size in enumerate(t.shape):
                var = with_size(frame.builder, what, var, axis, size)
        if var.shape != t.shape:
            raise ShapeError(f"{what} has shape {_shape(have)} where {_shape(t)} belongs")
        if have.dtype != t.dtype:
            if not (isinstance(have, Scalar) and have.weak):
                raise TypeError_(
                    f"{what} is of {have.dtype} where {t.dtype} belongs; convert it with .astype(np.{t.dtype})"
                )
            var = REGISTRY["cast"](var, dtype=t.dtype, weak=isinstance(t, Scalar) and t.weak)
        return [match_kind(var, t).node]
    if treedef.tag == "seq":
        if not isinstance(value, Seq) or len(value.elems) != len(treedef.parts):
            raise TypeError_(f"{what} is {describe(value)} where a structure like {treedef} belongs")
        if value.kind == "dict" and set(value.fields) == set(treedef.info[1]):
            value = Seq("dict", tuple(value.get(f) for f in treedef.info[1]), treedef.info[1])
        return [n for v, s in zip(value.elems, treedef.parts, strict=True) for n in aligned(frame, v, s, what)]
    return [None] * sum(1 for _ in treedef.leaves())


def _shape(t: Scalar | Array) -> str:
    return f"({', '.join(map(str, t.shape))}{',' if len(t.shape) == 1 else ''})"


def filled(b: Builder, t: Scalar | Array, number: float) -> Node:
    """A constant of a type in which every element is one number."""
    if isinstance(t, Scalar):
        return b.constant(as_type(number, t), t)
    scalar = Scalar(t.dtype)
    return broadcast_to(Var(b, b.constant(as_type(number, scalar), scalar)), shape=t.shape).node


def emit_jvp(b: Builder, staged: Staged, operands: list[Node], wrt: list[int], tangents: list[Node]) -> Node:
    """The request for value and tangent; the graph may not be complete yet, so the type follows from its treedef."""
    leaves = [leaf.info for leaf in staged.spec.returns.leaves()]
    result = leaves[0] if len(leaves) == 1 else tuple_of(*leaves)
    type_ = tuple_of(result, tuple_of(*staged.tangents()))
    attrs = {"graph": staged.spec.graph, "wrt": tuple(wrt)}
    return b.graph.apply(P_jvp, *operands, *tangents, attrs=attrs, type=type_, origin=b.origin)


def emit_vjp(
    b: Builder, staged: Staged, operands: list[Node], wrt: list[int], douts: list[Node], aloud: bool = True
) -> Node:
    """The request for cotangents."""
    type_ = tuple_of(*[tangent(operands[i].type) for i in wrt])
    attrs = {"graph": staged.spec.graph, "wrt": tuple(wrt), "aloud": aloud}
    return b.graph.apply(P_vjp, *operands, *douts, attrs=attrs, type=type_, origin=b.origin)


def item(b: Builder, node: Node, *path: int) -> Node:
    """A part of a structure."""
    for index in path:
        node = b.emit(REGISTRY["get_item"], (node,), {"index": index})
    return node


# Directional derivatives.

COTANGENT = "vjp: the cotangent of the result"


def _sequence(value: Val, what: str) -> list[Val]:
    if not isinstance(value, Seq) or value.kind not in ("tuple", "list"):
        raise TypeError_(f"{what} must be a tuple with an entry for each argument, not {describe(value)}")
    return list(value.elems)


@derived("jvp")
async def call_jvp(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`jvp(f, primals, tangents)`, f being `fn.function`."""
    primals, tangents = _sequence(args[0], "jvp: primals"), _sequence(args[1], "jvp: tangents")
    return Seq("tuple", await push(engine, frame, fn.function, primals, tangents, origin, site, "jvp"))


async def push(engine, frame: Frame, fn: Val, primals, tangents, origin: Origin, site, what: str) -> tuple[Val, Val]:
    """The value of a function, and its derivative along tangents.

    Raises:
        TypeError_: there are more or fewer tangents than arguments.
    """
    if len(primals) != len(tangents):
        raise TypeError_(f"{what}: {len(tangents)} tangents for {len(primals)} arguments")
    moving = varying_arguments(engine, fn, len(primals))
    staged = await stage(engine, frame, fn, primals, moving, origin, site, sized=True)
    b, given = frame.builder, {}
    for i in moving:
        nodes = aligned(frame, tangents[i], staged.treedefs[i], f"{what}: the tangent of argument {i}")
        given.update({staged.starts[i] + k: n for k, n in enumerate(nodes) if n is not None})
    for i, n in given.items():
        if isinstance(n.type, Data):
            given[i] = engine.functions.like(b, staged.operands[i], n, f"{what}: a tangent")
    node = emit_jvp(b, staged, staged.operands, list(given), list(given.values()))
    value = item(b, node, 0)
    out = explode(frame, value, staged.spec.returns)
    types = [leaf.info for leaf in staged.spec.returns.leaves()]
    values = [value] if len(types) == 1 else [item(b, value, i) for i in range(len(types))]
    found = enumerate(v for v, t in zip(values, types, strict=True) if has_tangent(t))
    tangents_of = {v: whole_gradient(engine, frame, v, item(b, node, 1, i)) for i, v in found}
    return out, _tangent_tree(frame, staged.spec.returns, iter(values), tangents_of)


def _tangent_tree(frame: Frame, treedef: TreeDef, leaves: Iterator[Node], tangents: dict[Node, Node]) -> Val:
    """The tangent of a result: its tree with the tangents of its leaves, and None for everything that has none."""
    if treedef.tag == "dyn":
        leaf = next(leaves)
        return Dyn(tangents[leaf]) if leaf in tangents else NONE_VAL
    if treedef.tag == "sized":  # the tangents of its numbers, and its own sizes
        numbers, *sizes = (next(leaves) for _ in treedef.parts)
        return frame.rebuild(treedef, iter([tangents[numbers], *sizes])) if numbers in tangents else NONE_VAL
    parts = tuple(_tangent_tree(frame, p, leaves, tangents) for p in treedef.parts)
    return Seq(treedef.info[0], parts, treedef.info[1], treedef.info[2]) if treedef.tag == "seq" else NONE_VAL


@derived("value")
async def call_plainly(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`f(*args)`: a plain function, compiled."""
    return await call_value(engine, frame, fn.function, args, kwargs, origin, site)


@derived("vjp")
async def call_vjp(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """The cotangents of the arguments: `(arguments, cotangent of the result)`, f being `fn.function`."""
    return await pull(engine, frame, fn.function, _sequence(args[0], "vjp: the arguments"), args[1], origin, site)


@derived("pullback")
async def call_pullback(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """A call of the result of `vjp`, which holds the function and its arguments.

    Raises:
        TypeError_: not exactly one positional argument.
    """
    if len(args) != 1 or kwargs:
        raise TypeError_("vjp: the pullback takes one argument, a cotangent with the structure of the result")
    function, *values = elements(fn.function)
    return await pull(engine, frame, function, values, args[0], origin, site)


async def pull(engine, frame: Frame, fn: Val, args: list[Val], dout: Val, origin: Origin, site) -> Val:
    """A tuple with the cotangent of each argument."""
    moving = varying_arguments(engine, fn, len(args))
    staged = await stage(engine, frame, fn, args, moving, origin, site, sized=True)
    b = frame.builder
    if holds_sized(staged.spec.returns):  # only inside of the function the cotangent has the size of the result
        product = Derived("inner_product", fn)
        staged = await stage(engine, frame, product, [*args, dout], moving, origin, site)
        douts = [filled(b, Scalar("float64"), 1.0)]
    else:
        nodes = aligned(frame, dout, staged.spec.returns, COTANGENT)
        leaves = [leaf.info for leaf in staged.spec.returns.leaves()]
        pairs = zip(nodes, leaves, strict=True)
        douts = [n if n is not None else zero(b, tangent(t)) for n, t in pairs if has_tangent(t)]
    wrt = [i for index in staged.treedefs for i in staged.varying(index)]
    node = emit_vjp(b, staged, staged.operands, wrt, douts, aloud=False)
    by_operand = {i: whole_gradient(engine, frame, staged.operands[i], item(b, node, k)) for k, i in enumerate(wrt)}
    return Seq("tuple", tuple(staged.tree(i, by_operand) if i in moving else NONE_VAL for i in range(len(args))))


@derived("inner_product")
async def call_inner_product(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """The inner product of a function's result and the last argument; its gradient is the cotangent of the other arguments."""
    *xs, dout = args
    y = await call_value(engine, frame, fn.function, xs, kwargs, origin, site)
    leaves: list[Node] = []
    treedef = tree_structure(y, leaves, False, frame.captured)
    sum_ = REGISTRY["cast"](frame.var(frame.constant(0.0)), dtype="float64", weak=False)
    for leaf, cotangent in zip(leaves, aligned(frame, dout, treedef, COTANGENT), strict=True):
        if cotangent is not None:
            part = Var(frame.builder, leaf) * Var(frame.builder, cotangent)
            part = REGISTRY["reduce_sum"](part, axes=tuple(range(part.ndim))) if part.shape else part
            sum_ = sum_ + REGISTRY["cast"](unwrap(part), dtype="float64", weak=False)
    return Dyn(sum_.node)


async def vjp_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`vjp(f, *xs)` in compiled code."""
    fn, *xs = args
    y = await call_value(engine, frame, fn, xs, kwargs, origin, site)
    return Seq("tuple", (y, Derived("pullback", Seq("tuple", (fn, *xs)))))


async def jvp_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`jvp(f, primals, tangents)` in compiled code."""
    fn, primals, tangents = named_arguments("jvp", ("f", "primals", "tangents"), args, kwargs)
    return await engine.call(frame, Derived("jvp", fn), [primals, tangents], {}, origin, site)


async def hvp_request(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
    """`hvp(f, xs, vs)` in compiled code."""
    fn, xs, vs = named_arguments("hvp", ("f", "xs", "vs"), args, kwargs)
    return await engine.call(frame, Derived("hvp", fn), [xs, vs], {}, origin, site)


@derived("hvp")
async def call_hvp(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """Forward over reverse: the tangent of the gradient by all arguments."""
    xs, vs = args
    plain = not (isinstance(xs, Seq) and xs.kind == "tuple")
    primals, tangents = ([xs], [vs]) if plain else (list(xs.elems), _sequence(vs, "hvp: vs"))
    moving = varying_arguments(engine, fn.function, len(primals))
    wrt = 0 if len(primals) == 1 else tuple(moving)
    gradient = Derived("grad", fn.function, (("has_aux", False), ("wrt", wrt)))
    _, product = await push(engine, frame, gradient, primals, tangents, origin, site, "hvp")
    if len(moving) == len(primals) or not isinstance(product, Seq):
        return product
    parts = dict(zip(moving, product.elems, strict=True))
    return Seq("tuple", tuple(parts.get(i, NONE_VAL) for i in range(len(primals))))


def varying_arguments(engine: Engine, fn: Val, count: int) -> list[int]:
    """The positions of the arguments of a function that are no compile-time constants, by its `static`."""
    names, static = parameter_names(engine, fn), static_names(fn)
    return [i for i in range(count) if i >= len(names) or names[i] not in static]


def named_arguments(what: str, names: tuple[str, ...], args, kwargs) -> list[Val]:
    """Arguments of a transform by position or name.

    Raises:
        TypeError_: one is missing, or there is no such.
    """
    given = dict(zip(names, args, strict=False)) | kwargs
    unknown = [k for k in given if k not in names]
    missing = [n for n in names if n not in given]
    if unknown or missing or len(args) > len(names):
        hint = f": no parameter '{unknown[0]}'{nearest(unknown[0], names)}" if unknown else ""
        raise TypeError_(f"{what} takes {len(names)} arguments ({', '.join(names)}){hint}")
    return [given[n] for n in names]


# Jacobians.


@derived("jacfwd")
async def call_jacfwd(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`jacfwd(f)(*args)`."""
    return await jacobian(engine, frame, fn, args, kwargs, "jacfwd", origin, site)


@derived("jacrev")
async def call_jacrev(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`jacrev(f)(*args)`."""
    return await jacobian(engine, frame, fn, args, kwargs, "jacrev", origin, site)


@derived("jacobian")
async def call_jacobian(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`jacobian(f)(*args)`: forward mode unless the result is smaller than what is differentiated by."""
    return await jacobian(engine, frame, fn, args, kwargs, "jacobian", origin, site)


@derived("hessian")
async def call_hessian(engine: Engine, frame: Frame, fn: Derived, args, kwargs, origin: Origin, site) -> Val:
    """`hessian(f)(*args)`: forward over reverse."""
    once = (("wrt", fn.option("wrt")), ("sparse", False))
    twice = Derived("jacfwd", Derived("jacrev", fn.function, once), fn.options)
    return await jacobian(engine, frame, twice, args, kwargs, "hessian", origin, site)


async def jacobian(engine, frame: Frame, fn: Derived, args, kwargs, what: str, origin: Origin, site) -> Val:
    """The derivative of every float of the result by every float of the chosen arguments.

    Raises:
        GradError: an argument to differentiate by is not given, or the result has no derivative.
    """
    args = positional(engine, fn.function, args, kwargs, what)
    chosen, single = positions(engine, fn.function, fn.option("wrt"), len(args))
    names = parameter_names(engine, fn.function)
    for i in chosen:
        if i >= len(args):
            raise GradError(f"the argument '{names[i]}' to differentiate by was not given")
        require_differentiable(args[i], names[i] if i < len(names) else f"{i}")
    staged = await stage(engine, frame, fn.function, args, dict.fromkeys(chosen), origin, site)
    wrt = [i for index in dict.fromkeys(chosen) for i in staged.floats(index)]
    ins, outs = [staged.operands[i].type for i in wrt], staged.results()
    if not outs:
        raise GradError(f"{what}: the function returns {staged.spec.returns}, which has no derivative", staged.place)
    forward = what == "jacfwd" or what == "hessian"
    if what == "jacobian":
        n, m = total(ins), total(outs)
        forward = not (isinstance(m, int) and (not isinstance(n, int) or m < n))
    b = frame.builder
    if fn.option("sparse"):
        modes = (forward, not forward) if what == "jacobian" else (forward,)
        table = iter(sparse_entries(engine, b, staged, wrt, ins, outs, modes))
    else:
        table = iter(entries(b, staged, wrt, ins, outs, forward))
    trees = []
    for _ in outs:
        by_operand = {i: next(table) for i in wrt}
        parts = [staged.tree(index, by_operand) for index in chosen]
        trees.append(parts[0] if single else Seq("tuple", tuple(parts)))
    return staged.result_tree(iter(trees))


def entries(b: Builder, staged: Staged, wrt: list[int], ins: list, outs: list, forward: bool) -> list[Node]:
    """Derivatives of the first result by each argument, of the second, ...: each with the result's axes first."""
    pairs = [(o, i) for o in outs for i in ins]
    count = total(ins if forward else outs)
    if count == 0:
        parts = [zero(b, Array((o if forward else i).dtype, (*o.shape, *i.shape))) for o, i in pairs]
    elif count == 1:  # there is only one direction
        seed = filled(b, (ins if forward else outs)[0], 1.0)
        parts = directional(b, staged, staged.operands, wrt, [seed], len(outs), forward)
    else:
        node = b.emit(P_jacobian, tuple(staged.operands), linear_map(b, staged, wrt, ins, outs, forward))
        parts = [item(b, node, k) for k in range(len(pairs))]
    return [entry(b, part, o, i) for part, (o, i) in zip(parts, pairs, strict=True)]


def directional(
    b: Builder, staged: Staged, operands: list[Node], wrt: list[int], seeds: list[Node], outs: int, forward: bool
):
    """The tangents of the results along those of the arguments, or the cotangents of the arguments."""
    if forward:
        node = emit_jvp(b, staged, operands, wrt, seeds)
        return [item(b, node, 1, j) for j in range(outs)]
    node = emit_vjp(b, staged, operands, wrt, seeds)
    return [item(b, node, k) for k in range(len(wrt))]


def sparse_entries(
    engine: Engine, b: Builder, staged: Staged, wrt: list[int], ins: list, outs: list, modes: tuple[bool, ...]
) -> list[Val]:
    """The same as pairs (values, coordinates) of the entries that may be nonzero, row by row.

    Args:
        modes: forward, reverse or both; of two the one with fewer passes is used, the first in a tie.

    Raises:
        GradError: which entries these are cannot be told.
    """
    requests, problem = [], None
    for forward in modes:
        attrs = linear_map(b, staged, wrt, ins, outs, forward)
        try:
            requests.append({**attrs, "sparse": engine.compress(attrs["graph"], attrs["seeds"], forward)})
        except GradError as error:
            problem = problem or error
    if problem is not None and not requests:
        raise problem.at(staged.place)
    request = min(requests, key=lambda r: r["sparse"].passes)
    node, found = b.emit(P_jacobian, tuple(staged.operands), request), request["sparse"]
    pairs: list[Val] = []
    for o, row in zip(outs, found.parts, strict=True):
        for i, part in zip(ins, row, strict=True):
            shapes = ((part.rows, o.shape), (part.columns, i.shape))
            places = [p for flat, shape in shapes if shape for p in np.unravel_index(flat, shape)]
            coordinates = Seq("tuple", tuple(Dyn(b.constant(p)) for p in places))
            values = item(b, node, len(pairs))
            if not places:  # the derivative of a number by a number
                values = (
                    reshape(Var(b, values), shape=()).node if len(part.rows) else zero(b, Array(values.type.dtype, ()))
                )
            pairs.append(Seq("tuple", (Dyn(values), coordinates)))
    return pairs


def linear_map(b: Builder, staged: Staged, wrt: list[int], ins: list, outs: list, forward: bool) -> dict[str, Any]:
    """The attributes of a request for all directions at once."""
    graph = Graph(f"{staged.spec.graph.name}.{'jvp' if forward else 'vjp'}", origin=b.origin)
    graph.flags["once"] = True  # the function runs once for all directions, and prints once
    inner = Builder(graph, b.origin)
    operands: list[Node] = [graph.add_parameter(f"a{i}", x.type) for i, x in enumerate(staged.operands)]
    seeds: list[Node] = [graph.add_parameter(f"d{i}", t) for i, t in enumerate(ins if forward else outs)]
    parts = directional(inner, staged, operands, wrt, seeds, len(outs), forward)
    graph.output = inner.emit(REGISTRY["make_struct"], tuple(parts), {"type": tuple_of(*[p.type for p in parts])})
    return {"graph": graph, "seeds": len(seeds), "forward": forward}


def entry(b: Builder, value: Node, out: Scalar | Array, arg: Scalar | Array) -> Node:
    """A derivative with the shape of the result, followed by that of the argument; by a number, of the kind of the
    argument.
    """
    shape = (*out.shape, *arg.shape)
    var = Var(b, value)
    if shape:
        return (reshape(var, shape=shape) if var.shape != shape or not isinstance(var.type, Array) else var).node
    if isinstance(var.type, Array) and var.shape:
        var = reshape(var, shape=())
    if isinstance(arg, Array) or isinstance(out, Array):
        return match_kind(var, Array(var.dtype, ())).node
    weak = isinstance(arg, Scalar) and arg.weak and var.dtype == "float64"
    return match_kind(var, Scalar(var.dtype, weak)).node


def checked_sparse(what: str, sparse: Any) -> bool:
    """Check the option `sparse` of a Jacobian.

    Raises:
        TypeError_: it is no bool.
    """
    if not isinstance(sparse, bool):
        raise TypeError_(f"{what}: sparse is True or False, not {sparse!r}")
    return sparse


def request_jacobian(transform: str):
    """The handler of a call of `jacfwd`, `jacrev`, `jacobian` or `hessian` itself."""

    async def run(engine: Engine, frame: Frame, args, kwargs, origin: Origin, site) -> Val:
        given = dict(zip(("f", "wrt"), args, strict=False)) | {
            {"argnums": "wrt"}.get(k, k): v for k, v in kwargs.items()
        }
        unknown = [k for k in given if k not in ("f", "wrt", "sparse")]
        if unknown or "f" not in given:
            hint = nearest(str(unknown[0]), ("wrt", "sparse")) if unknown else ""
            raise TypeError_(f"{transform}(f, wrt=0, *, sparse=False) is given other arguments{hint}")
        wrt = to_option(given["wrt"], f"{transform}: wrt") if "wrt" in given else 0
        sparse = to_option(given["sparse"], f"{transform}: sparse") if "sparse" in given else False
        options = (("wrt", tuple(wrt) if isinstance(wrt, list) else wrt), ("sparse", checked_sparse(transform, sparse)))
        return Derived(transform, given["f"], options)

    return run
