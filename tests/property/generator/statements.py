"""Statements: assignments, branches, loops, in-place updates, checks, print, match, local functions."""

from __future__ import annotations

from .records import FIELDS
from .sizes import MOST
from .types import CODES, FAMILIES, KEY, PYTHON, Arr, Dic, Fn, Lst, Open, Rec, Tup, Uni
from .unions import UNIONS


class Statements:
    """Writes statements at an indentation; mixed into the writer."""

    def line(self, indent: int, text: str) -> None:
        """One line of the program."""
        self.lines.append("    " * indent + text)

    def block(self, indent: int, most: int = 3) -> None:
        """Statements; most variables made in them are forgotten afterwards, since they may be unbound."""
        before = dict(self.env)
        for _ in range(1 + self.draw(most)):
            self.statement(indent)
        kept = {n for n in self.env if n not in before and self.draw(30) == 0}
        self.env = {n: v for n, v in self.env.items() if n in before or n in kept}

    def statement(self, indent: int) -> None:
        """One statement."""
        self.budget -= 1
        self.fuel = 10 + self.draw(8)
        if self.budget < 0 or indent > 5:
            return self.assign(indent)
        weights = (
            (self.assign, 24),
            (self.augmented, 7),
            (self.unpack, 4),
            (self.branch, 14),
            (self.loop, 13),
            (self.leave, 5),
            (self.check, 4),
            (self.output, 5),
            (self.local_function, 6),
            (self.in_place, 6),
            (self.matched, 4),
            (self.chosen_function, 3),
            (self.walrus, 2),
            (self.idiom, 14),
            (self.lists, 12),
            (self.union, 6),
            (self.dicts, 3),
            (self.run_time_string, 2),
            (self.records, 3),
            (self.sliced_updates, 4),
            (self.list_of_arrays, 1),
            (self.sizes, 16),
            (self.keys, 7),
        )
        at = self.draw(sum(w for _, w in weights))
        for write, weight in weights:
            if at < weight:
                return write(indent)
            at -= weight

    # Assignments.

    def mine(self, test=lambda t: True) -> list[str]:
        """Variables that may be assigned to."""
        return [n for n, v in self.env.items() if not v.fixed and not isinstance(v.type, Fn | Uni) and test(v.type)]

    def assign(self, indent: int) -> None:
        """`x = e`, to a new variable or one in scope, now and then of another type."""
        mine = self.mine()
        if mine and self.draw(5) > 1:
            name = self.pick(mine)
            t = self.env[name].type
            if indent == 1 and self.draw(20) == 0 and not self.loops:
                t = self.any_type()
        else:
            name, t = self.fresh("x"), self.any_type()
        text = self.e(t)
        if isinstance(t, Lst):
            self.line(indent, f"{name} = {text}")
            return self.bind(name, t, own=True)
        if isinstance(t, Open) and (self.loops or name in self.env):
            text = f"({text})[:{MOST}]"
        if isinstance(t, Arr) and self.draw(3) == 0 and t.shape:
            text = self.pick((f"np.array({text})", f"({text}).copy()")) if not text.startswith("np.array(") else text
            self.line(indent, f"{name} = {text}")
            return self.bind(name, t, own=True)
        if self.draw(16) == 0:
            other = self.fresh("x")
            self.line(indent, f"{name} = {other} = {text}")
            self.bind(other, t)
        else:
            self.line(indent, f"{name} = {text}")
        self.bind(name, t)

    def augmented(self, indent: int) -> None:
        """`x op= e`."""
        mine = self.mine(lambda t: t in PYTHON or t in CODES)
        if not mine:
            return self.assign(indent)
        name = self.pick(mine)
        t = self.env[name].type
        ops = {
            "int": ("+", "-", "*", "//", "%", "&", "|", "^"),
            "float": ("+", "-", "*", "/", "//", "%"),
            "bool": "&|^",
            "b1": "&|^",
        }
        numpy_ops = ("+", "-", "*", "//", "%") if t in ("i8", "i4", "u1") else ("+", "-", "*", "/")
        self.line(indent, f"{name} {self.pick(ops.get(t, numpy_ops))}= {self.e(t)}")

    def unpack(self, indent: int) -> None:
        """Several targets, a swap, a starred target."""
        kind = self.draw(4)
        if kind == 0:
            for t in PYTHON[:2]:
                names = self.mine(lambda v, t=t: v == t)
                if len(names) > 1:
                    a, b = names[0], names[-1]
                    return self.line(indent, f"{a}, {b} = {b}, {self.e(t)}")
        if kind == 1:
            names = [self.fresh("x") for _ in range(3)]
            self.line(
                indent,
                f"{names[0]}, *{names[1]}, {names[2]} = {self.e('float')}, {self.e('int')}, {self.e('int')}, {self.e('bool')}",
            )
            for n, t in zip((names[0], names[2]), ("float", "bool")):
                self.bind(n, t)
            total = self.fresh("x")
            self.line(indent, f"{total} = {names[1]}[{self.pick((0, 1, -1))}] + len({names[1]})")
            return self.bind(total, "int")
        kinds = [self.scalar_type() for _ in range(2 + self.draw(2))]
        names = [self.fresh("x") for _ in kinds]
        self.line(indent, f"{', '.join(names)} = {self.e(Tup(tuple(kinds)))}")
        for n, t in zip(names, kinds):
            self.bind(n, t)

    def walrus(self, indent: int) -> None:
        """`if (x := e) > ...:`"""
        name, t = self.fresh("x"), self.pick(("int", "float"))
        self.line(indent, f"if ({name} := {self.e(t)}) {self.pick(('<', '>=', '!='))} {self.e(t)}:")
        self.bind(name, t)
        self.block(indent + 1)

    def in_place(self, indent: int) -> None:
        """`x[i] = v` and its kin on an array that is ours alone."""
        mine = [n for n, v in self.env.items() if v.own and not v.fixed and isinstance(v.type, Arr)]
        if not mine or self.draw(4) == 0:
            name, t = self.fresh("a"), Arr(self.pick(("f8", "f8", "i8", "f4")), self.shape(1 + self.draw(2), False))
            fresh = self.pick((f"np.zeros({t.shape}, np.{self.dtype_name(t)})", f"np.array({self.e(t)})"))
            self.line(indent, f"{name} = {fresh}")
            self.bind(name, t, own=True)
            mine = [name]
        name = self.pick(mine)
        t = self.env[name].type
        for _ in range(1 + self.draw(2)):
            self.fuel = 8
            self.line(indent, self.update(name, t))

    def update(self, name: str, t: Arr) -> str:
        """One in-place statement on an array."""
        value = {"f": "float", "i": "int", "b": "bool", "u": "u1"}[t.dtype[0]]
        op = self.pick(("=", "=", "+=", "-=", "*=")) if t.dtype != "b1" else "="
        whole = ", ".join(self.index(n, 1) for n in t.shape)
        kind = self.draw(10)
        if value == "int":
            small = f"({self.e('int')} % {self.pick((5, 100))})"
        else:
            small = self.e(value)
        if kind < 5 or not t.shape[0]:
            return f"{name}[{whole}] {op} {self.pick((small, self.e(t.dtype)))}"
        if kind == 5 and len(t.shape) == 2:
            return f"{name}[{self.index(t.shape[0], 1)}] {op} {self.e(Arr(t.dtype, t.shape[1:]))}"
        if kind == 6 and len(t.shape) == 2 and t.shape[1]:
            return f"{name}[:, {self.draw(t.shape[1])}] {op} {self.e(Arr(t.dtype, t.shape[:1]))}"
        if kind == 7:
            return f"{name}[1:] {op} {self.pick((small, self.e(Arr(t.dtype, (t.shape[0] - 1, *t.shape[1:])))))}"
        if kind == 8:
            return f"{name}[{self.e(Arr('b1', t.shape))}] {self.pick(('=', '=', '=', '+='))} {small}"
        if kind == 9:
            return f"{name}[::-1] {op} {self.e(t)}"
        return f"{name} {self.pick(('+=', '-=', '*=')) if t.dtype != 'b1' else '|='} {self.e(t)}"

    # Control.

    def condition(self) -> str:
        """A condition of any kind with a truth value."""
        kind = self.draw(12)
        if kind < 8:
            return self.e("bool")
        if kind == 8:
            return self.e("b1")
        if kind == 9:
            return f"{self.e('bool')} {self.pick(('and', 'or'))} {self.e(self.pick(('b1', 'int', 'float')))}"
        if kind == 10:
            return f"not {self.e(self.pick(('bool', 'int', 'f8')))}"
        return self.e(self.pick(("int", "float", "i8", "f8")))

    def branch(self, indent: int) -> None:
        """`if`, with all its parts."""
        self.line(indent, f"if {self.condition()}:")
        self.block(indent + 1)
        while self.draw(4) == 0:
            self.fuel = 6
            self.line(indent, f"elif {self.condition()}:")
            self.block(indent + 1)
        if self.draw(2):
            self.line(indent, "else:")
            self.block(indent + 1)

    def loop(self, indent: int) -> None:
        """`for` over something, or a `while` that ends."""
        before = dict(self.env)
        index = self.fresh("j")
        self.fuel = 5
        kind = self.draw(12)
        bound: dict = {}
        if kind < 4:
            self.line(indent, f"for {index} in {self.range_text()}:")
            bound = {index: "int"}
        elif kind == 4:
            x, t = self.some_array(("f8", "f4", "i8", "i4", "b1"), 2, ranks=(1, 2), empty=True)
            self.line(indent, f"for {index} in {self.pick((x, x, f'reversed({x})'))}:")
            bound = {index: t.dtype if len(t.shape) == 1 else Arr(t.dtype, t.shape[1:])}
        elif kind == 5:
            x, t = self.some_array(("f8", "i8", "f4"), 2, ranks=(1,))
            y = self.e(Arr(self.pick(("f8", "i8")), t.shape), 2)
            other = self.fresh("j")
            self.line(indent, f"for {index}, {other} in zip({x}, {y}):")
            bound = {index: t.dtype}
        elif kind == 6:
            x, t = self.some_array(("f8", "i8", "f4"), 2, ranks=(1,), empty=True)
            item = self.fresh("j")
            start = self.pick(("", ", 1", f", {self.e('int', 3)} % 50"))
            self.line(indent, f"for {index}, {item} in enumerate({x}{start}):")
            bound = {index: "int", item: t.dtype}
        elif kind == 7:
            t = self.pick(("int", "float"))
            self.line(indent, f"for {index} in ({', '.join(self.e(t, 3) for _ in range(1 + self.draw(3)))},):")
            bound = {index: t}
        elif kind == 8:
            a, b = self.fresh("j"), self.fresh("j")
            pairs = ", ".join(f"({self.e('int', 3)}, {self.e('float', 3)})" for _ in range(1 + self.draw(2)))
            self.line(indent, f"for {index}, ({a}, {b}) in enumerate([{pairs}]):")
            bound = {index: "int", a: "int", b: "float"}
        elif kind == 9:
            other = self.fresh("j")
            self.line(indent, f"for {index}, {other} in zip({self.range_text()}, {self.range_text()}):")
            bound = {index: "int", other: "int"}
        else:
            self.line(indent, f"{index} = {self.pick((0, 2, 3, 4))}")
            self.env[index] = self.variable("int", fixed=True)
            test = self.pick((f"{index} > 0", f"{index} > 0 and {self.e('bool', 2)}", f"{index}", f"0 < {index} <= 9"))
            self.line(indent, f"while {test}:")
            self.line(indent + 1, f"{index} -= {self.pick((1, 1, 2)) if '> 0' in test or '<' in test else 1}")
        for n, t in bound.items():
            self.env[n] = self.variable(t, fixed=True)
        self.loops += 1
        self.block(indent + 1)
        self.loops -= 1
        if self.draw(4) == 0:
            self.line(indent, "else:")
            self.block(indent + 1)
        self.env = {n: v for n, v in self.env.items() if n in before or (n == index and self.draw(5) == 0)}

    def range_text(self) -> str:
        """A short range, of known or unknown bounds, forwards or backwards."""
        n = self.e("int", 3)
        return self.pick(
            (
                f"range({self.pick((0, 1, 2, 3))})",
                f"range({n} % {self.pick((3, 4))})",
                f"range(abs({n}) % 4)",
                f"range({self.pick((3, 4))}, {self.pick((-1, 0))}, -{self.pick((1, 2))})",
                f"range({self.pick((1, 2))}, {n} % 5)",
                f"range({n} % 5, 0, {self.pick((-1, -2))})",
                f"reversed(range({n} % 4))",
                f"range({self.pick((-2, 0))}, 5, {self.pick((2, 3))})",
            )
        )

    def leave(self, indent: int) -> None:
        """`break`, `continue` or `return` under a condition."""
        self.line(indent, f"if {self.condition()}:")
        self.fuel = 4
        options = [f"return {self.result()}"] if self.returned is not None else []
        if self.loops:
            options += ["break", "continue"] * 2
        if not options:
            return self.assign(indent + 1)
        if self.draw(3) == 0:
            self.assign(indent + 1)
        self.line(indent + 1, self.pick(options))

    def check(self, indent: int) -> None:
        """`assert` and `raise`."""
        kind = self.draw(4)
        a = self.e(self.pick(("int", "float")), 3)
        if kind == 0:
            return self.line(indent, f"assert {self.condition()}")
        if kind == 1:
            return self.line(indent, f'assert {self.condition()}, f"value {{{a}}} seen"')
        self.line(indent, f"if {self.condition()}:")
        name = self.pick(("ValueError", "IndexError", "ArithmeticError", "RuntimeError", "KeyError"))
        message = self.pick(("'stopped'", f'f"at {{{a}}}"', "''", f'f"{{{a}!r}} and {{{a}:>8}}"'))
        self.line(indent + 1, self.pick((f"raise {name}({message})", f"raise {name}({message})", f"raise {name}")))

    def output(self, indent: int) -> None:
        """`print`."""
        parts = []
        for _ in range(1 + self.draw(3)):
            t = self.pick(("int", "float", "bool", "f8", "i8", "f4", "b1", "int", "float"))
            parts.append(self.pick((self.e(t, 2), self.e(t, 2), f'f"{{{self.e(t, 3)}}}|"', "'text'")))
        if self.draw(8) == 0:
            parts.append(self.pick((self.e(Tup(("int", "float")), 2), self.e(Arr("f8", self.shape(1)), 3))))
        shown = [n for n, v in self.env.items() if isinstance(v.type, Lst | Rec | Dic) or v.type in FAMILIES]
        if shown and self.draw(4) == 0:
            parts.append(self.pick(shown))
        if self.draw(4) == 0:
            parts = [f'f"{{{self.e("float", 3)}:.3f}} {{{self.e("int", 3)}:+d}} {{{self.e("bool", 3)}}}"']
        end = self.pick(("", "", "", ", sep='-'", ", end=';'"))
        self.line(indent, f"print({', '.join(parts)}{end})")

    def matched(self, indent: int) -> None:
        """`match`."""
        kind = self.draw(3)
        if kind == 0:
            self.line(indent, f"match {self.e('int')}:")
            cases = [(f"case {self.pick((0, 1, -1))}:", {}), (f"case {self.pick(('2 | 3', '5', '7 | 10'))}:", {})]
            name = self.fresh("m")
            cases.append((f"case {name} if {name} > {self.pick((0, 3))}:", {name: "int"}))
        elif kind == 1:
            a, b = self.fresh("m"), self.fresh("m")
            self.line(indent, f"match {self.e(Tup(('int', 'float')))}:")
            cases = [
                (f"case ({self.pick((0, 1))}, {a}):", {a: "float"}),
                (f"case ({b}, {self.pick(('0.0', '1.0'))}):", {b: "int"}),
                (f"case ({a}, {b}) if {a} < {self.pick((3, 5))}:", {a: "int", b: "float"}),
                (f"case [{a}, *_]:", {a: "int"}),
            ]
        else:
            a, b = self.fresh("m"), self.fresh("m")
            self.line(indent, f"match {self.e(Rec('Point'))}:")
            cases = [
                (f"case Point(x=0.0, y={b}):", {b: "float"}),
                (f"case Point({a}, {b}) if {a} {self.pick(('<', '>='))} {b}:", {a: "float", b: "float"}),
            ]
        for head, names in cases:
            self.line(indent + 1, head)
            with self.bound(names):
                self.block(indent + 2, 2)
        if self.draw(3):
            self.line(indent + 1, "case _:")
            self.block(indent + 2, 2)

    # Functions.

    def local_function(self, indent: int) -> None:
        """A lambda or an inner function over what is in scope, perhaps changed afterwards."""
        name, result = self.fresh("f"), self.pick(("float", "int", "float", "f8", Arr("f8", (self.dims[0],)), "bool"))
        args = tuple(self.pick(("float", "int")) for _ in range(1 + self.draw(2)))
        names = [self.fresh("z") for _ in args]
        if self.draw(2):
            with self.closure(dict(zip(names, args))):
                body = self.e(result)
            defaults = ""
            have = [n for n, v in self.env.items() if v.type in ("int", "float")]
            if have and self.draw(4) == 0:
                defaults = f", k={self.pick(have)}"
            self.line(indent, f"{name} = lambda {', '.join(names)}{defaults}: {body}")
            self.bind(name, Fn(args, result))
            return
        self.line(indent, f"def {name}({', '.join(names)}):")
        outer, loops, returned, lines = dict(self.env), self.loops, self.returned, len(self.lines)
        hide = self.draw(4) > 0
        for n, v in outer.items():
            if hide and v.own:
                del self.env[n]
                continue
            outer[n] = self.variable(v.type, v.fixed)
            self.env[n] = self.variable(v.type, fixed=True)  # to assign to it would make it local
        for n, t in zip(names, args):
            self.env[n] = self.variable(t)
        self.loops, self.returned = 0, (result,)
        self.bare = True
        for _ in range(self.draw(3)):
            self.statement(indent + 1)
        self.fuel = 10
        self.line(indent + 1, f"return {self.e(result)}")
        self.env, self.loops, self.returned = outer, loops, returned
        assert len(self.lines) > lines
        self.bind(name, Fn(args, result))

    def chosen_function(self, indent: int) -> None:
        """A function chosen at run time."""
        have = [(n, v.type) for n, v in self.env.items() if isinstance(v.type, Fn) and n[0] != "r"]  # those count down
        if not have:
            return self.local_function(indent)
        n, t = self.pick(have)
        others = [m for m, s in have if s == t]
        name = self.fresh("f")
        names = [self.fresh("z") for _ in t.args]
        with self.closure(dict(zip(names, t.args))):
            other = f"(lambda {', '.join(names)}: {self.e(t.result, 2)})"
        a, b = self.pick(others), self.pick((other, self.pick(others)))
        kind = self.draw(3)
        if kind == 0:
            self.line(indent, f"{name} = {a} if {self.e('bool')} else {b}")
        elif kind == 1:
            self.line(indent, f"{name} = {a}")
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, f"{name} = {b}")
        else:
            self.line(indent, f"{name} = ({a}, {b})[{self.index(2, 1)}]")
        self.bind(name, t)

    # Types of new variables.

    def scalar_type(self):
        """A number, Python's more often than NumPy's."""
        return self.pick(("int", "int", "float", "float", "bool", "f8", "f4", "i8", "i4", "b1", "u1"))

    def array_type(self) -> Arr:
        """An array of one or two axes."""
        return Arr(
            self.pick(("f8", "f8", "f8", "f4", "i8", "i8", "i4", "b1", "u1")), self.shape(1 + (self.draw(3) == 0))
        )

    def any_type(self):
        """The type of a new variable."""
        kind = self.draw(22)
        if kind > 19:
            return self.open_type() if self.draw(3) else KEY
        if kind < 12:
            return self.scalar_type()
        if kind < 16:
            return self.array_type()
        if kind == 16 and self.draw(2):
            return self.pick((self.list_type(), self.list_type(), self.pick(UNIONS)))
        if kind < 18:
            return Tup(tuple(self.scalar_type() for _ in range(1 + self.draw(3))))
        if kind == 18 and self.draw(2):
            families = [
                v.type.args[0] for n, v in self.env.items() if isinstance(v.type, Fn) and v.type.args[0] in FAMILIES
            ]
            families += [
                v.type.result for n, v in self.env.items() if isinstance(v.type, Fn) and v.type.result in FAMILIES
            ]
            if families:
                return self.pick(families)
        if kind == 18:
            return Rec(self.pick(tuple(FIELDS)))
        return Dic((("a", self.scalar_type()), ("b", self.scalar_type())))
