"""Effects of the main function: failing, printing, reading and writing a model's arrays, polling for Ctrl-C.

A failed check stores its site's number and operands in the state area and returns a status; Python formats the message
(`entry`). Printing and polling for signals call Python, and leave the program if that raised.

The value of a read of a reference is an alias of the model's array. It is copied only if it is still needed after an
update of that array.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx

from ....abstract.types import Array, Data, List, NoneT, Ref, Str, Struct, Type, leaves
from ....ir.node import Apply, Constant, Graph, Node, applies
from ....ir.prim import Primitive
from ....opt.analysis.fusion import COST, is_scalar, is_view
from ....utils.errors import LoweringError, SliceBeyond
from ....utils.source import Origin
from ...native import library, sites
from ...native.area import CALL, FRAME, GO_ON, INTERRUPTED, OPERAND, POLL, PRINT, REQUEST, SERVER
from ..kernels.kernel import view_pointer
from ..plan import View
from ..tir import exact
from ..tir.block import call, dtype_of, expect, idx, load
from ..tir.pipeline import standalone
from .data import slots
from .inplace import last_use, views

SERVE = "myia_relay.native.serve"  # where code is not linked here but loaded by TVM


@dataclass
class EffectSite:
    """A place where Python takes over.

    Attributes:
        node: the application.
        decode: the operands: see `decoder`.
        results: where Python puts the results of a registered operator.
        calls: the calls in whose place the function with the application is emitted, innermost first.
    """

    node: Apply
    decode: list[Any]
    results: tuple[Any, ...] = ()
    calls: tuple[Origin, ...] = ()

    def site(self) -> sites.Site:
        """What is kept of it when compiled code runs."""
        attrs, origin = self.node.attrs, self.node.origin
        if self.calls and attrs.get("exception") is not SliceBeyond:  # which is known by the place of the slice
            origin = origin.called_from(self.calls)
        if self.results:
            call = tuple(attrs[k] for k in ("op", "attrs", "kinds", "levels"))
            return sites.Site(tuple(self.decode), (), origin, call=call, results=self.results)
        return sites.Site(
            tuple(self.decode), tuple(attrs["parts"]), origin, attrs.get("exception"), attrs.get("end", "")
        )


def calls_around(lowering: Any) -> tuple[Origin, ...]:
    """The calls in whose place the functions are that the walk is in, innermost first."""
    callers = (scope.caller for scope in reversed(lowering.scopes))
    return tuple(node.origin for node in callers if node is not None and isinstance(node.fn, Graph))


# --- operands ---------------------------------------------------------------------------------------------------------


def decoder(lowering: Any, node: Node, value: Any) -> Any:
    """Emit code that stores an operand in the state area; returns how to get it back there, as `native.sites` has it."""
    return _decoder(lowering, node.type, value, node)


def _decoder(lowering: Any, t: Type, value: Any, node: Node | None) -> Any:
    if isinstance(t, Str) or (isinstance(node, Constant) and isinstance(node.value, str)):
        if not isinstance(node, Constant):
            raise LoweringError("the native executor knows only constant strings")
        return sites.StaticOperand(node.value)
    if isinstance(t, NoneT):
        return sites.StaticOperand(None)
    if isinstance(t, Struct):
        # A text has no value in native code; it is identified by its node.
        parts = node.args if applies(node, "make_struct") else (None,) * len(t.elems)
        return sites.Parts(
            t, tuple(_decoder(lowering, e, v, part) for e, v, part in zip(t.elems, value, parts, strict=True))
        )
    slot = lowering.state.slot()
    if isinstance(t, Data):
        slots(lowering)  # its reader asks the heap, for variants without fields too
    if is_scalar(t):
        lowering.state.put(slot, value, t.dtype)
        return sites.Number(slot, t)
    if isinstance(t, Array):
        lowering.plan.touch(value.storage)
        lowering.state.put(slot, call("tirx.reinterpret", "int64", view_pointer(value)))
        sizes = tuple(lowering.state.slot() for d in t.shape)
        for at, d in zip(sizes, t.shape):
            lowering.state.put(at, lowering.b.dim(d))
        return sites.Elements(slot, t.dtype, sizes)
    if isinstance(t, List):
        lowering.state.put(slot, value)
        return sites.Entries(slot, t)
    raise LoweringError(f"the native executor cannot show a value of type {t}")


def _site(lowering: Any, node: Apply, operands: tuple[Node, ...]) -> int:
    _settle(lowering, operands)  # all of them before the first is tested: what is computed later may take its place
    lowering.plan.tick()
    decode = [decoder(lowering, a, lowering.value(a) if not _is_text(a) else None) for a in operands]
    lowering.sites.append(EffectSite(node, decode, calls=calls_around(lowering)))
    return len(lowering.sites) - 1


def _settle(lowering: Any, operands: tuple[Node, ...]) -> None:
    """Have the arrays of operands in memory."""
    for arg in operands:
        for view in views(lowering.scope.env.get(arg)):
            lowering.flush_writers(view.storage)


def _read_now(lowering: Any, operands: tuple[Node, ...]) -> None:
    """Python reads the arrays of operands now."""
    lowering.plan.tick()
    for arg in operands:
        for view in views(lowering.scope.env.get(arg)):
            lowering.plan.touch(view.storage)


def _is_text(node: Node) -> bool:
    return isinstance(node, Constant) and isinstance(node.value, str)


def _flush_writes(lowering: Any) -> None:
    """Updates of models happen before whatever may end the program or be seen."""
    for p in list(lowering.scope.pending):
        if any(v.storage.kind == "ref" for views in p.targets.values() for v in views):
            lowering.flush(p)


def _check(lowering: Any, node: Apply) -> None:
    _flush_writes(lowering)
    _settle(lowering, node.args[1:])
    condition = node.args[0]
    if isinstance(condition, Apply) and getattr(condition.fn, "name", "") == "logical_or":
        # Two jumps: the second operand, a check of `opt.rewrite.if_conversion`, nearly always decides, and the first
        # may be anything.
        first, second = (lowering.scalar(a) for a in condition.args)
        with lowering.block.when(expect(tirx.Not(second), False)), lowering.block.when(tirx.Not(first)):
            lowering.state.fail(_site(lowering, node, node.args[1:]))
    else:
        with lowering.block.when(expect(tirx.Not(lowering.scalar(condition)), False)):
            lowering.state.fail(_site(lowering, node, node.args[1:]))
    lowering.scope.env[node] = None


def _raise(lowering: Any, node: Apply) -> None:
    _flush_writes(lowering)
    # LLVM's builder fails on code after a return: keep it formally reachable.
    site = _site(lowering, node, node.args)
    with lowering.block.when(tirx.EQ(lowering.state.get(1), lowering.state.get(1))):
        lowering.state.fail(site)
    lowering.scope.env[node] = lowering.undefined(node.type)


def _print(lowering: Any, node: Apply) -> None:
    _flush_writes(lowering)
    site = _site(lowering, node, node.args)
    _read_now(lowering, node.args)
    _request(lowering, PRINT, idx(site))
    lowering.scope.env[node] = None


def _call_operator(lowering: Any, node: Apply) -> None:
    """Python computes a registered operator's results, and puts them into slots and the memory given to it."""
    _flush_writes(lowering)
    number = _site(lowering, node, node.args)
    types = node.type.elems if isinstance(node.type, Struct) else (node.type,)
    values = [None if is_scalar(t) else lowering.new_view(t) for t in types]
    _read_now(lowering, node.args)
    results: list[Any] = []
    for t, view in zip(types, values):
        slot = lowering.state.slot()
        if view is None:
            results.append(sites.Number(slot, t))
            continue
        assert isinstance(t, Array)
        lowering.plan.touch(view.storage)
        lowering.state.put(slot, call("tirx.reinterpret", "int64", view_pointer(view)))
        sizes = tuple(lowering.state.slot() for _ in t.shape)
        for at, d in zip(sizes, t.shape):
            lowering.state.put(at, lowering.b.dim(d))
        results.append(sites.Elements(slot, t.dtype, sizes))
    lowering.sites[number].results = tuple(results)
    _request(lowering, CALL, idx(number))
    found = [
        lowering.block.let(lowering.state.number(r.slot, r.type.dtype)) if view is None else view
        for view, r in zip(values, results)
    ]
    lowering.scope.env[node] = tuple(found) if isinstance(node.type, Struct) else found[0]


def _request(lowering: Any, kind: int, operand: Any) -> None:
    """Ask Python for something, and end the program where the answer is that an exception waits."""
    state = lowering.state
    state.needed = True
    with lowering.block.when(tirx.Not(granted(state, lowering.block, kind, operand))):
        state.leave(INTERRUPTED)


def granted(state: Any, block: Any, kind: int, operand: Any, frame: Any = None) -> Any:
    """Emit a request; returns whether the program goes on."""
    for slot, value in ((REQUEST, idx(kind)), (OPERAND, operand), (FRAME, frame)):
        if value is not None:
            block.store(state.ints, value, slot)
    server = state.get(SERVER)
    if library.supported() or standalone() is not None:
        answer = tirx.call_extern("int32", library.SERVE, server)
    else:
        answer = tirx.call_packed(SERVE, server)
    answer = block.let(tirx.Cast("int32", answer) if dtype_of(answer) != "int32" else answer)
    return tirx.EQ(answer, tirx.IntImm("int32", GO_ON))


# A signal may be handled as `_serve` begins, before anything there can catch what it raises: TVM must know the class.
tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)


@tvm_ffi.register_global_func(SERVE)
def _serve(server: int) -> int:
    return next(ctypes.cast(server, ctypes.py_object).value)


# --- references -------------------------------------------------------------------------------------------------------


def _writes_in(graph: Graph, memo: dict) -> set:
    """What a graph may write: (index, type of the array)."""
    if graph not in memo:
        memo[graph] = set()  # a recursive call adds nothing
        memo[graph] = set().union(*(writes_of(n, memo) for n in graph.nodes)) if graph.nodes else set()
    return memo[graph]


def writes_of(node: Apply, memo: dict) -> set:
    """What an application may write. References of one type may be one object, so they are not told apart."""
    if isinstance(node.fn, Graph):
        return _writes_in(node.fn, memo)
    if node.fn.name == "ref_write":
        ref: Ref = node.args[0].type
        return {(node.attrs["index"], ref)}
    out = set()
    for value in node.attrs.values():
        if isinstance(value, Graph):
            out |= _writes_in(value, memo)
    return out


def _note_writes(scope: Any) -> None:
    """Find the applications of a scope's graph that write, once."""
    if scope.ref_writes is None:
        memo: dict = {}
        found = [(i, n, writes_of(n, memo)) for i, n in enumerate(scope.graph.nodes)]
        scope.ref_writes = [w for w in found if w[2]]


def _still_needed(lowering: Any, node: Apply) -> bool:
    """Whether the value of a `ref_read` is used after an update of the array that it read."""
    scope = lowering.scope
    _note_writes(scope)
    key = (node.attrs["index"], node.args[0].type)
    start, last = scope.position[node], last_use(scope, node)
    for position, writer, keys in scope.ref_writes:
        if position > start and key in keys:
            if position < last:
                return True
            if position == last and not (isinstance(writer.fn, Primitive) and writer.fn.name == "ref_write"):
                return True  # a loop or branch that reads and writes
    return False


def _ref_read(lowering: Any, node: Apply) -> None:
    ref = lowering.value(node.args[0])
    view = ref.views[node.attrs["index"]]
    lowering.flush_writers(view.storage)
    if is_scalar(node.type):
        lowering.scope.env[node] = lowering.load_slot(View(view.storage, view.dtype, (1,), view.offset))
        return
    if _still_needed(lowering, node):
        fresh = lowering.new_view(node.type)
        lowering.copy(view, fresh)
        view = fresh
    # A new view object for each read: identical objects stand for equal contents.
    lowering.scope.env[node] = View(view.storage, view.dtype, view.shape, view.offset)


def _ref_write(lowering: Any, node: Apply) -> None:
    ref, value = lowering.value(node.args[0]), node.args[1]
    place = ref.views[node.attrs["index"]]
    scope = lowering.scope
    scope.env[node] = None
    if is_scalar(value.type):
        _flush_reads(lowering, place)
        from ..kernels.kernel import MainSite

        lowering.plan.tick()
        lowering.block.store(MainSite(lowering).buffer(place), lowering.scalar(value), 0)
        return
    if lowering.retarget(value, place, keep=_written_again(lowering, node, value)):
        return
    if lowering.is_inline(value) or value not in scope.env:
        lowering.defer(value, [lowering.new_view(value.type)])
    source = lowering.view(value)
    lowering.flush_writers(source.storage)
    _flush_reads(lowering, place)
    if source.storage is not place.storage or source.offset is not place.offset:
        lowering.copy(source, place)


def _flush_reads(lowering: Any, place: View) -> None:
    lowering.flush_users(place.storage)


def _written_again(lowering: Any, node: Apply, value: Node) -> bool:
    """Whether the value is used after a further update of the array that it is written to now."""
    scope = lowering.scope
    _note_writes(scope)
    key = (node.attrs["index"], node.args[0].type)
    last = last_use(scope, value)
    return any(scope.position[node] < position <= last and key in keys for position, _, keys in scope.ref_writes)


# --- signals ----------------------------------------------------------------------------------------------------------


class Poll:
    """Asks for signals between a loop's iterations, every half millisecond or so.

    Loops draw on one budget of a function, so that short loops in long ones count too. The request stands outside of
    the loop over
    the body: a call in it would cost the registers of all that the body keeps.

    Args:
        lowering: the walk.
        node: the loop.
        trips: how many iterations it makes at most, if that is known.
    """

    def __init__(self, lowering: Any, node: Apply, trips: int | None = None):
        self.lowering = lowering
        nanoseconds = max(1.0, sum(estimate(g) for g in node.attrs.values() if isinstance(g, Graph)))
        short = trips is not None and trips * nanoseconds < POLL_NANOSECONDS_FREE
        self.needed = not short and may_interrupt(lowering, node)
        self.weight = int(nanoseconds)
        self.iterations = max(1, int(POLL_NANOSECONDS / nanoseconds))

    def due(self) -> Any:
        """Whether the budget is used up, which is not expected."""
        return expect(tirx.LE(load(self.lowering.budget(), 0), idx(0)), False)

    def spend(self, iterations: Any = 1) -> None:
        """Some iterations have been made."""
        budget = self.lowering.budget()
        spent = idx(self.weight) if iterations == 1 else exact.wrapping_mul(iterations, idx(self.weight))
        self.lowering.block.store(budget, tirx.Sub(load(budget, 0), spent), 0)

    def emit(self) -> None:
        """Ask, if it is time."""
        with self.lowering.block.when(self.due()):
            self.lowering.block.store(self.lowering.budget(), idx(POLL_NANOSECONDS), 0)
            _request(self.lowering, POLL, idx(0))


POLL_NANOSECONDS = 500_000
POLL_NANOSECONDS_FREE = 2_000_000


def may_interrupt(lowering: Any, loop: Apply) -> bool:
    """Whether the program may stop between two iterations of a loop: no update is half done around it."""
    if not lowering.interruptible:
        return False
    memo: dict = {}
    inner: Node = loop
    for depth, scope in enumerate(reversed(lowering.scopes)):
        writers = [n for n in scope.graph.nodes if n is not inner and writes_of(n, memo)]
        outermost = depth == len(lowering.scopes) - 1
        at = scope.position.get(inner, len(scope.position))
        if any(not outermost or scope.position[n] < at for n in writers):
            return False
        inner = scope.caller if scope.caller is not None else inner
    return True


def estimate(graph: Graph, busy: tuple[Graph, ...] = ()) -> float:
    """Rough nanoseconds that a graph takes; of a recursive function, one call."""
    total = 0.0
    for node in graph.nodes:
        inner = [g for g in (*node.attrs.values(), node.fn) if isinstance(g, Graph)]
        if inner:
            total += sum(estimate(g, (*busy, graph)) for g in inner if g is not graph and g not in busy)
            continue
        if node.fn.kind == "struct":
            continue
        size = 1.0
        for t in leaves(node.type):
            if isinstance(t, Array):
                for d in t.shape:
                    size *= d if isinstance(d, int) else 64
        if node.fn.kind == "opaque":
            size = max([size, *(_elements(a.type) for a in node.args)]) * 10
        elif node.fn.kind == "reduce":
            size = _elements(node.args[0].type)
        elif node.fn.update:
            size = _elements(node.args[1].type)  # usually in place
        elif is_view(node):
            size = 1.0
        total += 1.0 + size * 0.1 * COST.get(node.fn.name, 1) / 2
    return total


def _elements(t: Type) -> float:
    size = 1.0
    for d in getattr(t, "shape", ()):
        size *= d if isinstance(d, int) else 64
    return size


RULES = {
    "check": _check,
    "raise": _raise,
    "print": _print,
    "call_operator": _call_operator,
    "ref_read": _ref_read,
    "ref_write": _ref_write,
}

__all__ = ["RULES", "Poll", "EffectSite", "calls_around"]
