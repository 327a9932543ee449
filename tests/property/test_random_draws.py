"""Random programs that draw random numbers: in every executor they give what CPython gives, to the bit.

In CPython each draw is a call of its own. Numbers are only added and compared besides, which is exact in all executors.
"""

from __future__ import annotations

import linecache
import random as python_random

import numpy as np
import pytest

from myia_relay import relay, vmap

DTYPES = ('"float64"', '"float32"')
SHAPES = ("(3,)", "(2, 5)", "(9,)", "(2, 1, 3)", "4")


class Writer:
    """Writes one program: `program(key, x, n)`, which returns all that it has drawn."""

    def __init__(self, seed: int):
        self.rng = python_random.Random(seed)
        self.lines = ["def program(key, x, n):"]
        self.keys, self.numbers, self.arrays, self.made = ["key"], ["x"], [], 0

    def pick(self, options):
        return self.rng.choice(options)

    def fresh(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def key(self) -> str:
        """A key that was not used before: made of any there is."""
        return f"random.fold_in({self.pick(self.keys)}, {self.rng.randrange(1000)})"

    def number(self, key: str) -> str:
        """A draw of a Python float."""
        return self.pick((
            f"float(random.normal({key}))",
            f"float(random.normal({key}, dtype={self.pick(DTYPES)}))",
            f"float(random.uniform({key}, (), {self.pick(self.numbers)}, 3.5))",
            f"float(random.exponential({key}))",
            f"float(random.gumbel({key}))",
            f"float(random.gamma({key}, {self.pick((0.4, 1.0, 7.5))}))",
            f"float(random.truncated_normal({key}, -1.0, 0.5))",
            f"float(random.randint({key}, (), -5, {self.pick((6, 2**40))}))",
            f"float(random.bernoulli({key}, 0.4))",
            f"float(random.categorical({key}, np.array([0.1, 0.7, 0.0])))",
            f"float(random.normal({key}, (3, 2))[{self.rng.randrange(3)}, 1])",
        ))  # fmt: skip

    def array(self, key: str) -> str:
        """A draw of an array."""
        shape, dtype = self.pick(SHAPES), self.pick(DTYPES)
        return self.pick((
            f"random.normal({key}, {shape}, {dtype})",
            f"random.uniform({key}, {shape}, -2.0, {self.pick(self.numbers)}, {dtype})",
            f"random.exponential({key}, {shape}) + random.gumbel({self.key()}, {shape})",
            f"random.gamma({key}, 1.5, {shape})",
            f"random.bernoulli({key}, 0.3, {shape})",
            f"random.randint({key}, {shape}, 0, 9)",
            f"random.permutation({key}, {self.rng.randrange(1, 9)})",
            f"random.choice({key}, 6, (3,), replace={self.pick((True, False))})",
            f"vmap(lambda k: random.normal(k, (2,)) + random.uniform(random.fold_in(k, 1)))(random.split({key}, 3))",
            f"np.where(random.bernoulli({key}, 0.5, (7,)), random.normal({self.key()}, (7,)), 0.0)",
        ))  # fmt: skip

    def statement(self, indent: int) -> None:
        kind = self.rng.randrange(6)
        if kind == 0:
            a, b = self.fresh("k"), self.fresh("k")
            self.line(indent, f"{a}, {b} = random.split({self.key()})")
            self.keys += [a, b]
        elif kind == 1:
            name = self.fresh("x")
            self.line(indent, f"{name} = {self.number(self.key())}")
            self.numbers.append(name)
        elif kind in (2, 3):
            name = self.fresh("a")
            self.line(indent, f"{name} = {self.array(self.key())}")
            self.arrays.append(name)
        elif kind == 4:
            name, other = self.fresh("x"), self.pick(self.numbers)
            self.line(indent, f"if {self.number(self.key())} < {other}:")
            self.line(indent + 1, f"{name} = {self.number(self.key())}")
            self.line(indent, "else:")
            self.line(indent + 1, f"{name} = {self.number(self.key())} - {other}")
            self.numbers.append(name)
        else:
            name, i, base = self.fresh("x"), self.fresh("i"), self.pick(self.keys)
            self.line(indent, f"{name} = 0.0")
            self.line(indent, f"for {i} in range(n):")
            self.line(indent + 1, f"{name} += {self.number(f'random.fold_in({base}, {i})')}")
            self.numbers.append(name)

    def text(self) -> str:
        for _ in range(6):
            self.statement(1)
        self.line(1, f"return ({', '.join([*self.numbers, *self.arrays, *self.keys])},)")
        return "\n".join(self.lines) + "\n"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(10))
def test_programs_that_draw(seed):
    text, name = Writer(seed).text(), f"<draws {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np, "random": relay.random, "vmap": vmap}
    exec(compile(text, name, "exec"), space)
    program = space["program"]
    executed = {executor: relay(program, executor=executor) for executor in ("interpreter", "python", "native")}
    for key, x, n in ((relay.random.key(seed), 0.25, 3), (relay.random.key(-seed), -1.5, 0)):
        wanted = program(key, x, n)
        for executor, function in executed.items():
            for number, (a, b) in enumerate(zip(wanted, function(key, x, n), strict=True)):
                a, b = np.asarray(a), np.asarray(b)
                same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
                assert same, f"{executor}, part {number}: {a} != {b}\n{text}"
