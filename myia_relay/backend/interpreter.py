"""The reference interpreter: typed graphs on NumPy, by the primitives' reference implementations. The oracle of all tests.

It runs graphs before and after any pass, except graphs with unexpanded transforms. It is deliberately simple: each
graph becomes, once per run, a list of steps over a list of slots. Loops are Python loops, so that a million iterations
need no stack. A tape is a chain of cells (below, entry) that is never changed in place, so an older tape stays valid.

Whatever can reach a recursive function runs on an explicit stack (`Machine.deep`): a step that runs graphs is then a
generator that yields what it wants run, and is sent the results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from ..abstract.bind import bind_symbols, dims_in, has_dims, substitute
from ..abstract.dims import is_known, is_run_time, run_time_symbols, symbols
from ..abstract.structures import Items, inside, part
from ..abstract.types import Array, List, numpy_dtype
from ..ir.build import as_type, placeholder
from ..ir.node import Apply, Constant, Graph, Node
from ..ir.rewrite import Effects, binds_dims, components, inner_graphs
from ..opt.rewrite.tail_calls import MESSAGE
from ..prims.ops.registered import call_registered
from ..utils.errors import InternalError
from ..utils.interrupts import poll
from ..utils.raising import exception_argument, format_parts, raise_at, raise_through
from ..utils.source import Origin


def in_native_order(value: Any) -> Any:
    """An array of foreign byte order in this machine's, as typed graphs take it; anything else as it is."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


def run(graph: Graph, args: Sequence[Any]) -> Any:
    """The value of a typed graph.

    Args:
        graph: closed typed graph, transforms expanded.
        args: Python numbers, NumPy values and structures of them, of the parameters' types.

    Raises:
        Whatever the program raises, with the user's lines in the traceback; ShapeError where sizes contradict each
        other.
    """
    machine = Machine(bind_symbols([p.type for p in graph.params], args))
    machine.look_for_recursion(graph)
    with np.errstate(all="ignore"):
        try:
            return machine.call(graph, tuple(args))
        except Exception as error:
            raise_through(error, machine.passed)


Step = Callable[[list], Any]
Run = Generator[tuple[Graph, list, Any], Any, Any]
NESTED = 50  # depth of nested graphs up to which Python's own stack is enough
MAX_DEPTH = 150_000
"""Calls of recursive functions that may be open at once."""


class Machine:
    """One run: the sizes of symbolic dimensions, and the steps of each graph seen so far."""

    def __init__(self, sizes: dict[str, int]):
        self.sizes = sizes
        self.plans: dict[Graph, tuple] = {}
        self.recursive: set[Graph] = set()
        self.reaching: set[Graph] = set()  # graphs that can reach a recursive one
        self.generators: set[Step] = set()  # steps that run such graphs
        self.passed: list[Origin] = []  # the calls that an exception has come through, innermost first

    def look_for_recursion(self, graph: Graph) -> None:
        """Find the graphs that need a stack of our own: recursive ones, and what is nested deeply."""
        depth: dict[Graph, int] = {}
        for members in components(graph):
            inner = {g for m in members for n in m.nodes for g in inner_graphs(n)}
            depth.update(dict.fromkeys(members, 1 + max((depth.get(g, 0) for g in inner), default=0)))
            if depth[members[0]] > NESTED:
                self.reaching.update(members)
            if inner & {*members}:
                self.recursive.update(members)
            if inner & (self.reaching | {*members}):
                self.reaching.update(members)

    def call(self, graph: Graph, args: Sequence[Any]) -> Any:
        """Run a graph."""
        if graph in self.reaching:
            return self.deep(graph, args)
        steps, slots, output = self.enter(graph, args)
        for slot, step in steps:
            slots[slot] = step(slots)
        return slots[output]

    def enter(self, graph: Graph, args: Sequence[Any]) -> tuple:
        """The steps of a graph, fresh slots with its arguments, and the slot of its result.

        Raises:
            InternalError: the number of arguments is wrong.
        """
        plan = self.plans.get(graph)
        if plan is None:
            plan = self.plans[graph] = self.plan(graph)
        steps, template, output = plan
        slots = template.copy()
        if len(args) != len(graph.params):
            raise InternalError(
                "interpreter", f"{graph.name} takes {len(graph.params)} values and is given {len(args)}"
            )
        slots[: len(args)] = args
        return steps, slots, output

    def deep(self, graph: Graph, args: Sequence[Any]) -> Any:
        """Run a graph that can reach a recursive one, on a stack of our own.

        Raises:
            InternalError: there is a debugger's mark in it.
        """
        try:
            next(self.stops(graph, args))
        except StopIteration as end:
            return end.value
        raise InternalError("interpreter", f"{graph.name} stops at a mark, and nobody looks")

    def stops(self, graph: Graph, args: Sequence[Any]) -> Generator[Any, None, Any]:
        """As `deep`, yielding what a step shows that wants no graph."""
        stack: list[tuple[Run, int, Apply | None]] = [(self.steps_of(graph, args), 0, None)]
        result: Any = None
        while stack:
            running, depth, _ = stack[-1]
            try:
                wanted, values, node = running.send(result)
            except StopIteration as end:
                result = end.value
                stack.pop()
                continue
            except Exception:
                self.came_through(stack)
                raise
            result = None
            if wanted is None:
                yield values
            elif wanted not in self.reaching:
                try:
                    result = self.call(wanted, values)
                except Exception:
                    stack.append((running, depth, node if wanted is node.fn else None))
                    self.came_through(stack)
                    raise
            else:
                depth += wanted is node.fn  # branches and bodies do not count as calls
                if depth > MAX_DEPTH:
                    raise_at(RecursionError, MESSAGE, node.origin)
                stack.append((self.steps_of(wanted, values), depth, node if wanted is node.fn else None))
        return result

    def came_through(self, stack: list[tuple[Run, int, Apply | None]]) -> None:
        """An exception comes through all calls of a stack."""
        self.passed += [call.origin for *_, call in reversed(stack) if call is not None]

    def steps_of(self, graph: Graph, args: Sequence[Any]) -> Run:
        """Run a graph step by step; yields what is to be run for it."""
        steps, slots, output = self.enter(graph, args)
        for slot, step in steps:
            if step in self.generators:
                slots[slot] = yield from step(slots)
            else:
                slots[slot] = step(slots)
        return slots[output]

    def plan(self, graph: Graph) -> tuple:
        """The steps of a graph, a list of slots with its constants in place, and the slot of its output."""
        slots: dict[Node, int] = {p: i for i, p in enumerate(graph.params)}
        template: list[Any] = [None] * (len(graph.params) + len(graph.nodes))

        def slot(node: Node) -> int:
            if node not in slots:
                if not isinstance(node, Constant):
                    raise InternalError("interpreter", f"{node!r} is used before it is computed")
                slots[node] = len(template)
                template.append(as_type(node.value, node.type))
            return slots[node]

        steps = []
        for i, node in enumerate(graph.nodes, len(graph.params)):
            inputs = [slot(a) for a in node.args]
            slots[node] = i
            steps.append((i, self.step(node, inputs)))
        output = slot(graph.output)
        return steps, template, output

    def step(self, node: Apply, inputs: list[int]) -> Step:
        """What one application does with the slots.

        Raises:
            InternalError: the primitive has no reference implementation.
        """
        if not self.reaching.isdisjoint(inner_graphs(node)):
            step = DEEP["call" if isinstance(node.fn, Graph) else node.fn.name](self, node, inputs)
            self.generators.add(step)
            return step
        if isinstance(node.fn, Graph):
            callee = node.fn

            def call(s):
                try:
                    return self.call(callee, [s[i] for i in inputs])
                except Exception:
                    self.passed.append(node.origin)
                    raise

            def call_with_sizes(s):
                sizes = self.sizes
                self.sizes = {**sizes}  # what the callee binds is its own, also where it is the caller
                try:
                    return call(s)
                finally:
                    self.sizes = sizes

            return call_with_sizes if binds_dims(callee) else call
        special = SPECIAL.get(node.fn.name)
        if special is not None:
            return special(self, node, inputs)
        reference, type = node.fn.reference, node.type
        if reference is None:
            raise InternalError("interpreter", f"primitive {node.fn.name} has no reference implementation")
        if has_run_time_dims(node):
            return lambda s: as_type(reference(*[s[i] for i in inputs], **self.static(node)), type)
        attrs = self.static(node)
        return lambda s: as_type(reference(*[s[i] for i in inputs], **attrs), type)

    def static(self, node: Apply) -> dict[str, Any]:
        """The attributes, with sizes for symbolic dimensions."""
        return {k: substitute(v, self.sizes) if has_dims(v) else v for k, v in node.attrs.items()}


# Each maker takes the machine, the node and the slots of its arguments, and returns the step.


def has_run_time_dims(node: Apply) -> bool:
    """Whether an attribute mentions a dimension that an application binds."""
    return any(has_dims(v) and run_time_symbols(dims_in(v)) for v in node.attrs.values())


def _cond(m: Machine, node: Apply, inputs):
    which, *rest = inputs
    then, orelse = node.attrs["then"], node.attrs["orelse"]
    return lambda s: m.call(then if s[which] else orelse, [s[i] for i in rest])


def _while(m: Machine, node: Apply, inputs):
    condition, body, n = node.attrs["cond"], node.attrs["body"], node.attrs["carried"]

    writes = "write" in Effects().of_graph(body)

    def step(s):
        values = [s[i] for i in inputs]
        while m.call(condition, values):
            values[:n] = m.call(body, values)
            if writes:
                poll()
        return tuple(values[:n])

    return step


def _for(m: Machine, node: Apply, inputs):
    body, n = node.attrs["body"], node.attrs["carried"]
    index = body.params[0].type

    writes = "write" in Effects().of_graph(body)

    def step(s):
        start, stop, stride, *values = [s[i] for i in inputs]
        for i in range(int(start), int(stop), int(stride)):
            values[:n] = m.call(body, [as_type(i, index), *values])
            if writes:
                poll()
        return tuple(values[:n])

    return step


# The same for graphs that can reach a recursive one: generators that yield (graph, arguments, node) and are sent
# results.


def _deep_call(m: Machine, node: Apply, inputs):
    callee, binds = node.fn, binds_dims(node.fn)

    def step(s) -> Run:
        sizes = m.sizes
        if binds:
            m.sizes = {**sizes}
        result = yield callee, [s[i] for i in inputs], node
        m.sizes = sizes
        return result

    return step


def _deep_cond(m: Machine, node: Apply, inputs):
    which, *rest = inputs
    then, orelse = node.attrs["then"], node.attrs["orelse"]

    def step(s) -> Run:
        return (yield then if s[which] else orelse, [s[i] for i in rest], node)

    return step


def _deep_while(m: Machine, node: Apply, inputs):
    condition, body, n = node.attrs["cond"], node.attrs["body"], node.attrs["carried"]

    def step(s) -> Run:
        values = [s[i] for i in inputs]
        while (yield condition, list(values), node):
            values[:n] = yield body, list(values), node
        return tuple(values[:n])

    return step


def _deep_for(m: Machine, node: Apply, inputs):
    body, n = node.attrs["body"], node.attrs["carried"]
    index = body.params[0].type

    def step(s) -> Run:
        start, stop, stride, *values = [s[i] for i in inputs]
        for i in range(int(start), int(stop), int(stride)):
            values[:n] = yield body, [as_type(i, index), *values], node
        return tuple(values[:n])

    return step


DEEP = {"call": _deep_call, "cond": _deep_cond, "while_loop": _deep_while, "for_loop": _deep_for}


# Operations that the native back end makes from loops and arrays; they are here so that its graphs can be interpreted
# too.


def _vector_while(m: Machine, node: Apply, inputs):
    condition, body, n, lanes = (node.attrs[k] for k in ("cond", "body", "carried", "lanes"))
    each = len(inputs) // lanes

    def step(s):
        results: list = []
        for k in range(lanes):
            values = [s[i] for i in inputs[k * each : (k + 1) * each]]
            while m.call(condition, values):
                values[:n] = m.call(body, values)
            results += values[:n]
        return tuple(results)

    return step


def _map_rows(m: Machine, node: Apply, inputs):
    attrs = m.static(node)
    body, rows, widths, counted = attrs["body"], int(attrs["rows"]), attrs["widths"], attrs.get("counted", False)
    types, index = attrs["types"], node.attrs["body"].params[0].type

    def step(s):
        values = [v.reshape(-1) if isinstance(v, np.ndarray) else v for v in (s[i] for i in inputs)]
        count = min(int(values.pop(0)), rows) if counted else rows
        outs = [np.zeros((blocks, rows, width), numpy_dtype(t.dtype)) for t, (blocks, width) in zip(types, widths)]
        for row in range(count):
            numbers = m.call(body, [as_type(row, index), *values])
            place = 0
            for out in outs:
                blocks, _, width = out.shape
                part_of_row = numbers[place : place + blocks * width]
                out[:, row, :] = np.array(part_of_row, out.dtype).reshape(blocks, width)
                place += blocks * width
        return tuple(out.reshape(t.shape) for out, t in zip(outs, types))

    return step


def _check(m: Machine, node: Apply, inputs):
    ok, *operands = inputs
    exception, parts, origin = node.attrs["exception"], node.attrs["parts"], node.origin

    def step(s):
        if not s[ok]:
            raise_at(exception, exception_argument(parts, [s[i] for i in operands]), origin)

    return step


def _raise(m: Machine, node: Apply, inputs):
    exception, parts, origin = node.attrs["exception"], node.attrs["parts"], node.origin
    return lambda s: raise_at(exception, exception_argument(parts, [s[i] for i in inputs]), origin)


def _print(m: Machine, node: Apply, inputs):
    parts, end = node.attrs["parts"], node.attrs["end"]
    return lambda s: sys.stdout.write(format_parts(parts, [s[i] for i in inputs]) + end) and None


def _call_operator(m: Machine, node: Apply, inputs):
    attrs, origin, type = m.static(node), node.origin, node.type
    return lambda s: as_type(call_registered(origin, [s[i] for i in inputs], **attrs), type)


def _ref_read(m: Machine, node: Apply, inputs):
    (ref,), index = inputs, node.attrs["index"]
    return lambda s: as_type(np.array(s[ref].arrays[index]), node.type)


def _ref_write(m: Machine, node: Apply, inputs):
    (ref, value), index = inputs, node.attrs["index"]

    def step(s):
        s[ref].arrays[index][...] = s[value]

    return step


def _get_item(m: Machine, node: Apply, inputs):
    (struct,), index, type = inputs, node.attrs["index"], node.args[0].type
    return lambda s: part(s[struct], type, index)


def _make_struct(m: Machine, node: Apply, inputs):
    type = node.attrs["type"]
    return lambda s: inside(type, [s[i] for i in inputs])


def _dim_size(m: Machine, node: Apply, inputs):
    dim = node.attrs["dim"]
    if is_run_time(dim):
        return lambda s: int(substitute(dim, m.sizes))
    size = substitute(dim, m.sizes)
    return lambda s: int(size)


def _bind_dim(m: Machine, node: Apply, inputs):
    (size,), (name,) = inputs, symbols(node.attrs["dim"])

    def step(s):
        m.sizes[name] = int(s[size])
        return m.sizes[name]

    return step


def _tape_pop(m: Machine, node: Apply, inputs):
    (tape,) = inputs

    def step(s):
        if s[tape] is None:
            raise InternalError("interpreter", "an empty tape is popped")
        return s[tape]

    return step


UNREAD = {"b": True, "i": 90, "u": 90}
"""What an array holds that should not be read, by the kind of its dtype; NaN in floats. Zeros might pass for an answer."""


def _undef(m: Machine, node: Apply, inputs):
    t = node.type
    if isinstance(t, Array) and not is_known(t.shape):
        shape, dtype = t.shape, numpy_dtype(t.dtype)
        filling = UNREAD.get(dtype.kind, np.nan)
        return lambda s: np.full(substitute(shape, m.sizes), filling, dtype)
    value = Items([]) if isinstance(t, List) else placeholder(t)
    return lambda s: value


SPECIAL: dict[str, Callable[[Machine, Apply, list[int]], Step]] = {
    "cond": _cond,
    "while_loop": _while,
    "for_loop": _for,
    "vector_while": _vector_while,
    "map_rows": _map_rows,
    "check": _check,
    "raise": _raise,
    "print": _print,
    "call_operator": _call_operator,
    "operator_kernel": _call_operator,
    "ref_read": _ref_read,
    "ref_write": _ref_write,
    "get_item": _get_item,
    "make_struct": _make_struct,
    "dim_size": _dim_size,
    "bind_dim": _bind_dim,
    "undef": _undef,
    "none": lambda m, node, inputs: lambda s: None,
    "tape_new": lambda m, node, inputs: lambda s: None,
    "tape_push": lambda m, node, inputs: lambda s: (s[inputs[0]], s[inputs[1]]),
    "tape_pop": _tape_pop,
}
