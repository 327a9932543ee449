# ruff: noqa: E501  (Relay text)
"""Random programs wider than those of `random_programs`: references anywhere in data types, tuples and results of recursion;
polymorphic definitions that take functions; recursive local functions; vectors of named sizes in values of data types.

`program(seed)` is the text and arguments for `@main`. Everything terminates: local recursions count down from at most 3.
"""

from __future__ import annotations

from random import Random
from typing import Any

from .random_programs import FLOAT, INT, PRELUDE, Kind, ProgramWriter, holds, text_of

A, B = ("var", "A"), ("var", "B")
MORE = """def @cells[A](%l: List[A]) -> List[ref(A)] { match (%l) { Cons(%h, %t) => Cons(ref(%h), @cells(%t)), Nil => Nil, } }
def @contents[A](%l: List[ref(A)]) -> List[A] { match (%l) { Cons(%h, %t) => { let %v = ref_read(%h); Cons(%v, @contents(%t)) }, Nil => Nil, } }
def @set_all[A](%l: List[ref(A)], %f: fn (A) -> A) -> () { match (%l) { Cons(%h, %t) => { %h := %f(ref_read(%h)); @set_all(%t, %f) }, Nil => (), } }
def @update[A](%r: ref(A), %f: fn (A) -> A) -> A { let %old = ref_read(%r); %r := %f(%old); %old }
def @head[A](%l: List[A], %z: A) -> A { match (%l) { Cons(%h, _) => %h, Nil => %z, } }
def @grown[A](%n: int32, %f: fn (int32) -> A) -> Tree[A] { if (%n < 1) { Leaf } else { Node(@grown(%n - 1, %f), %f(%n), @grown(%n - 2, %f)) } }
"""


def contains(t: Kind, name: str) -> bool:
    """Whether a type is made with some constructor of types: "ref", "fn", "var"."""
    return t[0] == name or any(isinstance(p, tuple) and contains(p, name) for p in t[1:])


def substituted(t: Any, env: dict[Kind, Kind]) -> Any:
    """A type with others in place of its variables."""
    if not isinstance(t, tuple):
        return t
    return env[t] if t in env else tuple(substituted(p, env) for p in t)


def unified(t: Any, want: Any, env: dict[Kind, Kind]) -> bool:
    """Whether a type with variables is one without; `env` receives what the variables are."""
    if isinstance(t, tuple) and t[0] == "var":
        return env.setdefault(t, want) == want
    if not isinstance(t, tuple) or not isinstance(want, tuple):
        return t == want
    return len(t) == len(want) and t[0] == want[0] and all(unified(p, q, env) for p, q in zip(t[1:], want[1:]))


class WiderWriter(ProgramWriter):
    """Writes more kinds of expressions.

    Attributes:
        cells: whether types may have references now: not what `@main` takes and returns.
        polymorphic_helpers: definitions with variables in their types: name, types of parameters, type of the result.
        referring: data types of this program that have references.
    """

    def __init__(self, random: Random):
        super().__init__(random)
        self.cells = True
        self.variables: tuple[Kind, ...] = ()
        self.referring: set[str] = set()
        one = ("List", A)
        self.polymorphic_helpers: list[tuple[str, list[Kind], Kind]] = [
            ("@cells", [one], ("List", ("ref", A))),
            ("@contents", [("List", ("ref", A))], one),
            ("@set_all", [("List", ("ref", A)), ("fn", A, A)], ("tuple",)),
            ("@update", [("ref", A), ("fn", A, A)], A),
            ("@head", [one, A], A),
            ("@grown", [INT, ("fn", INT, A)], ("Tree", A)),
        ]

    def kind(self, depth: int = 0, functions: bool = False) -> Kind:
        r = self.random.random()
        if self.variables and r < 0.3:
            return self.random.choice(self.variables)
        if self.cells and depth and r < 0.4:
            return ("ref", self.kind(depth + 1))
        found = super().kind(depth, functions)
        if not self.cells:
            while found[0] in self.referring or holds(found, "ref") or any(holds(found, (n,)) for n in self.referring):
                found = super().kind(depth, functions)
        return found

    def declare(self) -> str:
        self.cells = self.random.random() < 0.5
        text = super().declare()
        name = [*self.own][-1]
        parts = [t for fields in self.own[name].values() for t in fields if t != (name,)]
        if any(contains(t, "ref") or any(contains(t, n) for n in self.referring) for t in parts):
            self.referring.add(name)
        return text

    def generic(self, name: str) -> str:
        """A polymorphic definition that takes functions; it is added to the helpers."""
        self.variables, self.cells = (A, B), True
        params: list[Kind] = [
            ("fn", A, B),
            A,
            self.random.choice(
                (("fn", B, A, B), ("List", A), ("ref", A), ("fn", A, ("tuple", A, B)), ("Option", B), ("tuple", B, INT))
            ),
        ]
        want = self.random.choice(
            (B, A, ("tuple", A, B), ("List", B), ("Option", ("ref", A)), ("fn", A, B), ("Tree", ("tuple", B, A)))
        )
        text = self.definition(name, params, want, 16, 1)
        head, rest = text.split("(", 1)
        self.variables = ()
        self.polymorphic_helpers.append((name, params, want))
        return f"{head}[A, B]({rest}"

    # Statements.

    def statement(self, env: dict[str, Kind], depth: int) -> str:
        r = self.random.random()
        if r < 0.1 and self.size > 8:
            return self.recursion(env, depth)
        if r < 0.2:
            lists = [n for n, t in env.items() if t[0] == "List" and t[1][0] == "ref"]
            if lists:
                name = self.random.choice(lists)
                content = env[name][1][1]
                return f"@set_all({name}, {self.function(('fn', content, content), env, depth + 1, True)});"
        if r < 0.3 and self.cells:
            content = self.kind(1)
            self.count += 1
            value = self.expression(("List", content), env, depth + 1)
            env[f"%cells{self.count}"] = ("List", ("ref", content))
            return f"let %cells{self.count}: {text_of(('List', ('ref', content)))} = @cells({value});"
        return super().statement(env, depth)

    def recursion(self, env: dict[str, Kind], depth: int) -> str:
        """A local function that counts down, and what it makes."""
        self.count += 1
        loop, n, state, made = (f"%{w}{self.count}" for w in ("loop", "n", "state", "made"))
        t = self.kind(1)
        inside = {**env, n: INT, state: t}
        step = self.block(t, inside, depth + 2)
        shown = text_of(t)
        function = f"fn ({n}: int32, {state}: {shown}) -> {shown} {{ if ({n} < 1) {{ {state} }} else {{ {loop}({n} - 1, {step}) }} }}"
        start = self.expression(t, env, depth + 1)
        env[made] = t
        return f"let {loop} = {function}; let {made} = {loop}({self.random.randrange(4)}, {start});"

    # Expressions.

    def of_type(self, want: Kind, sub, env: dict[str, Kind], depth: int):
        yield from super().of_type(want, sub, env, depth)
        for name, params, result in self.polymorphic_helpers:
            known: dict[Kind, Kind] = {}
            if unified(result, want, known) and want[0] != "fn" and not contains(want, "fn"):
                yield lambda name=name, params=params, known=known: self.called(name, params, known, env, depth)
        if want[0] == "fn":
            for name, params, result in self.helpers:
                if (*params, result) == want[1:]:
                    yield lambda name=name: name
        if want == FLOAT and len(self.sizes) > 1:
            yield (
                lambda: (
                    f"sum(concatenate(({', '.join(sub(('vector', self.random.choice(self.sizes))) for _ in range(2))}), axis=0))"
                )
            )
        if want[0] == "ref":
            for n, t in env.items():
                if t == ("List", want):
                    yield lambda n=n: f"@head({n}, {sub(want)})"

    def called(self, name: str, params: list[Kind], known: dict[Kind, Kind], env: dict[str, Kind], depth: int) -> str:
        """A call of a polymorphic definition."""
        known = {A: self.kind(2), B: self.kind(2), **known}
        given = []
        for p in params:
            t = substituted(p, known)
            if t[0] == "fn":
                given.append(self.function(t, env, depth + 1, True))
            else:
                self.count += 1
                value = self.expression(t, env, depth + 1)
                given.append(f"{{ let %g{self.count}: {text_of(t)} = {value}; %g{self.count} }}")
        return f"{name}({', '.join(given)})"

    def leaf(self, want: Kind, env: dict[str, Kind], depth: int) -> str:
        if want[0] == "var":
            known = [n for n, t in env.items() if t == want]
            if known:
                return self.random.choice(known)
            return "%p0(%p1)" if want == B else "%p1"  # as every polymorphic definition has them
        return super().leaf(want, env, depth)


def program(seed: int) -> tuple[str, tuple]:
    """The text of a program, and arguments of `@main`."""
    random = Random(seed)
    writer = WiderWriter(random)
    lines = [writer.declare() for _ in range(random.randrange(3))]
    lines += [writer.generic(f"@g{n}") for n in range(random.randrange(1, 3))]
    for n in range(random.randrange(3)):
        writer.cells = True
        params = [writer.kind(1, random.random() < 0.3) for _ in range(random.randrange(1, 4))]
        want = writer.kind(1)
        lines.append(writer.definition(f"@f{n}", params, want, 20, 1))
        writer.helpers.append((f"@f{n}", params, want))
    writer.cells = False
    sizes = {"n": random.randrange(1, 5), "m": random.randrange(1, 5)}
    params = [("vector", s) for s in ("n", "m") if random.random() < 0.6]
    writer.sizes = [2, *(s for _, s in params)]
    params = [*[writer.kind() for _ in range(random.randrange(4))], *params]
    want = writer.kind()
    writer.cells = True
    lines.append(writer.definition("@main", params, want, 50, 0))
    return f"{PRELUDE}{MORE}" + "\n".join(lines) + "\n", tuple(writer.argument(p, sizes) for p in params)
