# ruff: noqa: E501  (Relay text)
"""Random well-typed modules: polymorphic functions, data types, closures, references, tensors, recursion, effects in any order.

`module(seed)` is the text and arguments for `@main`. Everything terminates: recursive functions count an integer down from at most 4.
"""

from __future__ import annotations

from random import Random

import numpy as np

from .evaluator import Made

PRELUDE = """type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil, } }
def @foldl[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B { match (%l) { Cons(%h, %t) => @foldl(%f, %f(%z, %h), %t), Nil => %z, } }
def @pair(%x, %y) { (%x, %y) }
def @times(%n: int32, %f: fn (int32) -> int32, %x: int32) -> int32 { if (%n < 1) { %x } else { @times(%n - 1, %f, %f(%x)) } }
"""
INT, FLOAT, BOOL, VECTOR, LIST, OPTION, FUNCTION, PAIR, REF = "ifbvlogpr"
TYPES = {
    INT: "int32",
    FLOAT: "float32",
    BOOL: "bool",
    VECTOR: "Tensor[(2), float32]",
    LIST: "List[int32]",
    OPTION: "Option[int32]",
    FUNCTION: "fn (int32) -> int32",
    PAIR: "(int32, float32)",
    REF: "ref(int32)",
}
VALUES = (INT, FLOAT, BOOL, VECTOR, LIST, OPTION, PAIR)


class Writer:
    """Writes random expressions of a type.

    Attributes:
        random: the source of choices.
        helpers: definitions that can be called: name, types of parameters, type of the result.
        size: how much more may be written.
    """

    def __init__(self, random: Random):
        self.random = random
        self.helpers: list[tuple[str, list[str], str]] = []
        self.count = 0
        self.size = 60

    def name(self) -> str:
        self.count += 1
        return f"%{self.random.choice('abcxyz')}{self.count if self.random.random() < 0.8 else ''}"

    def block(self, want: str, env: dict[str, str], depth: int) -> str:
        """Statements and a result."""
        env, lines = dict(env), []
        for _ in range(self.random.randrange(4 if depth else 6)):
            if self.size < 0:
                break
            kind = self.random.random()
            t = self.random.choice((*VALUES, FUNCTION, REF))
            if kind < 0.2 and any(x == REF for x in env.values()):
                ref = self.random.choice([n for n, x in env.items() if x == REF])
                lines.append(f"ref_write({ref}, {self.expression(INT, env, depth + 1)});")
                continue
            value = self.expression(t, env, depth + 1)
            if kind < 0.35 and t in VALUES:
                self.count += 1
                name = f"%{self.count}"
                lines.append(f"{name} = {value};")
            else:
                name = self.name()
                annotation = f": {TYPES[t]}" if self.random.random() < 0.3 else ""
                lines.append(f"let {name}{annotation} = {value};")
            env[name] = t
        return "{ " + " ".join([*lines, self.expression(want, env, depth + 1)]) + " }"

    def expression(self, want: str, env: dict[str, str], depth: int) -> str:
        """An expression of a type."""
        self.size -= 1
        known = [n for n, t in env.items() if t == want]
        if known and (self.size < 0 or depth > 5 or self.random.random() < 0.35):
            return self.random.choice(known)
        if self.size < 0 or depth > 5:
            return self.leaf(want)
        sub = lambda t: self.expression(t, env, depth + 1)  # noqa: E731
        choices = [lambda: self.leaf(want)]
        helpers = [h for h in self.helpers if h[2] == want]
        if helpers:
            name, params, _ = self.random.choice(helpers)
            choices += [lambda: f"{name}({', '.join(map(sub, params))})"] * 2
        if want != REF:
            choices += [
                lambda: f"if ({sub(BOOL)}) {self.block(want, env, depth + 1)} else {self.block(want, env, depth + 1)}",
                lambda: f"@id({sub(want)})",
                lambda: self.match(want, env, depth),
            ]
        choices += [*self.of_type(want, sub, env, depth)] * 2
        return self.random.choice(choices)()

    def match(self, want: str, env: dict[str, str], depth: int) -> str:
        a, b = self.name(), self.name()
        if a == b:
            b += "_"
        if self.random.random() < 0.5:
            inner = self.block(want, {**env, a: INT, b: LIST}, depth + 1)
            other = self.block(want, env, depth + 1)
            return f"match ({self.expression(LIST, env, depth + 1)}) {{ Cons({a}, {b}) => {inner}, Nil => {other}, }}"
        inner = self.block(want, {**env, a: INT}, depth + 1)
        other = self.block(want, env, depth + 1)
        return f"match ({self.expression(OPTION, env, depth + 1)}) {{ Some({a}) => {inner}, _ => {other}, }}"

    def of_type(self, want: str, sub, env, depth):
        r = self.random
        match want:
            case "i":
                yield lambda: f"({sub(INT)} {r.choice('+-*')} {sub(INT)})"
                yield lambda: f"{sub(PAIR)}.0"
                yield lambda: f"ref_read({sub(REF)})"
                yield lambda: f"{self.callee(env, depth)}({sub(INT)})"
                yield lambda: f"@times({r.randrange(4)}, {sub(FUNCTION)}, {sub(INT)})"
                yield lambda: f"@foldl(fn (%p, %q) {{ %p * 2 + %q }}, {sub(INT)}, {sub(LIST)})"
            case "f":
                yield lambda: f"({sub(FLOAT)} {r.choice('+-*')} {sub(FLOAT)})"
                yield lambda: f"{r.choice(['tanh', 'sigmoid', 'negative', 'abs'])}({sub(FLOAT)})"
                yield lambda: f"sum({sub(VECTOR)})"
                yield lambda: f"@pair({sub(INT)}, {sub(FLOAT)}).1"
            case "b":
                yield lambda: f"({sub(INT)} {r.choice(['<', '==', '>='])} {sub(INT)})"
                yield lambda: f"logical_not({sub(BOOL)})"
            case "v":
                yield lambda: f"({sub(VECTOR)} {r.choice('+-*')} {sub(r.choice((VECTOR, FLOAT)))})"
                yield lambda: f"{r.choice(['tanh', 'nn.relu', 'negative'])}({sub(VECTOR)})"
                yield lambda: f"reverse({sub(VECTOR)}, axis=0)"
                yield lambda: f"transpose(transpose({sub(VECTOR)}))"
            case "l":
                yield lambda: f"Cons({sub(INT)}, {sub(LIST)})"
                yield lambda: f"@map({sub(FUNCTION)}, {sub(LIST)})"
            case "o":
                yield lambda: f"Some({sub(INT)})"
            case "g":
                yield lambda: f"@compose({sub(FUNCTION)}, {sub(FUNCTION)})"
                yield lambda: self.function(env, depth)
            case "p":
                yield lambda: f"({sub(INT)}, {sub(FLOAT)})"
                yield lambda: f"@pair({sub(INT)}, {sub(FLOAT)})"
            case "r":
                yield lambda: f"ref({sub(INT)})"

    def callee(self, env: dict[str, str], depth: int) -> str:
        known = [n for n, t in env.items() if t == FUNCTION]
        return self.random.choice(known) if known else f"({self.function(env, depth)})"

    def function(self, env: dict[str, str], depth: int) -> str:
        name = self.name()
        annotation = ": int32" if self.random.random() < 0.6 else ""
        return f"fn ({name}{annotation}) {self.block(INT, {**env, name: INT}, depth + 1)}"

    def leaf(self, want: str) -> str:
        r = self.random
        match want:
            case "i":
                return str(r.randrange(5))
            case "f":
                return r.choice(["0f", "1f", "0.5f", "2f"])
            case "b":
                return r.choice(["True", "False"])
            case "v":
                return r.choice(["Constant(1.5, (2,), float32)", 'ones(shape=[2], dtype="float32")'])
            case "l":
                return "Nil"
            case "o":
                return r.choice(["None", "Some(3)"])
            case "g":
                return "fn (%n: int32) -> int32 { %n + 1 }"
            case "p":
                return "(1, 2f)"
        return "ref(0)"


ARGUMENTS = {
    INT: lambda r: np.int32(r.randrange(-3, 6)),
    FLOAT: lambda r: np.float32(r.randrange(-4, 5) / 2),
    BOOL: lambda r: np.bool_(r.random() < 0.5),
    VECTOR: lambda r: np.array([r.randrange(-4, 5) / 2 for _ in range(2)], np.float32),
    LIST: lambda r: _listed([np.int32(r.randrange(5)) for _ in range(r.randrange(4))]),
    OPTION: lambda r: Made("Some", (np.int32(2),)) if r.random() < 0.5 else Made("None", ()),
    PAIR: lambda r: (np.int32(r.randrange(5)), np.float32(1.5)),
}


def _listed(values: list) -> Made:
    out = Made("Nil", ())
    for v in reversed(values):
        out = Made("Cons", (v, out))
    return out


def module(seed: int) -> tuple[str, tuple]:
    """The text of a module, and arguments of `@main`."""
    random = Random(seed)
    writer = Writer(random)
    lines = []
    for n in range(random.randrange(3)):
        params = [random.choice(VALUES) for _ in range(random.randrange(1, 3))]
        want = random.choice(VALUES)
        names = [f"%p{k}" for k in range(len(params))]
        head = ", ".join(f"{x}: {TYPES[t]}" if random.random() < 0.8 else x for x, t in zip(names, params))
        writer.size = 25
        attribute = ", Inline=1" if random.random() < 0.3 else ""
        lines.append(f"def @f{n}({head}{attribute}) {writer.block(want, dict(zip(names, params)), 1)}")
        writer.helpers.append((f"@f{n}", params, want))
    params = [random.choice(VALUES) for _ in range(random.randrange(4))]
    names = [f"%m{k}" for k in range(len(params))]
    head = ", ".join(f"{x}: {TYPES[t]}" for x, t in zip(names, params))
    writer.size = 60
    want = random.choice(VALUES)
    lines.append(f"def @main({head}) {writer.block(want, dict(zip(names, params)), 0)}")
    return PRELUDE + "\n".join(lines) + "\n", tuple(ARGUMENTS[t](random) for t in params)
