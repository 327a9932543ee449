"""One kernel: a private function of pointers and scalars, and the evaluation of fused expressions in it.

Idea: the program's main function holds the control flow and the scalars; each loop nest over arrays is a private
function of its own. This keeps functions small (TVM's passes are superlinear in their size) and lets equal kernels be
compiled once. A kernel asks for an array (`buffer`) or a scalar (`scalar`) by its value in the caller, and gets a
parameter.

`Evaluator.value(node, index)` is an expression for one element, or a vector of elements, of a typed graph's node: fused
applications are evaluated in place; anything else is read from memory or is a parameter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm.ir import PointerType, PrimType

from ....abstract.dims import product
from ....ir.axes import is_pointwise
from ....ir.node import Apply, Constant, Node
from ....opt.analysis.fusion import is_scalar
from ....utils.errors import LoweringError
from ..plan import View
from ..tir import exact
from ..tir.block import Block, broadcast, call, dtype_of, lanes_of, load, ramp, stored
from ..tir.expr import Expr
from ..tir.indexing import Address, AxisGroup, Gathered, Index, address, linear

HUGE = 1 << 48  # the declared size of buffers: it is never checked


def pointer_type(dtype: str) -> PointerType:
    """The type of a pointer to elements of a dtype."""
    return PointerType(PrimType(stored(dtype)))


def pointer_at(base: Any, offset: Any, dtype: str) -> Any:
    """The typed address of what lies `offset` bytes behind `base`."""
    offset = tirx.IntImm("int64", offset) if isinstance(offset, int) else offset
    return call("tirx.handle_add_byte_offset", pointer_type(dtype), base, offset)


def view_pointer(view: View) -> Any:
    """The address of an array, in the main function."""
    base = view.storage.var if view.pointer is None else view.pointer
    return pointer_at(base, view.offset, view.dtype)


def sized_pointer(lowering: Any, view: View) -> Any:
    """`view_pointer`, with the array's size where accesses to memory are checked (`tir.bounds`)."""
    pointer = view_pointer(view)
    return pointer if lowering.watch is None else lowering.watch.bounded(lowering, pointer, view)


def flat_buffer(name: str, dtype: str) -> Any:
    """A one-dimensional buffer over memory of which nothing but the elements' alignment is known."""
    return tirx.Var(name, _flat_type(dtype))


@functools.cache
def _flat_type(dtype: str) -> Any:
    align = max(1, tvm.DataType(dtype).bits // 8)
    return tirx.decl_buffer((HUGE,), stored(dtype), data_alignment=align).ty


def buffer_parameter(name: str, dtype: str) -> tuple[Any, Any, Any]:
    """A parameter for the address of memory: the variable, a flat buffer over the memory, and its declaration."""
    var, buffer = tirx.Var(f"p_{name}", pointer_type(dtype)), flat_buffer(name, dtype)
    # By an expression, not the parameter itself: then TVM puts the accesses of all buffers into one alias class.
    return var, buffer, tirx.DeclBuffer(buffer, data=pointer_at(var, 0, dtype))


def address_of(buffer: Any, place: Any) -> Any:
    """The typed address of an element of a flat buffer."""
    found = load(buffer, place)
    return call("tirx.address_of", pointer_type(dtype_of(found)), found)


class EvaluationSite:
    """Where expressions over arrays are evaluated: the main function itself."""

    def __init__(self, lowering: Any, array: bool):
        self.lowering = lowering
        self.array = array

    @property
    def block(self) -> Block:
        return self.lowering.block

    @property
    def dims(self) -> dict[str, Any]:
        return self.lowering.dims

    def buffer(self, view: View) -> Any:
        """The memory of an array as a flat buffer, usable here."""
        buffer = flat_buffer("a", view.dtype)
        self.block.emit(tirx.DeclBuffer(buffer, data=sized_pointer(self.lowering, view)))
        return buffer

    def scalar(self, node: Node) -> Any:
        """The value of a scalar node, usable here."""
        return self.lowering.scalar(node)


class MainSite(EvaluationSite):
    """The main function as a place of evaluation; it notes what is read."""

    def __init__(self, lowering: Any):
        super().__init__(lowering, False)

    def buffer(self, view: View) -> Any:
        self.lowering.plan.touch(view.storage)
        return super().buffer(view)


class Kernel(EvaluationSite):
    """A private function under construction.

    Attributes:
        params: its parameters.
        args: for each, the expression that the caller passes.
        reads, writes: storages it uses.
    """

    def __init__(self, lowering: Any, name: str):
        super().__init__(lowering, True)
        self.name = name
        self.params: list[Any] = []
        self.args: list[Any] = []
        self.body = Block()
        self.declarations: list[Any] = []
        self.reads: list[Any] = []
        self.writes: list[Any] = []
        self._buffers: dict[Any, Any] = {}
        self._scalars: dict[Any, Any] = {}
        self._dims = _LazyDims(self)

    @property
    def block(self) -> Block:
        return self.body

    @property
    def dims(self) -> Any:
        return self._dims

    def buffer(self, view: View, write: bool = False) -> Any:
        (self.writes if write else self.reads).append(view.storage)
        offset = view.offset if isinstance(view.offset, int) else id(view.offset)
        key = (view.storage, offset, view.dtype, None if view.pointer is None else id(view.pointer))
        if key not in self._buffers:
            var, buffer, declaration = buffer_parameter(f"a{len(self._buffers)}", view.dtype)
            self.params.append(var)
            self.args.append(sized_pointer(self.lowering, view))
            self.declarations.append(declaration)
            # The view keeps alive the objects whose ids are in the key.
            self._buffers[key] = (buffer, view, len(self.args) - 1)
        buffer, first, number = self._buffers[key]
        if self.lowering.watch is not None and product(view.shape) != product(first.shape):
            self.args[number] = view_pointer(view)  # of several sizes: the extent is that of its storage
        return buffer

    def value_param(self, key: Any, expr: Any, dtype: str | None = None) -> Any:
        """A scalar that the caller passes by value."""
        if key not in self._scalars:
            var = tirx.Var(f"s{len(self._scalars)}", dtype or dtype_of(expr))
            self.params.append(var)
            self.args.append(expr)
            self._scalars[key] = var
        return self._scalars[key]

    def scalar(self, node: Node) -> Any:
        value = self.lowering.scalar(node)
        if dtype_of(value) == "bool":  # as a byte: i1 parameters have too many corner cases
            return tirx.NE(self.value_param(node, tirx.Cast("int32", value)), tirx.IntImm("int32", 0))
        return self.value_param(node, value)

    def call(self, key: tuple, make: Callable[[], tuple[list[Any], Block]], args: list[Any]) -> None:
        """Call a function that the kernels of a program share.

        Args:
            key: what it does.
            make: its parameters and statements, asked for where there is none of the key.
            args: for its parameters.
        """
        lowering = self.lowering
        if (var := lowering.helpers.get(key)) is None:
            var = lowering.helpers[key] = tvm.ir.GlobalVar(f"t{len(lowering.functions)}_{key[0]}")
            params, block = make()
            lowering.functions[var] = tirx.PrimFunc(params, block.stmt(), ret_type=PrimType("int32"))
            lowering.sizes[var] = block.size
        self.block.emit(tirx.Evaluate(lowering.called(var, args)))

    def function(self) -> Any:
        """The finished function.

        Without a promise that its arguments do not overlap: they may (results take the place of operands), and TVM lets
        one function's promise (`tirx.noalias`) hold for all that follow in the module.
        """
        body = tirx.SeqStmt([*self.declarations, self.body.stmt()]) if self.declarations else self.body.stmt()
        # A parallel loop returns an error code from the middle of its function, which must not be void then.
        return tirx.PrimFunc(self.params, body, ret_type=PrimType("int32"))


class _LazyDims(dict):
    """Symbolic dimensions of a kernel: parameters, made when they are asked for."""

    def __init__(self, kernel: Kernel):
        super().__init__()
        self.kernel = kernel

    def __missing__(self, name: str) -> Any:
        self[name] = self.kernel.value_param(("dim", name), self.kernel.lowering.dims[name])
        return self[name]


class Evaluator:
    """Elements of nodes, at a `EvaluationSite`."""

    def __init__(self, site: EvaluationSite):
        self.site = site
        self.b = Expr(site.block, site.dims, site.array)
        self.memo: dict[tuple[Any, int], tuple[Any, Index]] = {}  # None, "axes": the index itself
        self.pinned: dict[Node, Any] = {}  # roots that this kernel computes too: never read from memory here
        self.given: dict[Node, Any] = {}  # elements that are known, at the one index at which they are asked for

    def fresh(self) -> None:
        """Forget computed values: what follows is in another scope."""
        self.memo.clear()

    def value(self, node: Node, index: Index) -> Any:
        """An expression for the element(s) of a node at an index."""
        if is_scalar(node.type):
            return self._scalar(node)
        if node in self.given:
            return self.given[node]
        key = (node, id(index))
        if key not in self.memo:
            self.memo[key] = (self._compute(node, index), index)
        return self.memo[key][0]

    def _scalar(self, node: Node) -> Any:
        if isinstance(node, Constant):
            return self.b.const(np.asarray(node.value).item(), node.type.dtype)
        value = self.site.scalar(node)
        self.b.know(value, self.site.lowering.ranges.interval(node))
        return value

    def _compute(self, node: Node, index: Index) -> Any:
        lowering = self.site.lowering
        if isinstance(node, Apply) and (node in self.pinned or lowering.is_inline(node)):
            return self.b.let(self._apply(node, index))
        view = lowering.view(node)
        return self.b.let(self.load(self.site.buffer(view), Index(view.shape, index.groups)))

    def _apply(self, node: Apply, index: Index) -> Any:
        if node.fn.name == "reshape":
            same = index.reshaped(node.args[0].type.shape)
            if same is not None:
                return self.value(node.args[0], same)
        if is_pointwise(node.fn.axes):
            args = [self.value(a, self._broadcast(index, a)) for a in node.args]
            return args[0] if node.fn.view else apply_rule(self.b, node, args)
        return self._injective(node, index)

    def _broadcast(self, index: Index, arg: Node) -> Index:
        if is_scalar(arg.type) or tuple(arg.type.shape) == index.shape:
            return index
        if index.mixes(arg.type.shape):  # below a reshape, where the axes of the loops do not apply
            key = ("axes", id(index))
            if key not in self.memo:
                self.memo[key] = (Index.of_axes(index.shape, self._axes(index)), index)
            index = self.memo[key][0]
        return index.broadcast(arg.type.shape)

    def _injective(self, node: Apply, index: Index) -> Any:
        rule = node.fn.lower_rule
        if rule is None:
            raise LoweringError(f"{node.fn.name} cannot be compiled", node.origin)

        def reader(arg):
            def read(at):
                return self.value(arg, Index.of_axes(arg.type.shape, list(at)))

            return read

        lanes = max((lanes_of(dtype_of(g.at)) for g in index.groups), default=1)
        axes = self._axes(index)
        types = [a.type for a in node.args]
        out = rule(self.b, axes, *map(reader, node.args), in_types=types, out_type=node.type, **node.attrs)
        return out if lanes_of(dtype_of(out)) == lanes else broadcast(out, lanes)

    def _axes(self, index: Index) -> list[Any]:
        """The index along each axis, in locals: rules use each several times, and a chain of them would grow exponentially."""
        key = (None, id(index))
        if key not in self.memo:
            named = Index(index.shape, [AxisGroup(g.start, g.stop, self._named(g.at)) for g in index.groups])
            self.memo[key] = ([self._named(i) for i in named.axes(self.b.dim)], index)
        return self.memo[key][0]

    def _named(self, at: Any) -> Any:
        """An index in a local; one that is linear in the lanes keeps this property."""
        lanes = lanes_of(dtype_of(at))
        at_lanes = linear(at) if lanes > 1 else None
        if at_lanes is None:
            return self.b.let(at)
        base = self.b.let(at_lanes.base)
        if at_lanes.stride == 0:
            return broadcast(base, lanes)
        return ramp(base, lanes, at_lanes.stride)

    def load(self, buffer: Any, index: Index) -> Any:
        """The element(s) at an index; scalar where all lanes read the same."""
        found = self.load_at(buffer, address(index, self.b.dim), index)
        if self.b.guards:
            some = functools.reduce(tirx.And, self.b.guards)
            found = tirx.if_then_else(some, found, exact.like(0, found))
        return found

    def load_at(self, buffer: Any, at: Address | Gathered, index: Index) -> Any:
        lanes = max((lanes_of(dtype_of(g.at)) for g in index.groups), default=1)
        if isinstance(at, Gathered) or at.stride == 0:
            return load(buffer, at.base)
        return load(buffer, ramp(at.base, lanes, at.stride))


def apply_rule(b: Expr, node: Apply, args: list[Any]) -> Any:
    """The expression of an elementwise application to expressions.

    Raises:
        LoweringError: the primitive has no lowering.
    """
    if node.fn.lower_rule is not None:
        return node.fn.lower_rule(b, *args, **node.attrs)
    method = getattr(b, node.fn.name, None)
    if method is None:
        raise LoweringError(f"{node.fn.name} cannot be compiled", node.origin)
    return method(*args, **node.attrs)
