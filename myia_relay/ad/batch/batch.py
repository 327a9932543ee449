"""Batching (vmap): a typed graph of one example becomes a typed graph of many.

    vmap(f)(xs) = stack([f(x) for x in xs])

Each value has a flag: whether it has a batch axis (always the first) or is the same for all examples; the flag of a
structure is a tuple, one for each part. What is the same for all examples is computed once. Primitives are batched by
their own rules, control flow by the rules of `ad.batch.control`:

- A branch stays a branch if its condition is the same for all examples. Otherwise both sides run, and `where` selects.
- A loop with the same bounds for all examples stays a loop over batched values. A loop with different numbers of
  iterations runs to the longest, and examples that have finished keep their values.
- If examples have data types or run-time lists of their own, print, or take different paths through a recursion, the
  whole is a loop over the examples (`ad.batch.recursion`).

In code that only some examples run, everything is batched and masked, even values that are the same for all. The
adjoint of a loop pops what the loop pushed, so both must make the same decisions, and what a masked loop saves is
batched.

Effects: a check holds if it holds for all examples, and reports the first that fails; in code that only some examples
run, the others do not count. Each example prints its own output. An update of a model with values that differ between
examples is refused.

Source: "batching" in J. Bradbury et al., JAX (2018); masked loops as in A. Radul et al., "Automatically batching
control-intensive programs for modern accelerators" (MLSys 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...abstract.batched import batched_type
from ...abstract.dims import DimLike
from ...abstract.types import Array, Data, Leaf, Scalar, Struct, Tape, Type
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node, Parameter
from ...ir.prim import REGISTRY
from ...ir.rewrite import RecursiveComponents, emit_like
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import CompileError, InternalError, TypeError_

Flag = bool | tuple


def join(a: Flag, b: Flag) -> Flag:
    """Batched if either is."""
    if a is False or b is False:
        return b if a is False else a
    if isinstance(a, tuple) and isinstance(b, tuple):
        return canonical(tuple(join(x, y) for x, y in zip(a, b, strict=True)))
    return True


def canonical(flag: Flag) -> Flag:
    """False for a structure without a batched part."""
    return False if isinstance(flag, tuple) and not any(f is not False for f in flag) else flag


def full(t: Type) -> Flag:
    """The flag of a value that is batched as a whole."""
    if isinstance(t, Struct):
        return canonical(tuple(full(e) for e in t.elems))
    return isinstance(t, Scalar | Array | Tape)


def expanded_flag(flag: Flag, t: Type) -> Flag:
    """A flag given by a caller, with True for structures replaced by a tuple."""
    if isinstance(t, Struct) and flag is not False:
        flags = flag if isinstance(flag, tuple) else (True,) * len(t.elems)
        return canonical(tuple(expanded_flag(f, e) for f, e in zip(flags, t.elems, strict=True)))
    return flag is not False and full(t)


def item(flag: Flag, index: int) -> Flag:
    """The flag of a part."""
    return flag[index] if isinstance(flag, tuple) else flag


class Restart(Exception):
    """More of what is on some tapes is batched than was known when they were made."""


class OneByOne(Exception):
    """The examples take different paths through a recursion, have data types or run-time lists of their own, or print."""


class Batcher:
    """Batching with one batch size.

    Attributes:
        size: of the batch axis.
        recursive_version: makes the batched version of a function that calls itself: `ad.batch.recursion`.
        once: whether what is the same for all is printed once, as where the examples are the directions of a Jacobian.
        tapes: which parts of the entries of tapes are batched from the start, by type of the tape: of those of recursions, and of
            those of which only one of two branches knows that they are.
        masked: whether there is code that only some examples run.
    """

    def __init__(self, size: DimLike, recursive_version: Callable, once: bool = False):
        self.size, self.once, self.recursive_version = size, once, recursive_version
        self.graphs: dict = {}
        self.masked = False
        self.tapes: dict[Type, Flag] = {}
        self.recursion = RecursiveComponents()

    def type(self, t: Type, flag: Flag) -> Type:
        """The type of a value with this flag."""
        return batched_type(t, self.size, flag)

    def graph(self, graph: Graph, flags: tuple[Flag, ...], want: Flag = False) -> tuple[Graph, Flag]:
        """A graph for batched arguments, and the flag of its result, which has at least the batch axes of `want`."""
        key = (graph, flags, want)
        if key not in self.graphs:
            if self.recursion.component(graph) is not None:
                self.graphs[key] = self.recursive_version(self, graph, flags, want)
            else:
                new = Graph(graph.name, None, graph.origin)
                self.graphs[key] = new, self.build(new, graph, flags, want)
        return self.graphs[key]

    def build(self, new: Graph, graph: Graph, flags: tuple[Flag, ...], want: Flag) -> Flag:
        """Make `new` the batched version of a graph; returns the flag of its result."""
        new.flags = {k: v for k, v in graph.flags.items() if k != "effects"}
        params = [
            new.add_parameter(p.name, self.type(p.type, f), p.origin) for p, f in zip(graph.params, flags, strict=True)
        ]
        b = Builder(new, graph.origin)
        out, flag = self.inline(b, graph, params, flags)
        to = join(flag, want)
        new.output = self.match(b, out, graph.output.type, flag, to)
        return to

    def inline(
        self, b: Builder, graph: Graph, args: Sequence[Node], flags: Sequence[Flag], mask: Node | None = None
    ) -> tuple[Node, Flag]:
        """Emit a graph for batched arguments.

        Args:
            b: where.
            graph: of one example.
            args: values of the parameters.
            flags: which of them have a batch axis.
            mask: bool, one for each example: which of them run this; None for all.

        Returns:
            The result and its flag.
        """
        env: dict[Node, tuple[Node, Flag]] = dict(zip(graph.params, zip(args, flags, strict=True), strict=True))

        def look(node: Node) -> tuple[Node, Flag]:
            found = env.get(node)
            if found is None:
                if not isinstance(node, Constant):
                    raise InternalError("vmap", f"{node!r} is used before it is defined")
                return node, False
            return found

        for node in graph.nodes:
            pairs = [look(a) for a in node.args]
            b.origin = node.origin
            try:
                new, flag = self.application(b, node, [p[0] for p in pairs], [p[1] for p in pairs], mask)
            except CompileError as error:
                raise error.at(node.origin) from None
            if new.name is None and not isinstance(new, Constant | Parameter):
                new.name = node.name
            env[node] = new, flag
        return look(graph.output)

    def application(self, b: Builder, node: Apply, args: list[Node], flags: list[Flag], mask) -> tuple[Node, Flag]:
        """One application on batched arguments.

        Raises:
            OneByOne: it must run example by example: a recursion or a list under a mask.
            InternalError: the primitive has no batching rule, or its rule gives another type.
        """
        plain = all(f is False for f in flags)
        if isinstance(node.fn, Graph):
            if mask is not None:
                if self.recursion.component(node.fn) is not None:
                    raise OneByOne
                return self.inline(b, node.fn, args, flags, mask)
            callee, flag = self.graph(node.fn, tuple(flags))
            return b.call(callee, args), flag
        special = RULES.get(node.fn.name)
        if special is not None:
            return special(self, b, node, args, flags, mask)
        if node.fn.name.startswith("list_") and (mask is not None or not plain):
            raise OneByOne
        if plain:
            return emit_like(b, node, args), False
        if (
            node.fn.name == "where" and flags[0] is not False and node.args[0].type.shape == ()
        ):  # a branch of one example
            self.masked = b.graph.flags["masked"] = True
        if node.fn.batch_rule is None:
            raise InternalError("vmap", f"primitive {node.fn.name} has no batching rule")
        out = node.fn.batch_rule(
            self.size, tuple(f is not False for f in flags), *[Var(b, a) for a in args], **node.attrs
        )
        expected = self.type(node.type, full(node.type))
        if out.type != expected:
            raise InternalError("vmap", f"the batching rule of {node.fn.name} gives {out.type} for {expected}")
        return out.node, full(node.type)

    def match(self, b: Builder, node: Node, t: Type, have: Flag, want: Flag) -> Node:
        """A value with the batch axes that `want` asks for.

        Args:
            t: its type for one example.
            have: where it has batch axes.
            want: where it should have them; at least where it has them already.

        Raises:
            OneByOne: it is a value of an algebraic data type.
            Restart: it is a tape that has become batched.
            InternalError: something was pushed on that tape before.
        """
        if have == want:
            return node
        if isinstance(t, Struct):
            parts = [b.emit(REGISTRY["get_item"], (node,), {"index": i}) for i in range(len(t.elems))]
            parts = [self.match(b, x, e, item(have, i), item(want, i)) for i, (x, e) in enumerate(zip(parts, t.elems))]
            return b.emit(REGISTRY["make_struct"], parts, {"type": self.type(t, want)})
        if isinstance(t, Data):
            raise OneByOne
        if is_undef(node):
            return b.emit(REGISTRY["undef"], (), {"type": self.type(t, want)})
        if isinstance(t, Tape):  # only a tape on which something batched is pushed is batched
            if isinstance(node, Apply) and getattr(node.fn, "name", "") != "tape_new":  # it is not empty any more
                if self.tapes.get(t) is True:
                    raise InternalError("vmap", "a tape gets its batch axis after something was pushed")
                self.tapes[t] = True
                raise Restart
            return b.emit(REGISTRY["tape_new"], (), {"elem": batched_type(t.elem, self.size), "owner": t.owner})
        assert isinstance(t, Leaf)
        return broadcast_to(Var(b, node), shape=(self.size, *t.shape)).node


def is_undef(node: Node) -> bool:
    """Whether a value is one that is never read."""
    return isinstance(node, Apply) and getattr(node.fn, "name", "") == "undef"


Rule = Callable[[Batcher, Builder, Apply, list[Node], list[Flag], "Node | None"], tuple[Node, Flag]]


# Structures and tapes.


def _make_struct(p: Batcher, b, node, args, flags, mask):
    flag = canonical(tuple(flags))
    return b.emit(node.fn, args, {"type": p.type(node.type, flag)}), flag


def _get_item(p: Batcher, b, node, args, flags, mask):
    return b.emit(node.fn, args, node.attrs), item(flags[0], node.attrs["index"])


def _tape_new(p: Batcher, b, node, args, flags, mask):
    flag = p.tapes.get(node.type, False)
    return b.emit(node.fn, (), {"elem": batched_type(node.type.elem, p.size, flag), "owner": node.type.owner}), flag


def _tape_push(p: Batcher, b, node, args, flags, mask):
    tape, entry = node.args
    if tape.type.owner:
        want = join(flags[0], flags[1])
        if want != flags[0]:
            p.tapes[tape.type] = join(p.tapes.get(tape.type, False), want)
            raise Restart
        return b.emit(node.fn, (args[0], p.match(b, args[1], entry.type, flags[1], want))), want
    if flags[0] is False and flags[1] is False:
        return b.emit(node.fn, args), False
    args = [p.match(b, args[0], tape.type, flags[0], True), p.match(b, args[1], entry.type, flags[1], full(entry.type))]
    return b.emit(node.fn, args), True


def _tape_pop(p: Batcher, b, node, args, flags, mask):
    entry = full(node.type.elems[1]) if flags[0] is True else flags[0]
    flag = canonical((flags[0], entry))
    return b.emit(node.fn, args), flag


# Effects.


def _check(p: Batcher, b: Builder, node, args, flags, mask):
    """check(all(ok)), with the operands of the first example for which it fails."""
    if mask is None and all(f is False for f in flags):
        return emit_like(b, node, args), False
    ok, *operands = args
    at = None
    if mask is not None or flags[0]:
        vector = Var(b, p.match(b, ok, node.args[0].type, flags[0], True))
        if mask is not None:
            vector = REGISTRY["logical_or"](vector, REGISTRY["logical_not"](Var(b, mask)))
        at = REGISTRY["argmin"](REGISTRY["cast"](vector, dtype="int8"), axis=0)
        ok = REGISTRY["reduce_all"](vector, axes=(0,)).node
    operands = [example(b, x, a.type, f, at) for x, a, f in zip(operands, node.args[1:], flags[1:])]
    return b.emit(node.fn, (ok, *operands), node.attrs), False


def example(b: Builder, x: Node, t: Type, flag: Flag, at: Var | None) -> Node:
    """The value of the example at a position."""
    if flag is False:
        return x
    if isinstance(t, Struct):
        parts = [b.emit(REGISTRY["get_item"], (x,), {"index": i}) for i in range(len(t.elems))]
        parts = [example(b, part, e, item(flag, i), at) for i, (part, e) in enumerate(zip(parts, t.elems))]
        return b.emit(REGISTRY["make_struct"], parts, {"type": t})
    at = at if at is not None else Var(b, b.constant(0))
    found = REGISTRY["dynamic_index"](Var(b, x), at, axis=0)
    if isinstance(t, Scalar) and t.weak:
        found = REGISTRY["cast"](found, dtype=t.dtype, weak=True)
    elif isinstance(t, Array) and isinstance(found.type, Scalar):
        found = REGISTRY["as_array"](found)
    return found.node


def _raise(p: Batcher, b: Builder, node, args, flags, mask):
    """In code that only some examples run: raise if any of them does; the value is never used otherwise."""
    if mask is None:
        operands = [example(b, x, a.type, f, None) for x, a, f in zip(args, node.args, flags)]
        return b.emit(node.fn, operands, node.attrs), False
    ok = REGISTRY["logical_not"](Var(b, mask))
    at = REGISTRY["argmin"](REGISTRY["cast"](ok, dtype="int8"), axis=0)
    operands = [example(b, x, a.type, f, at) for x, a, f in zip(args, node.args, flags)]
    attrs = {"exception": node.attrs["exception"], "parts": node.attrs["parts"]}
    b.emit(REGISTRY["check"], (REGISTRY["reduce_all"](ok, axes=(0,)).node, *operands), attrs)
    return b.emit(REGISTRY["undef"], (), {"type": node.type}), False


def _bind_dim(p: Batcher, b: Builder, node, args, flags, mask):
    if mask is not None or flags[0] is not False:
        raise TypeError_(SIZES)
    return emit_like(b, node, tuple(args)), False


SIZES = (
    "the size of this array differs between the examples of vmap, as a value of each decides it; keep the shape, as "
    "np.where(mask, x, 0) does, or loop over the examples"
)


def _print(p: Batcher, b: Builder, node, args, flags, mask):
    if p.once and mask is None and all(f is False for f in flags):
        return emit_like(b, node, args), False
    raise OneByOne


def _mark(p: Batcher, b: Builder, node, args, flags, mask):
    """A debugger sees the values of all examples."""
    return emit_like(b, node, args), False


def _ref_write(p: Batcher, b: Builder, node, args, flags, mask):
    if mask is not None or any(f is not False for f in flags):
        raise TypeError_(WRITES)
    return emit_like(b, node, args), False


WRITES = "an update of a model inside of vmap with values that differ between examples; do it outside, on the batch"


def _data_make(p: Batcher, b: Builder, node, args, flags, mask):
    if any(f is not False for f in flags):
        raise OneByOne
    return emit_like(b, node, args), False


RULES: dict[str, Rule] = {
    "data_make": _data_make,
    "make_struct": _make_struct,
    "get_item": _get_item,
    "tape_new": _tape_new,
    "tape_push": _tape_push,
    "tape_pop": _tape_pop,
    "check": _check,
    "raise": _raise,
    "bind_dim": _bind_dim,
    "print": _print,
    "mark": _mark,
    "ref_write": _ref_write,
}
"""Batching of operations that are not ordinary primitives; `ad.batch.control` adds control."""
