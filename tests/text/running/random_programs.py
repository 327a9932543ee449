# ruff: noqa: E501  (Relay text)
"""Random well-typed programs with data types of their own: nested matches, recursion over values, closures that make closures,
polymorphic locals, tuples of all kinds, tensors whose sizes have names, references, graph bindings.

`program(seed)` is the text and arguments for `@main`. Everything terminates: recursive functions follow a list or a tree down, or
count an integer down from at most 4.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

import numpy as np

from ..transform.evaluator import Made

Kind: TypeAlias = tuple[Any, ...]
"""A type: ("int32",), ("bool",), ("float32",), ("vector", size), ("tuple", *parts), ("fn", *parameters, result), ("ref", content),
("var", name), or (name of a data type, *arguments)."""

INT, FLOAT, BOOL, SMALL, UNIT = ("int32",), ("float32",), ("bool",), ("int8",), ("tuple",)
PRELUDE = """type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Either[A, B] { Left(A), Right(B), }
type Tree[A] { Leaf, Node(Tree[A], A, Tree[A]), }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil, } }
def @fold[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B { match (%l) { Cons(%h, %t) => @fold(%f, %f(%z, %h), %t), Nil => %z, } }
def @walk[A, B](%f: fn (B, A, B) -> B, %z: B, %t: Tree[A]) -> B { match (%t) { Node(%l, %x, %r) => %f(@walk(%f, %z, %l), %x, @walk(%f, %z, %r)), Leaf => %z, } }
def @zip[A, B](%a: List[A], %b: List[B]) -> List[(A, B)] { match ((%a, %b)) { (Cons(%x, %s), Cons(%y, %t)) => Cons((%x, %y), @zip(%s, %t)), _ => Nil, } }
def @times[A](%n: int32, %f: fn (A) -> A, %x: A) -> A { if (%n < 1) { %x } else { @times(%n - 1, %f, %f(%x)) } }
def @curry(%f) { fn (%x) { fn (%y) { %f(%x, %y) } } }
def @swap(%p) { (%p.1, %p.0) }
def @first(%x, %y) { %x }
def @scaled(%v: Tensor[(k), float32], %s: float32) { %v * %s }
def @both[A, B](%f: fn (A) -> B, %p: (A, A)) -> (B, B) { (%f(%p.0), %f(%p.1)) }
"""
CONSTRUCTORS = {
    "List": lambda a: {"Cons": (a, ("List", a)), "Nil": ()},
    "Option": lambda a: {"Some": (a,), "None": ()},
    "Either": lambda a, b: {"Left": (a,), "Right": (b,)},
    "Tree": lambda a: {"Leaf": (), "Node": (("Tree", a), a, ("Tree", a))},
}


def text_of(t: Kind) -> str:
    """A type as text."""
    name, *rest = t
    if name == "vector":
        return f"Tensor[({rest[0]}), float32]"
    if name == "tuple":
        return f"({', '.join(map(text_of, rest))}{',' if len(rest) == 1 else ''})"
    if name == "fn":
        return f"fn ({', '.join(map(text_of, rest[:-1]))}) -> {text_of(rest[-1])}"
    if name == "ref":
        return f"ref({text_of(rest[0])})"
    if name == "var":
        return rest[0]
    if name in ("int32", "float32", "bool", "int8"):
        return name
    return f"{name}[{', '.join(map(text_of, rest))}]"


class ProgramWriter:
    """Writes random expressions of a type.

    Attributes:
        random: the source of choices.
        size: how much more may be written.
        own: data types of this program: name -> constructors.
        helpers: definitions that can be called: name, types of parameters, type of the result.
        sizes: the names of sizes that vectors may have.
    """

    def __init__(self, random: Random):
        self.random = random
        self.size = 0
        self.count = 0
        self.own: dict[str, dict[str, tuple[Kind, ...]]] = {}
        self.helpers: list[tuple[str, list[Kind], Kind]] = []
        self.sizes: list[str | int] = [2]

    # Types.

    def kind(self, depth: int = 0, functions: bool = False) -> Kind:
        """A random type of values."""
        r = self.random.random()
        if depth > 1 or r < 0.4:
            return self.random.choice((INT, INT, FLOAT, BOOL, ("vector", self.random.choice(self.sizes)), SMALL))
        if r < 0.55:
            return ("tuple", *[self.kind(depth + 1) for _ in range(self.random.randrange(4))])
        if functions and r < 0.7:
            return ("fn", *[self.kind(depth + 1) for _ in range(self.random.randrange(1, 3))], self.kind(depth + 1))
        if self.own and r < 0.8:
            return (self.random.choice([*self.own]),)
        name = self.random.choice(["List", "Option", "Tree", "Either"])
        return (name, *[self.kind(depth + 1) for _ in range(2 if name == "Either" else 1)])

    def constructors(self, t: Kind) -> dict[str, tuple[Kind, ...]] | None:
        """The constructors of a data type, with the types of their fields."""
        if t[0] in self.own:
            return self.own[t[0]]
        return CONSTRUCTORS[t[0]](*t[1:]) if t[0] in CONSTRUCTORS else None

    def declare(self) -> str:
        """A data type of this program; its first constructor needs no value of it."""
        name = f"Own{len(self.own)}"
        kinds = [self.kind(1) for _ in range(4)]
        cases: dict[str, tuple[Kind, ...]] = {f"{name}A": tuple(kinds[: self.random.randrange(3)])}
        for letter in "BCD"[: self.random.randrange(1, 4)]:
            fields = [
                (name,) if self.random.random() < 0.4 else self.random.choice(kinds)
                for _ in range(self.random.randrange(4))
            ]
            cases[f"{name}{letter}"] = tuple(fields)
        self.own[name] = cases
        shown = [f"{c}({', '.join(map(text_of, fields))})" if fields else c for c, fields in cases.items()]
        return f"type {name} {{ {', '.join(shown)}, }}"

    # Names and blocks.

    def name(self) -> str:
        self.count += 1
        return f"%{self.random.choice('abcxyz')}{self.count if self.random.random() < 0.8 else '_'}"

    def block(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        """Statements and a result."""
        env, lines = dict(env), []
        for _ in range(self.random.randrange(3 if depth else 6)):
            if self.size < 0:
                break
            lines.append(self.statement(env, depth))
        return "{ " + " ".join([*lines, self.expression(want, env, depth + 1)]) + " }"

    def statement(self, env: dict[str, Kind], depth: int) -> str:
        """A statement; what it binds is added to `env`."""
        r = self.random.random()
        refs = [n for n, t in env.items() if t[0] == "ref"]
        if r < 0.15 and refs:
            ref = self.random.choice(refs)
            return f"{ref} := {self.expression(env[ref][1], env, depth + 1)};"
        if r < 0.3:
            return self.polymorphic(env, depth)
        t = self.kind(functions=True) if r < 0.9 else ("ref", self.kind(1))
        value = self.expression(t, env, depth + 1)
        if r > 0.75 and t[0] not in ("ref", "fn"):
            self.count += 1
            name, written = f"%{self.count}", f"%{self.count} = {value};"
        else:
            name = self.name()
            while t[0] == "fn" and name in value:
                name += "s"  # a let of a function sees itself
            written = f"let {name}{f': {text_of(t)}' if self.random.random() < 0.3 else ''} = {value};"
        env[name] = t
        return written

    def polymorphic(self, env: dict[str, Kind], depth: int) -> str:
        """A polymorphic local function, and two values of different types that it makes."""
        a, b = self.kind(1), self.kind(1)
        f, x, y = self.name() + "p", self.name() + "q", self.name() + "r"
        body, made = self.random.choice(
            (
                ("(%w, %w)", lambda t: ("tuple", t, t)),
                ("%w", lambda t: t),
                ("Some(%w)", lambda t: ("Option", t)),
                ("{ let %r = ref(%w); (ref_read(%r), 1) }", lambda t: ("tuple", t, INT)),
                ("Cons(%w, Cons(%w, Nil))", lambda t: ("List", t)),
            )
        )
        first, second = self.expression(a, env, depth + 2), self.expression(b, env, depth + 2)
        env[x], env[y] = made(a), made(b)
        return f"let {f} = fn (%w) {{ {body} }}; let {x} = {f}({first}); let {y} = {f}({second});"

    # Expressions.

    def expression(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        """An expression of a type."""
        self.size -= 1
        known = [n for n, t in env.items() if t == want]
        tired = self.size < 0 or depth > 6
        if known and (tired or self.random.random() < 0.35):
            return self.random.choice(known)
        if tired:
            return self.leaf(want, env, depth)
        sub = lambda t: self.expression(t, env, depth + 1)  # noqa: E731
        choices = [lambda: self.leaf(want, env, depth)]
        called = [h for h in self.helpers if h[2] == want]
        if called:
            helper, params, _ = self.random.choice(called)
            choices += [lambda: f"{helper}({', '.join(map(sub, params))})"] * 3
        parts = [(n, k) for n, t in env.items() if t[0] == "tuple" for k, p in enumerate(t[1:]) if p == want]
        if parts:
            name, k = self.random.choice(parts)
            choices += [lambda: f"{name}.{k}"] * 2
        for n, t in env.items():
            if t[0] == "fn" and t[-1] == want and all(p[0] != "fn" for p in t[1:-1]):
                choices.append(lambda n=n, t=t: f"{n}({', '.join(map(sub, t[1:-1]))})")
            if t == ("ref", want):
                choices.append(lambda n=n: f"ref_read({n})")
        if want[0] != "ref":
            choices += [
                lambda: f"if ({sub(BOOL)}) {self.block(want, env, depth + 1)} else {self.block(want, env, depth + 1)}",
                lambda: self.match(want, env, depth),
                lambda: self.match(want, env, depth),
                lambda: f"@first({sub(want)}, {sub(self.kind(1))})",
                lambda: (
                    f"@times({self.random.randrange(4)}, {self.function(('fn', want, want), env, depth)}, {sub(want)})"
                ),
                lambda: self.folded(want, env, depth),
            ]
        choices += [*self.of_type(want, sub, env, depth)] * 3
        return self.random.choice(choices)()

    def folded(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        """A fold over a list or a tree; functions are not carried along. Where the list is empty, only the annotation says of what."""
        if want[0] == "fn":
            return self.leaf(want, env, depth)
        entry = self.kind(1)
        start = self.expression(want, env, depth + 1)
        if self.random.random() < 0.5:
            step = self.function(("fn", want, entry, want), env, depth, True)
            return f"@fold({step}, {start}, {self.expression(('List', entry), env, depth + 1)})"
        step = self.function(("fn", want, entry, want, want), env, depth, True)
        return f"@walk({step}, {start}, {self.expression(('Tree', entry), env, depth + 1)})"

    def match(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        """A match whose patterns are nested; the last arm takes all."""
        value = self.random.choice(
            [t for t in env.values() if self.constructors(t) or t[0] == "tuple" and len(t) > 1]
            or [("List", INT), ("Option", INT)]
        )
        if self.random.random() < 0.3:
            value = ("tuple", value, ("List", INT))
        arms = []
        for _ in range(self.random.randrange(1, 4)):
            bound: dict[str, Kind] = {}
            pattern = self.pattern(value, bound, 0)
            arms.append(f"{pattern} => {self.block(want, {**env, **bound}, depth + 1)}")
        arms.append(f"_ => {self.block(want, env, depth + 1)}")
        given = self.expression(value, env, depth + 1)
        return f"match ({{ let %v: {text_of(value)} = {given}; %v }}) {{ {', '.join(arms)}, }}"

    def pattern(self, t: Kind, bound: dict[str, Kind], depth: int) -> str:
        """A pattern; the variables in it are added to `bound`."""
        cases = self.constructors(t)
        if depth < 3 and cases and self.random.random() < 0.75:
            c, fields = self.random.choice([*cases.items()])
            inner = ", ".join(self.pattern(f, bound, depth + 1) for f in fields)
            return f"{c}({inner})" if fields else c
        if depth < 3 and t[0] == "tuple" and len(t) > 2 and self.random.random() < 0.75:
            return f"({', '.join(self.pattern(f, bound, depth + 1) for f in t[1:])})"
        if self.random.random() < 0.3:
            return "_"
        name = self.name() + "m"
        while name in bound:
            name += "m"
        bound[name] = t
        return name

    def of_type(self, want: Kind, sub, env: dict[str, Kind], depth: int):
        """Ways to make a value of a type."""
        r, former = self.random, want[0]
        match want:
            case ("int32",) | ("int8",):
                yield lambda: f"({sub(want)} {r.choice('+-*')} {sub(want)})"
                yield lambda: f"@swap(({sub(self.kind(1))}, {sub(want)})).0"
                yield lambda: f"@curry(fn (%u, %v) {{ %u + %v }})({sub(want)})({sub(want)})"
            case ("float32",):
                yield lambda: f"({sub(FLOAT)} {r.choice('+-*')} {sub(FLOAT)})"
                yield lambda: f"{r.choice(['tanh', 'sigmoid', 'negative', 'abs'])}({sub(FLOAT)})"
                yield lambda: f"sum({sub(('vector', r.choice(self.sizes)))})"
            case ("bool",):
                yield lambda: f"({sub(INT)} {r.choice(['<', '==', '>=', '!='])} {sub(INT)})"
                yield lambda: f"({sub(BOOL)} {r.choice(['&&', '||'])} logical_not({sub(BOOL)}))"
            case ("vector", _):
                yield lambda: f"({sub(want)} {r.choice('+-*')} {sub(r.choice((want, FLOAT)))})"
                yield lambda: f"{r.choice(['tanh', 'nn.relu', 'negative'])}({sub(want)})"
                yield lambda: f"@scaled({sub(want)}, {sub(FLOAT)})"
                yield lambda: f"reverse({sub(want)}, axis=0)"
                yield lambda: f"where({sub(want)} > {sub(want)}, {sub(want)}, {sub(want)})"
            case ("tuple", a, b) if a == b:
                entry = self.kind(1)
                yield lambda: f"@both({self.function(('fn', entry, a), env, depth)}, ({sub(entry)}, {sub(entry)}))"
            case ("tuple", a, b):
                yield lambda: f"@swap(({sub(b)}, {sub(a)}))"
            case ("List", ("tuple", a, b)):
                yield lambda: f"@zip({sub(('List', a))}, {sub(('List', b))})"
            case ("List", a):
                entry = self.kind(1)
                yield lambda: f"@map({self.function(('fn', entry, a), env, depth, True)}, {sub(('List', entry))})"
            case ("fn", a, b):
                middle = self.kind(1)
                yield lambda: f"@compose({sub(('fn', middle, b))}, {sub(('fn', a, middle))})"
        cases = self.constructors(want)
        if cases:
            yield lambda: self.made(*r.choice([*cases.items()]), sub)
        elif former == "tuple" and len(want) > 1:
            yield lambda: f"({', '.join(map(sub, want[1:]))}{',' if len(want) == 2 else ''})"
        elif former == "fn":
            yield lambda: self.function(want, env, depth)

    def made(self, constructor: str, fields: tuple[Kind, ...], sub) -> str:
        return f"{constructor}({', '.join(map(sub, fields))})" if fields else constructor

    def function(self, t: Kind, env: dict[str, Kind], depth: int, annotated: bool = False) -> str:
        names = [self.name() + "f" * (k + 1) for k, _ in enumerate(t[1:-1])]
        shown = ", ".join(
            f"{n}: {text_of(p)}" if (self.random.random() < 0.6) | annotated else n for n, p in zip(names, t[1:-1])
        )
        return f"fn ({shown}) {self.block(t[-1], {**env, **dict(zip(names, t[1:-1]))}, depth + 1)}"

    def leaf(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        """A small expression of a type."""
        r = self.random
        sub = lambda t: self.leaf(t, env, depth)  # noqa: E731
        match want:
            case ("int32",):
                return str(r.randrange(5))
            case ("int8",):
                return f"{r.randrange(100)}i8"
            case ("float32",):
                return r.choice(["0f", "1f", "0.5f", "2f"])
            case ("bool",):
                return r.choice(["True", "False"])
            case ("vector", size):
                known = [n for n, t in env.items() if t == want]
                if known:
                    return r.choice(known)
                return "Constant(1.5, (2,), float32)" if size == 2 else self.missing(size)
            case ("ref", t):
                return f"ref({sub(t)})"
            case ("fn", *_):
                names = [f"%n{self.count}{'n' * k}" for k, _ in enumerate(want[1:-1])]
                shown = ", ".join(f"{n}: {text_of(p)}" for n, p in zip(names, want[1:-1]))
                return f"fn ({shown}) {{ {self.leaf(want[-1], {**env, **dict(zip(names, want[1:-1]))}, depth)} }}"
            case ("tuple", *parts):
                return f"({', '.join(map(sub, parts))}{',' if len(parts) == 1 else ''})"
        cases = self.constructors(want) or {}
        own = want[0] in self.own
        name, fields = next((c, f) for c, f in cases.items() if own or want not in f)
        return self.made(name, fields, sub)

    def missing(self, size: str | int) -> str:
        raise LookupError(size)

    # Definitions and arguments.

    def definition(self, name: str, params: list[Kind], want: Kind, size: int, depth: int) -> str:
        self.size = size
        sizes = [n for n in ("n", "m") if any(holds(p, n) for p in params)]
        self.sizes = [2, *(s for s in sizes if ("vector", s) in params)]
        names = [f"%p{k}" for k in range(len(params))]
        head = ", ".join(f"{x}: {text_of(t)}" for x, t in zip(names, params))
        inline = ", Inline=1" if self.random.random() < 0.2 and name != "@main" else ""
        result = f" -> {text_of(want)}" if self.random.random() < 0.5 else ""
        return f"def {name}({head}{inline}){result} {self.block(want, dict(zip(names, params)), depth)}"

    def argument(self, t: Kind, sizes: dict, depth: int = 0):
        """An argument of a type."""
        r = self.random
        match t:
            case ("int32",):
                return np.int32(r.randrange(-3, 6))
            case ("int8",):
                return np.int8(r.randrange(-100, 100))
            case ("float32",):
                return np.float32(r.randrange(-4, 5) / 2)
            case ("bool",):
                return np.bool_(r.random() < 0.5)
            case ("vector", size):
                length = sizes.get(size, size)
                return np.array([r.randrange(-4, 5) / 2 for _ in range(length)], np.float32)
            case ("tuple", *parts):
                return tuple(self.argument(p, sizes, depth) for p in parts)
        cases = self.constructors(t) or {}
        name, fields = r.choice([*cases.items()])
        if depth > 3:
            name, fields = next((c, f) for c, f in cases.items() if t not in f)
        return Made(name, tuple(self.argument(f, sizes, depth + 1) for f in fields))


def holds(t: Kind, part) -> bool:
    """Whether a type has a part."""
    return any(p == part or isinstance(p, tuple) and holds(p, part) for p in t)


def program(seed: int) -> tuple[str, tuple]:
    """The text of a program, and arguments of `@main`."""
    random = Random(seed)
    writer = ProgramWriter(random)
    lines = [writer.declare() for _ in range(random.randrange(3))]
    for n in range(random.randrange(3)):
        params = [writer.kind(functions=random.random() < 0.3) for _ in range(random.randrange(1, 4))]
        if random.random() < 0.4:
            params.append(("vector", "n"))
        want = writer.kind(functions=random.random() < 0.2)
        lines.append(writer.definition(f"@f{n}", params, want, 20, 1))
        if not any(holds(t, "n") for t in (*params, want)):
            writer.helpers.append((f"@f{n}", params, want))
        writer.sizes = [2]
    params = [writer.kind() for _ in range(random.randrange(4))]
    params += [("vector", s) for s in ("n", "m") if random.random() < 0.4]
    want = writer.kind()
    lines.append(writer.definition("@main", params, want, 50, 0))
    sizes = {"n": random.randrange(1, 5), "m": random.randrange(1, 5)}
    return PRELUDE + "\n".join(lines) + "\n", tuple(writer.argument(p, sizes) for p in params)
