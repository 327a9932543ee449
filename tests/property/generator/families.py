"""Values of algebraic data types: terms and chains made at run time, folded, rebuilt and searched by functions of the module."""

from __future__ import annotations

from .types import CHAIN, TERM, Fn


class Families:
    """Writers of algebraic data types; mixed into the writer."""

    def make_family(self, t: str, d: int) -> list:
        """Producers of a value of a family."""
        E = self.inner(d)
        if t == TERM:
            return [
                lambda: f"Number({E('float')})",
                lambda: f"Sum({E(TERM)}, {E(TERM)})",
                lambda: f"Scaled({E('float')}, {E(TERM)})",
                lambda: f"Choice({E('bool')}, {E(TERM)}, {E(TERM)})",
                lambda: f"Choice(which={E('bool')}, second={E(TERM)}, first={E(TERM)})",
                lambda: "Absent()",
            ]
        return [
            lambda: f"Link({E('int')}, {E(CHAIN)})",
            lambda: f"Link(head={E('int')}, tail={E(CHAIN)})",
            lambda: "End()",
        ]

    def family_literal(self, t: str, d: int) -> str:
        """The smallest value of a family."""
        return {"Term": f"Number({self.e('float', d + 1)})", "Chain": "End()"}[t]

    def term_function(self) -> None:
        """A function that evaluates a term, measures it, or simplifies it."""
        outer, self.env = self.env, {}
        name, kind = self.fresh("t"), self.draw(3)
        result = ("float", "int", TERM)[kind]
        self.line(0, f"def {name}(t, s):")
        self.env["s"] = self.variable("float", fixed=True)
        again = lambda x: f"{name}({x}, {self.e('float', 3) if self.draw(3) == 0 else 's'})"  # noqa: E731
        self.line(1, "match t:")

        def case(pattern: str, names: dict, *bodies: str) -> None:
            self.line(2, f"case {pattern}:")
            with self.bound(names):
                self.fuel = 6
                self.line(3, f"return {self.pick(bodies)}")

        if kind == 2:
            if self.draw(2):
                self.line(2, "case Sum(Number(a), Number(b)):")
                self.line(3, f"return Number(a {self.pick('+-')} b)")
            if self.draw(2):
                self.line(2, f"case Scaled({self.pick(('0.0', '1.0'))}, x):")
                self.line(3, f"return {self.pick(('x', 'Absent()', again('x')))}")
            case("Sum(left=l, right=r)", {}, f"Sum({again('l')}, {again('r')})", f"Sum(r, {again('l')})")
            case("Scaled(k, Scaled(j, x))", {"k": "float", "j": "float"}, f"Scaled(k * j, {again('x')})")
            case("Choice(c, a, b)", {"c": "bool"}, f"{again('a')} if c else b", f"Choice(not c, {again('b')}, a)")
            if self.draw(2):
                case("Number(v)", {"v": "float"}, f"Number({self.e('float', 2)})", "Scaled(v, t)")
            self.line(1, "return t")
        else:
            E = lambda d=2: self.e(result, d)  # noqa: E731
            case("Number(v)", {"v": "float"}, E())
            if self.draw(2):
                case("Sum(Number(a), r) if a > s", {"a": "float"}, f"{again('r')} + {E()}")
            case("Sum(l, r)", {}, f"{again('l')} {self.pick('+-')} {again('r')}", f"max({again('l')}, {again('r')})")
            case("Scaled(k, x)", {"k": "float"}, f"{again('x')} * {'k' if kind == 0 else '2'}", f"{again('x')} + {E()}")
            if self.draw(2):
                case("Choice(True, a, _)", {}, again("a"))
                case("Choice(False, _, a)", {}, again("a"))
            else:
                case("Choice(c, a, b)", {"c": "bool"}, f"{again('a')} if c else {again('b')}")
            self.line(2, self.pick(("case Absent():", "case _:")))
            self.line(
                3,
                self.pick(
                    (
                        f"return {self.literal(result)}",
                        'raise ValueError("nothing")' if self.draw(3) == 0 else f"return {E(3)}",
                    )
                ),
            )
        self.line(0, "")
        self.env = outer
        self.env[name] = self.variable(Fn((TERM, "float"), result), fixed=True)

    def chain_function(self) -> None:
        """A function that makes a chain, sums one, reverses one, or looks for something in one."""
        outer, self.env = self.env, {}
        kind = self.draw(4)
        name = self.fresh("r" if kind == 0 else "t")
        E = lambda t, d=2: self.e(t, d)  # noqa: E731
        if kind == 0:
            self.line(0, f"def {name}(n, s):")
            self.env |= {"n": self.variable("int", fixed=True), "s": self.variable("int", fixed=True)}
            if self.draw(2):
                self.line(1, f"c = {self.pick(('End()', 'Link(s, End())'))}")
                self.line(1, "for i in range(n):")
                with self.bound({"i": "int"}):
                    self.fuel = 7
                    if self.draw(2):
                        self.line(2, f"if {E('bool')}:")
                        self.line(3, self.pick(("continue", "return c", "break")))
                    self.line(2, f"c = Link({E('int')}, c)")
                self.line(1, "return c")
            else:
                self.line(1, "if n <= 0:")
                self.line(2, "return End()")
                self.line(1, f"return Link({E('int')}, {name}(n - 1, {E('int')}))")
            made = Fn(("int", "int"), CHAIN)
        elif kind == 1:
            self.line(0, f"def {name}(c, s):")
            self.env["s"] = self.variable("int", fixed=True)
            if self.draw(2):
                self.line(1, "match c:")
                self.line(2, "case Link(h, t):")
                with self.bound({"h": "int"}):
                    self.line(3, f"return {name}(t, {E('int')}) {self.pick(('', '+ h', '- h % 7'))}")
                self.line(1, "return s")
            else:
                self.line(1, "k = 0")
                self.line(1, "while isinstance(c, Link):")
                with self.bound({"c.head": "int", "k": "int"}):
                    self.line(2, f"k = k {self.pick('+-')} {E('int')}")
                self.line(2, "c = c.tail")
                self.line(1, f"return {self.pick(('k', 'k + s'))}")
            made = Fn((CHAIN, "int"), "int")
        elif kind == 2:
            self.line(0, f"def {name}(c, s):")
            self.env["s"] = self.variable("int", fixed=True)
            self.line(1, "out = End()")
            self.line(1, "while True:")
            self.line(2, "match c:")
            with self.bound({"h": "int"}):
                self.line(3, "case End():")
                self.line(4, "return out")
                self.line(3, f"case Link(h, t) if {E('bool')}:")
                self.line(4, self.pick(("c = t", f"out, c = Link({E('int')}, out), t")))
                self.line(3, "case Link(h, t):")
                self.line(4, "out, c = Link(h, out), t")
            made = Fn((CHAIN, "int"), CHAIN)
        else:
            self.line(0, f"def {name}(c, s):")
            self.env["s"] = self.variable("int", fixed=True)
            self.line(1, "i = 0")
            self.line(1, f"while isinstance(c, Link) and i < {self.pick((3, 50))}:")
            with self.bound({"c.head": "int", "i": "int"}):
                self.line(2, f"if c.head {self.pick(('==', '>'))} {E('int')}:")
                self.line(3, f"return {self.pick(('i', 'c.second(s)'))}")
            self.line(2, "c, i = c.tail, i + 1")
            self.line(1, "else:")
            self.line(2, f"return {E('int')}")
            made = Fn((CHAIN, "int"), "int")
        self.line(0, "")
        self.env = outer
        self.env[name] = self.variable(made, fixed=True)
