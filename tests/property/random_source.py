"""Random small functions as Python text: numbers, arrays, tuples, closures, nested control flow.

Variables keep their kind, mostly, so that most programs compile; a few percent change it on one path, which a compiler must
either do as Python does or refuse. Kinds: "i" int, "f" float, "b" bool, "g" np.float64, "h" np.float32, "n" np.int64,
"v" float64 array, "w" float32 array, "k" int64 array (all of three elements), "t" tuple of a float and an int.
"""

from __future__ import annotations

import numpy as np

KINDS = "iifffbghnvvwkt"
ARGUMENTS = {
    "i": [0, 1, -1, 2, 3, 5, -7, 10],
    "f": [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e10, -3.0, float("inf"), float("nan")],
    "b": [True, False],
    "g": [np.float64(x) for x in (0.0, -0.0, 1.5, -2.25, 1e300, np.inf, np.nan)],
    "h": [np.float32(x) for x in (0.0, 1.5, -2.25, 1e30, 0.1)],
    "n": [np.int64(x) for x in (0, 1, -3, 7, 2**62)],
    "v": [np.array([0.5, -1.25, 3.0]), np.array([0.0, -0.0, np.nan]), np.array([1e200, -np.inf, 2.0])],
    "w": [np.array([0.5, -1.25, 3.0], np.float32), np.array([0.0, 1e30, np.inf], np.float32)],
    "k": [np.array([1, -2, 3]), np.array([0, 2**40, -1])],
    "t": [(1.5, 2), (-0.0, 0), (0.25, -3)],
}


class Writer:
    """Writes one function; `draw(n)` gives a number in range(n).

    Attributes:
        inputs: the kinds of its parameters `p0`, `p1`, ...
    """

    def __init__(self, draw, smooth: bool = False):
        self.draw, self.smooth = draw, smooth
        self.lines: list[str] = []
        self.count = 0
        self.loops = 0
        self.budget = 3 + draw(12)
        self.inputs = [self.pick(KINDS) for _ in range(1 + draw(3))]
        self.env: dict[str, str] = {f"p{k}": kind for k, kind in enumerate(self.inputs)}
        self.functions: dict[str, str] = {}
        self.frozen: set[str] = set()

    def pick(self, options):
        return options[self.draw(len(options))]

    # Expressions.

    def variable(self, kind: str):
        names = [n for n, k in self.env.items() if k == kind]
        return self.pick(names) if names else None

    def expr(self, kind: str, depth: int = 0) -> str:
        if depth > 2 or self.draw(4) == 0:
            name = self.variable(kind)
            if name is not None:
                return name
            if kind in "ifb" or depth > 3:
                return self.literal(kind)
        if self.draw(12) == 0:
            return f"({self.expr(kind, depth + 1)} if {self.expr('b', depth + 1)} else {self.expr(kind, depth + 1)})"
        called = [n for n, k in self.functions.items() if k == kind]
        if called and self.draw(3) == 0:
            return f"{self.pick(called)}({self.expr('f', depth + 1)})"
        return getattr(self, f"expr_{kind}")(lambda k: self.expr(k, depth + 1))

    def literal(self, kind: str) -> str:
        return {
            "i": lambda: str(self.pick((0, 1, 2, 3, -1, -2, 7))),
            "f": lambda: self.pick(("0.0", "1.0", "0.5", "-2.0", "1e-3", "3.75", "-0.0")),
            "b": lambda: self.pick(("True", "False")),
            "g": lambda: f"np.float64({self.literal('f')})",
            "h": lambda: f"np.float32({self.literal('f')})",
            "n": lambda: f"np.int64({self.literal('i')})",
            "v": lambda: f"np.array([{self.literal('f')}, {self.literal('f')}, 1.5])",
            "w": lambda: "np.ones(3, np.float32)",
            "k": lambda: "np.arange(3)",
            "t": lambda: f"({self.literal('f')}, {self.literal('i')})",
        }[kind]()

    def expr_i(self, e) -> str:
        return self.pick((
            lambda: f"({e('i')} {self.pick('+-*')} {e('i')})",
            lambda: f"({e('i')} {self.pick(('//', '%'))} {e('i')})",
            lambda: f"(-{e('i')})",
            lambda: f"abs({e('i')})",
            lambda: f"{self.pick(('min', 'max'))}({e('i')}, {e('i')})",
            lambda: f"({e('i')} {self.pick('&|^')} {e('i')})",
            lambda: f"{e('t')}[1]",
            lambda: f"int({e('b')})",
            lambda: f"int({e('f')})",
            lambda: f"({e('i')} ** 2)",
            lambda: f"({e('i')} and {e('i')})",
            lambda: f"({e('i')} or {e('i')})",
            lambda: f"({e('b')} + {e('i')})",
            lambda: f"round({e('f')})",
            lambda: f"({e('i')} >> 1)",
        ))()  # fmt: skip

    def expr_f(self, e) -> str:
        return self.pick((
            lambda: f"({e('f')} {self.pick('+-*/')} {e('f')})",
            lambda: f"({e('f')} {self.pick('+-*/')} {e('f')})",
            lambda: f"({e('f')} {self.pick(('//', '%'))} {e('f')})",
            lambda: f"({e('f')} {self.pick('+-*/')} {e('i')})",
            lambda: f"({e('i')} {self.pick('+-*/')} {e('f')})",
            lambda: f"({e('i')} / {e('i')})",
            lambda: f"(-{e('f')})",
            lambda: f"abs({e('f')})",
            lambda: f"float({e(self.pick('ibg'))})",
            lambda: f"{self.pick(('min', 'max'))}({e('f')}, {e('f')})",
            lambda: f"{e('t')}[0]",
            lambda: f"({e('f')} ** {self.pick((2, 3))})",
            lambda: f"({e('f')} or {e('f')})",
            lambda: f"math.{self.pick(('sin', 'exp', 'tanh', 'log', 'sqrt'))}({e('f')})" if self.smooth else f"math.fabs({e('f')})",
        ))()  # fmt: skip

    def expr_b(self, e) -> str:
        kind = self.pick("iffghn")
        return self.pick((
            lambda: f"bool({e(kind)} {self.pick(('<', '<=', '>', '>=', '==', '!='))} {e(kind)})",
            lambda: f"({e('f')} {self.pick(('<', '<=', '=='))} {e('i')})",
            lambda: f"({e('f')} < {e('f')} <= {e('f')})",
            lambda: f"({e('b')} {self.pick(('and', 'or'))} {e('b')})",
            lambda: f"(not {e(self.pick('bif'))})",
            lambda: f"bool({e(self.pick('ifgn'))})",
            lambda: f"math.isnan({e('f')})",
            lambda: f"({e('i')} in (1, 2, {e('i')}))",
        ))()  # fmt: skip

    def expr_g(self, e) -> str:
        return self.pick((
            lambda: f"({e('g')} {self.pick('+-*/')} {e(self.pick('gfi'))})",
            lambda: f"({e('f')} {self.pick('+-*/')} {e('g')})",
            lambda: f"np.float64({e('f')})",
            lambda: f"{e('v')}[{self.pick((0, 1, 2, -1))}]",
            lambda: f"{e('v')}[{e('i')}]",
            lambda: f"np.{self.pick(('sum', 'max', 'min'))}({e('v')})",
            lambda: f"np.{self.pick(('sin', 'exp', 'tanh') if self.smooth else ('abs', 'floor', 'sign'))}({e('g')})",
            lambda: f"({e('h')} + {e('g')})",
            lambda: f"({e('n')} / {e('n')})",
        ))()  # fmt: skip

    def expr_h(self, e) -> str:
        return self.pick((
            lambda: f"({e('h')} {self.pick('+-*/')} {e('h')})",
            lambda: f"({e('h')} {self.pick('+-*')} {e(self.pick('fi'))})",
            lambda: f"np.float32({e('f')})",
            lambda: f"{e('w')}[{self.pick((0, 1, -1))}]",
            lambda: f"np.max({e('w')})",
        ))()  # fmt: skip

    def expr_n(self, e) -> str:
        return self.pick((
            lambda: f"({e('n')} {self.pick('+-*')} {e(self.pick('ni'))})",
            lambda: f"({e('n')} {self.pick(('//', '%'))} {e('n')})",
            lambda: f"np.int64({e('i')})",
            lambda: f"{e('k')}[{self.pick((0, 2, -2))}]",
            lambda: f"np.sum({e('k')})",
            lambda: f"np.argmax({e('k')})",
        ))()  # fmt: skip

    def expr_v(self, e) -> str:
        return self.pick((
            lambda: f"({e('v')} {self.pick('+-*/')} {e(self.pick('vfgi'))})",
            lambda: f"({e('f')} {self.pick('+-*')} {e('v')})",
            lambda: f"np.where({e('v')} > {e('f')}, {e('v')}, {e('v')})",
            lambda: f"np.{self.pick(('maximum', 'minimum'))}({e('v')}, {e('v')})",
            lambda: f"{e('v')}[::-1]",
            lambda: f"np.{self.pick(('tanh', 'exp', 'sin') if self.smooth else ('abs', 'floor', 'negative'))}({e('v')})",
            lambda: f"({e('w')} + {e('v')})",
            lambda: f"({e('k')} * {e('f')})",
            lambda: f"{e('k')}.astype(np.float64)",
            lambda: f"np.array([{e('f')}, {e('f')}, {e('f')}])",
        ))()  # fmt: skip

    def expr_w(self, e) -> str:
        return self.pick((
            lambda: f"({e('w')} {self.pick('+-*')} {e(self.pick('whf'))})",
            lambda: f"{e('v')}.astype(np.float32)",
            lambda: f"np.maximum({e('w')}, 0)",
        ))()  # fmt: skip

    def expr_k(self, e) -> str:
        return self.pick((
            lambda: f"({e('k')} {self.pick('+-*')} {e(self.pick('kni'))})",
            lambda: f"({e('v')} > {e('f')}).astype(int)",
            lambda: "np.arange(3)",
        ))()  # fmt: skip

    def expr_t(self, e) -> str:
        return self.pick((lambda: f"({e('f')}, {e('i')})", lambda: f"({e('t')}[0], {e('i')})"))()

    # Statements.

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, new: bool = True) -> None:
        """Statements; variables made here are forgotten after it."""
        before, functions = dict(self.env), dict(self.functions)
        for _ in range(1 + self.draw(3)):
            self.statement(indent)
        self.env = {n: k for n, k in self.env.items() if n in before}
        self.functions = functions

    def assign(self, indent: int) -> None:
        mine = [n for n in self.env if n not in self.frozen]
        if mine and self.draw(3):
            name = self.pick(mine)
            kind = self.env[name]
            if self.draw(25) == 0:  # a change of kind
                kind = self.pick(KINDS)
                self.env[name] = kind
        else:
            self.count += 1
            name, kind = f"x{self.count}", self.pick(KINDS)
        self.line(indent, f"{name} = {self.expr(kind)}")
        self.env[name] = kind

    def statement(self, indent: int) -> None:
        self.budget -= 1
        kind = self.draw(16)
        if self.budget < 0 or indent > 4 or kind < 6:
            self.assign(indent)
        elif kind < 10:
            self.line(indent, f"if {self.expr('b')}:")
            self.block(indent + 1)
            if self.draw(3) == 0:
                self.line(indent, f"elif {self.expr('b')}:")
                self.block(indent + 1)
            if self.draw(2):
                self.line(indent, "else:")
                self.block(indent + 1)
        elif kind < 13:
            self.loop(indent)
        elif kind == 13 and self.loops:
            self.line(indent, f"if {self.expr('b')}:")
            self.line(indent + 1, self.pick(("break", "continue", f"return {self.result()}")))
        elif kind == 14:
            self.count += 1
            name, result = f"fn{self.count}", self.pick("fffigv")
            before = dict(self.env)
            self.frozen |= set(self.env)
            frozen = set(self.frozen)
            self.env["z"] = "f"
            body = self.expr(result)
            self.env = before
            self.frozen = frozen
            self.line(indent, f"{name} = lambda z: {body}")
            self.functions[name] = result
        else:
            self.line(indent, f"if {self.expr('b')}:")
            self.line(indent + 1, self.pick((f"return {self.result()}", "raise ValueError('stopped')", "assert p0 is None, 'no'")))

    def loop(self, indent: int) -> None:
        self.count += 1
        index = f"j{self.count}"
        kind = self.draw(4)
        self.loops += 1
        before = dict(self.env)
        if kind < 2:
            self.line(indent, f"for {index} in range({self.pick(('0', '2', '3', 'abs(' + self.expr('i', 2) + ') % 4'))}):")
            self.env[index] = "i"
            self.frozen.add(index)
            self.block(indent + 1)
        elif kind == 2:
            source, item = self.pick((("v", "g"), ("k", "n")))
            self.line(indent, f"for {index} in {self.expr(source, 2)}:")
            self.env[index] = item
            self.frozen.add(index)
            self.block(indent + 1)
        else:
            self.line(indent, f"{index} = {self.pick((0, 2, 3))}")
            self.env[index] = "i"
            self.frozen.add(index)
            self.line(indent, f"while {index} > 0 and {self.expr('b', 2)}:")
            self.line(indent + 1, f"{index} -= 1")
            self.block(indent + 1)
        self.loops -= 1
        if self.draw(4) == 0:
            self.line(indent, "else:")
            self.block(indent + 1)
        self.env = before

    def result(self) -> str:
        return self.returned

    def text(self) -> str:
        """The function's source, named `program`."""
        kinds = [self.pick("fivgb") for _ in range(1 + self.draw(2))]
        # What all paths return has one type, and is made of parameters, which are bound everywhere.
        self.returned = ", ".join(self.expr(k, 1) for k in kinds) + ("," if self.draw(2) else "")
        self.line(0, f"def program({', '.join(self.env)}):")
        mine = list(self.env)
        self.frozen |= set(mine) if self.draw(2) else set()
        for _ in range(2 + self.draw(3)):
            self.statement(1)
        extra = [self.variable(k) for k in "fivgnhb"]
        names = [n for n in extra if n]
        if self.draw(2) and names and not any("return" in line for line in self.lines):
            self.line(1, f"return ({', '.join(names)},)")
        else:
            self.line(1, f"return {self.returned}")
        return "\n".join(self.lines) + "\n"

    def arguments(self) -> tuple:
        """Arguments for it."""
        return tuple(self.pick(ARGUMENTS[kind]) for kind in self.inputs)
