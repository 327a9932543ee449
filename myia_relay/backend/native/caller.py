"""The caller of a native program, generated as Python source and run by `exec`.

There are two forms. A packed `main` is called with the arguments. Otherwise the arguments are stored in the block of
arguments of the state area, and the function that the area is bound to is called.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike, evaluate, known_size, never_negative
from ...abstract.structures import rebuild
from ...abstract.types import Array, Data, Leaf, NoneT, Ref, Scalar, Str, Struct, Type, Undefined, leaves, numpy_dtype
from ...utils.errors import LoweringError
from .area import idle_frames, new_frames, sized_array
from .arguments import conform
from .ending import CALLER
from .into import Finish, choose_targets, lie_apart
from .lists import list_reader
from .results import LEAST, RESULTS
from .stack import stack_limit

_MASK = (1 << 64) - 1
FEW = 64  # pairs of arrays that are compared one by one


class Writer:
    """Writes the source of a caller.

    Args:
        entry: see `Entry`.
        into: whether it writes results into arrays of the caller's, its first argument.
        changes: leaf of the result -> what writes the list into one of the caller's (`writing`). A caller with some has as its
            first argument, for each of them, the list and its columns, and returns None for them.
    """

    def __init__(self, entry: Any, into: bool, changes: Mapping[int, Callable] | None = None):
        self.entry, self.into, self.changes = entry, into, changes or {}
        self.signature = entry.signature
        self.names: dict[str, Any] = {
            "main": entry.main, "pop": entry.free.pop, "push": entry.free.append, "area": entry.area, "fail": entry.fail,
            "broken": entry.broken, "begin": entry.begin, "leave": entry.leave,
            "sized": sized_array, "release": entry.release_lists,
            "empty": np.empty, "take": RESULTS.take, "rebuild": rebuild, "asarray": np.asarray, "address": lambda a: a.ctypes.data,
        }  # fmt: skip
        self.lines: list[str] = []
        self.args: list[str] = []
        self.kinds: list[str] = []
        self.sizes: dict[str, str] = {}
        self.arrays: list[str] = []  # expressions of the array arguments
        self.writes: list[str] = []  # statements that write changes
        self.leaves = 0  # of the result that have an expression

    def argument(self, text: str, kind: str = "q") -> None:
        """An argument of `main`: "d" for a float, "q" for an integer."""
        self.args.append(text)
        self.kinds.append(kind)

    def floating(self) -> bool:
        """Whether what `main` returns is a float."""
        (t,) = (t for t, kind in zip(leaves(self.signature.output), self.signature.results) if kind == "return")
        assert isinstance(t, Leaf)
        return t.dtype.startswith(("float", "bfloat"))

    def constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def function(self) -> Callable:
        """The caller.

        Raises:
            LoweringError: a symbolic size is a dimension of no argument.
        """
        signature = self.signature
        params = [f"a{i}" for i in range(len(signature.params))]
        for name, t in zip(params, signature.params):
            self.leaf(name, t)
        for symbol in signature.symbols:
            if symbol not in self.sizes:
                raise LoweringError(
                    f"nothing tells the size '{symbol}': give the program an argument that has it as a dimension"
                )
            self.argument(self.sizes[symbol])
        every = f"({''.join(p + ', ' for p in params)})"
        outs = self.allocate(signature.output)
        packed = self.entry.main is not None
        area = signature.state_slots or not packed
        if area:
            need = self.expression(signature.arena)
            self.lines += ["try:", "    ws = pop()", "except IndexError:", f"    ws = area({need})"]
            if isinstance(signature.arena, Dim):
                self.lines += [f"if ws[3] < {need}:", f"    ws = area({need})"]
        stored = []
        if signature.block is not None:
            stored = [self.stores([*self.args, *outs], [*self.kinds, *("q" for _ in outs)])]
            self.args, self.kinds, outs = [], [], []
        if signature.state_slots:
            self.entry.own = len(self.args)
            self.argument("ws[0]")
        for out in outs:
            self.argument(out)
        self.entry.kinds = self.kinds
        if signature.frames is not None:
            self.names["stack_limit"] = stack_limit
            self.lines += ["w = ws[2]", f"w[{signature.frames[2]}] = stack_limit()"]
        borrowed: list[str] = []
        if signature.frames is not None and self.entry.borrows_frames:
            base, end, _, nbytes = signature.frames
            self.names |= {"new_frames": new_frames, "lend_frames": idle_frames.pop, "give_frames": idle_frames.append}
            self.lines += [
                *("try:", "    frames = lend_frames()", "except IndexError:", f"    frames = new_frames({nbytes})"),
                *(f"if frames[1] < {nbytes}:", f"    frames = new_frames({nbytes})"),  # in place of the smaller one
                f"w[{base}] = at = frames[0]",
                f"w[{end}] = at + {nbytes}",
            ]
            borrowed = ["give_frames(frames)"]
        first = ["out"] if self.into else ["changed"] if self.changes else []
        again = f"lambda *values: call({', '.join([*first, '*values'])})"
        failed = f"return fail({{}}, ws, {every}, {again})"
        returned = "r" if "return" in signature.results else ""
        ready = len(self.lines)
        self.lines += stored
        if packed:
            self.lines.append(f"r = main({', '.join(self.args)})")
            if area:
                self.lines += ["if r is not None:", "    " + failed.format("r")]
        else:
            at = 2 * len(self.args)
            for kind, view in (("d", 5), ("q", 6)):
                stores = [(k, a) for k, a in enumerate(self.args) if self.kinds[k] == kind and k != self.entry.own]
                self.lines += [f"{kind} = ws[{view}]"] if stores or kind == "q" else []
                self.lines += [f"{kind}[{2 * k + 1}] = {a}" for k, a in stores]
            self.lines += ["if ws[7]():", "    broken(ws)"]
            if returned:
                self.lines.append(f"r = {'ws[5]' if self.floating() else 'q'}[{at + 1}]")
            else:
                self.lines += [f"if q[{at}]:", "    " + failed.format(f"q[{at + 1}]")] if signature.state_slots else []
                self.lines += ["r = None"] if self.into else []
        self.lines += borrowed  # what failed may still be read
        result = self.result(signature.output, iter(signature.results), returned)
        if self.writes:
            self.lines += [f"result = {result}", *self.writes]
            result = "result"
        if signature.heap is not None:
            # This also happens if an argument does not fit its annotations: the heap must become available to others.
            body = ["    " + line for line in [*self.lines[ready:], f"result = {result}"]]
            self.lines[ready:] = ["heap = begin(ws)", "try:", *body, "finally:", "    leave(ws)"]
            result = "result"
        if area:
            self.lines.append(f"result = {result}")
            if signature.list_head is not None:
                self.lines += [f"if ws[2][{signature.list_head}]:", "    release(ws)"]
            self.lines += ["push(ws)", "return result"]
        else:
            self.lines.append(f"return {result}")
        head = f"def call({', '.join(first + params)}):"
        source = "\n".join([head, *("    " + line for line in self.lines)]) + "\n"
        exec(compile(source, CALLER, "exec"), self.names)
        self.names["call"].source = source
        return self.names["call"]

    def stores(self, values: list[str], kinds: list[str]) -> str:
        """The statement that puts the arguments into slots of the state area."""
        pack = self.constant(struct.Struct("=" + "".join(kinds)).pack_into)
        return f"{pack}(ws[2], {8 * self.signature.block}, {', '.join(values)})"

    def expression(self, dim: DimLike) -> str:
        """A dimension as Python source."""
        if not isinstance(dim, Dim):
            return str(dim)
        return str(evaluate(dim, lambda name: _Text(self.sizes[name])))

    def size(self, dim: DimLike) -> str:
        """A dimension of a result. Where one would be negative the program raises, which is better said than this."""
        text = self.expression(dim)
        return text if never_negative(dim) else f"({text} if {text} > 0 else 0)"

    def leaf(self, text: str, t: Type) -> None:
        """Arguments of `main` for one parameter (or part of one), given the expression that gets at it.

        Raises:
            LoweringError: a native program cannot take values of this type.
        """
        if isinstance(t, Struct):
            for i, e in enumerate(t.elems):
                self.leaf(_part(text, t, i), e)
        elif isinstance(t, Scalar):
            if t.dtype.startswith(("float", "bfloat")):
                self.argument(text if t.weak and t.dtype == "float64" else f"float({text})", "d")
            elif t.dtype == "uint64":
                self.argument(f"(int({text}) ^ {1 << 63}) - {1 << 63}")
            else:
                self.argument(text if t.weak and t.dtype == "int64" else f"int({text})")
        elif isinstance(t, Array):
            self.array(text, t)
        elif isinstance(t, Data):
            self.argument(f"heap.give({text}, {self.constant(t)})")
        elif isinstance(t, Ref):
            name = f"r{len(self.lines)}"
            self.lines.append(f"{name} = {text}.arrays")
            for i, e in enumerate(t.elems):
                self.array(f"{name}[{i}]", e)
        elif not isinstance(t, NoneT | Str | Undefined):
            raise LoweringError(f"a native program cannot take an argument of type {t}")

    def array(self, text: str, t: Array) -> None:
        self.arrays.append(text)
        for axis, d in enumerate(t.shape):
            if isinstance(d, Dim) and len(d.terms) == 1 and list(d.terms.values()) == [1]:
                (monomial,) = d.terms
                if len(monomial) == 1 and monomial[0] not in d.atoms and monomial[0] not in self.sizes:
                    name = f"n{len(self.sizes)}"
                    self.sizes[monomial[0]] = name
                    self.lines.append(f"{name} = {text}.shape[{axis}]")
        if self.signature.by_object:
            self.argument(f"id({text})")
        else:
            ready = self.constant(lambda a, t=t: conform(a, t, "an argument"))
            name = f"c{len(self.lines)}"
            self.lines.append(f"{name} = {ready}({text})")
            self.argument(f"address({name})")

    def allocate(self, t: Type) -> list[str]:
        """Allocate the arrays of the result; returns the arguments that pass them."""
        out: list[str] = []
        if self.into:
            self.choose(t)
        for leaf, kind in zip(leaves(t), self.signature.results):
            if kind[0] != "array":
                continue
            name = f"o{kind[1]}"
            if not self.into:
                assert isinstance(leaf, Array)
                sizes, dtype = [self.size(d) for d in leaf.shape], numpy_dtype(leaf.dtype)
                known, least = all(isinstance(d, int) for d in leaf.shape), -(-LEAST // dtype.itemsize)
                shape = self.constant(leaf.shape) if known else f"({', '.join(sizes)},)"
                if known:
                    make = "take" if math.prod(map(known_size, leaf.shape)) >= least else "empty"
                else:
                    make = f"(take if {' * '.join(sizes)} >= {least} else empty)"
                self.lines.append(f"{name} = {make}({shape}, {self.constant(dtype)})")
            out.append(f"id({name})" if self.signature.by_object else f"address({name})")
        return out

    def choose(self, t: Type) -> None:
        """The caller's arrays as targets, where they fit and overlap nothing; what else there is to do, in `choose_targets`."""
        names, tests = [], []
        plain = self.constant(np.ndarray)
        flat = isinstance(t, Array) or (isinstance(t, Struct) and t.kind == "tuple")
        owned = " and ".join(f"type({a}) is {plain} and {a}.flags.owndata" for a in self.arrays) or "True"
        tests.append(f"((own := {owned}) or True)")
        for k, (leaf, kind) in enumerate(zip(leaves(t), self.signature.results)):
            if not isinstance(leaf, Scalar | Array):
                continue
            target = f"out[{k}]" if isinstance(t, Struct) else "out"
            if kind[0] != "array":
                dtype = self.constant(numpy_dtype(leaf.dtype))
                exact = f"type({target}) is {plain} and {target}.dtype is {dtype}"
                tests += [exact, f"{target}.shape == () and {target}.flags.writeable"]
                continue
            name = f"o{kind[1]}"
            shape = f"({''.join(self.expression(d) + ', ' for d in leaf.shape)})"
            tests += [
                f"type({name} := {target}) is {plain}",
                f"{name}.dtype is {self.constant(numpy_dtype(leaf.dtype))}",
                f"{name}.shape == {shape}",
                f"(flags := {name}.flags).carray",
                "((own := own and flags.owndata) or True)",
            ]
            names.append(name)
        tests.append(self.apart(names))
        values = "".join(f"a{i}, " for i in range(len(self.signature.params)))
        slow = self.constant(lambda tree, values: choose_targets(tree, self.signature, values))
        taken = [f"outs, late = {slow}(out, ({values}))", *(f"{name} = outs[{k}]" for k, name in enumerate(names))]
        if flat and names:
            self.lines += [f"if {' and '.join(tests)}:", "    late = ()", "else:", *("    " + line for line in taken)]
        else:
            self.lines += taken

    def apart(self, targets: list[str]) -> str:
        """The test whether targets overlap nothing. Arrays that own their memory are apart, without a closer look."""
        if len(targets) * (len(self.arrays) + len(targets)) > FEW:
            given, into = ("".join(name + ", " for name in names) for names in (self.arrays, targets))
            return f"{self.constant(lie_apart)}(own, ({into}), ({given}))"
        pairs = [(one, other) for k, one in enumerate(targets) for other in (*self.arrays, *targets[:k])]
        different = " and ".join(f"{one} is not {other}" for one, other in pairs) or "True"
        overlap = self.constant(np.may_share_memory)
        overlapping = " or ".join(f"{overlap}({one}, {other})" for one, other in pairs) or "False"
        return f"(own and {different} or not ({overlapping}))"

    def result(self, t: Type, results: Any, returned: str) -> str:
        """The expression of the result."""
        if self.into:
            finish = self.constant(Finish(t, self.signature))
            area = "ws" if self.signature.state_slots else "None"
            late = f"{finish}(out, late, r, {area})"
            only_arrays = all(kind[0] == "array" for kind in self.signature.results)
            return f"{late} if late else out" if only_arrays else late
        return self.tree(t, results, returned)

    def tree(self, t: Type, results: Any, returned: str) -> str:
        if isinstance(t, Struct):
            parts = [self.tree(e, results, returned) for e in t.elems]
            if t.kind == "list":
                return f"[{', '.join(parts)}]"
            if t.kind == "dict":
                return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(t.fields, parts)) + "}"
            inner = f"({''.join(p + ', ' for p in parts)})"
            return f"rebuild({self.constant(t)}, {inner})" if t.kind == "record" else inner
        kind, leaf = next(results), self.leaves
        self.leaves += 1
        if kind == "none":
            return "None"
        if kind[0] == "array":
            return f"o{kind[1]}"
        if kind[0] == "sized":
            assert isinstance(t, Array)
            return f"sized(ws[2], {kind[1]}, {kind[2]}, {self.constant(numpy_dtype(t.dtype))})"
        if kind[0] == "list" and leaf in self.changes:
            k = len(self.writes)
            self.writes.append(
                f"{self.constant(self.changes[leaf])}((changed[{2 * k}], ws[2][{kind[1]}], changed[{2 * k + 1}]))"
            )
            return "None"
        if kind[0] == "list":
            return f"{self.constant(list_reader(t))}(ws[2][{kind[1]}])"
        return self.number(t, returned if kind == "return" else None, kind[1] if kind != "return" else 0)

    def number(self, t: Type, returned: str | None, slot: int) -> str:
        if isinstance(t, Data):
            return f"heap.take(ws[2][{slot}], {self.constant(t)})"
        assert isinstance(t, Leaf)
        if t.dtype.startswith(("float", "bfloat")):
            text = returned or f"ws[1][{slot}]"
        else:
            text = returned or f"ws[2][{slot}]"
            if t.dtype == "bool":
                text = f"({text} != 0)"
            elif t.dtype == "uint64":
                text = f"({text} & {_MASK})"
        if isinstance(t, Array):
            return f"asarray({text}, {self.constant(numpy_dtype(t.dtype))})"
        return text if t.weak else f"{self.constant(numpy_dtype(t.dtype).type)}({text})"


def _operator(symbol: str, swap: bool = False) -> Callable[[Any, Any], _Text]:
    """A method that writes an operator."""
    return lambda self, other: _Text(f"({other} {symbol} {self})" if swap else f"({self} {symbol} {other})")


class _Text:
    """Python source that grows by arithmetic, for `dims.evaluate`."""

    def __init__(self, source: str):
        self.source = source

    def __str__(self) -> str:
        return self.source

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", True)


def _part(text: str, t: Struct, i: int) -> str:
    if t.kind == "dict":
        return f"{text}[{t.fields[i]!r}]"
    if t.kind == "record" and not (isinstance(t.cls, type) and issubclass(t.cls, tuple)):
        return f"{text}.{t.fields[i]}"
    return f"{text}[{i}]"
