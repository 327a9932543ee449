"""Whole typed programs to one native module with a fast Python caller: `compile_program`.

    program = compile_program(graph)
    program(2.0, x)                 # runs native code
    program.into(out, 2.0, x)       # results into arrays of the caller
    print(program.asm())

The main function holds the control flow and the scalars, private functions are the kernels. The code is in `lower`,
`control`, `nests` and `opaque`, memory in `plan`, the interface to Python in `state` and `entry`.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from ...abstract.dims import is_run_time, product
from ...abstract.types import (
    Array,
    Data,
    List,
    NoneT,
    Ref,
    Scalar,
    Str,
    Struct,
    Type,
    Undefined,
    holds,
    leaves,
    type_symbols,
)
from ...ir.node import Graph, Node
from ...ir.rewrite import all_graphs, mark_recursion
from ...opt.analysis.fusion import is_scalar
from ...opt.analysis.ranges import analyse
from ...opt.kernels.widen_bfloat16 import WidenBfloat16
from ...opt.pipeline import plan_lanes
from ...utils.debugging import memory_checked
from ...utils.errors import LoweringError
from ...utils.patience import look
from ..native.area import LAYOUT
from ..native.entry import Entry, ProgramSignature
from ..native.library import supported
from ..native.lists import RELEASE, many_blocks
from ..native.memory_checks import MemoryChecks
from ..native.standalone import StandaloneCode, TargetMachine
from ..native.timing import Timing
from .host import data, layout, lists, tapes
from .host.clock import Clock
from .host.control import flatten, same_place, unflatten
from .host.lower import Lowering
from .host.outline import outlined
from .host.recursion import Calls
from .host.scope import RefValue
from .host.state import from_float64, to_float64
from .host.watch import Watch
from .kernels import nontemporal
from .kernels.kernel import pointer_at, pointer_type, view_pointer
from .plan import ALIGN, ITEM, View
from .tir import bounds, machine, parts, pipeline, threads
from .tir.block import Block, call, dtype_of, idx, load

# Arguments and results: further ones are words of the state area, because TVM's checks of parameters take time for each
# pair.
MANY = 64


def compile_program(graph: Graph, *, options: dict[str, Any] | None = None) -> NativeProgram:
    """Compile a typed program.

    Args:
        graph: closed typed graph, after differentiation and optimisation.
        options: "target": a `tvm.target.Target` (None or "cpu": this machine); "inspect": note what the kernels
            compute, for `regions`; "profile": that, and let the program time itself.

    Returns:
        The program.

    Raises:
        LoweringError: something in it cannot be compiled.
    """
    begin = time.perf_counter()
    machine_ = (options or {}).get("standalone")
    if machine_ is not None:
        return _standalone(graph, machine_)
    _threads()
    graph = plan_lanes(WidenBfloat16()(graph), wide=pipeline.vector_bytes() >= 64)
    look()
    writer = _Main(graph, options or {})
    module = writer.module()
    look()
    lowered = time.perf_counter()
    target = (options or {}).get("target")
    if target is None or target == "cpu":
        target = _target()
    elif not isinstance(target, tvm.target.Target):
        raise LoweringError(f"there is no native executor for the target {target!r} yet; use 'cpu'", graph.origin)
    signature = writer.signature()
    objects: tuple[bytes, ...] | None = None
    code: Any
    if supported():
        modules, objects = parts.build(module, writer.apart(), target)
        code = machine.load(objects, signature.checks is not None and signature.checks.guarded)
        signature.needs = machine.needs_of(objects)
    else:
        modules = [pipeline.build(module, target=target)]
        code = machine.JustInTime(modules[0])
    done = time.perf_counter()
    return NativeProgram(
        graph,
        Entry(code, signature),
        module,
        modules,
        writer.lowering,
        (lowered - begin, done - lowered),
        objects,
        writer.timing,
    )


def _standalone(graph: Graph, machine_: TargetMachine) -> Any:
    """A program that runs without Python: its object files, and what the caller has to know."""
    with pipeline.made_for(machine_):
        writer = _Main(plan_lanes(WidenBfloat16()(graph), wide=pipeline.vector_bytes() >= 64), {}, standalone=True)
        module = writer.module()
    base: Any = pipeline.host_target().attrs
    attrs: dict[str, Any] = machine_.attributes() or {
        k: str(v) if k == "mcpu" else list(map(str, v)) for k, v in base.items() if k in ("mcpu", "mattr")
    }
    attrs |= {"kind": "llvm", "cl-opt": _options((machine_.triple or platform.machine()).split("-")[0])}
    built = pipeline.build(module, target=tvm.target.Target(attrs))
    return StandaloneCode(machine.object_of(built), writer.signature())


@functools.lru_cache(maxsize=1)
def _threads() -> int:
    """Set up the pool of threads, once."""
    return threads.configure()


@functools.lru_cache(maxsize=1)
def _target() -> Any:
    """This machine, with our options of LLVM's."""
    base: Mapping[str, Any] = pipeline.host_target().attrs  # pyright: ignore[reportAssignmentType]  # TVM declares a str
    attrs: dict[str, Any] = {"kind": "llvm", "mcpu": str(base["mcpu"]), "cl-opt": _options(platform.machine())}
    if "mattr" in base:
        attrs["mattr"] = [str(a) for a in base["mattr"]]
    return tvm.target.Target(attrs)


def _options(processor: str) -> list[str]:
    """Options of LLVM's for code of a processor, the first part of a triple.

    No type-based alias analysis: TVM marks accesses of differently named buffers as never overlapping where a function promises so,
    and storages take each other's place here. No function of ours promises (see `Kernel.function`); this is the second lock on that
    door.

    A short look back: global value numbering compares each load with the hundred accesses before it, which takes a third of LLVM's
    passes for kernels of hundreds of loads. Equal loads that lie further apart are found by an earlier pass.

    Choices stay choices: for x86 a late pass turns conditional moves in inner loops into jumps where these look shorter. It cannot
    know whether the processor will foresee them, and we make choices of branches where both sides are cheap
    (`opt.rewrite.if_conversion`).
    """
    options = ["-enable-tbaa:bool=0", "-memdep-block-scan-limit:uint=20"]
    return (
        [*options, "-x86-cmov-converter:bool=0"]
        if processor.lower() in ("x86_64", "amd64", "i386", "i686")
        else options
    )


class NativeProgram:
    """A compiled program: call it with Python values of the graph's parameter types.

    Attributes:
        tir: its functions, as an IRModule.
        modules: what TVM has built of them.
        code: their machine code as object files; None where TVM loads it.
        source: the Python source of its caller.
        regions: its kernels, with the option "inspect" or "profile".
        storages: its memory, where there are `regions`.
        timing: where it writes its times, with the option "profile".
    """

    def __init__(
        self,
        graph: Graph,
        entry: Entry,
        tir: Any,
        modules: list[Any],
        lowering: Lowering,
        times: tuple[float, float],
        code: tuple[bytes, ...] | None,
        timing: Timing | None = None,
    ):
        self.graph, self.entry, self.tir, self.modules = graph, entry, tir, modules
        self.times, self.code = times, code
        self.kernels = list(lowering.kernels)
        self.functions = len(lowering.functions)
        self.arena = lowering.plan.size
        self.unplanned = sum(_bytes(s.nbytes) for s in lowering.plan.storages if s.kind == "arena" and s.first >= 0)
        self.regions = lowering.described
        self.storages = lowering.plan.storages if lowering.described is not None else []
        self.timing: Timing | None = timing
        self.into = entry.into
        self.source = entry.call.source
        self._call = entry.call

    def __call__(self, *values: Any) -> Any:
        return self._call(*values)

    @property
    def call(self) -> Any:
        """The bare caller, without a method call around it."""
        return self._call

    def asm(self) -> str:
        """The assembly of all modules."""
        return "\n".join(str(module.inspect_source("s")) for module in self.modules)

    def llvm(self) -> str:
        """The LLVM code of all modules."""
        return "\n".join(str(module.inspect_source("ll")) for module in self.modules)

    def row_blocks(self) -> list[tuple[int, int]]:
        """Of how many rows its sums are taken block by block, and how many these have (`opt.kernels.row_blocks`)."""
        return [g.flags["row_block"] for g in all_graphs(self.graph) if "row_block" in g.flags]


def _passed(t: Type) -> int:
    """How many arguments a parameter of a type is."""
    if isinstance(t, Struct):
        return sum(_passed(e) for e in t.elems)
    return len(t.elems) if isinstance(t, Ref) else 1


def _bytes(n: Any) -> int:
    return n if isinstance(n, int) else 0


class _Main:
    """Builds the main function of a program."""

    def __init__(self, graph: Graph, options: Mapping[str, Any], standalone: bool = False):
        self.graph = graph
        self.lowering = Lowering()
        self.lowering.ranges = analyse(graph)
        self.clock: Clock | None = None
        if options.get("inspect") or options.get("profile"):
            self.lowering.described = []
        if options.get("profile"):
            self.clock = self.lowering.clock = Clock(self.lowering.state)
        self.timing: Timing | None = None
        self.watch: Watch | None = None
        if memory_checked() and self.clock is None:
            self.watch = self.lowering.watch = Watch(self.lowering.state)
            self.watch.follow(self.lowering)
        self.checked: list[str] = []
        recursive = set(mark_recursion(graph))
        others = outlined(graph, recursive)
        if recursive or others:
            self.lowering.calls = Calls(self.lowering, graph, recursive, others)
        self.calls: Calls | None = self.lowering.calls
        self.block: Block = self.lowering.block
        self.params: list[Any] = []
        self.incoming: list[Any] = []  # statements that read the arguments from the state area, where there are many
        self.standalone = standalone
        self.by_object = layout.supported() and not standalone
        self.arrays: list[tuple[layout.Expected, Any]] = []  # the array arguments and their memory
        self.descr_slots: dict[str, int] = {}
        self.presets: dict[int, Any] = {}
        self.bindings: list[Any] = []
        self.results: list[Any] = []
        self.outs: list[View] = []
        self.symbols = sorted(set().union(*(type_symbols(p.type) for p in graph.params), set()))

    def module(self) -> tvm.IRModule:
        """All functions of the program.

        Raises:
            LoweringError: a native program cannot return values of the result's type.
        """
        lowering, state = self.lowering, self.lowering.state
        for name in self.symbols:
            lowering.dims[name] = tirx.Var(f"dim_{name}", "int64")
        self.checks = Block()
        count = (
            sum(_passed(p.type) for p in self.graph.params) + len(self.symbols) + len(leaves(self.graph.output.type))
        )
        self.first = state.slot(count) if count > MANY else None
        state.needed = state.needed or self.first is not None
        values = [self.parameter(p.type, p.name) for p in self.graph.params]
        self.check_arrays()
        types = leaves(self.graph.output.type)
        if any(data.holds_data(t) for t in (*types, *(p.type for p in self.graph.params))):
            data.slots(lowering)
        dest: list[View | None] = []
        for t in types:
            if isinstance(t, Array) and any(map(is_run_time, t.shape)):
                self.results.append(("sized", state.slot(), [state.slot() for _ in t.shape]))
                dest.append(None)
            elif isinstance(t, Array) and not is_scalar(t):
                storage = lowering.storage("out", product(t.shape) * ITEM[t.dtype], "out")
                view = View(storage, t.dtype, t.shape)
                self.results.append(("array", len(self.outs)))
                self.outs.append(view)
                dest.append(view)
            elif is_scalar(t):
                self.results.append(("slot", state.slot()))
                dest.append(None)
            elif isinstance(t, List):
                if type_symbols(t) or holds(t, Data):
                    what = "arrays whose sizes are symbolic" if type_symbols(t) else "trees"
                    raise LoweringError(
                        f"a list of {what} cannot be returned by the native executor yet", self.graph.origin
                    )
                self.results.append(("list", state.slot()))
                dest.append(None)
            elif isinstance(t, NoneT | Undefined):
                self.results.append("none")
                dest.append(None)
            else:
                raise LoweringError(f"a native program cannot return a value of type {t}", self.graph.origin)
        scalars = [t for t in types if is_scalar(t)]
        lowering.run(self.graph, values, dest, lambda node: self.finish(node, types))
        lowering.plan.finish()
        if any(map(nontemporal.pays, self.outs)):
            nontemporal.finish(self.block)
        self.private = self.calls.finish() if self.calls is not None else {}
        if self.clock is not None:
            self.clock.end(self.lowering)
            self.timing = self.clock.timing()
            self.presets[self.clock.slot] = self.timing.array
        # A program with one scalar result that cannot fail returns the result; all others return a status.
        if len(types) == 1 and scalars and not self.needs_state():
            self.results = ["return"]
            state.used = False
            self.block.emit(tirx.Return(self.returned))
        elif scalars:
            self.block.emit(self.stores.stmt())
        return self.assemble()

    def needs_state(self) -> bool:
        """Whether the state area is used for more than one scalar result."""
        lowering = self.lowering
        return bool(
            lowering.sites or lowering.constants or lowering.plan.size != 0 or self.presets or lowering.state.needed
        )

    def finish(self, node: Node, types: list[Type]) -> None:
        """The epilogue: results to where they belong."""
        lowering = self.lowering
        values = flatten(lowering.settled(node), node.type)
        self.stores = Block()
        outs = iter(self.outs)
        for t, value, result in zip(types, values, self.results, strict=True):
            if result[0] == "sized":
                assert isinstance(t, Array)
                if not value.storage.own or not value.whole:  # a part of what may be the caller's, or not live on
                    part, value = value, lowering.new_view(t)
                    lowering.copy(part, value)
                lowering.flush_writers(value.storage)
                lowering.plan.tick()
                lowering.plan.touch(value.storage)
                lowering.state.put(result[1], call("tirx.reinterpret", "int64", view_pointer(value)))
                for slot, size in zip(result[2], t.shape, strict=True):
                    lowering.state.put(slot, lowering.b.dim(size))
            elif isinstance(t, Array) and not is_scalar(t):
                place = next(outs)
                if not same_place(value, place):
                    lowering.copy(value, place)
            elif isinstance(t, List):
                lowering.state.put(result[1], value)
            elif is_scalar(t):
                lowering.state.block = self.stores
                lowering.state.put(result[1], value, t.dtype)
                lowering.state.block = self.block
                if t.dtype.startswith(("float", "bfloat")):
                    self.returned = to_float64(value, t.dtype)
                else:
                    self.returned = value if t.dtype == "int64" else tirx.Cast("int64", value)

    def take(self, var: Any) -> None:
        """Make a variable an argument of the program: a parameter, or the next word in the state area."""
        if self.first is None:
            self.params.append(var)
            return
        state = self.lowering.state
        words = state.floats if dtype_of(var) == "float64" else state.ints
        self.incoming.append(tirx.Bind(var, load(words, self.first + len(self.incoming))))

    # --- parameters -------------------------------------------------------------------------------------------------

    def parameter(self, t: Type, name: str) -> Any:
        """The lowered value of a parameter of a type; adds to the function's parameters.

        Raises:
            LoweringError: a native program cannot take values of this type.
        """
        if isinstance(t, Struct):
            return unflatten(
                [self.parameter(e, f"{name}_{i}") for i, leaf in enumerate(t.elems) for e in leaves(leaf)], t
            )
        if isinstance(t, Scalar | Data):
            wide = "float64" if t.dtype.startswith(("float", "bfloat")) else "int64"
            var = tirx.Var(name, wide)
            self.take(var)
            if t.dtype == "bool":
                return tirx.NE(var, idx(0))
            if wide == "float64":
                return from_float64(self.block, var, t.dtype)
            return var if t.dtype == wide else tirx.Cast(t.dtype, var)
        if isinstance(t, Array):
            view = self.array(t, name, "input")
            if is_scalar(t):
                return self.lowering.load_slot(View(view.storage, view.dtype, (1,)))
            return view
        if isinstance(t, Ref):
            return RefValue([self.array(e, f"{name}_{n}", "ref") for n, e in zip(t.names, t.elems)], t)
        if isinstance(t, NoneT | Str | Undefined):
            return None
        raise LoweringError(f"a native program cannot take an argument of type {t}", self.graph.origin)

    def array(self, t: Array, name: str, kind: str) -> View:
        """An array argument: its memory, and the check that it is what was compiled for."""
        lowering = self.lowering
        storage = lowering.storage(kind, product(t.shape) * ITEM[t.dtype], "arg")
        obj = tirx.Var(f"obj_{''.join(c if c.isalnum() else '_' for c in name)}", "int64")
        self.take(obj)
        if self.by_object:
            if t.dtype not in self.descr_slots:
                self.descr_slots[t.dtype] = self.preset(layout.descr(t.dtype))
            shape = [lowering.b.dim(d) for d in t.shape]
            dtype = lowering.state.get(self.descr_slots[t.dtype])
            self.arrays.append((layout.Expected(obj, dtype, shape, kind == "ref"), storage))
            if self.watch is not None:
                self.watch.items[storage.var] = ITEM[t.dtype]
        else:
            self.checks.emit(tirx.Bind(storage.var, call("tirx.reinterpret", pointer_type("uint8"), obj)))
            if self.watch is not None:
                self.watch.memory.extents[storage.var] = lowering.b.dim(storage.nbytes)
        return View(storage, t.dtype, t.shape)

    def check_arrays(self) -> None:
        """Leave unless the array arguments are what was compiled for; then fetch where their elements are."""
        if not self.arrays:
            return
        block, type_id = self.checks, self.lowering.state.get(self.preset(np.ndarray))
        layout.check(block, [expected for expected, _ in self.arrays], type_id, LAYOUT)
        for expected, storage in self.arrays:
            data = layout.data_pointer(block, expected.obj)
            if self.watch is not None:
                shape = layout.sizes(block, expected.obj)
                self.watch.argument(storage.var, shape, len(expected.shape), self.watch.items[storage.var])
            block.emit(tirx.Bind(storage.var, call("tirx.reinterpret", pointer_type("uint8"), data)))

    def preset(self, value: Any) -> int:
        """A slot that has the address of an array, or the identity of an object, from the start."""
        slot = self.lowering.state.slot()
        self.presets[slot] = value
        return slot

    # --- the whole --------------------------------------------------------------------------------------------------

    def assemble(self) -> tvm.IRModule:
        """The main function with its prologue, and the kernels."""
        lowering, state = self.lowering, self.lowering.state
        top = Block()
        for name in self.symbols:
            self.take(lowering.dims[name])
        params = list(self.params)
        for array, view, *_ in lowering.constants.values():
            slot = self.preset(array)
            pointer = call("tirx.reinterpret", pointer_type("uint8"), state.get(slot))
            self.bindings.append(tirx.Bind(view.storage.var, pointer))
        if lowering.plan.size != 0 and not state.used:
            state.slot()  # the arena is in the state area, which a program without slots would not get
        for slot, array in self.calls.constants if self.calls is not None else ():
            self.presets[slot] = array
        if self.watch is not None:
            self.watch.locate(self.preset)
        if state.used:
            params.append(state.address)
            calls = self.calls.prologue() if self.calls is not None else []
            for statement in [*state.declarations(), *tapes.reset(lowering), *lists.reset(lowering), *calls]:
                top.emit(statement)
            base = tirx.Var("arena", pointer_type("uint8"))
            head = -(-state.count * 8 // ALIGN) * ALIGN
            top.emit(
                tirx.Bind(base, call("tirx.reinterpret", pointer_type("uint8"), tirx.Add(state.address, idx(head))))
            )
            if self.watch is not None:
                self.watch.memory.extents[base] = lowering.b.dim(lowering.plan.size)
            for storage in lowering.plan.storages:
                if storage.kind == "arena" and storage.offset is not None:
                    offset = storage.offset if isinstance(storage.offset, int) else lowering.b.dim(storage.offset)
                    self.bindings.append(tirx.Bind(storage.var, pointer_at(base, offset, "uint8")))
        for view in self.outs:
            obj = tirx.Var("obj_out", "int64")
            if self.first is None:
                params.append(obj)
            else:
                self.take(obj)
            holder = Block()
            data = layout.data_pointer(holder, obj) if self.by_object else obj
            if self.watch is not None and not self.by_object:
                self.watch.memory.extents[view.storage.var] = lowering.b.dim(view.storage.nbytes)
            if self.watch is not None and self.by_object:
                self.watch.argument(view.storage.var, layout.sizes(holder, obj), len(view.shape), ITEM[view.dtype])
            self.bindings += [
                *holder._stmts,
                tirx.Bind(view.storage.var, call("tirx.reinterpret", pointer_type("uint8"), data)),
            ]
        declared = len(state.declarations()) if self.incoming or self.clock is not None else 0
        statements = [
            *top._stmts[:declared],
            *self.incoming,
            *top._stmts[declared:],
            *self.checks._stmts,
            *self.bindings,
            self.block.stmt(),
        ]
        if self.clock is not None:
            first = Block()
            self.clock.begin(lowering, first)
            statements[declared + len(self.incoming) : declared + len(self.incoming)] = first._stmts
        body = tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]
        main = pipeline.prim_func(params, body, noalias=False).with_attr("global_symbol", "main")
        functions = {**lowering.functions, **self.private}
        functions[tvm.ir.GlobalVar("main")] = main
        if many_blocks(self.graph.output.type) and self.watch is None and not self.standalone:
            functions[tvm.ir.GlobalVar(RELEASE)] = lists.release(lowering)
        if self.watch is not None:
            module, self.checked = bounds.checked(tvm.IRModule(functions), self.watch.finish())
            return module
        for var in lowering.sizes:
            functions[var] = parts.callable_by_name(functions[var], var.name_hint)
        return tvm.IRModule(functions)

    def apart(self) -> set[Any]:
        """The functions that are compiled in another module than the main function."""
        return set() if self.watch is not None else parts.divide(self.lowering.sizes, self.block.size)

    def signature(self) -> ProgramSignature:
        """What the caller has to know."""
        lowering = self.lowering
        state = lowering.state
        return ProgramSignature(
            params=[p.type for p in self.graph.params],
            output=self.graph.output.type,
            symbols=self.symbols,
            results=self.results,
            state_slots=state.count if state.used else 0,
            arena=lowering.plan.size,
            presets=self.presets,
            sites=[s.site() for s in lowering.sites],
            by_object=self.by_object,
            regions=[*lowering.tape_slots.values(), *lowering.sized],
            block=self.first,
            list_head=lowering.lists.head if lowering.lists is not None else None,
            trace=self.calls.trace if self.calls is not None else None,
            frames=(self.calls.base, self.calls.end, self.calls.stack, self.calls.bytes())
            if self.calls is not None
            else None,
            heap=lowering.heap,
            checks=None
            if self.watch is None
            else MemoryChecks(
                self.watch.memory.slot, self.checked, self.watch.places, self.watch.memory.known is not None
            ),
        )


__all__ = ["NativeProgram", "compile_program"]
