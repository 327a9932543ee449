"""Random small recursive functions: levels of calls that become one, and equal calls that are evaluated once, change nothing.

CPython runs the same text on ints that raise OverflowError where a result leaves 64 bits. The result, or what is raised first, with
its message and its line, must be the same in every executor.
"""

from __future__ import annotations

import importlib.util
import random
import traceback

import pytest

from myia_relay import relay

from .test_integer_programs import LEAST, MOST, Int64

LARGE = (MOST, MOST // 2, MOST // 3, LEAST, LEAST + 1, 1 << 40)


class Source:
    """The text of a random function `f(n, m)` that calls itself with smaller `n`."""

    def __init__(self, seed: int):
        self.random = r = random.Random(seed)
        self.names = ["n", "m"]
        self.base = r.choice((0, 1, 2, 3))
        self.floats = r.random() < 0.15
        self.pair = not self.floats and r.random() < 0.2
        self.other = r.random() < 0.25
        self.lines = ["def f(n, m):"]
        if r.random() < 0.3:
            self.raising(1)
        test = r.choice((f"n < {self.base}", f"n <= {self.base}", f"not n >= {self.base}", f"{self.base} > n"))
        self.lines += [f"    if {test}:", f"        return {self.leaf()}"]
        self.statements(1, r.randint(1, 3))
        self.lines.append(f"    return {self.result()}")
        if self.other:
            self.lines += ["", "", "def g(n, m):", f"    return f(n - {r.choice((1, 2))}, m)"]
        self.lines = ["# A random recursive function.", "", *self.lines]

    def leaf(self) -> str:
        large = self.random.choice(LARGE)
        numbers = ["n", "m", "n + m", "m - n", "1", "n * 3 - 1"]
        value = self.random.choice(numbers if self.floats else [*numbers, f"n * 0 + {large}", f"{large} - n"])
        return f"({value}, n)" if self.pair else f"({value}) * 0.25" if self.floats else value

    def call(self) -> str:
        r = self.random
        step, second = (
            r.choice((1, 1, 2, 2, 3)),
            r.choice(("m", "m", "m", "m - 1", "m + 1", "m - 2", "n", "m // 2", "m + n")),
        )
        if self.other and r.random() < 0.3:
            return f"g(n, {second})"
        return f"f(n - {step}, {second})"

    def value(self) -> str:
        kind = self.random.random()
        if kind < 0.6:
            return f"{self.call()}[{self.random.choice((0, 1))}]" if self.pair else self.call()
        return self.random.choice(self.names)

    def expression(self) -> str:
        r = self.random
        kind = r.random()
        if kind < 0.3:
            return self.value()
        if kind < 0.8:
            return f"{self.value()} {r.choice('++-*')} {self.value()}"
        return f"({self.value()} if {self.condition()} else {self.value()})"

    def condition(self) -> str:
        r = self.random
        ints = (
            "n < 4",
            "n == 5",
            "m < 1",
            "m == n",
            "n % 2 == 0",
            "m > n - 2",
            "m % 3 == 1",
            "n - 1 < 3",
            "n - 2 == m - 2",
        )
        one = r.choice(ints)
        return one if r.random() < 0.8 else f"{one} {r.choice(('and', 'or'))} {r.choice(('m != 2', 'n > 3', 'n != m'))}"

    def raising(self, level: int) -> None:
        r, pad = self.random, "    " * level
        kind = r.random()
        if kind < 0.5:
            self.lines.append(
                f'{pad}assert {r.choice(("n != 4", "m != 3", "n + m != 6", "m < 9"))}, f"at {{n}} and {{m}}"'
            )
        elif kind < 0.75:
            self.lines += [f"{pad}if {self.condition()}:", f'{pad}    raise ValueError("found {r.randint(0, 9)}")']
        else:
            self.lines.append(f"{pad}m = m + 60 // ({r.choice(('n - 3', 'm - 1', 'm + n - 7'))}) % 5")

    def statements(self, level: int, count: int) -> None:
        for _ in range(count):
            r, pad = self.random, "    " * level
            kind = r.random()
            if kind < 0.5 or level > 2:
                name = r.choice("abc")
                self.lines.append(f"{pad}{name} = {self.expression()}")
                if level == 1 and name not in self.names:
                    self.names.append(name)
            elif kind < 0.65:
                self.raising(level)
            elif kind < 0.75:
                self.lines += [f"{pad}if {self.condition()}:", f"{pad}    return {self.result()}"]
            else:
                self.lines.append(f"{pad}if {self.condition()}:")
                self.statements(level + 1, 1)
                self.lines.append(f"{pad}    m = m + 1")
                if r.random() < 0.6:
                    self.lines.append(f"{pad}else:")
                    self.statements(level + 1, 1)
                    self.lines.append(f"{pad}    m = m - 1")

    def result(self) -> str:
        if self.pair:
            return f"({self.value()}, {self.expression()})"
        return f"{self.value()} {self.random.choice('++-')} {self.expression()}"


def outcome(f, n, m, path: str):
    """The result of a call, or what it raises and where."""
    try:
        out = f(n, m)
    except (ArithmeticError, AssertionError, ValueError) as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        message = "" if issubclass(kind, ArithmeticError) else str(error)
        line = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path][-1]
        return kind, message, line
    return tuple(map(plain, out)) if isinstance(out, tuple) else plain(out)


def plain(value):
    """A number, without what `Int64` adds."""
    return int(value) if isinstance(value, Int64) else value


def load(seed: int, folder):
    source = Source(seed)
    text = "\n".join(source.lines)
    path = folder / f"recursion{seed}.py"
    path.write_text(text + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, str(path), text, source.floats


def check(seed: int, folder, executors: tuple[str, ...]) -> None:
    """Compare one program at several points."""
    module, path, text, floats = load(seed, folder)
    points = [(n, m) for n in range(-2, 6) for m in (-3, 0, 1, 2, 4)]
    points += [(6, 1), (7, 2), *((n, m) for n in (3, 4, 5) for m in (LEAST, MOST) if not floats)]
    number = int if floats else Int64
    want = [outcome(module.f, number(n), number(m), path) for n, m in points]
    for executor in executors:
        f = relay(executor=executor)(module.f)
        for (n, m), expected in zip(points, want):
            found = outcome(f, n, m, path)
            same = type(found) is type(expected) and found == expected
            assert same, f"{executor}: f({n}, {m}) is {found}, not {expected}:\n{text}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_native(seed, tmp_path):
    check(seed, tmp_path, ("native",))


@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.sampled(10)
def test_interpreter_and_python(seed, tmp_path):
    check(seed, tmp_path, ("interpreter", "python"))
