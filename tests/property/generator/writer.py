"""Writes one random program."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from .arrays import Arrays
from .calls import Calls
from .families import Families
from .idioms import Idioms
from .keys import Keys
from .lists import Lists
from .numbers import Numbers
from .records import FIELDS
from .sizes import Sizes
from .statements import Statements
from .types import CHAIN, CODES, FLOATS, KEY, PYTHON, TERM, TREE, Arr, Dic, Fn, Lst, Open, Rec, Tup, Uni, constructor
from .unions import Unions
from .values import Values


@dataclass(frozen=True)
class Variable:
    """A variable in scope: its type, whether it must not be assigned to, and whether its array is seen by nothing else."""

    type: object
    fixed: bool = False
    own: bool = False


class Writer(Numbers, Arrays, Sizes, Keys, Statements, Idioms, Lists, Unions, Families, Calls):
    """Writes one program; `draw(n)` gives a number in range(n).

    Attributes:
        inputs: the types of the parameters `p0`, `p1`, ... of its last function, `program`.
        smooth: whether transcendental functions are used, whose last bits differ between implementations.
    """

    def __init__(self, draw):
        self.draw = draw
        self.lines: list[str] = []
        self.count = 0
        self.smooth = draw(5) == 0
        self.empties = draw(6) == 0
        self.dims = (self.pick((2, 3, 3, 4, 5, 1)), self.pick((2, 3, 4)))
        self.env: dict[str, Variable] = {}
        self.loops, self.fuel, self.budget = 0, 10, 0
        self.returned: tuple | None = None
        self.inputs: list = []

    # Small tools.

    def pick(self, options):
        return options[self.draw(len(options))]

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def variable(self, t, fixed: bool = False) -> Variable:
        return Variable(t, fixed)

    def bind(self, name: str, t, own: bool = False) -> None:
        self.env[name] = Variable(t, own=own)

    @contextlib.contextmanager
    def bound(self, names: dict):
        """Names in scope for a while, not to be assigned to."""
        before = dict(self.env)
        self.env = {**self.env, **{n: Variable(t, fixed=True) for n, t in names.items()}}
        yield
        self.env = before

    @contextlib.contextmanager
    def closure(self, names: dict):
        """The scope of a function in this one: what it captures is not changed in place by either, so that it mostly hides it."""
        before = dict(self.env)
        if self.draw(4):
            self.env = {n: v for n, v in self.env.items() if not v.own}
        hidden = {n: v for n, v in before.items() if n not in self.env}
        with self.bound(names):
            yield
        self.env = {n: hidden.get(n) or Variable(v.type, v.fixed) for n, v in before.items()}

    def dtype_name(self, t: Arr) -> str:
        return constructor(t.dtype).removeprefix("np.")

    # Expressions.

    def inner(self, d: int):
        return lambda t: self.e(t, d + 1)

    def e(self, t, d: int = 0) -> str:
        """An expression of a type, at a depth of nesting."""
        self.fuel -= 1
        if isinstance(t, Fn):
            return self.function(t, d)
        if t == "str" or self.fuel < 0 or d > 4 or self.draw(100) < 22 + 12 * d:
            return self.atom(t, d)
        other = self.draw(30)
        if other == 0:
            return f"({self.e(t, d + 1)} if {self.e('bool', d + 1)} else {self.e(t, d + 1)})"
        if other < 4:
            calls = self.calls(t, d)
            if calls:
                return self.pick(calls)()
        if other < 6 and (found := self.structural(t, d)):
            return self.pick(found)
        if other < 11 and (found := self.listed(t, d)):
            return self.pick(found)()
        if other < 14 and (found := self.united(t, d)):
            return self.pick(found)()
        if other < 17 and (found := self.sized(t, d)):
            return self.pick(found)()
        if other == 17 and self.key_names() and (found := self.drawn(t, d)):
            return self.pick(found)()
        return self.pick(self.producers(t, d))()

    def producers(self, t, d: int) -> list:
        if t in PYTHON:
            return getattr(self, f"make_{t}")(d)
        if t in CODES:
            return self.make_numpy_scalar(t, d)
        if isinstance(t, Arr):
            return self.make_array(t, d)
        if isinstance(t, Open):
            return [*self.make_open(t, d), *(self.drawn(t, d)[:2] if self.key_names() else [])]
        if t == KEY:
            return self.make_key(d)
        if isinstance(t, Rec):
            return self.make_record(t, d)
        if isinstance(t, Lst):
            return self.make_list(t, d)
        if isinstance(t, Uni):
            return [
                lambda: f"({self.e(t.options[0], d + 1)} if {self.e('bool', d + 1)} else {self.e(t.options[1], d + 1)})"
            ]
        if t in (TERM, CHAIN):
            return self.make_family(t, d)
        if t == TREE:
            E = self.inner(d)
            return [lambda: f"Leaf({E('float')})", lambda: f"Node({E(TREE)}, {E(TREE)}, {E('int')})"]
        return [lambda: self.built(t, d)]

    def atom(self, t, d: int) -> str:
        """A variable or a literal."""
        names = [n for n, v in self.env.items() if v.type == t]
        if isinstance(t, Open):
            return self.open_atom(t, d)
        if t == KEY:
            return self.pick(names) if names else self.key_literal()
        if isinstance(t, Lst):
            return (
                f"{self.pick(names)}{self.cut(3)}"
                if names and self.draw(4) and t.elem != Lst("int")
                else self.made_list(t, max(d, 3))
            )
        if names and self.draw(6):
            # Younger variables more often: results should depend on what was computed.
            return self.pick(names[-4:] if self.draw(2) else names)
        if self.draw(2) and (found := self.structural(t, 6)):
            return self.pick(found)
        if self.draw(6) and (text := self.converted(t, d)):
            return text
        if t in PYTHON or t in CODES:
            return self.literal(t)
        if t == TREE:
            return f"Leaf({self.e('float', d + 1)})"
        if t in (TERM, CHAIN):
            return self.family_literal(t, d)
        if isinstance(t, Uni):
            return self.pick(self.producers(t, d))()
        if t == "str":
            return self.pick(("'left'", "'right'"))
        if isinstance(t, Arr):
            return self.array_literal(t) if t.shape else f"np.array({self.literal(t.dtype)})"
        return self.built(t, max(d, 3))

    def converted(self, t, d: int) -> str:
        """A number or array made of a variable of another type; empty where there is none."""

        def some(*types) -> str:
            names = [n for n, v in self.env.items() if v.type in types]
            return self.pick(names) if names else ""

        if t == "bool":
            n = some("int", "float")
            return f"({n} {self.pick(('<', '>', '!='))} {self.literal('int')})" if n else ""
        if t in PYTHON:
            n = some("bool", "i8", "i4", "u1", "b1") if t == "int" else some("int", "f8", "f4", "i8")
            return f"{t}({n})" if n else ""
        if t == "b1":
            n = some("f8", "f4", "i8", "i4")
            return f"({n} {self.pick(('<', '>', '!='))} 1)" if n else ""
        if t in CODES:
            n = some("float", "f4", "int") if t in FLOATS else some("int", "bool") if t != "u1" else ""
            return f"{constructor(t)}({n})" if n else ""
        if isinstance(t, Arr) and t.shape:
            n = some("float", "int", "f8") if t.dtype == "f8" else some(t.dtype)
            text = f"np.full({t.shape}, {n}, {constructor(t.dtype)})"
            return self.pick((text, f"({n} * {self.array_literal(t)})")) if n and t.dtype != "b1" else text if n else ""
        return ""

    def built(self, t, d: int) -> str:
        """A structure made of parts."""
        if isinstance(t, Tup):
            return f"({', '.join(self.e(e, d + 1) for e in t.elems)}{',' if len(t.elems) == 1 else ''})"
        if isinstance(t, Dic):
            return "{" + ", ".join(f"{k!r}: {self.e(e, d + 1)}" for k, e in t.items) + "}"
        if isinstance(t, Rec):
            parts = [self.e(e, d + 1) for _, e in FIELDS[t.name]]
            if self.draw(3) == 0:
                parts = [f"{f}={p}" for (f, _), p in zip(FIELDS[t.name], parts)]
            return f"{t.name}({', '.join(parts)})"
        raise AssertionError(t)

    def make_record(self, t: Rec, d: int) -> list:
        E = self.inner(d)
        out = [lambda: self.built(t, d)]
        if t.name == "Pair":
            out.append(lambda: f"{E(t)}.swapped()")
        elif t.name == "Point":
            out += [
                lambda: f"({E(t)} + {E(t)})",
                lambda: f"({E(t)} * {E('float')})",
                lambda: f"(-{E(t)})",
                lambda: f"{E(t)}.moved({E('float')})",
                lambda: f"{E(t)}.moved(dy={E('float')}, dx={E('float')})",
            ]
        elif t.name == "Box":
            out.append(lambda: f"{E(t)}.grown({E('int')})")
        elif t.name == "Grade":
            out += [
                lambda: f"{E(t)}.plus({', '.join(E('int') for _ in range(self.draw(3)))})",
                lambda: f"{E(t)}.plus({E('int')}, scale={self.pick((2, -1))})",
                lambda: f"{E(t)}.chosen({E(t)})",
            ]
        else:
            out.append(lambda: f"Span.of({E('int')}, {E('int')})")
        return out

    def function(self, t: Fn, d: int) -> str:
        """A function as a value."""
        names = [n for n, v in self.env.items() if v.type == t]
        if names and self.draw(2):
            return self.pick(names)
        names = [self.fresh("z") for _ in t.args]
        with self.closure(dict(zip(names, t.args))):
            return f"(lambda {', '.join(names)}: {self.e(t.result, d + 2)})"

    def call(self, name: str, t: Fn, d: int) -> str:
        """A call of a function in scope."""
        head = self.heads.get(name)
        if isinstance(head, tuple):
            return self.formed_call(name, head, d)
        args = [self.e(a, d + 1) for a in t.args]
        if name.startswith("r"):  # a recursive function counts its first argument down
            args[0] = f"{args[0]} % {self.pick((3, 4, 6))}"
        if head == "star":
            args += [self.e("float", d + 2) for _ in range(self.draw(3))]
        if head == "keyword" and self.draw(2):
            args.append(f"k={self.e('int', d + 2)}")
        if head == "keyword" and self.draw(3) == 0:
            args = [f"b={args[1]}", f"a={args[0]}", *args[2:]]
        return f"{name}({', '.join(args)})"

    def result(self) -> str:
        """What a `return` gives back."""
        if len(self.returned) == 1:
            return self.e(self.returned[0], 1)
        return ", ".join(self.e(t, 2) for t in self.returned)

    # Whole functions.

    heads: dict[str, str]

    def helper(self) -> None:
        """A function of the module: plain, with a star or a default, higher-order, or recursive."""
        kind = self.pick((
            *("plain", "star", "keyword", "higher", "recursive", "mutual", "maker", "tree", "tree"),
            *("term", "chain", "chain", "forms", "search", "mode"),
        ))  # fmt: skip
        special = {
            "tree": self.tree_function, "term": self.term_function, "chain": self.chain_function, "forms": self.arguments_function,
            "search": self.nested_search, "mode": self.mode_function,
        }  # fmt: skip
        if kind in special:
            return special[kind]()
        result = self.pick(("float", "int", "float", "f8", "bool", Arr("f8", (self.dims[0],))))
        if kind in ("recursive", "mutual"):
            return self.recursive(kind, self.pick(("float", "int", "float", "f8")))
        name = self.fresh("h")
        first = self.pick(("float", "int", "f8", Arr("f8", (self.dims[0],))))
        args = [("a", first), ("b", self.pick(("float", "int")))]
        head = "a, b"
        if kind == "star":
            head, args = "a, *rest", args[:1]
        elif kind == "keyword":
            head += f", k={self.draw(4)}"
        elif kind in ("higher", "maker"):
            args.append(("g", Fn(("float",), "float")))
            head += ", g"
        outer, self.env = self.env, {}
        self.line(0, f"def {name}({head}):")
        for n, t in args:
            self.env[n] = Variable(t)
        if kind == "star":
            self.line(1, "s = float(len(rest))")
            self.line(1, "for v in rest:")
            self.line(2, f"s = {self.pick(('s + v', 's * 0.5 - v', 'v - s'))}")
            self.bind("s", "float")
        if kind == "keyword":
            self.env["k"] = Variable("int")
        self.returned = (result,)
        self.budget = 1 + self.draw(4)
        for _ in range(1 + self.draw(2)):
            self.statement(1)
        self.fuel = 10
        self.line(1, f"return {self.e(result)}")
        self.line(0, "")
        self.env = outer
        self.heads[name] = kind
        self.env[name] = Variable(Fn(tuple(t for _, t in args), result), fixed=True)

    def tree_function(self) -> None:
        """A function that folds a tree, makes another of it, or grows one."""
        outer, self.env = self.env, {}
        kind = self.draw(3)
        name = self.fresh("r" if kind == 2 else "t")
        if kind == 2:
            self.line(0, f"def {name}(n, s):")
            self.env |= {"n": Variable("int", fixed=True), "s": Variable("float", fixed=True)}
            self.fuel = 8
            self.line(1, f"if n <= 0{self.pick(('', ' or ' + self.e('bool', 3)))}:")
            self.line(2, f"return Leaf({self.e('float', 2)})")
            again = f"{name}(n - 1, {self.e('float', 2)}), {name}(n - 2, {self.e('float', 2)})"
            self.line(1, f"return Node({again}, {self.e('int', 2)})")
            made = Fn(("int", "float"), TREE)
        else:
            result = TREE if kind else self.pick(("float", "int", "float"))
            self.line(0, f"def {name}(t: Tree, s):")
            self.env["s"] = Variable("float", fixed=True)
            self.line(1, "match t:")
            self.line(2, "case Leaf(v):")
            with self.bound({"v": "float"}):
                self.fuel = 6
                leaf = self.e("float", 2) if kind else self.e(result, 1)
                self.line(3, f"return Leaf({leaf})" if kind else f"return {leaf}")
            self.line(2, self.pick(("case Node(l, r, n):", "case Node(left=l, right=r, count=n):")))
            with self.bound({"n": "int"}):
                self.fuel = 8
                one, two = f"{name}(l, {self.e('float', 2)})", f"{name}(r, s)"
                if kind:
                    self.line(
                        3, f"return Node({self.pick((f'{two}, {one}', f'{one}, r', f'l, {two}'))}, {self.e('int', 2)})"
                    )
                elif self.draw(2):
                    self.line(3, f"if {self.e('bool', 2)}:")
                    self.line(4, f"return {one}")
                    self.line(3, f"return {one} {self.pick('+-*')} {two}")
                else:
                    self.line(3, f"return {one} {self.pick('+-')} {two} * {self.e(result, 2)}")
            made = Fn((TREE, "float"), result)
        self.line(0, "")
        self.env = outer
        self.env[name] = Variable(made, fixed=True)

    def recursive(self, kind: str, result) -> None:
        """A function that calls itself, or two that call each other, counting `n` down."""
        names = [self.fresh("r")] + ([self.fresh("r")] if kind == "mutual" else [])
        outer = self.env
        state = self.pick(("float", "int", "f8"))
        for k, name in enumerate(names):
            self.env = {n: v for n, v in outer.items() if not n.startswith("r")}
            self.env |= {"n": Variable("int", fixed=True), "s": Variable(state)}
            self.line(0, f"def {name}(n, s):")
            self.fuel = 6
            self.line(1, f"if n {self.pick(('<= 0', '< 1'))}:")
            self.line(2, f"return {self.e(result, 2)}")
            self.returned, self.budget = (result,), 1 + self.draw(3)
            if self.draw(2):
                self.statement(1)
            again = names[(k + 1) % len(names)]
            self.fuel = 8
            form = self.draw(4)
            if form == 0:
                self.line(1, f"return {again}(n - 1, {self.e(state, 1)})")
            elif form == 1:
                self.line(1, f"t = {again}(n - 1, {self.e(state, 1)})")
                self.env["t"] = Variable(result)
                self.line(1, f"return {self.e(result)}")
            elif form == 2:
                self.line(1, f"t = {again}(n - 1, {self.e(state, 1)})")
                self.line(1, f"u = {again}(n - 2, {self.e(state, 1)}) if {self.e('bool', 2)} else {self.e(result, 2)}")
                self.env |= {"t": Variable(result), "u": Variable(result)}
                self.line(1, f"return {self.e(result)}")
            else:
                self.line(1, f"t = {self.literal(result)}")
                self.line(1, f"for q in range({self.pick((1, 2))}):")
                self.line(2, f"t = t {self.pick('+-')} {again}(n - 1 - q, {self.e(state, 1)})")
                self.env["t"] = Variable(result)
                self.line(1, f"return {self.e(result, 1)}")
            self.line(0, "")
        self.env = outer
        for name in names:
            self.env[name] = Variable(Fn(("int", state), result), fixed=True)

    def text(self) -> str:
        """The program's source."""
        self.heads = {}
        for _ in range(self.draw(3)):
            self.helper()
        self.inputs = [self.pick(("int", "float"))] + [
            self.any_type() if self.draw(5) else self.input_type() for _ in range(1 + self.draw(4))
        ]
        self.inputs = [
            Lst("float") if isinstance(t, Lst) and t.elem not in ("int", "float") else t for t in self.inputs
        ]
        self.inputs = [KEY if isinstance(t, Open) else t for t in self.inputs]  # each size would be compiled anew
        early = self.draw(2)
        self.returned = tuple(self.any_type() for _ in range(1 + self.draw(3))) if early else None
        self.line(0, f"def program({', '.join(f'p{k}' for k in range(len(self.inputs)))}):")
        for k, t in enumerate(self.inputs):
            self.env[f"p{k}"] = Variable(t, fixed=t == "str")
        self.loops, self.budget = 0, 4 + self.draw(13)
        while self.budget > 0:
            self.statement(1)
        self.fuel = 20
        if early:
            self.line(1, f"return {self.result()}")
        else:
            names = [n for n, v in self.env.items() if not isinstance(v.type, Fn) and v.type != "str"]
            self.line(1, f"return ({''.join(n + ', ' for n in names[-12:])})")
        return "\n".join(self.lines) + "\n"

    def input_type(self):
        """Types that only arguments have."""
        return self.pick(
            (
                Arr("f8", ()),
                Arr("i8", ()),
                Arr("f4", ()),
                Arr("f8", (2, 1, 3)),
                Rec("Box"),
                Tup((Tup(("float", "int")), "bool")),
                "str",
                "str",
                TREE,
                TREE,
                TERM,
                CHAIN,
                Rec("Grade"),
                KEY,
                KEY,
                Lst("int"),
                Lst("float"),
                Lst("float"),
            )
        )

    def arguments(self) -> tuple:
        """Arguments for it."""
        values = Values(self.draw, self.pick((0, 0, 10, 30, 70)))
        return tuple(values.value(t) for t in self.inputs)
