"""Programs of any size for `benchmarks.compile`: Python text that grows with one number.

Every family is a function `size -> Program`. The text is what a user would write, only more of it; the result is
compared with CPython's, so nothing in it may be without consequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

HEADER = """import math
from typing import NamedTuple

import numpy as np

from myia_relay import grad, hessian, relay, value_and_grad
"""


class Program(NamedTuple):
    """What a worker compiles.

    Attributes:
        source: a module that defines `program` (undecorated) and `ARGS`; `WRAP`, where it is defined, makes the
            function that is called of it (a derivative), which CPython then cannot run.
        lines: statements of the program, about.
    """

    source: str
    lines: int


def _module(body: list[str], args: str, params: str = "x, y", extra: str = "", wrap: str = "") -> Program:
    text = "\n".join(["", "", f"def program({params}):", *("    " + line for line in body)])
    parts = [HEADER, extra, text, "", "", f"ARGS = {args}", f"WRAP = {wrap}" if wrap else ""]
    return Program("\n".join(parts) + "\n", len(body))


def scalar(size: int) -> Program:
    """Straight-line arithmetic on numbers, each value used by later ones."""
    body = ["a = x", "b = y", "c = x * y"]
    forms = (
        "a = a * 0.999 + b",
        "b = c - a * 0.5",
        "c = math.sin(a) + b * 0.25",
        "a = a - c * x",
        "b = b * 0.5 + y",
    )
    body += [forms[i % len(forms)] for i in range(size - 4)]
    return _module([*body, "return a + b + c"], "(0.5, 0.25)")


def arrays(size: int) -> Program:
    """Straight-line elementwise arithmetic on arrays, a reduction every tenth statement."""
    body = ["a = x", "b = y", "s = np.sum(x)"]
    forms = (
        "a = a * 0.999 + b",
        "b = np.tanh(b) - a * 0.5",
        "a = np.maximum(a, b) * x",
        "b = b * 0.5 + y",
        "s = s * 0.5 + np.sum(a * b)",
    )
    for i in range(size - 4):
        body.append(forms[4] if i % 10 == 9 else forms[i % 4])
    return _module([*body, "return s + np.sum(a - b)"], "(np.linspace(0.0, 1.0, 64), np.linspace(1.0, 2.0, 64))")


def records(size: int) -> Program:
    """Statements that make and take apart tuples, dicts and records."""
    extra = "\n\nclass Pair(NamedTuple):\n    first: float\n    second: float\n"
    body = ["p = Pair(x, y)", "t = (x, y, x)", "d = {'a': x, 'b': y}"]
    forms = (
        "p = Pair(p.second, p.first + t[0])",
        "t = (t[1], t[2] * 0.5, p.first)",
        "d = {'a': d['b'], 'b': t[0] * 0.5}",
        "u, v, w = t",
        "t = (u + 1.0, v * 0.5, w - d['a'])",
    )
    body += [forms[i % len(forms)] for i in range(size - 4)]
    return _module([*body, "return p.first + t[0] + d['a']"], "(0.5, 0.25)", extra=extra)


def ifs(size: int) -> Program:
    """Ifs within each other."""
    body = ["a = x"]
    for i in range(size):
        body.append("    " * i + f"if a > {i % 7 - 9}.5:")
        body.append("    " * (i + 1) + "a = a * 0.9 + y")
    for i in reversed(range(size)):
        body.append("    " * i + "else:")
        body.append("    " * (i + 1) + f"a = a - {i}.0")
    return _module([*body, "return a"], "(0.5, 0.25)")


def elifs(size: int) -> Program:
    """One if with many elifs."""
    body = ["if n == 0:", "    a = x"]
    for i in range(1, size):
        body += [f"elif n == {i}:", f"    a = x * {i}.0 + y"]
    return _module([*body, "else:", "    a = y", "return a"], f"(0.5, 0.25, {size // 2})", "x, y, n")


def calls(size: int) -> Program:
    """Functions that each call two of those before them, with branches of their own."""
    parts = ["", "", "def f0(x, y):", "    return x * 0.5 + y"]
    for i in range(1, size):
        near, far = i - 1, i // 2
        parts += ["", "", f"def f{i}(x, y):", f"    a = f{near}(x * 0.5, y)"]
        parts += ["    if a > x:", f"        return f{far}(a, y) * 0.5"] if i % 8 == 0 else []
        parts += [f"    return a * 0.5 + math.cos(y) * {i}.0"]
    return _module([f"return f{size - 1}(x, y)"], "(0.5, 0.25)", extra="\n".join(parts))


def loop(size: int) -> Program:
    """A loop of many statements."""
    forms = ("a = a * 0.5 + b", "b = b * 0.5 - a * 0.25 + y", "c = c * 0.5 + b * i", "a = a + x - c * 0.01")
    body = ["a = x", "b = y", "c = x * y", "for i in range(10):"]
    body += ["    " + forms[i % len(forms)] for i in range(size)]
    return _module([*body, "return a + b + c"], "(0.5, 0.25)")


def nested_loops(size: int) -> Program:
    """Loops within each other."""
    body = ["a = x"]
    for i in range(size):
        body.append("    " * i + f"for i{i} in range(2):")
    body.append("    " * size + "a = a * 0.5 + y")
    return _module([*body, "return a"], "(0.5, 0.25)")


def expression(size: int) -> Program:
    """One expression of many operands."""
    terms = " + ".join(f"x * {i}.0" if i % 2 else "y" for i in range(size))
    return _module([f"return {terms}"], "(0.5, 0.25)")


def display(size: int) -> Program:
    """A list display of many elements, and a sum over it."""
    elements = ", ".join(f"x * {i}.0" for i in range(size))
    return _module([f"v = [{elements}]", "s = y", "for e in v:", "    s = s * 0.5 + e", "return s"], "(0.5, 0.25)")


def closures(size: int) -> Program:
    """Inner functions that each capture the one before."""
    body = ["def g0(v):", "    return v * 0.5 + x"]
    for i in range(1, size):
        body += [f"def g{i}(v):", f"    return g{i - 1}(v + y) * 0.5"]
    return _module([*body, f"return g{size - 1}(x)"], "(0.5, 0.25)")


def sharing(size: int) -> Program:
    """Nested calls of one helper whose argument is used twice."""
    extra = "\n\ndef twice(v):\n    return v * 0.5 + v * 0.25\n"
    body = ["a = x", *("a = twice(twice(a)) + twice(a)" for _ in range(size)), "return a + y"]
    return _module(body, "(0.5, 0.25)", extra=extra)


def parameters(size: int) -> Program:
    """A function of many parameters."""
    names = [f"p{i}" for i in range(size)]
    extra = "\n".join(["", "", f"def many({', '.join(names)}):", f"    return {' + '.join(names)}"])
    args = ", ".join(f"x + {i}.0" for i in range(size))
    return _module([f"return many({args}) * y"], "(0.5, 0.25)", extra=extra)


_LOOPED = [
    "a = x",
    "b = x * x",
    "for i in range(5):",
    "    c = math.sin(a) * b",
    "    d = math.exp(-a * a) + c",
    "    if d > 0.5:",
    "        a = a * 0.5 + d",
    "    else:",
    "        a = a - d * c",
    "    b = b * 0.9 + math.tanh(a)",
    "    e = a * b",
    "    b = b - e * 0.1",
    "e = a + b",
    "f = e * e",
    "g = f / (1.0 + f)",
    "h = math.log(1.0 + g)",
    "k = h * math.sqrt(1.0 + f)",
    "m = k - g",
    "n = m * k + h",
    "return n * n",
]


def derivative(order: int) -> Program:
    """A derivative of some order of a function of twenty lines with a loop."""
    return _module(_LOOPED, "(0.5,)", params="x", wrap=f"{'grad(' * order}program{')' * order}")


def mlp(layers: int) -> Program:
    """Value and gradient of a perceptron's loss."""
    body = ["h = x"]
    body += ["for w, b in params[:-1]:", "    h = np.tanh(h @ w + b)", "w, b = params[-1]"]
    body += ["d = h @ w + b - y", "return np.mean(d * d)"]
    shapes = f"[(np.full((16, 16), 0.01 * (i + 1)), np.full(16, 0.1)) for i in range({layers})]"
    args = f"({shapes}, np.linspace(0.0, 1.0, 512).reshape(32, 16), np.ones((32, 16)))"
    return _module(body, args, "params, x, y", wrap="value_and_grad(program)")


def second_order(size: int) -> Program:
    """The Hessian of a function of a vector."""
    body = ["s = np.sum(np.tanh(x) * x)", "for i in range(3):", "    s = s * 0.5 + np.sum(np.sin(x * s))", "return s"]
    return _module(body, f"(np.linspace(0.1, 1.0, {size}),)", "x", wrap="hessian(program)")


FAMILIES: dict[str, Callable[[int], Program]] = {
    "scalar": scalar,
    "arrays": arrays,
    "records": records,
    "ifs": ifs,
    "elifs": elifs,
    "calls": calls,
    "loop": loop,
    "nested_loops": nested_loops,
    "expression": expression,
    "display": display,
    "closures": closures,
    "sharing": sharing,
    "parameters": parameters,
    "derivative": derivative,
    "mlp": mlp,
    "hessian": second_order,
}
