"""Functions that are called: private functions of native code, mostly recursive ones, with frames in memory of our own.

Idea: a function takes scalars by value and arrays by address. Its frame (results first, then copies of its arguments,
then its arrays) begins where the caller's ends, in a region that Python allocated. A call is thus a call instruction
and a few moves, and the caller finds the results behind its own frame. A private function cannot return a status in
this version of TVM: it stores the status in the state area, where its callers read it.

    frame = [results: 8 bytes each | arguments: 8 bytes each | arrays]

There are two guards at each entry. A frame that does not fit into the region is a RecursionError at the user's call.
Near the end of the C stack, the function continues on a thread with a large stack: it leaves its arguments in its frame
and asks Python to run it there (`deeper`). This happens once in some tens of thousands of nested calls, and takes a
tenth of a millisecond.

A result that is an updated version of an argument (a sum that goes on through the calls) lives where the argument does:
the caller hands over the argument's memory if it is not read again, and otherwise a copy. A function owns a reference to each
list that it is given, and the caller keeps none to those that it does not use again, so it changes them in place.

Functions that are not recursive but too large to be inlined at every call (`outline`) are called in the same way; if
nothing is recursive, no guards are needed.

Input: a typed graph with such functions in it. Output: more functions of the module.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

from ....abstract.dims import DimLike, is_known, product, run_time_symbols
from ....abstract.types import (
    INT,
    Array,
    Data,
    List,
    NoneT,
    Ref,
    Scalar,
    Str,
    Struct,
    Tape,
    Type,
    Undefined,
    is_static_shape,
    leaves,
)
from ....ir.node import Apply, Graph, Node
from ....ir.prim import REGISTRY
from ....ir.rewrite import all_graphs
from ....opt.analysis.fusion import is_scalar
from ....opt.rewrite.tail_calls import MESSAGE
from ....utils.errors import LoweringError
from ...native.area import CALLS, DEEPER, INTERRUPTED, POLL
from ..kernels.kernel import flat_buffer, pointer_at, pointer_type
from ..plan import ITEM, View
from ..tir import pipeline
from ..tir.block import Block, call, dtype_of, expect, idx, llvm, load
from . import data, references, sizes
from .clock import has_kernels
from .control import flatten, same_place, settle, unflatten
from .effects import EffectSite, calls_around, granted
from .inplace import donated, source_of_part
from .lower import Lowering
from .scope import RefValue
from .state import StateArea
from .watch import Watch

MAX_DEPTH = 200_000  # calls, of the function with the largest frame
ITERATIONS = 1 << 15  # calls between two polls for signals
MAX_BYTES = 1 << 30  # bytes of all frames; address space, of which only the used part is committed


@dataclass(eq=False)
class NativeFunction:
    """A recursive function.

    Attributes:
        graph: what it computes.
        var: its name in the module.
        number: by which Python knows it.
        origin: a call of it, where a RecursionError is shown.
        recursive: whether it runs itself again.
        results: types of the leaves of its result.
        kept: leaves of the result -> the parameters in whose memory they are.
    """

    graph: Graph
    var: Any
    number: int
    origin: Any
    recursive: bool
    results: list[Type] = field(default_factory=list)
    kept: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = _passed(self.graph.output.type)
        self.kept = _kept(self.graph) if self.recursive else {}
        self.places = {k: 8 * i for i, k in enumerate(k for k, t in enumerate(self.results) if is_scalar(t))}
        kept = self.kept.values()
        self.inputs = [t for k, p in enumerate(self.graph.params) if k not in kept for t in _parts(p.type)]
        self.outputs = [t for t in self.results if isinstance(t, Array) and not is_scalar(t)]
        # A copy of the arguments for `deeper`.
        self.saved = 8 * len(self.places)
        self.header = self.saved + 8 * (len(self.inputs) + len(self.outputs))


def _kept(graph: Graph) -> dict[int, int]:
    """The leaves of a function's result that are updated versions of its parameters, and these parameters."""
    out: dict[int, int] = {}
    whole = not isinstance(graph.output.type, Struct)
    leaf = 0
    for part, t in enumerate((graph.output.type,) if whole else graph.output.type.elems):
        if isinstance(t, Array) and not is_scalar(t) and is_static_shape(t):
            param = source_of_part(graph, None if whole else part)
            if param is not None and param.type == t and graph.params.index(param) not in out.values():
                out[leaf] = graph.params.index(param)
        leaf += len(leaves(t))
    return out


def _passed(t: Type) -> list[Type]:
    """The leaves of a type as they are passed: a tape is a number, a list its address."""
    return [INT if isinstance(leaf, Tape | List) else leaf for leaf in leaves(t)]


def _parts(t: Type) -> list[Type]:
    """What is passed for a parameter: numbers, arrays.

    Raises:
        LoweringError: values of this type cannot be passed to recursive functions.
    """
    out: list[Type] = []
    for leaf in _passed(t):
        if isinstance(leaf, Ref):
            out += leaf.elems
        elif isinstance(leaf, Scalar | Array | Data):
            out.append(leaf)
        elif not isinstance(leaf, NoneT | Str | Undefined):
            raise LoweringError(f"the native executor cannot pass a value of type {leaf} to a recursive function")
    return out


class Calls:
    """The functions of a program that are called, shared by all that call them.

    Args:
        lowering: the main function's.
        graph: the program.
        recursive: those that run themselves again.
        others: further ones; see `outline`.
    """

    def __init__(self, lowering: Lowering, graph: Graph, recursive: set[Graph], others: Set[Graph] = frozenset()):
        self.lowering, self.graph, self.recursive = lowering, graph, recursive
        self.called = recursive | others
        self.functions: dict[Graph, NativeFunction] = {}
        self.sizes: list[DimLike] = []
        self.iterations = lowering.state.slot()
        self.status = lowering.state.slot(4)
        self.base, self.end, self.stack = self.status + 1, self.status + 2, self.status + 3
        self.trace = lowering.state.slot(1 + CALLS)
        lowering.state.needed = True
        self.dims: dict[str, int] = {}
        self.constants: list[tuple[int, Any]] = []
        self.writes = any(getattr(n.fn, "name", "") == "ref_write" for g in all_graphs(graph) for n in g.nodes)

    def function(self, node: Apply) -> NativeFunction:
        """The function that an application calls."""
        graph = node.fn
        if graph not in self.functions:
            var = tvm.ir.GlobalVar(f"f{len(self.functions)}_{''.join(c if c.isalnum() else '_' for c in graph.name)}")
            inside = [n for g in all_graphs(graph) if g in self.recursive for n in g.nodes if n.fn is graph]
            origin = (inside or [node])[0].origin
            self.functions[graph] = NativeFunction(graph, var, len(self.functions), origin, graph in self.recursive)
        return self.functions[graph]

    def start(self, node: Apply, part: int) -> Node | None:
        """The argument in whose memory a part of a call's result is; None if there is none, or if this is no such call."""
        if not isinstance(node.fn, Graph) or node.fn not in self.recursive:
            return None
        leaf = sum(len(leaves(t)) for t in node.type.elems[:part])
        k = self.function(node).kept.get(leaf)
        return None if k is None or node.args.count(node.args[k]) != 1 else node.args[k]

    def finish(self) -> dict[Any, Any]:
        """All functions, compiled to tirx, and for each the public one by which Python continues it."""
        out: dict[Any, Any] = {}
        done: set[Graph] = set()
        while todo := [f for g, f in self.functions.items() if g not in done]:
            for function in todo:
                done.add(function.graph)
                out[function.var] = FunctionLowering(self, function).build()
                if self.recursive:
                    name = f"again{function.number}"
                    again = _again(function, self.lowering.watch).with_attr("global_symbol", name)
                    out[tvm.ir.GlobalVar(name)] = again
        return out

    def bytes(self) -> int:
        """The size of the region of frames."""
        sizes = tuple(self.sizes)
        if not is_known(sizes):
            return MAX_BYTES
        if not self.recursive:  # each is in progress at most once
            return sum(sizes)
        return min(MAX_BYTES, MAX_DEPTH * max(sizes, default=0))

    def prologue(self) -> list[Any]:
        """Statements for the top of the program."""
        ints = self.lowering.state.ints
        out = [
            tirx.BufferStore(ints, idx(value), [idx(slot)])
            for slot, value in ((self.status, 0), (self.iterations, ITERATIONS), (self.trace, 0))
        ]
        return out + [tirx.BufferStore(ints, self.lowering.dims[name], [idx(slot)]) for name, slot in self.dims.items()]

    def emit(self, lowering: Lowering, node: Apply) -> None:
        """Call one of the functions, from the main function or from another of them."""
        state, block = lowering.state, lowering.block
        function = self.function(node)
        values = [lowering.value(a) for a in node.args]
        given = donated(lowering.scope, node) if function.kept else []
        lowering.flush_all()
        lowering.plan.tick()
        places = {}
        for leaf, k in function.kept.items():
            places[leaf] = values[k]
            if not given[k]:
                places[leaf] = lowering.new_view(node.args[k].type)
                lowering.copy(values[k], places[leaf])
        lowering.flush_all()
        args: list[Any] = []
        for k, (arg, value) in enumerate(zip(node.args, values)):
            if k in function.kept.values():
                continue
            if isinstance(arg.type, List):
                references.given(lowering, value, node)  # the function owns it
            for t, leaf in zip(_passed(arg.type), flatten(value, arg.type), strict=True):
                if is_scalar(t):
                    args.append(lowering.named(tirx.Cast("int32", leaf) if t.dtype == "bool" else leaf))
                for view in leaf.views if isinstance(leaf, RefValue) else [leaf] if isinstance(leaf, View) else []:
                    lowering.plan.touch(view.storage)
                    args.append(_address(lowering, view))
        results: list[Any] = []
        for k, t in enumerate(function.results):
            if isinstance(t, Array) and not is_scalar(t):
                view = places.get(k)
                if view is None:
                    view = lowering.allocate(node) if t is node.type else lowering.new_view(t)
                lowering.plan.touch(view.storage)
                args.append(_address(lowering, view))
                results.append(view)
            else:
                results.append(None)
        frame = lowering.next_frame()
        block.emit(tirx.Evaluate(tvm.ir.Call(function.var, [state.address, frame, *args], ret_ty="int32")))
        with block.when(expect(tirx.NE(state.get(self.status), idx(0)), False)):
            self.remember(lowering, node)
            lowering.relay()
        for k, offset in function.places.items():
            t = function.results[k]
            assert is_scalar(t)
            stored = "int8" if t.dtype == "bool" else t.dtype
            found = _word(block, frame, offset, stored, lowering.watch, function.header)
            value = block.let(load(found, 0))
            results[k] = tirx.NE(value, tirx.IntImm("int8", 0)) if t.dtype == "bool" else value
        lowering.scope.env[node] = unflatten(results, node.type)

    def remember(self, lowering: Lowering, node: Apply) -> None:
        """An error comes through this call: note its site."""
        state, block = lowering.state, lowering.block
        attrs = {"exception": None, "parts": ()}
        site = Apply(node.fn, REGISTRY["raise"], (), attrs, origin=node.origin)
        lowering.sites.append(EffectSite(site, [], calls=calls_around(lowering)))
        count = block.let(state.get(self.trace))
        place = tirx.Add(idx(self.trace + 1), tirx.Min(count, idx(CALLS - 1)))
        block.store(state.ints, idx(len(lowering.sites) - 1), place)
        block.store(state.ints, tirx.Add(count, idx(1)), self.trace)


def _address(lowering: Any, view: View) -> Any:
    pointer = pointer_at(view.storage.var if view.pointer is None else view.pointer, view.offset, "uint8")
    return pointer if lowering.watch is None else lowering.watch.bounded(lowering, pointer, view)


def _word(block: Block, frame: Any, offset: int, dtype: str, watch: Watch | None, size: Any) -> Any:
    """A buffer whose first element is at an offset of a frame of some size."""
    buffer = flat_buffer("frame", dtype)
    at = tirx.Add(frame, idx(offset)) if offset else frame
    pointer = call("tirx.reinterpret", pointer_type(dtype), at)
    block.emit(tirx.DeclBuffer(buffer, data=pointer if watch is None else watch.record(pointer, frame, size)))
    return buffer


class _FrameState(StateArea):
    """The state area, seen from a recursive function."""

    def __init__(self, block: Block, calls: Calls):
        super().__init__(block)
        self.calls = calls
        self.root = calls.lowering.state

    def slot(self, count: int = 1) -> int:
        return self.root.slot(count)

    def leave(self, status: int) -> None:
        self.put(self.calls.status, idx(status))
        self.block.emit(tirx.Return(tirx.IntImm("int32", 0)))


class FunctionLowering(Lowering):
    """The walk over one recursive function."""

    def __init__(self, calls: Calls, function: NativeFunction):
        super().__init__()
        root = calls.lowering
        self.ranges = root.ranges
        self.calls, self.function = calls, function
        self.functions, self.kernel_keys, self.sites = root.functions, root.kernel_keys, root.sites
        self.helpers, self.sizes = root.helpers, root.sizes
        self.kernels, self.interruptible = root.kernels, not calls.writes
        self.makers = root.makers
        self.described = root.described
        self.clock = root.clock if has_kernels(function.graph) else None
        self.tape_slots = root.tape_slots
        self.state = _FrameState(self.block, calls)
        self.frame, self.next = tirx.Var("frame", "int64"), tirx.Var("next", "int64")
        self.params = [self.state.address, self.frame]
        if root.watch is not None:
            self.watch = root.watch
            self.watch.follow(self)
        for name in root.dims.keys() - run_time_symbols(root.dims):
            self.dims[name] = tirx.Var(f"dim_{name}", "int64")
        self.given = dict(self.dims)
        self.cells, self.held = Block(), []

    def next_frame(self) -> Any:
        return self.next

    @property
    def size(self) -> Any:
        """The size of the frame, which is not known before the end."""
        return tirx.Sub(self.next, self.frame)

    def relay(self) -> None:
        self.block.emit(tirx.Return(tirx.IntImm("int32", 0)))

    def parameter(self, t: Type) -> Any:
        """The value of a leaf of a parameter."""
        if isinstance(t, Ref):
            return RefValue([self.array(e, "ref") for e in t.elems], t)
        if is_scalar(t):
            var = tirx.Var(f"x{len(self.params)}", "int32" if t.dtype == "bool" else t.dtype)
            self.params.append(var)
            return tirx.NE(var, tirx.IntImm("int32", 0)) if t.dtype == "bool" else var
        return self.array(t, "input") if isinstance(t, Array) else None

    def array(self, t: Array, kind: str) -> View:
        storage = self.storage(kind, product(t.shape) * ITEM[t.dtype], "arg")
        self.params.append(storage.var)
        return View(storage, t.dtype, t.shape)

    def build(self) -> Any:
        """The function."""
        function, graph = self.function, self.function.graph
        kept = {k: leaf for leaf, k in function.kept.items()}
        values = [
            None if k in kept else unflatten([self.parameter(t) for t in _passed(p.type)], p.type)
            for k, p in enumerate(graph.params)
        ]
        dest = [self.array(t, "out") if isinstance(t, Array) and not is_scalar(t) else None for t in function.results]
        for k, leaf in kept.items():
            values[k] = dest[leaf]
        wanted = [None if leaf in function.kept else view for leaf, view in enumerate(dest)]
        top = data.mark(self, graph, graph.output.type)
        given = [k in kept or isinstance(p.type, List) for k, p in enumerate(graph.params)]
        self.run(graph, values, wanted, lambda output: self.finish(output, dest), given)
        data.release(self, top)
        sizes.give_back(self)
        self.plan.finish()
        unit = 16 if self.plan.size == 0 else 64
        header = -(-function.header // unit) * unit
        size = header + self.plan.size
        self.calls.sizes.append(size)
        top = Block()
        self.state.block = top
        for statement in self.state.declarations():
            top.emit(statement)
        for name, var in self.given.items():
            if name not in self.calls.dims:
                self.calls.dims[name] = self.state.slot()
            top.emit(tirx.Bind(var, self.state.get(self.calls.dims[name])))
        top.emit(tirx.Bind(self.next, tirx.Add(self.frame, self.b.dim(size))))
        if self.calls.recursive:
            self.guard(top)
        if self.watch is not None:
            self.watch.poison(top, self.frame, self.size)
        for array, view, *_ in self.constants.values():
            slot = self.state.slot()
            self.calls.constants.append((slot, array))
            top.emit(tirx.Bind(view.storage.var, call("tirx.reinterpret", pointer_type("uint8"), self.state.get(slot))))
        base = call("tirx.reinterpret", pointer_type("uint8"), self.frame)
        if self.watch is not None:
            base = self.watch.record(base, self.frame, self.size)
        for storage in self.plan.storages:
            if storage.kind == "arena" and storage.offset is not None:
                top.emit(tirx.Bind(storage.var, pointer_at(base, self.b.dim(header + storage.offset), "uint8")))
        body = tirx.SeqStmt([*top._stmts, *self.cells._stmts, self.block.stmt()])
        return tirx.PrimFunc(self.params, body, ret_type=PrimType("int32"))

    def guard(self, top: Block) -> None:
        """Leave where the region of frames or the C stack ends."""
        function, calls, state = self.function, self.calls, self.state
        attrs = {"exception": RecursionError, "parts": (MESSAGE,)}
        self.sites.append(EffectSite(Apply(function.graph, REGISTRY["raise"], (), attrs, origin=function.origin), []))
        with top.when(expect(tirx.GT(self.next, state.get(calls.end)), False)):
            state.fail(len(self.sites) - 1)
        here = call("tirx.reinterpret", "int64", llvm("frameaddress.p0", "handle", tirx.IntImm("int32", 0)))
        with top.when(expect(tirx.LT(here, state.get(calls.stack)), False)):
            for k, param in enumerate(self.params[2:]):
                value = param if not _is_pointer(param) else call("tirx.reinterpret", "int64", param)
                saved = _word(top, self.frame, function.saved + 8 * k, dtype_of(value), self.watch, self.size)
                top.store(saved, value, 0)
            with top.when(tirx.Not(granted(state, top, DEEPER, idx(function.number), self.frame))):
                state.put(calls.status, idx(INTERRUPTED))
            top.emit(tirx.Return(tirx.IntImm("int32", 0)))
        if self.interruptible:
            top.store(state.ints, tirx.Sub(state.get(calls.iterations), idx(1)), calls.iterations)
            with top.when(expect(tirx.LE(state.get(calls.iterations), idx(0)), False)):
                top.store(state.ints, idx(ITERATIONS), calls.iterations)
                with top.when(tirx.Not(granted(state, top, POLL, idx(0)))):
                    state.leave(INTERRUPTED)

    def finish(self, output: Node, dest: list[View | None]) -> None:
        """Results to where the caller looks for them."""
        if self.function.kept:
            values = settle(self, dest, output)
        else:
            values = flatten(self.settled(output), output.type)
            for value, place in zip(values, dest, strict=True):
                if place is not None and not same_place(value, place):
                    self.copy(value, place)
        for k, offset in self.function.places.items():
            value, t = values[k], self.function.results[k]
            assert is_scalar(t)
            if t.dtype == "bool":
                value = tirx.Cast("int8", value)
            place = _word(self.block, self.frame, offset, dtype_of(value), self.watch, self.size)
            self.block.store(place, value, 0)


def _is_pointer(param: Any) -> bool:
    return not isinstance(param.ty, PrimType)


def _again(function: NativeFunction, watch: Watch | None) -> Any:
    """Run a function on the arguments in its frame."""
    block, area, frame = Block(), tirx.Var("ws", "int64"), tirx.Var("frame", "int64")
    args = []
    for k, t in enumerate([*function.inputs, *function.outputs]):
        offset = function.saved + 8 * k
        if is_scalar(t):
            dtype = "int32" if t.dtype == "bool" else t.dtype
            args.append(block.let(load(_word(block, frame, offset, dtype, watch, function.header), 0)))
        else:
            address = block.let(load(_word(block, frame, offset, "int64", watch, function.header), 0))
            pointer = call("tirx.reinterpret", pointer_type("uint8"), address)
            if watch is not None and isinstance(t, Array) and is_known(t.shape):
                pointer = watch.sized(pointer, product(t.shape) * ITEM[t.dtype])
            args.append(pointer)
    block.emit(tirx.Evaluate(tvm.ir.Call(function.var, [area, frame, *args], ret_ty="int32")))
    return pipeline.prim_func([area, frame], block.stmt(), noalias=False)


__all__ = ["Calls", "FunctionLowering"]
