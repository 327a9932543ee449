"""Random programs of Python ints near the ends of 64 bits: what range analysis takes away is never needed.

CPython runs the same text on ints that raise OverflowError where a result leaves 64 bits. Every optimisation must give its
answer, or raise the class that it raises; the native executor too.
"""

from __future__ import annotations

import importlib.util
import operator
import random

import numpy as np
import pytest

from myia_relay import relay

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = (
    0,
    1,
    -1,
    2,
    3,
    7,
    63,
    64,
    100,
    LEAST,
    LEAST + 1,
    MOST,
    MOST - 1,
    MOST // 3,
    MOST // 3 + 1,
    LEAST // 3,
    1 << 62,
    1 << 31,
)


class Int64(int):
    """A Python int that raises where a result leaves 64 bits."""


def _checked(f):
    def method(a, b=None):
        value = f(int(a)) if b is None else f(int(a), int(b))
        if not LEAST <= value <= MOST:
            raise OverflowError
        return Int64(value)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor"):
    _f = getattr(operator, _name)
    setattr(Int64, f"__{_name.strip('_')}__", _checked(_f))
    setattr(Int64, f"__r{_name.strip('_')}__", _checked(lambda a, b, f=_f: f(b, a)))
for _name in ("neg", "abs"):
    setattr(Int64, f"__{_name}__", _checked(getattr(operator, _name)))


class Source:
    """The text of one random function `f(a, b, x)` of two ints and an array."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines = ["def f(a, b, x):", "    c = a", "    d = 1"]
        self.loops = 0
        self.statements(1, 4)
        self.lines.append("    return a, b, c, d")

    def name(self) -> str:
        return self.random.choice("abcd")

    def atom(self, names: str) -> str:
        if self.random.random() < 0.6:
            return self.random.choice(names.split())
        return str(self.random.choice((0, 1, 2, 3, 5, 8, 100, -1, -7)))

    def expression(self, names: str, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return self.atom(names)
        x, y = self.expression(names, depth - 1), self.expression(names, depth - 1)
        kind = r.random()
        if kind < 0.45:
            return f"({x} {r.choice('+-*')} {y})"
        if kind < 0.6:
            return f"({x} {r.choice(('//', '%'))} {r.choice((2, 3, 4, 7, 8, -3, y))})"
        if kind < 0.7:
            return f"({x} {r.choice('&|^')} {y})"
        if kind < 0.8:
            return r.choice((f"(-{x})", f"abs({x})", f"min({x}, {y})", f"max({x}, {y})"))
        if kind < 0.9:
            return f"({x} if {self.condition(names)} else {y})"
        return f"({x} + x[{self.atom(names)} % 5])"

    def condition(self, names: str) -> str:
        r = self.random
        one = f"{self.atom(names)} {r.choice(('<', '<=', '>', '>=', '==', '!='))} {self.atom(names)}"
        return (
            one if r.random() < 0.6 else f"{one} {r.choice(('and', 'or'))} not {self.atom(names)} < {self.atom(names)}"
        )

    def statements(self, level: int, most: int, names: str = "a b c d") -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(level, names)

    def statement(self, level: int, names: str) -> None:
        r, pad = self.random, "    " * level
        kind = r.random()
        if level > 3 or kind < 0.5:
            self.lines.append(f"{pad}{self.name()} = {self.expression(names)}")
        elif kind < 0.65:
            self.lines.append(f"{pad}if {self.condition(names)}:")
            self.statements(level + 1, 2, names)
            if r.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.statements(level + 1, 2, names)
        elif kind < 0.85:
            self.loops += 1
            i = f"i{self.loops}"
            first = r.choice(("0", "1", "-3", "a", "b"))
            bounds = {"0": "5", "1": "6", "-3": "3", "a": "min(a, 9000000000000000000) + 4", "b": "min(b, 99) % 7 + b"}[
                first
            ]
            step = r.choice(("", "", ", 2"))
            self.lines.append(f"{pad}for {i} in range({first}, {bounds}{step}):")
            if r.random() < 0.4:
                self.lines.append(f"{pad}    d = d + x[{i}]")
            self.statements(level + 1, 2, f"{names} {i}")
        else:
            self.loops += 1
            k = f"k{self.loops}"
            self.lines.append(f"{pad}{k} = 0")
            self.lines.append(f"{pad}while {k} < 6 and ({self.condition(names)}):")
            self.statements(level + 1, 2, f"{names} {k}")
            self.lines.append(f"{pad}    {k} += {r.choice((1, 1, 2))}")


def expected(module, a: int, b: int, x: np.ndarray):
    """What CPython makes of it: the result, or the class that it raises."""
    scope = dict(vars(module))
    scope["range"] = lambda *args: map(Int64, range(*map(int, args)))
    code = module.f.__code__
    try:
        out = type(module.f)(code, scope)(Int64(a), Int64(b), [Int64(v) for v in x])
    except (ArithmeticError, IndexError) as error:
        return type(error)
    return tuple(map(int, out))


def got(f, *args):
    """What a compiled function makes of it."""
    try:
        return f(*args)
    except (ArithmeticError, IndexError) as error:
        return next(k for k in type(error).__mro__ if k.__module__ == "builtins")


def check(seed: int, folder, executors: tuple[str, ...], points: int) -> None:
    """Compare one program at several points."""
    text = "\n".join(Source(seed).lines)
    path = folder / f"ints{seed}.py"
    path.write_text(text + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = random.Random(seed)
    # Python ints of the array are Python ints in a tuple: a NumPy integer would wrap.
    x = tuple(rng.randint(-50, 50) for _ in range(5))
    for executor in executors:
        f = relay(executor=executor)(module.f)
        for _ in range(points):
            a, b = (rng.choice(EDGES) + rng.randint(-2, 2) for _ in range(2))
            a, b = (min(max(v, LEAST), MOST) for v in (a, b))
            want, found = expected(module, a, b, x), got(f, a, b, x)
            assert found == want, f"{executor}: f({a}, {b}, {x}) is {found}, not {want}:\n{text}"


@pytest.mark.parametrize("seed", range(10))
def test_native(seed, tmp_path):
    check(seed, tmp_path, ("native",), 40)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(100, 130))
def test_interpreter(seed, tmp_path):
    check(seed, tmp_path, ("interpreter",), 12)
