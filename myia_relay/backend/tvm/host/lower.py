"""From a typed graph to the program's main function: the walk that calls all other parts of the native back end.

Idea: one pass in program order. Scalars become locals of the main function, control flow becomes statements
(`control`), and arrays become calls of private kernels (`nests`, `opaque`). Elementwise kernels are not emitted at once
but held back until something needs their results, so that kernels of one shape are merged (`Pending`). Whatever is
emitted first flushes the kernels that it depends on, and those that read what it overwrites.

Values of nodes: a scalar's is an expression, an array's a `View`, a structure's a tuple, a reference's a `RefValue`;
None stands for None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx

from ....abstract.dims import DimLike, product
from ....abstract.types import Array, Data, List, NoneT, Str, Struct, Tape, Type, Undefined, numpy_dtype
from ....ir.node import Apply, Constant, Graph, Node
from ....ir.prim import Primitive
from ....opt.analysis.fusion import PARTS, is_scalar, is_view
from ....opt.analysis.ranges import Ranges
from ....prims.rules.protocol import clamp
from ....utils.errors import InternalError, LoweringError
from ....utils.switches import is_left_out
from ...native.timing import TimedRegion
from ..kernels import nests, opaque, soa
from ..kernels.kernel import Evaluator, Kernel, MainSite, apply_rule, pointer_type, view_pointer
from ..kernels.updates import emit as emit_update
from ..plan import ITEM, MemoryPlan, Storage, View
from ..tir.block import Block, idx, is_leaf, load
from ..tir.expr import Expr, constant
from . import clock, control, data, effects, inplace, lists, references, sizes, tapes, vector_while
from .scope import GraphScope, Pending
from .state import StateArea

RULES = {
    **control.RULES,
    **effects.RULES,
    **tapes.RULES,
    **data.RULES,
    **lists.RULES,
    **vector_while.RULES,
    **soa.RULES,
    **sizes.RULES,
}
"""What does not compute numbers, by the primitive's name."""


class Lowering:
    """The state of the walk.

    Attributes:
        block: statements of the main function.
        dims: symbolic dimension -> expression in the main function.
        functions: kernels, by their global variables.
        sites: effects that Python takes part in; see `effects`.
    """

    def __init__(self) -> None:
        self.block = Block()
        self.dims: dict[str, Any] = sizes.Dims()
        self.plan = MemoryPlan()
        self.functions: dict[Any, Any] = {}
        self.kernel_keys: dict[int, list[Any]] = {}
        self.sizes: dict[Any, int] = {}  # statements of each of the functions
        self.helpers: dict[Any, Any] = {}  # functions that several kernels call, by what they do
        self.constants: dict[int, tuple[np.ndarray, View, Any]] = {}
        self.sites: list[Any] = []
        self.kernels: list[str] = []
        self.described: list[TimedRegion] | None = None  # the kernels that are called, where somebody wants to know
        self.clock: clock.Clock | None = None  # where the program times itself
        self.scopes: list[GraphScope] = []
        self.regions: dict[Any, Any] = {}  # see `tapes`
        self.tape_slots: dict[Any, int] = {}  # the same for all functions of a program
        self.sized, self.held = [], None  # see `sizes`
        self.lists: Any = None  # see `lists`
        self.layouts: dict[Type, Any] = {}
        self.current: Apply | None = None
        self.calls: Any = None  # of functions that are not written out; see `recursion`
        self.heap: int | None = None  # the first of the slots of the records' heap; see `data`
        self.records: Storage | None = None  # stands for the heap's memory in the plan
        self.makers = data.Makers()
        self.interruptible = True
        self.b = Expr(self.block, self.dims, array=False)
        self.state = StateArea(self.block)
        self._first = self.block._stmts
        self._budget: Any = None
        self.ranges = Ranges()
        self.watch: Any = None  # see `watch`, where accesses to memory are checked
        self.turn: Any = None  # the index of the innermost counted loop, if there is one

    def budget(self) -> Any:
        """The nanoseconds until the function asks for signals; see `effects.Poll`."""
        if self._budget is None:
            top = Block()
            self._budget = top.cell(idx(effects.POLL_NANOSECONDS), "budget")
            self._first[:0] = top._stmts
        return self._budget

    @property
    def scope(self) -> GraphScope:
        return self.scopes[-1]

    def next_frame(self) -> Any:
        """The address of the frame of a recursive function that is called here."""
        return self.state.get(self.calls.base)

    def relay(self) -> None:
        """Leave with the status that a recursive function has left."""
        self.block.emit(tirx.Return(self.state.get(self.calls.status)))

    # --- memory -----------------------------------------------------------------------------------------------------

    def storage(self, kind: str, nbytes: DimLike, name: str = "m") -> Storage:
        """A new storage; its address is a variable that is bound at the top of the program."""
        var = tirx.Var(f"{name}{len(self.plan.storages)}", pointer_type("uint8"))
        self.plan.storages.append(Storage(kind, nbytes, var, name))
        return sizes.reserved(self, self.plan.storages[-1])

    def new_view(self, type: Array) -> View:
        """Fresh memory for an array."""
        return View(self.storage("arena", type.size * ITEM[type.dtype]), type.dtype, type.shape)

    def allocate(self, node: Node) -> View:
        """Memory for the result of a node: where its user wants it, or fresh."""
        view = self.scope.dest.pop(node, None) or inplace.row_for(self, node)
        return view if view is not None else self.new_view(node.type)

    # --- values -----------------------------------------------------------------------------------------------------

    def is_inline(self, node: Node) -> bool:
        return self.scope.fusion.role.get(node) == "inline"

    def scalar(self, node: Node) -> Any:
        """The expression of a scalar node.

        Raises:
            InternalError: it has no value.
        """
        if isinstance(node, Constant) and not isinstance(node.type, Data):
            return constant(np.asarray(node.value).item(), node.type.dtype)
        value = self.value(node)
        if value is None:
            raise InternalError("native", f"{node!r} has no value")
        self.b.know(value, self.ranges.interval(node))
        return value

    def view(self, node: Node) -> View:
        """The memory of an array node.

        Raises:
            InternalError: it is not in memory.
        """
        value = self.value(node)
        if not isinstance(value, View):
            raise InternalError("native", f"{node!r} is not in memory")
        return value

    def value(self, node: Node) -> Any:
        """The value of a node; see the module's docstring.

        Raises:
            InternalError: it is used before it is computed.
        """
        env = self.scope.env
        if node not in env:
            if not isinstance(node, Constant):
                raise InternalError("native", f"{node!r} is used before it is computed")
            env[node] = self.constant(node.value, node.type)
        return env[node]

    def constant(self, value: Any, type: Type) -> Any:
        """The value of a constant: scalars are immediate, arrays hidden arguments."""
        if isinstance(type, Struct):
            from ....abstract.structures import part

            return tuple(self.constant(part(value, type, i), t) for i, t in enumerate(type.elems))
        if isinstance(type, Data):
            return idx(0)  # None, the only one that is known when compiling
        if is_scalar(type):
            return constant(np.asarray(value).item(), type.dtype)
        if isinstance(type, Array):
            if id(value) not in self.constants:
                array = np.ascontiguousarray(value, dtype=numpy_dtype(type.dtype))
                storage = self.storage("input", array.nbytes, "const")
                self.constants[id(value)] = (array, View(storage, type.dtype, type.shape), value)
            return self.constants[id(value)][1]
        return None

    # --- the walk ---------------------------------------------------------------------------------------------------

    def run(
        self,
        graph: Graph,
        values: list[Any],
        dest: list[View | None] | None = None,
        finish=None,
        given: Iterable[bool] = (),
    ) -> Any:
        """Lower a graph in place; returns the value of its output.

        Args:
            graph: the graph.
            values: of its parameters.
            dest: for each leaf of the output, where an array is wanted (it need not get there).
            finish: called with the output node in the graph's scope before it is left; its result is returned.
            given: for each parameter whether its memory may be overwritten.

        Raises:
            LoweringError: the graph calls itself, or an application cannot be compiled.
        """
        given = list(given)
        if any(s.graph is graph for s in self.scopes):
            raise LoweringError(
                f"{graph.name} calls itself, which the native executor cannot compile yet", graph.origin
            )
        scope = GraphScope(graph, values)
        scope.caller = self.current
        scope.given = {p for p, g in zip(graph.params, given) if g}
        self.scopes.append(scope)
        timed = 0 if self.clock is None else len(self.clock.regions)
        references.enter(self, scope, given)
        if dest is not None:
            for node, view in zip(control.leaf_nodes(graph.output, scope), dest, strict=True):
                if view is not None and node is not None:
                    inplace.want(scope, node, view)
            control.carry_in_place(self, scope, dest)
        control.join_in_place(self, scope)
        for node in (n for n in graph.nodes if n not in scope.done):
            self.current = node
            try:
                self.node(node)
            except LoweringError as error:
                raise error.at(node.origin.called_from(effects.calls_around(self))) from None
            if scope.references is not None:
                references.after(self, scope, node)
        if scope.references is not None:
            references.leave(self, scope)
        result = finish(graph.output) if finish is not None else self.settled(graph.output)
        self.flush_all()
        if self.clock is not None:
            self.clock.leave(self, timed)
        self.scopes.pop()
        self.current = scope.caller
        return result

    def settled(self, node: Node) -> Any:
        """The value of a node with all its arrays in memory."""
        value = self.value(node)
        self.flush_all()
        return value

    def node(self, node: Apply) -> None:
        """Lower one application.

        Raises:
            LoweringError: the native executor cannot compile its primitive.
        """
        if self.clock is None:
            self.apply(node)
        else:
            with self.clock.of(self, node):
                self.apply(node)

    def apply(self, node: Apply) -> None:
        """`node`, without a clock.

        Raises:
            LoweringError: as that.
        """
        env = self.scope.env
        if self.watch is not None:
            self.watch.at(self.block, node)
        if isinstance(node.fn, Graph):
            if self.calls is not None and node.fn in self.calls.called:
                self.calls.emit(self, node)
                return
            args = [self.value(a) for a in node.args]
            self.flush_all()
            env[node] = self.run(node.fn, args, given=references.donate(self, node, inplace.donated(self.scope, node)))
            return
        prim: Primitive = node.fn
        if prim.name in RULES:
            RULES[prim.name](self, node)
        elif prim.name == "make_struct":
            env[node] = tuple(self.value(a) for a in node.args)
        elif prim.name == "get_item":
            env[node] = self.value(node.args[0])[node.attrs["index"]]
        elif prim.name == "none":
            env[node] = None
        elif prim.name == "undef":
            env[node] = self.undefined(node.attrs["type"], self.scope.dest.pop(node, None))
        elif prim.name == "dim_size":
            env[node] = self.b.let(self.b.dim(node.attrs["dim"]))
        elif prim.kind == "reduce":
            self.reduce(node)
        elif prim.kind == "opaque":
            update = self.scope.updates.get(node)
            if update is None or not emit_update(self, node, update):
                opaque.lower(self, node)
        elif prim.kind in ("elementwise", "injective"):
            self.fusable(node)
        else:
            raise LoweringError(f"the native executor cannot compile {prim.name}", node.origin)

    def undefined(self, type: Type, place: View | None = None) -> Any:
        """A value that is never read.

        Args:
            type: its type.
            place: where it is wanted, if it is an array.

        Raises:
            LoweringError: values of this type have no placeholder.
        """
        if isinstance(type, Struct):
            return tuple(self.undefined(t) for t in type.elems)
        if is_scalar(type):
            return constant(0, type.dtype)
        if isinstance(type, Array):
            view = self.new_view(type) if place is None else place
            self.plan.tick()
            self.plan.touch(view.storage)
            return view
        if isinstance(type, Tape):
            return idx(0)
        if isinstance(type, List):
            return lists.empty(self)
        if isinstance(type, NoneT | Undefined | Str):
            return None
        raise LoweringError(f"no placeholder for a value of type {type}")

    # --- elementwise ------------------------------------------------------------------------------------------------

    def fusable(self, node: Apply) -> None:
        """An elementwise or injective application."""
        env = self.scope.env
        if is_scalar(node.type):
            if node.fn.kind == "elementwise":
                value = apply_rule(self.b, node, [self.scalar(a) for a in node.args])
                env[node] = value if node in self.scope.tests else self.named(value)
            else:
                for leaf in self.leaves([node]):
                    self.flush_writers(self.view(leaf).storage)
                self.plan.tick()
                evaluator = Evaluator(MainSite(self))
                env[node] = self.named(evaluator._injective(node, nests.Index((), ())))
            return
        role = self.scope.fusion.role[node]
        if role == "view":
            env[node] = self.as_view(node)
        elif control.is_joined(self, node):
            env[node] = self.scope.joined[node].whole
        elif node in self.scope.fusion.updates:
            if self.scope.fusion.users.get(node):
                inplace.emit(self, node)
        elif node in self.scope.fusion.epilogues:
            opaque.lower(self, self.scope.fusion.epilogues[node], node)
        elif role == "root" and self.scope.fusion.users.get(node):
            self.defer(node, [self.allocate(node)])

    def named(self, value: Any) -> Any:
        """A scalar in a local of its own, unless it is a constant or variable."""
        return value if is_leaf(value) else self.block.let(value)

    def as_view(self, node: Apply) -> View:
        """A view: the same memory under another shape, a row of it, neighbouring rows, or a part of each row."""
        source = self.view(node.args[0])
        if node.fn.name not in ("dynamic_index", *PARTS):
            return View(source.storage, source.dtype, node.type.shape, source.offset, source.pointer)
        first: Any = idx(0)
        if node.fn.name == "slice_":
            for axis, start in enumerate(node.attrs["starts"]):
                if start != 0:
                    first = self.b.add(first, self.b.dim(start * product(source.shape[axis + 1 :])))
        else:
            axis, length = node.attrs["axis"], node.attrs.get("length", 1)
            wanted = self.b.cast(self.scalar(node.args[1]), "int64")
            at = clamp(self.b, wanted, source.shape[axis] - length + 1)
            first = self.b.mul(self.named(at), self.b.dim(product(source.shape[axis + 1 :])))
        offset = self.b.mul(first, idx(ITEM[source.dtype]))
        if not (isinstance(source.offset, int) and source.offset == 0):
            offset = self.b.add(offset, source.offset)
        pitch = None if is_view(node) else source.shape[1]
        return View(source.storage, source.dtype, node.type.shape, self.named(offset), source.pointer, pitch)

    def leaves_of(self, node: Node) -> dict[Node, bool]:
        """The arrays in memory that reading a value reads; see `leaves`."""
        return self.leaves([node]) if self.is_inline(node) else {node: True}

    def leaves(self, roots: list[Node]) -> dict[Node, bool]:
        """The arrays in memory that a kernel of these roots reads -> whether only at the index of the result."""
        out: dict[Node, bool] = {}
        seen: set[tuple[Node, bool]] = set()
        stack: list[tuple[Any, bool, bool]] = [(root, True, True) for root in roots]
        while stack:
            node, identity, inside = stack.pop()
            if (node, identity) in seen:
                continue
            seen.add((node, identity))
            if not inside and not self.is_inline(node):
                if isinstance(node.type, Array) and not is_scalar(node.type):
                    out[node] = out.get(node, True) and identity
                continue
            same = identity and (node.fn.kind == "elementwise")
            for arg in node.args:
                exact = same and isinstance(arg.type, Array) and arg.type.shape == node.type.shape
                stack.append((arg, exact, False))
        return out

    def defer(self, node: Apply, targets: list[View]) -> None:
        """Compute an elementwise node into `targets`, together with others of its shape, before anyone looks."""
        leaves = self.leaves([node])
        host = self._host(node, leaves, targets)
        for leaf in leaves:
            storage = self.view(leaf).storage
            for p in list(self.scope.pending):
                if p is not host and p.writes(storage):
                    self.flush(p)
        for target in targets:
            for p in list(self.scope.pending):
                if p is not host and (p.writes(target.storage) or self._reads(p, target.storage)):
                    self.flush(p)
        if host is None:
            host = Pending(node.type.shape)
            self.scope.pending.append(host)
        host.targets[node] = targets
        host.count += len(nests.inlined([node], self.is_inline))
        for leaf, identity in leaves.items():
            if leaf not in host.targets or not identity:
                host.leaves[leaf] = host.leaves.get(leaf, True) and identity
        self.scope.env[node] = targets[0]

    def retarget(self, node: Node, place: View, keep: bool) -> bool:
        """Let a value that is not computed yet be written over `place`, instead of into memory of its own.

        Args:
            node: an elementwise node, pending or fused.
            place: memory that something else lives in until then.
            keep: whether the node's own memory is written too (somebody else has it).

        Returns:
            Whether that was possible: all that reads the old contents is emitted before, or reads each element in the same
            kernel before it is overwritten.
        """
        scope = self.scope
        if not isinstance(node, Apply) or node.type != Array(place.dtype, place.shape) or is_scalar(node.type):
            return False
        host = next((p for p in scope.pending if node in p.targets), None)
        if host is None and not self.is_inline(node):
            return False
        leaves = host.leaves if host is not None else self.leaves([node])
        if any(not same and self.view(leaf).storage is place.storage for leaf, same in leaves.items()):
            return False
        if any(
            self.view(leaf).storage is place.storage and self.view(leaf).offset is not place.offset for leaf in leaves
        ):
            return False
        if host is None:
            self.defer(node, [place])
            return True
        for p in list(scope.pending):
            if p is not host and (p.writes(place.storage) or self._reads(p, place.storage)):
                self.flush(p)
        if host.writes(place.storage):
            return False
        keep = keep or any(view is host.targets[node][0] for view in scope.rows.values())
        if keep or len(host.targets[node]) > 1 or host.targets[node][0].storage.kind != "arena":
            host.targets[node].append(place)
        else:
            host.targets[node] = [place]
            scope.env[node] = place
        return True

    def _host(self, node: Node, leaves: dict[Node, bool], targets: list[View]) -> Pending | None:
        """The pending kernel that a node can join, if any: same shape, and nothing crosses from one index to another."""
        for p in () if is_left_out("fusion") else self.scope.pending:
            if p.shape != node.type.shape or p.count > 48:
                continue
            written = all(leaf in p.targets and ok for leaf, ok in leaves.items() if p.writes(self.view(leaf).storage))
            crossing = any(
                not p.leaves[leaf] for leaf in p.leaves if any(self.view(leaf).storage is t.storage for t in targets)
            )
            if written and not crossing and not any(p.writes(t.storage) for t in targets):
                return p
        return None

    def _reads(self, p: Pending, storage: Storage) -> bool:
        return any(self.view(leaf).storage is storage for leaf in p.leaves)

    def flush_writers(self, storage: Storage) -> None:
        """Emit what still has to write to a storage."""
        for p in list(self.scope.pending):
            if p.writes(storage):
                self.flush(p)

    def flush_users(self, storage: Storage) -> None:
        """Emit what still has to read or write a storage: it is about to change."""
        for p in list(self.scope.pending):
            if p.writes(storage) or self._reads(p, storage):
                self.flush(p)

    def flush_all(self) -> None:
        """Emit all pending kernels."""
        for p in list(self.scope.pending):
            self.flush(p)

    def flush(self, p: Pending) -> None:
        """Emit one pending kernel."""
        self.scope.pending.remove(p)
        names = "_".join(dict.fromkeys(n.fn.name for n in list(p.targets)[:3]))
        kernel = Kernel(self, names)
        nests.Nest(kernel).elementwise(p.shape, list(p.targets.items()), self.is_inline)
        self.emit_kernel(kernel, nests.inlined(list(p.targets), self.is_inline))
        mixed = {
            self.view(leaf).storage for leaf, identity in p.leaves.items() if not identity
        }  # two leaves may be one array
        for views in p.targets.values():
            for view in views:
                for leaf in p.leaves:
                    source = self.view(leaf)
                    if source.storage in mixed:
                        continue
                    if source.whole and view.whole and ITEM[source.dtype] == ITEM[view.dtype]:
                        self.plan.may_share(view.storage, source.storage)

    def reduce(self, node: Apply) -> None:
        """A reduction, with what is fused into it."""
        for leaf in self.leaves([node]):
            self.flush_writers(self.view(leaf).storage)
        target = self.slot(node.type.dtype) if is_scalar(node.type) else self.allocate(node)
        kernel = Kernel(self, node.fn.name)
        nests.Nest(kernel).reduction(node, target, self.is_inline)
        self.emit_kernel(kernel, nests.inlined([node], self.is_inline))
        self.scope.env[node] = self.load_slot(target) if is_scalar(node.type) else target

    def slot(self, dtype: str) -> View:
        """Memory for one scalar that a kernel returns."""
        return View(self.storage("arena", ITEM[dtype]), dtype, (1,))

    def load_slot(self, view: View) -> Any:
        """The scalar in a slot, in a local."""
        self.plan.tick()
        return self.block.let(load(MainSite(self).buffer(view), 0))

    def overwrites(self, node: Apply) -> bool:
        """Whether an application may leave its result where its first operand is."""
        return inplace.overwrites(self, node)

    def emit_kernel(self, kernel: Kernel, nodes: list[Apply]) -> None:
        """Call a finished kernel, which computes `nodes`, here; kernels that are equal are one function."""
        function = kernel.function()
        key = tvm_ffi.structural_hash(function)
        for var in self.kernel_keys.get(key, ()):
            if tvm_ffi.structural_equal(self.functions[var], function):
                break
        else:
            var = tvm.ir.GlobalVar(f"k{len(self.functions)}_{kernel.name}")
            self.functions[var] = function
            self.kernel_keys.setdefault(key, []).append(var)
            self.sizes[var] = kernel.body.size
        self.plan.tick()
        for storage in (*kernel.reads, *kernel.writes):
            self.plan.touch(storage)
        self.kernels.append(var.name_hint)
        call = tirx.Evaluate(self.called(var, kernel.args))
        if self.described is None:
            self.block.emit(call)
            return
        region = clock.region_of(kernel, var.name_hint, nodes)
        self.described.append(region)
        if self.clock is not None:
            self.clock.between(self, nodes)
        self.block.emit(call)
        if self.clock is not None:
            self.clock.kernel(self, region)

    def called(self, var: Any, args: list[Any]) -> Any:
        """A call of one of the functions.

        By its name, since it may be compiled in another module; where memory is checked, calls get further arguments.
        """
        if self.watch is not None:
            return tvm.ir.Call(var, args, ret_ty="int32")
        return tirx.call_extern("int32", var.name_hint, *args)

    def copy(self, source: View, target: View) -> None:
        """Copy an array."""
        nbytes = product(target.shape) * ITEM[target.dtype]
        self.plan.tick()
        self.plan.touch(source.storage)
        self.plan.touch(target.storage)
        if source.whole and target.whole:
            self.plan.may_share(target.storage, source.storage)
        to, at = view_pointer(target), view_pointer(source)
        self.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memmove", to, at, self.b.dim(nbytes))))
