"""Functions and their arguments in all forms, dicts and strings: defaults, keywords, stars, functions in dicts, early returns."""

from __future__ import annotations

from .types import Arr, Dic, Fn, Rec


class Calls:
    """Writers of functions of the module and of calls; mixed into the writer."""

    def arguments_function(self) -> None:
        """A function with positional-only, keyword-only, default and star parameters."""
        name, result = self.fresh("h"), self.pick(("float", "int"))
        star, key, more = self.draw(2), self.draw(2), self.draw(3) == 0
        head = ["a", *(["/"] if self.draw(4) == 0 else []), f"b={self.pick((0, 2, -3))}"]
        head += ["*rest"] if star else ["*"] if key else []
        head += [f"k={self.pick(('0.5', '-2.0'))}"] if key else []
        head += ["**named"] if more else []
        outer, self.env = self.env, {}
        self.line(0, f"def {name}({', '.join(head)}):")
        self.env |= {"a": self.variable("float"), "b": self.variable("int")}
        if key:
            self.env["k"] = self.variable("float", fixed=True)
        if star:
            self.line(1, "n = len(rest)")
            self.env["n"] = self.variable("int")
            self.line(1, "for v in rest:")
            self.line(2, f"a = a {self.pick('+-*')} v")
        if more:
            self.line(1, f"b += {self.pick(('len(named)', 'len(named) * 2'))}")
            self.line(1, "for key in named:")
            self.line(2, f"a = a - named[key]{self.pick(('', ' * len(key)'))}")
        self.returned, self.budget = (result,), 2
        if self.draw(2):
            self.statement(1)
        self.fuel = 10
        self.line(1, f"return {self.e(result)}")
        self.line(0, "")
        self.env = outer
        self.heads[name] = ("forms", star, key, more)
        self.env[name] = self.variable(Fn(("float", "int"), result), fixed=True)

    def formed_call(self, name: str, form: tuple, d: int) -> str:
        """A call of such a function, in one of its ways."""
        _, star, key, more = form
        E = lambda t: self.e(t, d + 2)  # noqa: E731
        args = [E("float")]
        if self.draw(3):
            args.append(E("int"))
            if star:
                pairs = [n for n, v in self.env.items() if v.type == Rec("Pair")]
                args += [
                    self.pick(("*(1.5, 2)", E("float"), "*[]", f"*{self.pick(pairs)}" if pairs else E("int")))
                    for _ in range(self.draw(3))
                ]
        named = [f"k={E('float')}"] if key and self.draw(2) else []
        if more:
            named += [f"x{i}={E(self.pick(('float', 'int')))}" for i in range(self.draw(3))]
            if self.draw(4) == 0:
                named.append(f"**{{'y': {E('int')}}}")
        if self.draw(2):
            named.reverse()
            named.sort(key=lambda n: n.startswith("**"))
        return f"{name}({', '.join(args + named)})"

    def nested_search(self) -> None:
        """A function with loops in each other that it leaves early, `else` and `while` included."""
        name, result = self.fresh("h"), self.pick(("float", "int"))
        outer, self.env = self.env, {}
        t = Arr(self.pick(("f8", "i8")), (self.dims[0], self.dims[1]))
        self.line(0, f"def {name}(x, y):")
        self.env |= {"x": self.variable(t, fixed=True), "y": self.variable("float", fixed=True)}
        self.line(1, "n = 0")
        self.line(1, "for i in range(x.shape[0]):")
        self.line(2, "j = 0")
        self.line(2, f"while j < {self.pick(('x.shape[1]', 'i + 1', '3'))}:")
        self.returned = (result,)
        with self.bound({"i": "int", "j": "int", "n": "int"}):
            e = lambda of: self.e(of, 2)  # noqa: E731
            self.fuel = 14
            self.line(3, f"if x[i, j] {self.pick(('>', '<', '=='))} {e('float')}:")
            self.line(4, self.pick((f"return {e(result)}", "break", f"return {e(result)}")))
            if self.draw(2):
                self.line(3, f"for k in range({self.pick(('2', 'j', 'i'))}):")
                self.env["k"] = self.variable("int", fixed=True)
                self.line(4, f"if {e('bool')}:")
                self.line(5, self.pick((f"return {e(result)}", "break", "continue")))
                self.line(4, "n += k + 1")
            self.line(3, "j += 1")
            self.line(3, f"n = n {self.pick('+-')} {self.pick(('1', 'j', e('int')))}")
            if self.draw(2):
                self.line(2, "else:")
                self.fuel = 4
                self.line(3, self.pick(("n += 10", "continue", f"if {e('bool')}:\n                return {e(result)}")))
            if self.draw(2):
                self.line(2, "n += 100")
        self.env["n"] = self.variable("int")
        if self.draw(2):
            self.line(1, "else:")
            self.line(2, self.pick(("n = -n", f"return {e(result)}")))
        self.fuel = 8
        self.line(1, f"return {self.e(result)}")
        self.line(0, "")
        self.env = outer
        self.env[name] = self.variable(Fn((t, "float"), result), fixed=True)

    def mode_function(self) -> None:
        """A function that a string argument tells what to do."""
        name, result = self.fresh("h"), self.pick(("float", "int"))
        outer, self.env = self.env, {}
        default = self.pick(("", "='left'"))
        self.line(0, f"def {name}(x, mode{default}):")
        self.env |= {"x": self.variable("float"), "mode": self.variable("str", fixed=True)}
        self.fuel = 8
        self.line(1, f"if mode == 'left'{self.pick(('', ' and x > 0'))}:")
        self.line(2, f"return {self.e(result, 2)}")
        test = self.pick(("== 'right'", "in ('right', 'middle')", "!= 'none of them'"))
        self.line(1, f"elif mode {test}:")
        self.line(2, f"x = {self.e('float', 2)}")
        if self.draw(2):
            self.line(1, "else:")
            self.line(
                2,
                self.pick(
                    (
                        "raise KeyError(mode)",
                        'raise ValueError(f"no {mode!r} for {x}")',
                        "print(mode, len(mode))",
                        f"x = {self.e('float', 2)}",
                    )
                ),
            )
        self.line(1, f"return {self.e(result)}")
        self.line(0, "")
        self.env = outer
        self.env[name] = self.variable(Fn(("float", "str"), result), fixed=True)

    # Statements.

    def dicts(self, indent: int) -> None:
        """A dict changed, read with a default, run over, or one of functions."""
        d, x, k = self.fresh("d"), self.fresh("x"), self.fresh("k")
        t = self.pick(("int", "float"))
        kind = self.draw(5)
        if kind == 0:
            self.line(indent, f"{d} = {{'a': {self.e(t)}, 'b': {self.e(t)}}}")
            self.line(indent, f"{d}['a'] {self.pick(('=', '+=', '-='))} {self.e(t, 2)}")
            if self.draw(2):
                i = self.fresh("j")
                self.line(indent, f"for {i} in {self.range_text()}:")
                with self.bound({i: "int"}):
                    self.fuel = 6
                    self.line(indent + 1, f"{d}['b'] = {d}['{self.pick('ab')}'] {self.pick('+-')} {self.e(t, 2)}")
            return self.bind(d, Dic((("a", t), ("b", t))))
        if kind == 1:
            functions = [n for n, v in self.env.items() if v.type == Fn(("float",), "float")]
            z = self.fresh("z")
            with self.closure({z: "float"}):
                bodies = [self.e("float", 2), self.e("float", 2)]
            self.fuel = 6
            items = [
                f"lambda {z}: {bodies[0]}",
                self.pick(functions) if functions and self.draw(2) else f"lambda {z}: {bodies[1]}",
            ]
            self.line(indent, f"{d} = {{'left': {items[0]}, 'right': {items[1]}}}")
            strings = [n for n, v in self.env.items() if v.type == "str"]
            s = self.pick(strings) if strings and self.draw(2) else self.pick(("'left'", "'right'"))
            self.line(indent, f"{x} = {d}[{s}]({self.e('float', 2)}) if {s} in {d} else {self.e('float', 2)}")
            return self.bind(x, "float")
        have = [(n, v.type) for n, v in self.env.items() if isinstance(v.type, Dic)]
        if not have:
            return self.assign(indent)
        d, of = self.pick(have)
        key, t = self.pick(of.items)
        if kind == 2:
            self.line(indent, f"{x} = {d}.get('{key}', {self.e(t, 2)})")
            return self.bind(x, t)
        if kind == 3:
            self.line(indent, f"{x} = len({d}) + sum([len({k}) for {k} in {d}]) + int('{self.pick('abz')}' in {d})")
            return self.bind(x, "int")
        self.line(indent, f"for {k}, {x} in {d}.items():")
        end = self.pick(("", ", end=' '"))
        self.line(indent + 1, f'print(f"{{{k}}}: {{{x}}}"{end})')
        return None

    def run_time_string(self, indent: int) -> None:
        """A string chosen at run time: printed, compared, in a message."""
        s, x = self.fresh("s"), self.fresh("x")
        one, two = self.pick(("'left'", "'high'")), self.pick(("'right'", "'low'"))
        self.line(indent, f"{s} = {one} if {self.e('bool')} else {two}")
        kind = self.draw(4)
        if kind == 0:
            self.line(
                indent,
                self.pick(
                    (f"print({s}, {self.e('int', 3)})", f'print(f"<{{{s}}}>", {s})', f"print({s}, sep='', end='!')")
                ),
            )
        elif kind == 1:
            t = self.pick(("int", "float"))
            self.line(indent, f"{x} = {self.e(t, 2)} if {s} == 'left' else {self.e(t, 2)}")
            return self.bind(x, t)
        elif kind == 2:
            self.line(indent, f"if {self.e('bool')}:")
            number = self.e("int", 3)
            raises = (
                f"raise ValueError({s})",
                f'raise KeyError(f"{{{s}}} of {{{number}}}")',
                f"raise RuntimeError(f'{{{s}!r}}')",
            )
            self.line(indent + 1, self.pick(raises))
        else:
            self.line(indent, f"if {s} != {one}:")
            self.block(indent + 1, 2)
        return None

    def records(self, indent: int) -> None:
        """Records carried through a loop or a branch, by their methods and properties."""
        kind, i = self.draw(4), self.fresh("j")
        if kind == 0:
            g = self.fresh("g")
            self.line(indent, f"{g} = {self.e(Rec('Grade'))}")
            self.line(indent, f"for {i} in {self.range_text()}:")
            with self.bound({g: Rec("Grade"), i: "int"}):
                self.fuel = 8
                other = self.e(Rec("Grade"), 2)
                new = self.pick((f"{g}.plus({i}, 2, scale={i})", f"{g}.chosen({other})", other))
                self.line(indent + 1, f"{g} = {new}")
            return self.bind(g, Rec("Grade"))
        if kind == 1:
            s, k = self.fresh("s"), self.fresh("k")
            self.line(indent, f"{s} = {self.pick(('Span.of(', 'Span('))}{self.e('int', 2)}, {self.e('int', 2)})")
            self.line(indent, f"{k} = {s}.within({self.e('int', 2)})")
            self.bind(s, Rec("Span"))
            return self.bind(k, "int")
        if kind == 2:
            a, b = self.fresh("x"), self.fresh("x")
            self.line(indent, f"{a}, {b} = {self.e(Rec('Span'))}")
            self.bind(a, "int")
            return self.bind(b, "int")
        a, b = self.fresh("m"), self.fresh("m")
        self.line(indent, f"match {self.e(Rec('Grade'))}:")
        for head, names in (
            (f"case Grade({a}, passed=True) if {a} > {self.literal('int')}:", {a: "int"}),
            (f"case Grade(points={self.pick((0, 1))}, weight={b}):", {b: "float"}),
            (f"case Grade({a}, {b}, _):", {a: "int", b: "float"}),
        ):
            self.line(indent + 1, head)
            with self.bound(names):
                self.block(indent + 2, 2)
        return None

    def sliced_updates(self, indent: int) -> None:
        """Augmented updates of parts of an array: blocks, steps, rows by index, elements in a loop."""
        mine = [
            n for n, v in self.env.items() if v.own and not v.fixed and isinstance(v.type, Arr) and all(v.type.shape)
        ]
        if not mine:
            return self.in_place(indent)
        name = self.pick(mine)
        t = self.env[name].type
        n = t.shape[0]
        op = self.pick(("=", "+=", "-=", "*=")) if t.dtype != "b1" else "="
        scalar = {"f": "float", "i": "u1", "u": "u1", "b": "bool"}[t.dtype[0]]
        value = lambda s: self.e(Arr(t.dtype, s), 2) if self.draw(2) else self.e(scalar, 2)  # noqa: E731
        i = self.fresh("j")
        kind = self.draw(5)
        if kind == 0:
            cut = self.pick((("::2", (n + 1) // 2), ("::-1", n), ("1:", n - 1), (":-1", n - 1), ("...", n), (":1", 1)))
            return self.line(indent, f"{name}[{cut[0]}] {op} {value((cut[1], *t.shape[1:]))}")
        if kind == 1 and len(t.shape) == 2:
            a, b = (
                self.pick(((":", n), ("1:", n - 1), ("0", 0))),
                self.pick(((":1", 1), ("::2", (t.shape[1] + 1) // 2), ("::-1", t.shape[1]))),
            )
            shape = (b[1],) if a[0] == "0" else (a[1], b[1])
            return self.line(indent, f"{name}[{a[0]}, {b[0]}] {op} {value(shape)}")
        if kind == 2 and len(t.shape) == 2:
            i, k = self.index(n, 2), self.index(n, 2)
            return self.line(indent, f"{name}[{i}] {op} {name}[{k}]{self.pick(('', ' * 2', '.copy()'))}")
        self.line(indent, f"for {i} in range({self.pick((n, n - 1, f'len({name})'))}):")
        self.loops += 1
        with self.bound({i: "int"}):
            self.fuel = 6
            if self.draw(2):
                self.line(indent + 1, f"if {self.condition()}:")
                self.line(indent + 2, self.pick(("break", "continue")))
            rest = "".join(f", {self.index(m, 2)}" for m in t.shape[1:]) if self.draw(3) else ""
            shape = () if rest or len(t.shape) == 1 else t.shape[1:]
            right = self.e(scalar, 2) if not shape or self.draw(2) else self.e(Arr(t.dtype, shape), 2)
            self.line(indent + 1, f"{name}[{self.pick((i, f'-1 - {i}', f'({i} + 1) % {n}'))}{rest}] {op} {right}")
        self.loops -= 1
        return None
