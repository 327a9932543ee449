"""Lists of run-time length: made, changed by every method, read, run over, passed to functions and returned."""

from __future__ import annotations

from .types import Arr, Fn, Lst, Tup

PAIR = Tup(("int", "float"))


class Lists:
    """Writers of lists; mixed into the writer. A list that is changed in place is a local that nothing else sees (`own`)."""

    def list_type(self) -> Lst:
        """The type of a new list."""
        return Lst(self.pick(("int", "int", "int", "float", "float", "float", "bool", "f8", PAIR, Lst("int"))))

    # Expressions.

    def some_list(self, elems: tuple, d: int) -> tuple[str, Lst]:
        """A list to read, a variable where there is one, and its type."""
        have = [(n, v.type) for n, v in self.env.items() if isinstance(v.type, Lst) and v.type.elem in elems]
        if have and self.draw(5):
            return self.pick(have)
        t = Lst(self.pick(elems))
        return self.e(t, d + 1), t

    def row(self, d: int) -> str:
        """A list of ints that is a list of lists' entry: of run-time length, as the others are."""
        have = [n for n, v in self.env.items() if v.type == Lst("int")]
        count = self.e("int", max(d + 1, 3))
        made = f"[{self.e('int', max(d + 1, 3))} for {self.fresh('c')} in range({count} % 4)]"
        return f"{self.pick(have)}[:]" if have and self.draw(2) else self.pick((made, f"list(range({count} % 3))"))

    def made_list(self, t: Lst, d: int) -> str:
        """A new list that holds what no other list holds."""
        if isinstance(t.elem, Lst):
            return f"[{', '.join(self.row(d) for _ in range(1 + self.draw(2)))}]"
        items = ", ".join(self.e(t.elem, d + 1) for _ in range(self.draw(4) if d < 3 else 1))
        return f"[{items}]"

    def make_list(self, t: Lst, d: int) -> list:
        """Producers of a new list."""
        E, e = self.inner(d), t.elem
        out = [
            lambda: self.made_list(t, d),
            lambda: f"([{E(e)}] * {self.pick(('2', '0', '(' + E('int') + ' % 4)', '(' + E('int') + ' % 3)'))})",
            lambda: f"{self.some_list((e,), d)[0]}{self.cut(d)}",
            lambda: f"list({self.some_list((e,), d)[0]})",
            lambda: f"({self.some_list((e,), d)[0]} + {self.pick((self.some_list((e,), d)[0], self.made_list(t, d)))})",
            lambda: f"list(reversed({self.some_list((e,), d)[0]}))",
            lambda: self.list_comprehension(t, d),
            lambda: self.list_comprehension(t, d),
        ]
        if isinstance(e, Lst):
            c = self.fresh("c")
            return [out[0], lambda: f"[{self.row(d)} for {c} in {self.range_text()}]"]
        if e in ("int", "float", "bool"):
            out += [lambda: f"sorted({self.some_list((e,), d)[0]}{self.pick(('', '', ', reverse=True'))})"]
        if e == "int":
            out += [lambda: f"list({self.range_text()})"] * 2
        if e == "f8":
            out += [lambda: f"list({self.some_array(('f8',), d, ranks=(1,))[0]})"]
        return out

    def cut(self, d: int) -> str:
        """A slice."""
        a, b = self.pick((0, 1, 2, -1)), self.pick((1, 2, -1, 4))
        return self.pick(
            ("[:]", f"[{a}:]", f"[:{b}]", "[::-1]", f"[{a}:{b}]", "[::2]", f"[{self.e('int', max(d + 1, 3))} % 3:]")
        )

    def list_comprehension(self, t: Lst, d: int) -> str:
        """A comprehension over a range or another list, perhaps with a condition."""
        name = self.fresh("c")
        if self.draw(2):
            source, kind = self.range_text(), "int"
        else:
            source, other = self.some_list(("int", "float", "bool"), max(d, 2))
            kind = other.elem
        with self.bound({name: kind}):
            body = self.e(t.elem, d + 1)
            condition = f" if {self.e('bool', max(d + 1, 3))}" if self.draw(3) == 0 else ""
        return f"[{body} for {name} in {source}{condition}]"

    def listed(self, t, d: int) -> list:
        """Producers of a number that read a list."""
        if t not in ("int", "float", "bool", "f8"):
            return []
        have = [(n, v.type) for n, v in self.env.items() if isinstance(v.type, Lst)]
        if not have:
            return []
        E = self.inner(d)
        name, of = self.pick(have)
        elem = of.elem
        out = []
        if elem == t:
            out += [lambda: f"{name}[{self.list_index(name, d)}]"] * 4
            if t in ("int", "float"):
                out += [lambda: f"{self.pick(('max', 'min'))}({name})"]
                out += [lambda: f"sum({name}{', 0.0' if t == 'float' else self.pick(('', ', 3'))})"] * 2
        if elem == PAIR and t in PAIR.elems:
            out += [lambda: f"{name}[{self.list_index(name, d)}][{PAIR.elems.index(t)}]"] * 3
            c = self.fresh("c")
            out += [lambda: f"sum([{c}[{PAIR.elems.index(t)}] for {c} in {name}]{', 0.0' if t == 'float' else ''})"]
        if elem == Lst("int") and t == "int":
            out += [lambda: f"{name}[{self.list_index(name, d)}][{self.pick((0, -1))}]", lambda: f"sum({name}[-1])"]
            out += [lambda: f"len({name}[{self.list_index(name, d)}])"]
        if t == "int":
            out += [lambda: f"len({name})"]
            if elem in ("int", "float", "bool"):
                out += [lambda: f"{name}.{self.pick(('count', 'count', 'index'))}({E(elem)})"]
        if t == "bool":
            out += [lambda: f"bool({name})", lambda: f"(len({name}) {self.pick(('>', '==', '<='))} {E('int')})"]
            if elem in ("int", "float", "bool"):
                c = self.fresh("c")
                out += [
                    lambda: f"({E(elem)} {self.pick(('in', 'not in'))} {name})",
                    lambda: f"({name} {self.pick(('==', '!='))} {E(of)})",
                    lambda: f"{self.pick(('any', 'all'))}({name})",
                    lambda: (
                        f"{self.pick(('any', 'all'))}({c} {self.pick(('>', '<', '!='))} {E(elem)} for {c} in {name})"
                    ),
                ]
        return out

    def list_index(self, name: str, d: int) -> str:
        """An index: the ends, something inside where the list is not empty, or anything."""
        k = self.draw(8)
        if k < 4:
            return self.pick(("0", "-1", "0", "-1", "1", "-2"))
        if k < 7:
            return f"{self.e('int', max(d + 1, 3))} % len({name})"
        return self.e("int", max(d + 1, 3))

    # Statements.

    def lists(self, indent: int) -> None:
        """One of the statements about lists."""
        mine = self.own_lists()
        if not mine or self.draw(4) == 0:
            return self.pick((self.new_list, self.filled_list))(indent)
        return self.pick((self.change_list, self.change_list, self.over_list, self.worklist, self.listing_function))(
            indent
        )

    def own_lists(self) -> list[str]:
        """Lists that may be changed in place."""
        return [n for n, v in self.env.items() if isinstance(v.type, Lst) and v.own and not v.fixed]

    def new_list(self, indent: int) -> None:
        """`xs = []` with something in it later, or any new list."""
        name, t = self.fresh("l"), self.list_type()
        if self.draw(2):
            self.line(indent, f"{name} = {self.e(t)}")
        else:
            self.line(indent, f"{name} = []")
            self.line(indent, f"{name}.append({self.row(2) if isinstance(t.elem, Lst) else self.e(t.elem, 1)})")
        self.bind(name, t, own=True)

    def filled_list(self, indent: int) -> None:
        """A list filled in a loop, under conditions, from what is in it already."""
        name, t, i = self.fresh("l"), self.list_type(), self.fresh("j")
        self.line(indent, f"{name} = {self.pick(('[]', self.made_list(t, 2)))}")
        self.line(indent, f"for {i} in {self.range_text()}:")
        with self.bound({i: "int"}):
            self.bind(name, t, own=True)
            inner = indent + 1
            self.fuel = 8
            if self.draw(2):
                self.line(inner, f"if {self.condition()}:")
                self.line(inner + 1, self.pick(("continue", "break", self.change(name, t), self.change(name, t))))
                if self.draw(3) == 0:
                    self.line(inner, "else:")
                    self.line(inner + 1, self.change(name, t))
            self.fuel = 8
            self.line(inner, f"{name}.append({self.row(2) if isinstance(t.elem, Lst) else self.e(t.elem, 1)})")
        self.bind(name, t, own=True)

    def change_list(self, indent: int) -> None:
        """One or two changes in place."""
        name = self.pick(self.own_lists())
        for _ in range(1 + self.draw(2)):
            self.fuel = 8
            self.line(indent, self.change(name, self.env[name].type))

    def change(self, name: str, t: Lst) -> str:
        """A statement that changes a list."""
        e = t.elem
        E = lambda of: self.e(of, 2)  # noqa: E731
        k = self.list_index(name, 2)
        if isinstance(e, Lst):
            return self.pick(
                (
                    f"{name}.append({self.row(2)})",
                    f"{name}.append({self.row(2)})",
                    f"{name} = {E(t)}",
                    f"{name}.reverse()",
                )
            )
        options = [
            *[lambda: f"{name}.append({E(e)})"] * 4,
            *[lambda: f"{name}[{k}] = {E(e)}"] * 3,
            *[lambda: self.popped(name, e)] * 2,
            lambda: f"{name}.insert({k}, {E(e)})",
            lambda: f"{name}.extend({E(t)})",
            lambda: f"{name} += {self.pick((self.made_list(t, 2), E(t)))}",
            lambda: f"del {name}[{k}]",
            lambda: f"del {name}{self.pick(('[1:]', '[:1]', '[-1:]', '[0:2]'))}",
            lambda: f"{name}.reverse()",
            lambda: f"{name}.clear()" if self.draw(3) == 0 else f"{name}.append({E(e)})",
        ]
        if e in ("int", "float", "bool"):
            z = self.fresh("z")
            keys = {"int": f"{z} % 3", "float": f"-{z}", "bool": f"not {z}"}
            options += [
                lambda: f"{name}.sort({self.pick(('', '', 'reverse=True', f'key=lambda {z}: {keys[e]}'))})",
                lambda: f"{name}.remove({self.pick((E(e), f'{name}[0]', f'{name}[-1]'))})",
            ]
        if e in ("int", "float"):
            options += [lambda: f"{name}[{k}] {self.pick('+-*')}= {E(e)}"] * 2
        return self.pick(options)()

    def popped(self, name: str, e) -> str:
        """`pop`, its result used or not."""
        where = self.pick(("", "", "0", "-1", self.list_index(name, 2)))
        mine = self.mine(lambda t: t == e)
        return f"{self.pick(mine)} = {name}.pop({where})" if mine and self.draw(3) else f"{name}.pop({where})"

    def over_list(self, indent: int) -> None:
        """A loop over a list, which is not changed meanwhile."""
        name = self.pick([n for n, v in self.env.items() if isinstance(v.type, Lst)])
        before = dict(self.env)
        t = self.env[name].type
        item, i = self.fresh("j"), self.fresh("j")
        bound = {item: t.elem}
        form = self.draw(6)
        if t.elem == PAIR and form < 3:
            a, b = self.fresh("j"), self.fresh("j")
            head, bound = f"{a}, {b} in {name}", {a: "int", b: "float"}
        elif form == 0:
            head, bound = f"{i}, {item} in enumerate({name})", {i: "int", item: t.elem}
        elif form == 1:
            head, bound = f"{item}, {i} in zip({name}, {self.range_text()})", {item: t.elem, i: "int"}
        elif form == 2:
            head = f"{item} in reversed({name})"
        elif form == 3:
            head, bound = f"{i} in range(len({name}))", {i: "int"}
        elif form == 4:
            head = f"{item} in {name}{self.cut(3)}"
        else:
            head = f"{item} in {name}"
        self.line(indent, f"for {head}:")
        self.env[name] = self.variable(t, fixed=True)
        for n, of in bound.items():
            self.env[n] = self.variable(of, fixed=True)
        self.loops += 1
        self.block(indent + 1)
        self.loops -= 1
        self.env = {n: v for n, v in self.env.items() if n in before}
        self.env[name] = before[name]
        if self.draw(5) == 0:
            self.line(indent, "else:")
            self.block(indent + 1, 2)

    def worklist(self, indent: int) -> None:
        """A stack or queue that is worked off, and grows meanwhile."""
        name, n, x, total = self.fresh("l"), self.fresh("n"), self.fresh("x"), self.fresh("x")
        self.line(indent, f"{name} = [{self.e('int', 2)} % {self.pick((4, 7))}]")
        self.line(indent, f"{total}, {n} = {self.literal('int')}, 0")
        self.line(indent, f"while {self.pick((name, f'len({name}) > 0', f'{name} and {n} < 9'))}:")
        self.line(indent + 1, f"{x} = {name}.pop({self.pick(('', '', '0'))})")
        self.line(indent + 1, f"{n} += 1")
        self.line(indent + 1, f"if {n} > 12:")
        self.line(indent + 2, self.pick(("break", "break", "raise RuntimeError('too long')")))
        with self.bound({x: "int", total: "int", n: "int"}):
            self.fuel = 7
            self.line(indent + 1, f"if {x} > {self.pick((0, 1))}{self.pick(('', ' and ' + self.e('bool', 2)))}:")
            self.line(indent + 2, f"{name}.append({x} {self.pick(('- 1', '// 2', '- 2'))})")
            if self.draw(2):
                self.line(indent + 2, f"{name}.extend([{x} - 1, {x} // 3])")
            self.line(indent + 1, f"{total} = {total} {self.pick('+-')} {self.e('int', 2)}")
        if self.draw(3) == 0:
            self.line(indent, "else:")
            self.line(indent + 1, f"{total} += 1")
        self.bind(total, "int")

    def listing_function(self, indent: int) -> None:
        """An inner function that takes a list and returns one, made in a loop or by recursion."""
        f, a, k, out, v = (self.fresh(c) for c in "fakol")
        t = Lst(self.pick(("int", "float")))
        self.line(indent, f"def {f}({a}, {k}):")
        with self.closure({a: t, k: "int"}):
            self.fuel = 7
            if self.draw(3) == 0:
                self.line(indent + 1, f"if {k} <= 0 or len({a}) == 0:")
                self.line(indent + 2, f"return {self.pick(('[]', f'[{self.e(t.elem, 2)}]', f'{a}[:]'))}")
                self.line(indent + 1, f"return {f}({a}[1:], {k} - 1) + [{a}[0], {self.e(t.elem, 2)}]")
            else:
                item = self.fresh("j")
                self.line(indent + 1, f"{out} = []")
                self.line(indent + 1, f"for {item} in {a}:")
                with self.bound({item: t.elem}):
                    if self.draw(2):
                        self.line(indent + 2, f"if {self.e('bool', 2)}:")
                        self.line(
                            indent + 3,
                            self.pick(("continue", "break", f"return {out}", f"{out}.append({self.e(t.elem, 2)})")),
                        )
                    self.line(indent + 2, f"{out}.append({self.e(t.elem, 1)})")
                self.line(indent + 1, f"return {out}")
        self.fuel = 8
        source, _ = self.some_list((t.elem,), 2)
        if not source.isidentifier():
            source = f"({source})"
        elif self.draw(2):
            source += "[:]"
        self.line(indent, f"{v} = {f}({source}, {self.e('int', 2)} % 4)")
        self.bind(v, t)
        if self.draw(3) == 0:
            self.bind(f, Fn((t, "int"), t))

    def list_of_arrays(self, indent: int) -> None:
        """Rows gathered in a loop."""
        name, i, t = self.fresh("l"), self.fresh("j"), Arr(self.pick(("f8", "i8")), (self.dims[0],))
        self.line(indent, f"{name} = []")
        self.line(indent, f"for {i} in {self.range_text()}:")
        with self.bound({i: "int"}):
            self.fuel = 7
            self.line(indent + 1, f"{name}.append({self.e(t, 1)})")
        total = self.fresh("x")
        self.line(indent, f"{total} = {self.e(t, 2)}")
        self.line(indent, f"for {i} in {name}:")
        self.line(indent + 1, f"{total} = {total} {self.pick('+-')} {i}")
        self.bind(total, t)
