"""Checks of every memory access: a pass over finished functions, for finding miscompilations (`MYIA_RELAY_CHECKED=1`).

Idea: every pointer has the bounds of its memory. Private functions take both bounds with each pointer, so a buffer that
is declared over a pointer has a least and a greatest index. Each load and store, each lane of a vector, and each copy
is compared with them before it runs. A failure is recorded, and all functions return. Nothing that the compiler has
proved is used: extents come from NumPy's array objects, from the sizes of the memory plan's storages, and from the
shapes of arrays.

Memory is filled with a poison value where a live range begins or ends: a NaN, or for integers a large odd number.
Reading a value before it is written, or after its live range, then changes the answer.

Addresses that are stored as numbers (the blocks of lists, records, frames, tapes) have no known bounds. Before each access
there, its bytes are looked up in the memory that the call has at that moment: see `lookup`.

Input: a module, and what `Memory` records. Output: a module whose main function may return the status `VIOLATED`. Loops
run in one thread, and element by element where they were "vectorized"; other vectors stay vectors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType
from tvm.tirx.stmt import ForKind

from ....utils.errors import InternalError
from ...native.memory_checks import FOUND, PLACE, VIOLATED
from .block import Block, call, dtype_of, element, expect, idx, lanes_of, llvm, load
from .lookup import KnownMemory, look, poison, poison_of, slots_type, violate, whole

PLACE_MARK, CLOCK_MARK, EXTENT_MARK = "myia_relay_place", "myia_relay_clock", "myia_relay_extent"
INDEX_MARK, POISON_MARK = "myia_relay_index", "myia_relay_poison"
FAR = (1 << 63) - 1
OBJECTS = ("obj", "dims")  # buffers over NumPy's array objects, read at constant words before anything else runs
AREA = ("slots", "slots_i", "slots_f")  # buffers over the state area's slots


@dataclass
class Memory:
    """What the pass is told.

    Attributes:
        area: the variable of the state area's address in the main function.
        slot: the first of the slots for what is found.
        slots: how many there are in all.
        known: where else memory may lie; None where that cannot be known, and nothing is looked up.
        extents: the bytes behind pointer variables that functions bind.
        events: (plan, clock) -> pointers and sizes of the memory whose life ends, or begins, there.
    """

    area: Any
    slot: int
    slots: int = 0
    known: KnownMemory | None = None
    extents: dict[Any, Any] = field(default_factory=dict)
    events: dict[tuple[int, int], list[tuple[Any, Any]]] = field(default_factory=dict)


def mark(name: str, *numbers: int) -> Any:
    """A statement that says where in the program the code behind it belongs; the pass takes it out."""
    return tirx.Evaluate(tirx.call_extern("int32", name, *map(idx, numbers)))


def inside(what: str, index: Any, most: Any, least: Any = 0) -> Any:
    """A statement that says from where to before where an index has to be; the pass makes a check of it."""
    return tirx.Evaluate(
        tirx.call_extern("int32", INDEX_MARK, tvm.ir.StringImm(what), idx(index), idx(most), idx(least))
    )


def poisoned(address: Any, nbytes: Any) -> Any:
    """A statement that says that memory holds nothing now; the pass makes that true."""
    return tirx.Evaluate(tirx.call_extern("int32", POISON_MARK, address, idx(nbytes)))


def with_extent(pointer: Any, nbytes: Any, base: Any = None) -> Any:
    """A pointer into memory of so many bytes that begins there, or at an address; the pass makes the pointer of it."""
    args: list[Any] = [tvm.ir.StringImm(EXTENT_MARK), pointer, idx(nbytes), *([] if base is None else [base])]
    return tvm.ir.Call(tvm.ir.Op.get("tirx.call_pure_extern"), args, ret_ty=pointer.ty)


def checked(module: Any, memory: Memory) -> tuple[tvm.IRModule, list[str]]:
    """The module with checks, and what each of them checks."""
    checks = _Checks(memory)
    functions = {var: _Function(checks, var.name_hint, function).build() for var, function in module.functions.items()}
    functions[checks.violate], functions[checks.poison] = violate(memory.slot), poison()
    if memory.known is not None:
        functions[checks.look] = look(memory.known, checks.violate)
        functions[checks.whole] = whole(memory.known, checks.violate)
    return tvm.IRModule(functions), checks.texts


class _Checks:
    """What all functions of a module share."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self.texts: list[str] = []
        self.numbers: dict[str, int] = {}
        self.violate, self.poison = tvm.ir.GlobalVar("memory_violated"), tvm.ir.GlobalVar("memory_poison")
        self.look, self.whole = tvm.ir.GlobalVar("memory_look"), tvm.ir.GlobalVar("memory_whole")

    def number(self, text: str) -> int:
        """The number of a check, counted from one."""
        if text not in self.numbers:
            self.texts.append(text)
            self.numbers[text] = len(self.texts)
        return self.numbers[text]


@dataclass(frozen=True)
class _Span:
    """The memory that a pointer may reach: its first address, and the first one behind it."""

    low: Any
    high: Any


@dataclass(frozen=True)
class _Reach:
    """The indices of a buffer, from `least` to before `most`; ints where they are known. `span` is None for local memory.

    Where each access is looked up, `address` is that of the first element.
    """

    least: Any
    most: Any
    span: _Span | None
    address: Any = None


ANYWHERE = _Span(idx(0), idx(FAR))


def _is(value: Any, kind: type) -> bool:
    """`isinstance` for a checker that knows TVM's classes by stubs in which fields are missing."""
    return isinstance(value, kind)


def _is_call(value: Any) -> bool:
    return isinstance(value, tvm.ir.Call)


def _address(pointer: Any) -> Any:
    return call("tirx.reinterpret", "int64", pointer)


def _outside(index: Any, least: Any, most: Any) -> Any:
    """A number that is negative where an index is not from `least` to before `most`."""
    index, behind = idx(index), tirx.Sub(idx(most), idx(1))
    return tirx.BitwiseOr(tirx.Sub(index, idx(least)), tirx.Sub(behind, index))


@functools.cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a class of expressions that hold expressions."""
    info, names = kind.__tvm_ffi_type_info__, []
    while info is not None:
        names += [f.name for f in info.fields]
        info = getattr(info, "parent_type_info", None)
    return tuple(n for n in names if n not in ("span", "ty", "op", "attrs", "ty_args", "source", "lanes"))


def _operands(expr: Any) -> list[Any]:
    """The expressions of which one is made."""
    out: list[Any] = []
    for name in _parts(type(expr)):
        value = getattr(expr, name)
        if isinstance(value, tvm.ir.Expr):
            out.append(value)
        elif isinstance(value, tvm.ir.Array):
            out += [v for v in value if isinstance(v, tvm.ir.Expr)]
    return out


LEAVES = (tirx.Var, tirx.IntImm, tirx.FloatImm, tvm.ir.StringImm, tvm.ir.GlobalVar)


class _Function:
    """The walk over one function."""

    def __init__(self, checks: _Checks, name: str, function: Any):
        self.checks, self.name, self.function = checks, name, function
        self.is_main = name == "main"
        self.is_private = not (function.attrs and "global_symbol" in function.attrs)
        self.area = checks.memory.area if self.is_main else tirx.Var("checked_area", "int64")
        self.slots: Any = None
        self.spans: dict[Any, _Span] = {}
        self.reaches: dict[Any, _Reach] = {}
        self.place = 0
        self.fresh = False  # whether the next statement stores the local that was made last as a whole

    def build(self) -> Any:
        """The function with its checks."""
        params = list(self.function.params)
        if not (
            self.is_private or self.is_main
        ):  # continues a recursion on a larger stack: its first argument is its area
            self.area = params[0]
        block = Block()
        extra = [self.area] if self.is_private else []
        for param in params:
            if self.is_private and not isinstance(param.ty, PrimType):
                low, high = (tirx.Var(f"{param.name}_{end}", "int64") for end in ("low", "high"))
                self.spans[param] = _Span(low, high)
                extra += [low, high]
        self.slots = tirx.Var("checked_slots", slots_type())
        pointer = call("tirx.reinterpret", tvm.ir.PointerType(PrimType("int64")), self.area)
        block.emit(tirx.DeclBuffer(self.slots, data=pointer))
        if self.is_main:
            for k in (FOUND, PLACE):
                block.store(self.slots, idx(0), self.checks.memory.slot + k)
        self.walk(self.function.body, block)
        made = tirx.PrimFunc([*params, *extra], block.stmt(), ret_type=self.function.ret_type)
        return made.with_attrs(dict(self.function.attrs)) if self.function.attrs else made

    # --- statements -------------------------------------------------------------------------------------------------

    def walk(self, stmt: Any, block: Block) -> None:
        """Emit a statement with its checks.

        Raises:
            InternalError: no checks are known for this kind of statement.
        """
        if isinstance(stmt, tirx.SeqStmt):
            parts = list(stmt.seq)
            for k, part in enumerate(parts):
                follows = parts[k + 1] if k + 1 < len(parts) else None
                self.fresh = isinstance(part, tirx.AllocBuffer) and _fills(follows, part.buffer)
                self.walk(part, block)
        elif isinstance(stmt, tirx.Evaluate):
            self.evaluate(stmt, block)
        elif isinstance(stmt, tirx.stmt.BufferStore):
            self.look(stmt.value, block)
            self.access(stmt.buffer, list(stmt.indices), "writes", block)
            value = _bare(stmt.value)
            block.emit(stmt if value.same_as(stmt.value) else tirx.BufferStore(stmt.buffer, value, list(stmt.indices)))
        elif isinstance(stmt, tirx.For):
            self.look(stmt.min, block)
            self.look(stmt.extent, block)
            plain = stmt.kind in (ForKind.VECTORIZED, ForKind.PARALLEL)
            kind = ForKind.SERIAL if plain else stmt.kind
            body = self.inner(stmt.body)
            block.emit(tirx.For(stmt.loop_var, stmt.min, stmt.extent, kind, body, None, stmt.annotations, stmt.step))
        elif isinstance(stmt, tirx.While):
            self.look(stmt.condition, block)
            body = Block()
            self.walk(stmt.body, body)
            self.look(stmt.condition, body)
            block.emit(tirx.While(stmt.condition, body.stmt()))
        elif isinstance(stmt, tirx.stmt.IfThenElse):
            self.look(stmt.condition, block)
            otherwise = self.inner(stmt.else_case) if stmt.else_case is not None else None
            block.emit(tirx.stmt.IfThenElse(stmt.condition, self.inner(stmt.then_case), otherwise))
        elif isinstance(stmt, tirx.DeclBuffer):
            self.declare(stmt, block)
        elif isinstance(stmt, tirx.AllocBuffer):
            self.local(stmt, block)
        elif isinstance(stmt, tirx.Bind):
            self.look(stmt.value, block)
            if isinstance(stmt.var.ty, PrimType):
                block.emit(stmt)
                return
            nbytes = self.checks.memory.extents.get(stmt.var)
            span = self.span(stmt.value, block)
            block.emit(tirx.Bind(stmt.var, _bare(stmt.value)))
            if nbytes is not None:
                span = self.part(span, self.bind(_address(stmt.var), block), nbytes, block)
            self.spans[stmt.var] = span
        elif isinstance(stmt, tirx.Return):
            self.look(stmt.value, block)
            block.emit(stmt)
        elif isinstance(stmt, tirx.AttrStmt):
            block.emit(tirx.AttrStmt(stmt.node, stmt.attr_key, stmt.value, self.inner(stmt.body)))
        else:
            raise InternalError("native memory", f"no checks are known for a {type(stmt).__name__}")

    def inner(self, stmt: Any) -> Any:
        block = Block()
        self.walk(stmt, block)
        return block.stmt()

    def bind(self, value: Any, block: Block) -> Any:
        """A number, in a variable."""
        var = tirx.Var("b", "int64")
        block.emit(tirx.Bind(var, value))
        return var

    def evaluate(self, stmt: Any, block: Block) -> None:
        value = stmt.value
        if not _is_call(value):
            self.look(value, block)
            block.emit(stmt)
        elif _is(value.op, tvm.ir.GlobalVar):
            self.run(value, block)
        elif value.op.name == "tirx.call_extern" and value.args[0].value in (PLACE_MARK, CLOCK_MARK):
            numbers = [int(a.value) for a in list(value.args)[1:]]
            if value.args[0].value == PLACE_MARK:
                self.place = numbers[0]
            else:
                for pointer, nbytes in self.checks.memory.events.get((numbers[0], numbers[1]), ()):
                    block.emit(tvm.ir.Call(self.checks.poison, [_address(pointer), nbytes], ret_ty="int32"))
        elif value.op.name == "tirx.call_extern" and value.args[0].value == INDEX_MARK:
            _, what, *numbers = value.args
            for number in numbers:
                self.look(number, block)
            index, most, least = numbers
            self.require(index, self.bind(least, block), self.bind(most, block), f"{self.name} {what.value}", block)
        elif value.op.name == "tirx.call_extern" and value.args[0].value == POISON_MARK:
            _, address, nbytes = value.args
            self.look(address, block)
            self.look(nbytes, block)
            self.look_up(address, nbytes, f"{self.name} begins to use memory, in bytes", block)
            block.emit(tvm.ir.Call(self.checks.poison, [address, nbytes], ret_ty="int32"))
        else:
            self.look(value, block)
            block.emit(tirx.Evaluate(_bare(value)))

    def run(self, value: Any, block: Block) -> None:
        """A call of a private function: with the ends of its pointers' memory, and nothing more behind it where it failed."""
        args, extra = [], [self.area]
        for arg in value.args:
            self.look(arg, block)
            if not isinstance(arg.ty, PrimType):
                span = self.span(arg, block)
                extra += [span.low, span.high]
            args.append(_bare(arg))
        block.emit(tvm.ir.Call(value.op, [*args, *extra], ret_ty="int32"))
        self.stop(block, called=True)

    def stop(self, block: Block, called: bool = False) -> None:
        """Leave where something was found; a function that was called may not know the place in the source."""
        if self.is_private or self.is_main:
            slot = self.checks.memory.slot
            with block.when(expect(tirx.NE(load(self.slots, slot + FOUND), idx(0)), False)):
                if called and self.place:
                    known = load(self.slots, slot + PLACE)
                    block.store(self.slots, tirx.Select(tirx.EQ(known, idx(0)), idx(self.place), known), slot + PLACE)
                self.leave(block)

    def leave(self, block: Block) -> None:
        block.emit(tirx.Return(tirx.IntImm("int64", VIOLATED) if self.is_main else tirx.IntImm("int32", 0)))

    def declare(self, stmt: Any, block: Block) -> None:
        """A buffer over a pointer."""
        buffer, data = stmt.buffer, stmt.data
        self.look(data, block)
        unchecked = buffer.name in OBJECTS or buffer.name in AREA
        span = ANYWHERE if unchecked else self.span(data, block)
        block.emit(tirx.DeclBuffer(buffer, data=_bare(data)))
        if buffer.name in AREA:
            self.reaches[buffer] = _Reach(0, self.checks.memory.slots, span)
            return
        if span is ANYWHERE:
            at = None if unchecked else self.bind(_address(_bare(data)), block)
            self.reaches[buffer] = _Reach(-FAR, FAR, span, at)
            return
        size = idx(_size(str(buffer.ty.dtype)))
        at = self.bind(_address(_bare(data)), block)
        least = self.bind(tirx.Sub(idx(0), tirx.Div(tirx.Sub(at, span.low), size)), block)
        self.reaches[buffer] = _Reach(least, self.bind(tirx.Div(tirx.Sub(span.high, at), size), block), span)

    def local(self, stmt: Any, block: Block) -> None:
        """Memory on the stack, poisoned unless the next statement fills it."""
        buffer, count = stmt.buffer, 1
        for d in stmt.buffer.ty.shape:
            count *= int(d)
        self.reaches[buffer] = _Reach(0, count, None)
        block.emit(stmt)
        value = poison_of(str(buffer.ty.dtype))
        if self.fresh or value is None or len(buffer.ty.shape) != 1:
            return
        if count == 1:
            block.store(buffer, value, 0)
        else:
            with block.loop(count) as i:
                block.store(buffer, value, i)

    # --- expressions ------------------------------------------------------------------------------------------------

    def look(self, expr: Any, block: Block) -> None:
        """Emit the checks of what an expression reads."""
        if isinstance(expr, LEAVES):
            return
        if _is(expr, tvm.ir.TensorLoad):
            self.access(expr.source, list(expr.indices), "reads", block)
            return
        if _is_call(expr) and _is(expr.op, tvm.ir.Op):
            name = expr.op.name
            if name == "prim.if_then_else":
                condition, *ways = expr.args
                self.look(condition, block)
                blocks = [Block(), Block()]
                for way, own in zip(ways, blocks):
                    self.look(way, own)
                if any(own._stmts for own in blocks):
                    block.emit(tirx.stmt.IfThenElse(condition, *(own.stmt() for own in blocks)))
                return
            if name == "tirx.address_of":  # nothing is read there
                for i in expr.args[0].indices:
                    self.look(i, block)
                return
            if name == "tirx.buffer_data":
                return
            if name == "tirx.call_extern":
                self.extern(expr, block)
                return
        for part in _operands(expr):
            self.look(part, block)

    def access(self, buffer: Any, indices: list[Any], verb: str, block: Block) -> None:
        """Emit the check of an access."""
        for i in indices:
            self.look(i, block)
        reach = self.reaches[buffer]
        text = f"{self.name} {verb} {buffer.name}"
        if len(indices) > 1:
            flat: Any = None
            for i, size in zip(indices, buffer.ty.shape, strict=True):
                self.require(i, 0, idx(size), text, block)
                flat = idx(i) if flat is None else tirx.Add(tirx.Mul(flat, idx(size)), idx(i))
            indices = [flat]
        if reach.address is None:
            self.require(indices[0], reach.least, reach.most, text, block)
            return
        size = idx(_size(str(buffer.ty.dtype)))
        first, *others = (self.bind(idx(e), block) for e in _ends(indices[0]))
        count = size
        for last in others:
            count = tirx.Mul(tirx.Add(tirx.Sub(tirx.Max(first, last), tirx.Min(first, last)), idx(1)), size)
            first = tirx.Min(first, last)
        self.look_up(tirx.Add(reach.address, tirx.Mul(first, size)), count, text, block)

    def look_up(self, address: Any, nbytes: Any, text: str, block: Block) -> None:
        """Leave unless so many bytes at an address are memory of the call."""
        if self.checks.memory.known is not None:
            numbers = [self.area, address, nbytes, idx(self.checks.number(text)), idx(self.place)]
            block.emit(tvm.ir.Call(self.checks.look, numbers, ret_ty="int32"))
            self.stop(block)

    def require(self, index: Any, least: Any, most: Any, text: str, block: Block) -> None:
        """Leave unless all lanes of an index are from `least` to before `most`."""
        ends = _ends(index)
        if isinstance(most, int) and isinstance(least, int):
            if most == FAR or all(isinstance(e, tirx.IntImm) and least <= int(e.value) < most for e in ends):
                return
        ends = [self.bind(idx(e), block) for e in ends]
        # One comparison for both ends: with two for each, LLVM takes a minute for a kernel of a hundred checks.
        outside = [_outside(e, least, most) for e in ends]
        wrong = tirx.LT(functools.reduce(tirx.BitwiseOr, outside), idx(0))
        shown = tirx.Select(tirx.LT(outside[0], idx(0)), *ends) if len(ends) > 1 else ends[0]
        self.refuse(wrong, shown, least, most, text, block)

    def refuse(self, wrong: Any, index: Any, least: Any, most: Any, text: str, block: Block) -> None:
        """Leave where something is wrong."""
        with block.when(expect(wrong, False)):
            numbers = [self.area, idx(self.checks.number(text)), index, idx(least), idx(most), idx(self.place)]
            block.emit(tvm.ir.Call(self.checks.violate, numbers, ret_ty="int32"))
            self.leave(block)

    def span(self, pointer: Any, block: Block) -> _Span:
        """The memory that a pointer may reach."""
        if isinstance(pointer, tirx.Var):
            return self.spans.get(pointer, ANYWHERE)
        if not _is_call(pointer):
            return ANYWHERE
        name = pointer.op.name
        if name == "tirx.call_pure_extern" and pointer.args[0].value == EXTENT_MARK:
            _, inner, nbytes, *base = pointer.args
            low = self.bind(base[0] if base else _address(_bare(inner)), block)
            outer = self.span(inner, block)
            if outer is ANYWHERE:
                self.look_up(low, nbytes, f"{self.name} has an array or a record", block)
            return self.part(outer, low, nbytes, block)
        if name == "tirx.handle_add_byte_offset":
            return self.span(pointer.args[0], block)
        if name == "tirx.address_of":
            return self.buffer_span(pointer.args[0].source, block)
        if name == "tirx.tvm_access_ptr":
            return self.buffer_span(pointer.args[1].args[0], block)
        return ANYWHERE

    def part(self, outer: _Span, low: Any, nbytes: Any, block: Block) -> _Span:
        """The memory of an array that lies in other memory; leaves where it does not."""
        high = self.bind(tirx.Add(low, idx(nbytes)), block)
        if outer is not ANYWHERE:
            beyond = tirx.Or(tirx.LT(low, outer.low), tirx.GT(high, outer.high))
            ends = tirx.Sub(low, outer.low), 0, tirx.Add(tirx.Sub(outer.high, outer.low), idx(1))
            text = f"{self.name} has an array that does not lie in its memory, of which its bytes begin"
            self.refuse(tirx.And(tirx.GT(high, low), beyond), *ends, text, block)
        return _Span(low, high)

    def buffer_span(self, buffer: Any, block: Block) -> _Span:
        reach = self.reaches[buffer]
        if reach.span is not None:
            return reach.span
        low = self.bind(_address(call("tirx.address_of", "handle", load(buffer, 0))), block)
        return _Span(low, self.bind(tirx.Add(low, idx(reach.most * _size(str(buffer.ty.dtype)))), block))

    # --- calls of C -------------------------------------------------------------------------------------------------

    def extern(self, expr: Any, block: Block) -> None:
        """The check of what a C function reads and writes."""
        name, *args = expr.args
        for arg in args:
            self.look(arg, block)
        name = name.value
        if name in ("memmove", "memcpy"):
            self.range(args[0], args[2], f"{self.name} writes by {name}", block)
            self.range(args[1], args[2], f"{self.name} reads by {name}", block)
        elif name in ("free", "realloc") and self.checks.memory.known is not None:
            numbers = [self.area, _address(_bare(args[0])), idx(self.checks.number(f"{self.name} calls {name}"))]
            block.emit(tvm.ir.Call(self.checks.whole, [*numbers, idx(self.place)], ret_ty="int32"))
            self.stop(block)
        elif name == "memset":
            self.range(args[0], args[2], f"{self.name} writes by {name}", block)
        elif name.startswith("myia_relay_stream_"):
            self.range(args[0], idx(_size(dtype_of(args[1]))), f"{self.name} writes past the caches", block)
        elif name.endswith("gemm") and name.startswith("scipy_cblas_"):
            size = _size("float32" if name[-5] == "s" else "float64")
            _, ta, tb, m, n, k, _, a, lda, b, ldb, _, c, ldc = args
            for what, p, rows, columns, ld, transposed in (
                ("reads the left matrix", a, m, k, lda, ta), ("reads the right matrix", b, k, n, ldb, tb),
                ("writes the result", c, m, n, ldc, None),
            ):  # fmt: skip
                turned = transposed is not None and int(transposed.value) == 112
                shape = (columns, rows) if turned else (rows, columns)
                self.range(p, _matrix(*shape, ld, size), f"{self.name} {what} of a product", block)
        elif name.endswith("gemv") and name.startswith("scipy_cblas_"):
            size = _size("float32" if name[-5] == "s" else "float64")
            _, trans, m, n, _, a, lda, x, incx, _, y, incy = args
            inner, outer = (m, n) if int(trans.value) == 112 else (n, m)
            self.range(a, _matrix(m, n, lda, size), f"{self.name} reads the matrix of a product", block)
            self.range(x, _matrix(inner, tirx.IntImm("int32", 1), incx, size), f"{self.name} reads a vector", block)
            self.range(y, _matrix(outer, tirx.IntImm("int32", 1), incy, size), f"{self.name} writes a vector", block)

    def range(self, pointer: Any, nbytes: Any, text: str, block: Block) -> None:
        """Leave unless so many bytes at a pointer are its own."""
        count = self.bind(idx(nbytes), block)
        span = self.span(pointer, block)
        if span is ANYWHERE:
            self.refuse(tirx.LT(count, idx(0)), count, 0, FAR, text + ", bytes counted", block)
            self.look_up(_address(_bare(pointer)), count, text + ", in bytes", block)
            return
        at = self.bind(tirx.Sub(_address(_bare(pointer)), span.low), block)
        behind = tirx.Sub(span.high, span.low)
        beyond = tirx.Or(tirx.LT(at, idx(0)), tirx.GT(tirx.Add(at, count), behind))
        wrong = tirx.Or(tirx.LT(count, idx(0)), tirx.And(tirx.GT(count, idx(0)), beyond))
        self.refuse(wrong, tirx.Sub(tirx.Add(at, count), idx(1)), 0, behind, text + ", in bytes", block)


def _bare(value: Any) -> Any:
    """A pointer, or what is called with one, without what says its extent."""
    if not _is_call(value) or not _is(value.op, tvm.ir.Op):
        return value
    if value.op.name == "tirx.call_pure_extern" and value.args[0].value == EXTENT_MARK:
        return _bare(value.args[1])
    args = [_bare(a) for a in value.args]
    if all(a.same_as(b) for a, b in zip(args, value.args, strict=True)):
        return value
    return tvm.ir.Call(value.op, args, ret_ty=value.ty)


def _fills(stmt: Any, buffer: Any) -> bool:
    """Whether a statement stores all of a local of one element."""
    return isinstance(stmt, tirx.stmt.BufferStore) and stmt.buffer.same_as(buffer) and int(buffer.ty.shape[0]) == 1


def _ends(index: Any) -> list[Any]:
    """The least and the greatest lane of an index, in either order."""
    if isinstance(index, tirx.Broadcast):
        return _ends(index.value)
    if _is(index, tirx.Ramp):
        further = tirx.Mul(idx(index.stride), idx(int(index.lanes) - 1))
        return [index.base, tirx.Add(idx(index.base), further)]
    if lanes_of(dtype_of(index)) == 1:
        return [index]
    return [llvm(f"vector.reduce.{end}", element(dtype_of(index)), index) for end in ("smin", "smax")]


def _size(dtype: str) -> int:
    """The bytes of an element, of all its lanes."""
    return max(1, tvm.DataType(element(dtype)).bits // 8) * lanes_of(dtype)


def _matrix(rows: Any, columns: Any, ld: Any, size: int) -> Any:
    """The bytes from a matrix's first element to its last."""
    rows, columns, ld = idx(rows), idx(columns), idx(ld)
    count = tirx.Add(tirx.Mul(tirx.Sub(rows, idx(1)), ld), columns)
    there = tirx.And(tirx.GT(rows, idx(0)), tirx.GT(columns, idx(0)))
    return tirx.Mul(tirx.Select(there, count, idx(0)), idx(size))


__all__ = ["Memory", "checked", "inside", "mark", "poisoned", "with_extent"]
