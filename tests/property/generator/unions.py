"""Values of several types at run time: made by branches and loops, told apart by `isinstance`, used as what they have in common."""

from __future__ import annotations

from .types import PYTHON, Arr, Rec, Tup, Uni

NUMBERS = Uni(("int", "float"))
UNIONS = (
    NUMBERS, NUMBERS, NUMBERS, Uni(("float", "f8")), Uni(("int", "bool")), Uni(("int", "f4")),
    Uni((Tup(("int", "float")), Tup(("float",)))), Uni(("float", Rec("Point"))), Uni((Rec("Point"), Rec("Grade"))),
    Uni(("i8", "int")),
)  # fmt: skip


class Unions:
    """Writers of unions; mixed into the writer."""

    def union(self, indent: int) -> None:
        """One of the statements about unions."""
        mine = [n for n, v in self.env.items() if isinstance(v.type, Uni)]
        if not mine or self.draw(3) == 0:
            return self.pick((self.joined, self.joined, self.drifting))(indent)
        return self.pick((self.narrowed, self.narrowed, self.unioned_output, self.reassigned))(indent)

    def joined(self, indent: int) -> None:
        """A variable that each branch gives another type."""
        name, u = self.fresh("u"), self.pick((*UNIONS, Uni((self.pick(("f8", "i8")), Arr("f8", (self.dims[0],))))))
        a, b = u.options
        if self.draw(2):
            a, b = b, a
        form = self.draw(3)
        if form == 0:
            self.line(indent, f"{name} = {self.e(a)} if {self.e('bool')} else {self.e(b)}")
        elif form == 1:
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, f"{name} = {self.e(a)}")
            self.line(indent, "else:")
            self.line(indent + 1, f"{name} = {self.e(b)}")
        else:
            self.line(indent, f"{name} = {self.e(a)}")
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, f"{name} = {self.e(b)}")
        self.bind(name, u)

    def drifting(self, indent: int) -> None:
        """A variable that has another type after an iteration of a loop."""
        name, i = self.fresh("u"), self.fresh("j")
        self.line(indent, f"{name} = {self.e('int')}")
        self.line(indent, f"for {i} in {self.range_text()}:")
        with self.bound({i: "int"}):
            self.fuel = 6
            if self.draw(3) == 0:
                self.line(indent + 1, f"if {self.e('bool', 2)}:")
                self.line(indent + 2, self.pick(("continue", "break", f"{name} = {self.e('int', 2)}")))
            change = self.pick(
                (
                    f"{name} / {self.literal('int')}",
                    f"{name} * 0.5",
                    f"{name} + {self.e('float', 2)}",
                    self.e("float", 2),
                )
            )
            self.line(indent + 1, f"{name} = {change}")
        self.bind(name, NUMBERS)

    def reassigned(self, indent: int) -> None:
        """A union in scope gets a new value of one of its types, or what an operation on it gives."""
        names = [n for n, v in self.env.items() if isinstance(v.type, Uni) and not v.fixed]
        if not names:
            return self.joined(indent)
        name = self.pick(names)
        u = self.env[name].type
        if u == NUMBERS and self.draw(2):
            return self.line(indent, f"{name} {self.pick('+-*')}= {self.e(self.pick(('int', 'float', 'bool')))}")
        return self.line(indent, f"{name} = {self.e(self.pick(u.options))}")

    def told(self, name: str, u: Uni) -> tuple[str, object, object]:
        """A test, and the types it leaves on either side."""
        a, b = u.options
        if u.options == ("int", "bool"):
            return f"isinstance({name}, bool)", b, a
        classes = {"int": "int", "float": "float", "f8": "np.float64", "f4": "np.float32", "i8": "np.int64"}
        if u.options == ("float", "f8"):
            return f"isinstance({name}, np.float64)", b, a
        if isinstance(a, Tup):
            return f"len({name}) == {len(a.elems)}", a, b
        if isinstance(b, Arr):
            return f"isinstance({name}, np.ndarray)", b, a
        if isinstance(b, Rec) and self.draw(2):
            return f"isinstance({name}, {b.name})", b, a
        return f"isinstance({name}, {a.name if isinstance(a, Rec) else classes[a]})", a, b

    def narrowed(self, indent: int) -> None:
        """`if isinstance(u, C):` with a use on either side."""
        name, u = self.pick([(n, v.type) for n, v in self.env.items() if isinstance(v.type, Uni)])
        test, a, b = self.told(name, u)
        again = self.draw(3) == 0 and u == NUMBERS
        self.line(indent, f"if {test}:")
        with self.bound({name: a}):
            self.block(indent + 1, 2)
        if again:
            self.line(indent, f"elif {name} {self.pick(('>', '<='))} {self.e('float', 2)}:")
            with self.bound({name: b}):
                self.block(indent + 1, 1)
        if self.draw(4):
            self.line(indent, "else:")
            with self.bound({name: b}):
                self.block(indent + 1, 2)

    def unioned_output(self, indent: int) -> None:
        """A union printed."""
        names = [
            n
            for n, v in self.env.items()
            if isinstance(v.type, Uni) and not any(isinstance(o, Arr) for o in v.type.options)
        ]
        if not names:
            return self.output(indent)
        n = self.pick(names)
        return self.line(
            indent,
            self.pick(
                (
                    f"print({n})",
                    f'print(f"{{{n}}}|{{{n}!r}}")',
                    f"print('u', {n}, {self.e('int', 3)})",
                    f"print(str({n}))",
                )
            ),
        )

    def united(self, t, d: int) -> list:
        """Producers of a number from a union of numbers."""
        have = [n for n, v in self.env.items() if v.type == NUMBERS]
        if not have or t not in PYTHON:
            return []
        n = self.pick(have)
        E = self.inner(d)
        return {
            "float": [
                lambda: f"float({n})",
                lambda: f"({n} * {E('float')})",
                lambda: f"({E('float')} {self.pick('+-')} {n})",
                lambda: f"({n} / {E(self.pick(('int', 'float')))})",
                lambda: f"float(max({n}, {E('int')}))",
            ],
            "int": [
                lambda: f"int({n})",
                lambda: f"round({n})",
                lambda: f"int({n} {self.pick('+-*')} {E('int')})",
                lambda: f"int(abs({n}) {self.pick(('//', '%'))} {E(self.pick(('int', 'float')))})",
                lambda: f"({n} if isinstance({n}, int) else {E('int')})",
            ],
            "bool": [
                lambda: f"({n} {self.pick(('<', '>=', '==', '!='))} {E(self.pick(('int', 'float')))})",
                lambda: f"isinstance({n}, {self.pick(('int', 'float', '(int, float)', 'bool'))})",
                lambda: f"bool({n})",
                lambda: f"(0 < {n} <= {E('float')})",
                lambda: f"({n} in ({E('int')}, {E('float')}))",
            ],
        }[t]
