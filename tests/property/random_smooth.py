"""Random differentiable functions of one number as Python text: loops, branches, closures and functions chosen at run time,
recursion, arrays, arrays whose sizes values decide, tuples, trees of any shape, lists of any length, draws.

Every value is a smooth function of `t` but at the kinks of branches, `abs`, `max`; all of them stay small. Kinds: "f" float,
"v" float64 array of three elements, "i" int, "p" tuple of two floats, "t" a tree, "l" a list of floats, "o" an array of any size.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Leaf:
    """The end of a tree."""

    value: float
    label: int


@dataclass(frozen=True)
class Fork:
    """Two trees."""

    left: Tree
    right: Tree
    pair: tuple[float, float]


Tree = Leaf | Fork

CLASSES = {"Leaf": Leaf, "Fork": Fork, "Tree": Tree}

HEAD = """\
def program(t, n):
    x = {x} + t
    w = np.array({w}) + t * np.array({v})
"""


TREES = """\
    def grow(k, y) -> Tree:
        return Leaf(y, k) if k <= 0 else Fork(grow(k - 1, math.sin(y)), grow(k - 2, y * {a}), (y, {b}))
    b0 = grow(n, x)
    l0 = [x * k for k in range(n + 1)]
"""


class Writer:
    """Writes one function `program(t, n)` that returns a float; the same for equal seeds."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.budget = self.random.randint(3, 9)
        self.env = {"t": "f", "x": "f", "w": "v", "n": "i"}
        self.frozen = {"t", "n"}
        self.functions: dict[str, str] = {}
        self.loops = 0
        self.trees = self.random.randrange(2) == 0  # half of the programs have trees and lists
        self.sizes = self.random.randrange(2) == 0  # half have arrays of run-time sizes

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # Expressions.

    def expr(self, kind: str, depth: int = 0) -> str:
        names = [name for name, k in self.env.items() if k == kind]
        if names and (depth > 2 or self.chance(4)):
            return self.pick(names)
        if depth > 3:
            return {
                "f": "0.4",
                "i": "2",
                "v": "w",
                "p": "(0.3, x)",
                "t": "Leaf(0.2, 1)",
                "l": "[x, 0.1]",
                "o": "w[:n]",
            }[kind]
        callable = [name for name, how in self.functions.items() if how in ("plain", "recursive", "fold")]
        if kind == "f" and callable and self.chance(3):
            name = self.pick(callable)
            how = self.functions[name]
            count = f", {self.pick(('2', '3', 'n', 'n % 3'))}" if how == "recursive" else ""
            count = f", {self.expr('f', depth + 1)}" if how == "fold" else count
            return f"{name}({self.expr('t' if how == 'fold' else 'f', depth + 1)}{count})"
        if kind == "t" and "map" in self.functions.values() and self.chance(3):
            name = self.pick([name for name, how in self.functions.items() if how == "map"])
            return f"{name}({self.expr('t', depth + 1)}, {self.expr('f', depth + 1)})"
        if kind == "f" and self.sizes and self.chance(5):
            kind = "s"
        return getattr(self, f"expr_{kind}")(lambda k: self.expr(k, depth + 1))

    def expr_f(self, e) -> str:
        return self.pick((
            lambda: f"math.sin({e('f')} * 1.3)",
            lambda: f"math.tanh({e('f')} + {e('f')})",
            lambda: f"({e('f')} * {e('f')} * 0.7)",
            lambda: f"({e('f')} - {e('f')})",
            lambda: f"({e('f')} / ({e('f')} ** 2 + 1.0))",
            lambda: f"math.exp(-({e('f')} ** 2))",
            lambda: f"math.sqrt({e('f')} ** 2 + 0.5)",
            lambda: f"math.log({e('f')} ** 2 + 1.5)",
            lambda: f"({e('f')} if {self.test(e)} else {e('f')})",
            lambda: f"abs({e('f')})",
            lambda: f"{self.pick(('min', 'max'))}({e('f')}, {e('f')})",
            lambda: f"({e('f')} * {e('i')} * 0.3)",
            lambda: f"float({e('v')}[{e('i')} % 3])",
            lambda: f"float(np.sum({e('v')} * {e('v')}))",
            lambda: f"float(np.mean({e('v')}))",
            lambda: f"float({e('v')} @ {e('v')})",
            lambda: f"{e('p')}[{self.pick('01')}]",
        ))()  # fmt: skip

    def expr_v(self, e) -> str:
        return self.pick((
            lambda: f"({e('v')} * {e('f')})",
            lambda: f"({e('v')} {self.pick('+-*')} {e('v')})",
            lambda: f"np.{self.pick(('tanh', 'sin', 'cos'))}({e('v')})",
            lambda: f"np.where({e('v')} > {e('f')}, {e('v')}, {e('v')})",
            lambda: f"np.maximum({e('v')}, {e('v')} * 0.5)",
            lambda: f"{e('v')}[::-1]",
            lambda: f"np.array([{e('f')}, {e('f')}, {e('f')}])",
            lambda: f"(np.cumsum({e('v')}) * 0.5)",
            lambda: f"np.outer({e('v')}, {e('v')})[{self.pick('012')}]",
        ))()  # fmt: skip

    def expr_i(self, e) -> str:
        return self.pick((lambda: "n", lambda: f"({e('i')} + 1) % 3", lambda: self.pick("0123")))()

    def expr_o(self, e) -> str:
        """An array of any size."""
        x = self.pick([name for name, k in self.env.items() if k in "vo"] or ["w"])
        y, z = self.pick(("-", "")), self.fresh("z")
        return self.pick((
            lambda: f"{e('v')}[{y}{e('i')} :]",
            lambda: f"{e('o')}[: {e('i')}]",
            lambda: f"{x}[{x} > {e('f')}]",
            lambda: f"{x}[np.flatnonzero({x} < {e('f')})]",
            lambda: f"np.concatenate([{e('o')}, {e('v')}])[:8]",
            lambda: f"np.append({e('o')}[:5], {e('f')})",
            lambda: f"np.array([{e('f')} * {z} for {z} in range({e('i')})])",
            lambda: f"np.repeat({x}, np.arange(len({x})) % 2)",
            lambda: f"({e('o')} * {e('f')})",
            lambda: f"np.{self.pick(('tanh', 'sin'))}({e('o')})",
            lambda: f"({x} {self.pick('+-*')} {x}[::-1])",
            lambda: f"(np.cumsum({e('o')}) * 0.3)",
            lambda: f"(np.full({e('i')}, {e('f')}) * 0.7)",
            lambda: f"(random.normal(random.fold_in(random.key(5), {e('i')}), ({e('i')},)) * {e('f')})",
            lambda: f"np.outer({x}, {e('v')}).{self.pick(('sum(axis=1)', 'ravel()[:6]'))}",
            lambda: f"({x}[:, None] * {e('o')}).sum(axis={self.pick('01')})",
        ))()  # fmt: skip

    def expr_s(self, e) -> str:
        """A float from an array of any size, or drawn."""
        x = self.pick([name for name, k in self.env.items() if k in "vo"] or ["w"])
        return self.pick((
            lambda: f"math.tanh(float(np.sum({e('o')})))",
            lambda: f"math.sin(float(np.sum({e('o')} ** 2) * 0.2))",
            lambda: f"math.tanh(float({x} @ np.sin({x}[::-1])) * 0.5)",
            lambda: f"math.tanh(float(np.sum({x} * np.arange(len({x})))) * 0.1)",
            lambda: f"(float(random.normal(random.fold_in(random.key(1), {e('i')}))) * {e('f')} * 0.3)",
            lambda: f"float(random.uniform(random.key(2), (), {e('f')}, 0.9))",
        ))()  # fmt: skip

    def expr_p(self, e) -> str:
        return self.pick((lambda: f"({e('f')}, {e('f')})", lambda: f"({e('p')}[1], {e('f')})"))()

    def expr_t(self, e) -> str:
        return self.pick((
            lambda: f"Leaf({e('f')}, {e('i')})",
            lambda: f"Fork({e('t')}, {e('t')}, {e('p')})",
            lambda: f"Fork({e('t')}, Leaf({e('f')}, 2), ({e('f')}, 0.3))",
            lambda: f"({e('t')} if {self.test(e)} else {e('t')})",
        ))()  # fmt: skip

    def expr_l(self, e) -> str:
        name = self.fresh("z")
        return self.pick((
            lambda: f"[{e('f')}, {e('f')}]",
            lambda: f"[{name} * {e('f')} for {name} in {e('l')}]",
            lambda: f"[{name} for {name} in {e('l')} if {name} > {e('f')}]",
            lambda: f"[{e('f')} * {name} for {name} in range({e('i')})]",
            lambda: f"({e('l')} + [{e('f')}])",
            lambda: f"{e('l')}[::-1]",
        ))()  # fmt: skip

    def test(self, e) -> str:
        return self.pick((
            lambda: f"{e('f')} < {e('f')}",
            lambda: f"{e('i')} % 2 == 0",
            lambda: f"{e('f')} > 0.1 and {e('i')} < 2",
        ))()  # fmt: skip

    def bounded(self, kind: str) -> str:
        """An expression for a variable: values that loops feed back must not grow."""
        text = self.expr(kind)
        if kind == "f":
            return f"math.tanh({text})"
        return {
            "v": f"np.tanh({text})",
            "p": text,
            "i": f"({text}) % 4",
            "t": text,
            "l": text,
            "o": f"np.tanh({text})[:9]",
        }[kind]

    # Statements.

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int) -> None:
        before, functions = dict(self.env), dict(self.functions)
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent)
        self.env = {name: kind for name, kind in self.env.items() if name in before}
        self.functions = functions

    def assign(self, indent: int) -> None:
        mine = [name for name in self.env if name not in self.frozen]
        name = self.pick(mine) if mine and self.random.randrange(3) else self.fresh("a")
        kind = self.env.get(name) or self.pick(
            ("ffftttllvvpi" if self.trees else "ffffvvpi") + ("ooo" if self.sizes else "")
        )
        if kind in "tl" and self.loops:  # what an iteration makes of it may be larger by a little only
            more = f"Fork({name}, Leaf({self.expr('f', 1)}, 1), (0.2, {self.expr('f', 2)}))" if kind == "t" else ""
            if name in self.env:
                self.line(indent, f"{name} = {more}" if kind == "t" else f"{name}.append({self.expr('f', 1)})")
                return
        self.line(indent, f"{name} = {self.bounded(kind)}")
        self.env[name] = kind

    def statement(self, indent: int) -> None:
        self.budget -= 1
        if self.budget < 0 or indent > 3:
            return self.assign(indent)
        e = lambda kind: self.expr(kind, 1)  # noqa: E731
        if self.sizes and self.chance(6):
            return self.pick((self.resized, self.grown, self.sized_function))(indent)
        kind = self.random.randrange(16 if self.trees else 12)
        if kind >= 12:
            (self.fold, self.fold, self.walk, self.sum_of_list)[kind - 12](indent, e)
        elif kind < 3:
            self.assign(indent)
        elif kind < 5:
            self.line(indent, f"if {self.test(e)}:")
            self.block(indent + 1)
            if self.random.randrange(2):
                self.line(indent, "else:")
                self.block(indent + 1)
        elif kind < 8:
            self.loop(indent, e)
        elif kind == 8 and self.loops:
            self.line(indent, f"if {self.test(e)}:")
            self.line(indent + 1, self.pick(("break", "continue")))
        elif kind == 9:
            self.update(indent, e)
        else:
            self.function(indent)
        return None

    def update(self, indent: int, e) -> None:
        """An array of one's own, changed element by element."""
        name = self.fresh("u")
        self.line(indent, f"{name} = {self.expr('v', 1)} * 1.0")
        self.line(indent, f"{name}[{e('i')} % 3] {self.pick(('=', '+='))} {e('f')}")
        self.env[name] = "v"
        self.frozen.add(name)

    def fold(self, indent: int, e) -> None:
        """A recursion over a tree, to a float or to a tree."""
        name, self.budget = self.fresh("g"), self.budget - 1
        before, functions, loops = dict(self.env), dict(self.functions), self.loops
        self.frozen |= set(self.env)
        self.functions = {k: how for k, how in self.functions.items() if how == "plain"}
        self.loops, self.trees = 0, False
        self.env = {k: kind for k, kind in self.env.items() if kind in "fip"} | {"y": "f"}
        makes = self.random.randrange(3) == 0
        self.line(indent, f"def {name}(b: Tree, y):")
        self.line(indent + 1, "match b:")
        self.line(indent + 2, "case Leaf(a, m):")
        self.env |= {"a": "f", "m": "i"}
        value = f"math.tanh({self.expr('f', 1)})"
        self.line(indent + 3, f"return Leaf({value}, m + 1)" if makes else f"return {value}")
        self.line(indent + 2, "case Fork(l, r, q):")
        self.env = {k: kind for k, kind in self.env.items() if k not in ("a", "m")} | {"q": "p"}
        one, two = (f"{name}({side}, {self.expr('f', 2)} * 0.9)" for side in self.pick(("lr", "rl", "ll", "rr")))
        if makes:
            self.line(indent + 3, f"return Fork({one}, {self.pick((two, 'l'))}, ({self.expr('f', 2)}, y))")
        else:
            self.env |= {"one": "f"}
            self.line(indent + 3, f"one = {one}")
            if self.random.randrange(2):
                self.line(indent + 3, f"if {self.test(lambda k: self.expr(k, 2))}:")
                self.line(indent + 4, f"return math.tanh({self.expr('f', 2)})")
            self.line(indent + 3, f"return math.tanh({two} * {self.expr('f', 2)} + one)")
        self.env, self.functions, self.loops, self.trees = before, functions, loops, True
        self.functions[name] = "map" if makes else "fold"

    def walk(self, indent: int, e) -> None:
        """A loop down a tree."""
        tree, total = self.fresh("d"), self.fresh("s")
        self.line(indent, f"{tree} = {e('t')}")
        self.line(indent, f"{total} = {e('f')}")
        self.line(indent, f"while isinstance({tree}, Fork):")
        self.env[total] = "f"
        self.line(indent + 1, f"{total} = math.tanh({total} + {tree}.pair[{self.pick('01')}] * {e('f')})")
        self.line(indent + 1, f"{tree} = {tree}.{self.pick(('left', 'right'))}")
        self.line(indent, f"{total} = {total} + ({tree}.value if isinstance({tree}, Leaf) else 0.0) * 0.5")

    def sum_of_list(self, indent: int, e) -> None:
        """A loop over a list."""
        entry, total = self.fresh("h"), self.fresh("s")
        self.line(indent, f"{total} = {e('f')}")
        self.line(indent, f"for {entry} in {e('l')}:")
        before = dict(self.env)
        self.env |= {entry: "f", total: "f"}
        self.line(indent + 1, f"{total} = math.tanh({total} * {e('f')} + {entry})")
        self.env = before | {total: "f"}

    def resized(self, indent: int) -> None:
        """An array that each branch makes of another size, or a loop makes shorter."""
        name = self.fresh("o")
        if self.random.randrange(2):
            self.line(indent, f"if {self.test(lambda k: self.expr(k, 2))}:")
            self.line(indent + 1, f"{name} = {self.bounded('o')}")
            self.line(indent, "else:")
            self.line(indent + 1, f"{name} = {self.bounded('o')}")
        else:
            self.line(indent, f"{name} = {self.bounded('o')}")
            self.line(indent, f"while len({name}) > {self.pick('12')}:")
            self.line(indent + 1, f"{name} = np.tanh({name}[1:] * {name}[:-1] + {self.expr('f', 2)})")
        self.env[name] = "o"

    def grown(self, indent: int) -> None:
        """An array that grows in a loop."""
        name, j = self.fresh("o"), self.fresh("j")
        self.line(indent, f"{name} = {self.pick(('np.zeros(0)', self.bounded('o')))}")
        self.line(indent, f"for {j} in range({self.pick(('n', '3', 'n + 1'))}):")
        before = dict(self.env)
        self.env |= {name: "o", j: "i"}
        if self.random.randrange(2):
            self.line(indent + 1, f"if {self.test(lambda k: self.expr(k, 2))}:")
            self.line(indent + 2, self.pick(("break", "continue", f"{name} = {name}[1:]")))
        self.line(
            indent + 1, f"{name} = np.concatenate([{name} * {self.bounded('f')}, np.array([{self.bounded('f')}])])[:9]"
        )
        self.env = before | {name: "o"}

    def sized_function(self, indent: int) -> None:
        """A function that calls itself on a part of an array and grows what it returns."""
        f, a, out = self.fresh("f"), self.fresh("o"), self.fresh("o")
        before, functions, frozen = dict(self.env), dict(self.functions), set(self.frozen)
        self.frozen |= set(self.env)
        self.functions = {}
        self.env = {k: kind for k, kind in self.env.items() if kind in "fiv"} | {a: "o", "k": "i"}
        self.line(indent, f"def {f}({a}, k):")
        self.line(indent + 1, f"if k <= 0 or len({a}) < 2:")
        self.line(indent + 2, f"return {self.pick((a, self.bounded('o')))}")
        part = self.pick((f"{a}[1:]", f"{a}[: len({a}) // 2]", f"{a}[{a} > {self.expr('f', 2)}]"))
        self.line(indent + 1, f"return np.concatenate([{f}({part}, k - 1) * {self.bounded('f')}, {a}[:2]])")
        self.env, self.functions, self.frozen = before, functions, frozen | set(before)
        self.line(indent, f"{out} = {f}({self.expr('o', 2)}, {self.pick(('2', 'n', 'n % 3'))})")
        self.env[out] = "o"

    def loop(self, indent: int, e) -> None:
        before, frozen = dict(self.env), set(self.frozen)
        index = self.fresh("j")
        kind = self.random.randrange(4)
        if kind < 2:
            self.line(indent, f"for {index} in range({self.pick(('n', '3', 'n + 1', '1, 5, 2', 'n, -1, -1', '0'))}):")
            self.env[index] = "i"
        elif kind == 2:
            self.line(indent, f"for {index} in {e('v')}:")
            self.line(indent + 1, f"{index}f = float({index})")
            self.env[f"{index}f"] = "f"
            self.frozen.add(f"{index}f")
        else:
            self.line(indent, f"{index} = 0")
            self.line(indent, f"while {index} < n + 1 and {e('f')} < 0.8:")
            self.line(indent + 1, f"{index} += 1")
            self.env[index] = "i"
        self.frozen.add(index)
        self.loops += 1
        self.block(indent + 1)
        self.loops -= 1
        self.env = before
        self.frozen = frozen

    def function(self, indent: int) -> None:
        """A closure, or one that calls itself; what it captures is not assigned to afterwards."""
        name, argument = self.fresh("f"), self.fresh("y")
        loops, functions = self.loops, dict(self.functions)
        before = dict(self.env)
        self.frozen |= set(self.env)
        self.loops = 0
        self.env[argument] = "f"
        plain = [f for f, how in self.functions.items() if how == "plain"]
        if len(plain) > 1 and self.random.randrange(2):
            del self.env[argument]
            self.line(
                indent, f"{name} = {self.pick(plain)} if {self.test(lambda k: self.expr(k, 2))} else {self.pick(plain)}"
            )
            kind = "plain"
        elif self.random.randrange(2):
            body = self.expr("f", 1)
            self.line(indent, f"{name} = lambda {argument}: {body}")
            kind = "plain"
        else:
            kind = "recursive"
            self.line(indent, f"def {name}({argument}, k):")
            self.env["k"] = "i"
            self.line(indent + 1, "if k <= 0:")
            self.line(indent + 2, f"return {self.expr('f', 1)}")
            if self.random.randrange(2):
                inner = self.fresh("s")
                self.line(indent + 1, f"{inner} = {self.call(name, 1)}")
                self.env[inner] = "f"
                self.frozen.add(inner)
            if self.chance(3):
                inner = self.fresh("s")
                self.line(indent + 1, f"{inner} = 0.1")
                self.line(indent + 1, "for q in range(k):")
                self.line(
                    indent + 2,
                    f"{inner} = math.tanh({inner} + {self.call(name, 1, 'k - 1 - q')} * {self.expr('f', 2)})",
                )
                self.env[inner] = "f"
                self.frozen.add(inner)
            result = self.pick((self.call(name, 1), f"{self.call(name, 1)} * {self.expr('f', 2)}", self.expr("f", 2)))
            self.line(indent + 1, f"return math.tanh({result})")
        self.env, self.functions, self.loops = before, functions, loops
        self.functions[name] = kind

    def call(self, name: str, depth: int, count: str = "") -> str:
        return f"{name}({self.expr('f', depth + 1)} * 0.9, {count or self.pick(('k - 1', 'k - 2', 'k // 2 - 1'))})"

    def text(self) -> str:
        """The source of `program`."""
        numbers = [round(self.random.uniform(-1.2, 1.2), 2) for _ in range(7)]
        head = HEAD.format(x=numbers[0], w=numbers[1:4], v=numbers[4:7])
        if self.trees:
            head += TREES.format(a=numbers[0], b=numbers[1])
            self.env |= {"b0": "t", "l0": "l"}
            self.fold(1, None)
        for _ in range(self.random.randint(2, 4)):
            self.statement(1)
        folds = [
            f" + {name}({self.expr('t')}, {self.expr('f')})" for name, how in self.functions.items() if how == "fold"
        ]
        self.line(1, f"return math.tanh({self.expr('f')}) + {self.expr('f', 1)} * 0.5{''.join(folds)}")
        return head + "\n".join(self.lines) + "\n"
