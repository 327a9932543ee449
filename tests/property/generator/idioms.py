"""Whole idioms, each a few statements: optional values, closures made by functions and in loops, tables filled in place,
records taken apart, strings that select."""

from __future__ import annotations

from .types import Arr, Dic, Fn, Rec, Tup


class Idioms:
    """Writers of idioms; mixed into the writer."""

    def idiom(self, indent: int) -> None:
        """One of them."""
        self.pick((
            self.optional, self.maker, self.functions_in_a_tuple, self.table, self.taken_apart, self.selected, self.forever,
            self.search, self.local_recursion, self.accumulated, self.counter,
        ))(indent)  # fmt: skip

    def optional(self, indent: int) -> None:
        """A value or None, and a test for it."""
        name, t = self.fresh("o"), self.pick(("int", "float", "float", "f8", Tup(("int", "float"))))
        self.line(indent, f"{name} = None")
        if self.draw(2):
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, f"{name} = {self.e(t)}")
        else:
            index = self.fresh("j")
            self.line(indent, f"for {index} in {self.range_text()}:")
            with self.bound({index: "int"}):
                self.fuel = 8
                self.line(indent + 1, f"if {self.condition()}:")
                self.line(indent + 2, f"{name} = {self.e(t)}")
        self.fuel = 8
        test = self.pick((f"{name} is not None", f"{name} is not None and {self.e('bool', 2)}"))
        self.line(indent, f"if {test}:" if self.draw(3) else f"if {name} is None:")
        if self.lines[-1].endswith("is None:"):
            self.block(indent + 1, 2)
            self.line(indent, "else:")
        elif " and " in self.lines[-1]:  # what a longer test says of the value is not followed
            self.line(indent + 1, f"print({name} is None)")
            return
        with self.bound({name: t}):
            self.block(indent + 1, 2)

    def maker(self, indent: int) -> None:
        """A function that returns a function."""
        outer, inner, k, z = self.fresh("g"), self.fresh("f"), self.fresh("k"), self.fresh("z")
        result = self.pick(("float", "int"))
        self.line(indent, f"def {outer}({k}):")
        with self.closure({k: "float", z: "float"}):
            self.fuel = 6
            body = self.e(result)
        if self.draw(2):
            self.line(indent + 1, f"return lambda {z}: {body}")
        else:
            self.line(indent + 1, f"def {inner}({z}):")
            self.line(indent + 2, f"return {body}")
            self.line(indent + 1, f"return {inner}")
        f = self.fresh("f")
        self.fuel = 4
        if self.draw(3) == 0:
            self.line(indent, f"{f} = {outer}({self.e('float')}) if {self.condition()} else {outer}({self.e('float')})")
        else:
            self.line(indent, f"{f} = {outer}({self.e('float')})")
        self.bind(f, Fn(("float",), result))

    def functions_in_a_tuple(self, indent: int) -> None:
        """Functions made in a loop or a comprehension, called by index or in a loop."""
        fs, k, z, v = (self.fresh(c) for c in "fkzx")
        with self.closure({k: "float", z: "float"}):
            self.fuel = 5
            body = self.e("float")
        kind = self.draw(4)
        if kind == 0:
            self.line(indent, f"{fs} = [lambda {z}, {k}={k}: {body} for {k} in ({self.e('float')}, {self.e('float')})]")
        elif kind == 1:
            self.line(indent, f"{fs} = [lambda {z}: {body} for {k} in ({self.e('float')}, {self.e('float')})]")
        elif kind == 2:
            self.line(indent, f"{fs} = ()")
            self.line(indent, f"for {k} in ({self.e('float')}, {self.e('float')}):")
            self.line(indent + 1, f"{fs} = (*{fs}, lambda {z}, {k}={k}: {body})")
        else:
            self.line(indent, f"{fs} = (lambda {z}: {body.replace(k, '2.5')}, lambda {z}: {z} - 1.0)")
        call = self.pick((
            f"{v} = {fs}[{self.pick((0, 1, -1))}]({self.e('float')})",
            f"{v} = {fs}[{self.index(2, 2)}]({self.e('float')})",
            f"{v} = sum([h({self.e('float', 3)}) for h in {fs}], 0.0)",
        ))  # fmt: skip
        self.line(indent, call)
        self.bind(v, "float")

    def table(self, indent: int) -> None:
        """A table filled in place, from what is in it already."""
        name, i = self.fresh("a"), self.fresh("j")
        dtype = self.pick(("f8", "i8", "f4"))
        rank = 1 + self.draw(2)
        shape = self.shape(rank, False)
        self.line(
            indent,
            f"{name} = np.zeros({shape}, {'float' if dtype == 'f8' else 'np.' + self.dtype_name(Arr(dtype, ()))})",
        )
        indices = [i]
        self.line(indent, f"for {i} in range({self.pick((shape[0], shape[0], 'len(' + name + ')', shape[0] - 1))}):")
        depth = indent + 1
        if rank == 2:
            indices.append(self.fresh("j"))
            start = self.pick(("", "0, ", "1, "))
            self.line(depth, f"for {indices[1]} in range({start}{name}.shape[1]):")
            depth += 1
        with self.bound(dict.fromkeys(indices, "int")):
            before = ", ".join(self.pick((n, f"{n} - 1", "0")) for n in indices)
            here = ", ".join(indices)
            self.fuel = 7
            if self.draw(3) == 0:
                self.line(depth, f"if {self.condition()}:")
                self.line(depth + 1, self.pick(("continue", "break", f"{name}[{before}] = 1")))
            value = self.e(self.pick((dtype, "float" if dtype[0] == "f" else dtype)), 2)
            self.line(depth, f"{name}[{here}] {self.pick(('=', '+='))} {name}[{before}] {self.pick('+-')} {value}")
        self.bind(name, Arr(dtype, shape), own=True)

    def taken_apart(self, indent: int) -> None:
        """Records, dicts and tuples: unpacked, iterated, rebuilt."""
        kind = self.draw(4)
        a, b = self.fresh("x"), self.fresh("x")
        if kind == 0:
            self.line(indent, f"{a}, {b} = {self.e(Rec('Pair'))}")
            self.bind(a, "float")
            self.bind(b, "float")
        elif kind == 1:
            self.line(indent, f"{a} = 0.0")
            self.line(indent, f"for {b} in {self.e(Rec('Pair'))}:")
            self.line(indent + 1, f"{a} {self.pick('+-*')}= {b}")
            self.bind(a, "float")
        elif kind == 2:
            t = self.pick(("int", "float"))
            self.line(indent, f"{b} = {self.e(Dic((('a', t), ('b', t))))}")
            self.line(indent, f"{a} = 0")
            key = self.fresh("k")
            form = self.draw(3)
            head = (f"{key} in ('a', 'b')", f"{key} in {b}", f"{key}, v in {b}.items()")[form]
            self.line(indent, f"for {head}:")
            self.line(indent + 1, f"{a} = {a} * 2 + int({'v' if form == 2 else f'{b}[{key}]'} > 0)")
            self.bind(a, "int")
        else:
            self.line(indent, f"({a}, _), *{b} = {self.e(Tup(('int', 'float')))}, {self.e('bool')}")
            self.line(indent, f"{a} += len({b})")
            self.bind(a, "int")

    def selected(self, indent: int) -> None:
        """What a string selects."""
        strings = [n for n, v in self.env.items() if v.type == "str"]
        s = self.pick(strings) if strings and self.draw(4) else self.pick(("'left'", "'other'"))
        name, t = self.fresh("x"), self.pick(("int", "float", "f8"))
        if self.draw(2):
            self.line(indent, f"if {s} == 'left':")
            self.line(indent + 1, f"{name} = {self.e(t)}")
            self.line(indent, f"elif {s} in ('right', 'middle'):")
            self.line(indent + 1, f"{name} = {self.e(t)}")
            self.line(indent, "else:")
            self.line(
                indent + 1,
                self.pick((f"{name} = {self.e(t)}", f'raise ValueError(f"no {{{s if s.isidentifier() else 1}}}")')),
            )
        else:
            self.line(indent, f"match {s}:")
            self.line(indent + 1, "case 'left' | 'right':")
            self.line(indent + 2, f"{name} = {self.e(t)}")
            self.line(indent + 1, "case _:")
            self.line(indent + 2, f"{name} = {self.e(t)}")
        self.bind(name, t)

    def forever(self, indent: int) -> None:
        """`while True` with a way out."""
        n = self.fresh("n")
        self.line(indent, f"{n} = {self.pick((0, 1))}")
        self.bind(n, "int")
        self.env[n] = self.variable("int", fixed=True)
        self.line(indent, "while True:")
        self.line(indent + 1, f"{n} += 1")
        self.fuel = 6
        out = f"return {self.result()}" if self.returned is not None and self.draw(3) == 0 else "break"
        self.line(indent + 1, f"if {n} > {self.pick((2, 3))} or {self.e('bool', 2)}:")
        self.line(indent + 2, out)
        self.loops += 1
        self.block(indent + 1, 2)
        self.loops -= 1

    def search(self, indent: int) -> None:
        """A loop with `else` that looks for something."""
        x, t = self.some_array(("f8", "i8", "f4"), 2, ranks=(1,), empty=True)
        found, i, v = self.fresh("x"), self.fresh("j"), self.fresh("j")
        self.line(indent, f"for {i}, {v} in enumerate({x}):")
        with self.bound({i: "int", v: t.dtype}):
            self.fuel = 6
            self.line(indent + 1, f"if {v} {self.pick(('<', '>', '=='))} {self.e(self.pick((t.dtype, 'int')), 2)}:")
            self.line(indent + 2, f"{found} = {i}")
            self.line(indent + 2, "break")
        self.line(indent, "else:")
        self.line(indent + 1, f"{found} = {self.pick(('-1', 'len(' + x + ')'))}")
        self.bind(found, "int")

    def local_recursion(self, indent: int) -> None:
        """An inner function that calls itself."""
        f, n, s, v = self.fresh("f"), self.fresh("n"), self.fresh("s"), self.fresh("x")
        t = self.pick(("int", "float"))
        self.line(indent, f"def {f}({n}, {s}):")
        with self.closure({n: "int", s: t}):
            self.fuel = 7
            self.line(indent + 1, f"if {n} <= 0 or {self.e('bool', 2)}:")
            self.line(indent + 2, f"return {self.e(t, 2)}")
            self.line(indent + 1, f"return {f}({n} - 1, {self.e(t, 2)}) {self.pick('+-*')} {self.e(t, 3)}")
        self.line(indent, f"{v} = {f}({self.e('int', 3)} % 5, {self.e(t, 3)})")
        self.bind(v, t)

    def counter(self, indent: int) -> None:
        """An inner function that assigns to a variable of the function around it."""
        total, f, z, v = self.fresh("x"), self.fresh("f"), self.fresh("z"), self.fresh("x")
        t = self.pick(("int", "float"))
        self.line(indent, f"{total} = {self.e(t)}")
        self.line(indent, f"def {f}({z}):")
        with self.closure({total: t, z: t}):
            self.fuel = 6
            self.line(indent + 1, f"nonlocal {total}")
            if self.draw(3) == 0:
                self.line(indent + 1, f"if {self.e('bool', 2)}:")
                self.line(indent + 2, f"{total} {self.pick('+-*')}= {self.e(t, 2)}")
            self.line(indent + 1, f"{total} = {self.e(t, 2)}")
            self.line(indent + 1, f"return {self.e(t, 2)}")
        self.fuel = 6
        if self.draw(2):
            i = self.fresh("j")
            self.line(indent, f"{v} = {self.literal(t)}")
            self.line(indent, f"for {i} in {self.range_text()}:")
            self.line(indent + 1, f"{v} = {f}({self.e(t, 3)}) {self.pick('+-')} {v}")
        else:
            self.line(indent, f"{v} = {f}({self.e(t, 2)}) {self.pick(('-', '+', '*'))} {f}({total})")
        self.bind(v, t)
        self.env[total] = self.variable(t, fixed=True)

    def accumulated(self, indent: int) -> None:
        """Several variables that depend on each other from iteration to iteration."""
        a, b, i = self.fresh("x"), self.fresh("x"), self.fresh("j")
        t = self.pick(("int", "float", "f8", "i8"))
        self.line(indent, f"{a}, {b} = {self.e(t)}, {self.e(t)}")
        self.line(indent, f"for {i} in {self.range_text()}:")
        with self.bound({a: t, b: t, i: "int"}):
            self.fuel = 8
            self.line(indent + 1, f"{a}, {b} = {self.pick((b, self.e(t, 3)))}, {self.e(t, 2)}")
            if self.draw(3) == 0:
                self.line(indent + 1, f"if {self.condition()}:")
                self.line(indent + 2, self.pick((f"{a}, {b} = {b}, {a}", "continue", f"{b} = {a}")))
        self.bind(a, t)
        self.bind(b, t)
