"""What CPython makes of a random program, and what may differ from it.

Idea: a program runs under CPython as it is, and then, only where something is to be excused, rewritten: each operation calls
back, to see integers that leave 64 bits, and to disturb in its last bits whatever an implementation may round its own way
(transcendental functions, products of arrays, sums). What varies then may differ; what does not vary must be the same to the
last bit.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import math
import operator
import random
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from myia_relay import relay

from .generator.records import CLASSES

EPS = {np.dtype(np.float64): 2.0**-52, np.dtype(np.float32): 2.0**-23, np.dtype(np.float16): 2.0**-10}
LARGEST = 4096  # bits of an int that a rewritten program may reach


class Beyond(Exception):
    """An int left 64 bits."""


class Hopeless(Exception):
    """An int became too large to go on with."""


@dataclass
class Outcome:
    """What a call did: a value or an exception, the line that raised it, and what was printed."""

    value: Any = None
    error: BaseException | None = None
    line: int | None = None
    printed: str = ""

    def __str__(self) -> str:
        what = (
            f"{type(self.error).__name__}({str(self.error)!r}) at line {self.line}" if self.error else repr(self.value)
        )
        return what + (f", printed {self.printed!r}" if self.printed else "")


def call(function: Callable, args: tuple, file: str) -> Outcome:
    """Call a function; `file` is its source's name, for the line of what it raises."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), np.errstate(all="ignore"):
            value = function(*args)
        return Outcome(value, printed=out.getvalue())
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        return Outcome(error=error, line=named(error, lines[-1], file) if lines else None, printed=out.getvalue())


def named(error: Exception, line: int, file: str) -> int:
    """The line of an exception; where CPython names one too early, the next that has the variable.

    From 3.11 on it runs the end of an assignment and the reading of the next line's first variable as one instruction, which
    stands at the line of the assignment.
    """
    name = re.search("local variable '(.*?)'", str(error)) if isinstance(error, UnboundLocalError) else None
    if name is None:
        return line
    has = [k for k in range(line, line + 4) if re.search(rf"\b{name[1]}\b", linecache.getline(file, k))]
    return has[0] if has else line


def function_of(text: str, file: str, names: dict | None = None, tree: ast.AST | None = None):
    """The function `program` of a source, which `linecache` knows as it does a notebook's cells."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {
        "np": np,
        "math": math,
        "random": relay.random,
        "_target": target,
        **CLASSES,
        "__name__": "random_program",
        **(names or {}),
    }
    exec(compile(text if tree is None else tree, file, "exec"), space)
    return space["program"]


def as_value(index: ast.expr) -> ast.expr:
    """An index as an expression outside of brackets."""
    if isinstance(index, ast.Slice):
        bounds = [b or ast.Constant(None) for b in (index.lower, index.upper, index.step)]
        return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), bounds, []), index)
    if isinstance(index, ast.Tuple):
        return ast.copy_location(ast.Tuple([as_value(e) for e in index.elts], ast.Load()), index)
    return index


def target(x: Any, index: Any) -> tuple:
    """What `x[i] op= v` looks at before it computes `v`: the container, the place, the old value."""
    return x, index, x[index]


def augmenting(after: Callable) -> Callable:
    """What it does then, with `after(op, value)` before the value is stored."""

    def augment(op, found, v):
        x, index, old = found
        x[index] = after(op, IN_PLACE[op](old, v))

    return augment


class Rewrite(ast.NodeTransformer):
    """Operations become calls of `_binary(op, x, y)`, `_value(x)`, `_call(f, args)`."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        name = type(node.op).__name__
        return self.wrapped("_binary", ast.Constant(name), node.left, node.right, at=node)

    def visit_MatchValue(self, node):
        return node

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return node if isinstance(node.op, ast.Not) else self.wrapped("_value", node, at=node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        again = []
        if isinstance(node.target, ast.Subscript):
            found = self.wrapped("_target", node.target.value, as_value(node.target.slice), at=node)
            change = self.wrapped("_augment", ast.Constant(type(node.op).__name__), found, node.value, at=node)
            return ast.copy_location(ast.Expr(change), node)
        if isinstance(node.target, ast.Name):
            name = node.target.id
            value = self.wrapped("_value", ast.Name(name, ast.Load()), at=node)
            again = [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)]
        return [node, *again]

    def visit_Attribute(self, node):
        """Properties make ints too."""
        self.generic_visit(node)
        module = isinstance(node.value, ast.Name) and node.value.id in ("np", "math")
        return self.wrapped("_value", node, at=node) if isinstance(node.ctx, ast.Load) and not module else node

    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.copy_location(
            ast.Call(ast.copy_location(ast.Name("_call", ast.Load()), node), [node.func, *node.args], node.keywords),
            node,
        )

    def wrapped(self, name, *args, at):
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(name, ast.Load()), at), list(args), []), at)


OPS = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mult": lambda a, b: a * b, "Div": lambda a, b: a / b,
    "FloorDiv": lambda a, b: a // b, "Mod": lambda a, b: a % b, "Pow": lambda a, b: a**b, "LShift": lambda a, b: a << b,
    "RShift": lambda a, b: a >> b, "BitAnd": lambda a, b: a & b, "BitOr": lambda a, b: a | b, "BitXor": lambda a, b: a ^ b,
    "MatMult": lambda a, b: a @ b,
}  # fmt: skip

IN_PLACE = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv, "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod, "Pow": operator.ipow, "LShift": operator.ilshift, "RShift": operator.irshift, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "MatMult": operator.imatmul,
}  # fmt: skip


def integers(limit: int, error: type[Exception]) -> dict:
    """Names for a rewritten program whose ints raise `error` beyond a number of bits."""

    def value(x, seen=None):
        if type(x) is int and not -(1 << limit) <= x < 1 << limit:
            raise error
        if isinstance(x, tuple | list):
            for part in x:
                value(part, seen)
        elif hasattr(x, "__dataclass_fields__"):  # made by methods that are not rewritten
            seen = set() if seen is None else seen
            if id(x) not in seen:  # of a tree whose parts are one object there may be 2**n paths
                seen.add(id(x))
                for name in x.__dataclass_fields__:
                    value(getattr(x, name), seen)
        return x

    def binary(op, a, b):
        if type(a) is int and type(b) is int:
            if op == "Pow" and abs(a) > 1 and b * a.bit_length() > 2 * LARGEST:
                raise error
            if op == "LShift" and b > LARGEST:
                raise error
        return value(OPS[op](a, b))

    def call_(f, *args, **kwargs):
        if f is pow:
            return binary("Pow", *args)
        if f is sum:
            total = args[1] if len(args) > 1 else 0
            for x in args[0]:
                total = binary("Add", total, x)
            return total
        return value(f(*args, **kwargs))

    return {"_binary": binary, "_value": value, "_call": call_, "_augment": augmenting(lambda op, x: value(x))}


# Functions whose last bits are an implementation's own, and the size of what may differ in units in the last place.
TRANSCENDENTAL = set(
    """exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh asinh arcsinh acosh arccosh atanh arctanh asin arcsin
    acos arccos atan arctan erf erfc gamma lgamma cbrt atan2 arctan2 hypot dist pow power float_power logaddexp""".split()
)
SUMS = {"sum", "mean", "prod", "dot", "matmul", "var", "std", "inner", "trace", "cumsum", "cumprod"}
EXTREMA = {"max", "min", "maximum", "minimum", "amax", "amin", "clip", "fmax", "fmin"}
PRODUCTS = {"multiply", "outer", "square"}


def disturbing(rng: random.Random, turning: float = 0.5) -> dict:
    """Names for a rewritten program whose inexact operations are off by a few units in the last place.

    Args:
        turning: how often a sign is turned that nothing says.
    """

    def shaken(x, ulps: float, scale=None):
        if isinstance(x, float | np.floating):
            if not math.isfinite(x) or (x == 0 and scale is None):
                return x
            eps = EPS[np.dtype(type(x))] if type(x) is not float else 2.0**-52
            with np.errstate(all="ignore"):
                return type(x)(
                    x + (abs(x) if scale is None else scale) * eps * ulps * rng.choice((-1, -0.5, 0, 0.5, 1))
                )
        if isinstance(x, np.ndarray) and x.dtype in EPS:
            noise = np.array([rng.choice((-1, -0.5, 0, 0.5, 1)) for _ in range(x.size)]).reshape(x.shape)
            size = np.abs(x) if scale is None else scale
            with np.errstate(all="ignore"):
                off = (size * (EPS[x.dtype] * ulps) * noise).astype(x.dtype)
                moved = np.isfinite(x) & np.isfinite(off) & (off != 0)  # -0.0 + 0.0 would be 0.0
                return np.where(moved, x + off, x).astype(x.dtype)
        return x

    def signs(x):
        """Zeros of either sign, where extrema and sums choose between equals."""
        if isinstance(x, np.floating) and x == 0 and rng.random() < turning:
            return -x
        if isinstance(x, np.ndarray) and x.dtype in EPS:
            flip = np.array([rng.random() < turning for _ in range(x.size)], bool).reshape(x.shape)
            return np.where((x == 0) & flip, -x, x).astype(x.dtype)
        return x

    def binary(op, a, b):
        out = OPS[op](a, b)
        many = isinstance(out, np.ndarray)
        if op == "MatMult":
            return summed(out, a, b)
        if many and op == "Mult":
            return shaken(out, 1)
        if op == "Pow":
            return shaken(out, 2)
        return out

    def summed(out, *args):
        with np.errstate(all="ignore"):
            total = 0.0
            arrays = [np.abs(np.asarray(a, np.float64)) for a in args if isinstance(a, np.ndarray | np.floating)]
            if arrays:
                total = (
                    float(np.sum(arrays[0]))
                    if len(arrays) == 1
                    else float(np.max(arrays[0], initial=0) * np.sum(arrays[1]))
                )
        return signs(shaken(out, 4, total if math.isfinite(total) else None))

    def call_(f, *args, **kwargs):
        out = f(*args, **kwargs)
        name = getattr(f, "__name__", "")
        receiver = getattr(f, "__self__", None)
        ours = f if isinstance(f, np.ufunc) else getattr(f, "__module__", None) in ("numpy", "math") or f is pow
        if isinstance(receiver, np.ndarray | np.generic):
            args = (receiver, *args)
        elif not ours:
            return out
        if name == "copysign" and np.any(np.isnan(args[1])):  # nothing says which sign a NaN has
            flip = np.isnan(args[1]) & np.array([rng.random() < turning for _ in range(np.size(out))]).reshape(
                np.shape(out)
            )
            return (
                type(out)(np.where(flip, -out, out)) if not isinstance(out, np.ndarray) else np.where(flip, -out, out)
            )
        if name in TRANSCENDENTAL:
            return shaken(out, 4)
        if name in SUMS:
            return (
                summed(out, *args[:2])
                if name in ("dot", "matmul")
                else summed(out, args[0])
                if name != "prod"
                else shaken(out, 8)
            )
        if name in PRODUCTS:
            return shaken(out, 1)
        if name in EXTREMA:
            return signs(out)
        return out

    def array(x):
        return shaken(x, 1) if isinstance(x, np.ndarray) else x

    augment = augmenting(lambda op, x: array(x) if op == "Mult" else shaken(x, 2) if op == "Pow" else x)
    return {"_binary": binary, "_value": array, "_call": call_, "_augment": augment}


class Oracle:
    """A program under CPython.

    Args:
        text: its source, which defines `program`.
        file: a name for it.
    """

    def __init__(self, text: str, file: str):
        self.text, self.file = text, file
        self.function = function_of(text, file)
        self.tree = None

    def rewritten(self, names: dict):
        """The program with its operations calling back."""
        if self.tree is None:
            self.tree = ast.fix_missing_locations(Rewrite().visit(ast.parse(self.text)))
        return function_of(self.text, self.file, names, self.tree)

    def outcome(self, args: tuple) -> tuple[Outcome | None, bool]:
        """What CPython does, None where its ints grow too large, and whether an int leaves 64 bits on the way."""
        seen = call(self.rewritten(integers(63, Beyond)), args, self.file)
        if not isinstance(seen.error, Beyond):
            return call(self.function, args, self.file), False
        full = call(self.rewritten(integers(LARGEST, Hopeless)), args, self.file)
        full.printed = full.printed if not isinstance(full.error, Hopeless) else seen.printed
        return (None if isinstance(full.error, Hopeless) else full), True

    def variants(self, args: tuple, count: int = 8) -> list[Outcome]:
        """What CPython does when inexact operations are off by a little; once no sign is turned, and once each one."""
        often = {0: 0.0, 1: 1.0}
        return [
            call(self.rewritten(disturbing(random.Random(k), often.get(k, 0.5))), args, self.file) for k in range(count)
        ]
