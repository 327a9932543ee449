"""Arrays whose sizes values decide: made, cut, chosen by masks, joined, grown in loops and recursions, passed to functions.

Sizes stay small: what a loop makes of an array is cut off.
"""

from __future__ import annotations

from .types import FLOATS, Arr, Fn, Lst, Open, Tup, constructor

MOST = 9  # parts that a loop leaves of an array


class Sizes:
    """Producers and statements; mixed into the writer."""

    def open_type(self) -> Open:
        """The type of a new array."""
        return Open(self.pick(("f8", "f8", "f8", "i8", "i8", "f4", "b1")), (self.dims[1],) if self.draw(5) == 0 else ())

    def length(self, d: int) -> str:
        """A size: small, known now and then, negative rarely."""
        kind = self.draw(12)
        if kind < 6:
            return f"{self.e('int', max(d, 3))} % {self.pick((3, 4, 6))}"
        names = self.open_names()
        if kind < 10 and names:
            n = self.pick(names)
            return self.pick(
                (f"len({n})", f"{n}.shape[0]", f"(len({n}) // 2)", f"min(len({n}), {self.literal('int')} % 4)")
            )
        if kind == 10:
            return f"({self.e('int', max(d, 3))} % 5 - 1)"
        return self.pick(("0", "1", "2", "3"))

    def open_names(self, *dtypes: str, rest: tuple | None = ()) -> list[str]:
        """Variables that are such arrays."""
        return [
            n
            for n, v in self.env.items()
            if isinstance(v.type, Open)
            and (not dtypes or v.type.dtype in dtypes)
            and (rest is None or v.type.rest == rest)
        ]

    def one_axis(self, *dtypes: str) -> list[tuple[str, str]]:
        """Variables that are arrays with one axis, of a size that is known or not, and their dtypes."""
        return [
            (n, v.type.dtype)
            for n, v in self.env.items()
            if (isinstance(v.type, Open) and not v.type.rest or isinstance(v.type, Arr) and len(v.type.shape) == 1)
            and v.type.dtype in dtypes
        ]

    def dtype_argument(self, dtype: str) -> str:
        """The argument of what makes float64 without it."""
        return "" if dtype == "f8" and self.draw(2) else f", {constructor(dtype)}"

    def open_atom(self, t: Open, d: int) -> str:
        """An array without much around it."""
        names = self.open_names(t.dtype, rest=t.rest)
        if names and self.draw(6):
            return self.pick(names[-3:])
        return f"np.{self.pick(('zeros', 'ones'))}({self.open_shape(t, 4)}{self.dtype_argument(t.dtype)})"

    def open_shape(self, t: Open, d: int) -> str:
        """A shape as an argument."""
        k = self.length(d)
        return f"({k}, {t.rest[0]})" if t.rest else self.pick((k, f"({k},)"))

    def mask(self, x: str, dtype: str, d: int) -> str:
        """A truth value for each part of a variable."""
        if dtype == "b1":
            return self.pick((x, f"~{x}"))
        value = self.e("float" if dtype in FLOATS else "int", max(d + 1, 3))
        test = f"{x} {self.pick(('>', '<', '!=', '>=', '=='))} {value}"
        if self.draw(5) == 0:
            test = f"({test}) & ({x} {self.pick(('>', '!='))} {self.pick((0, 1))})"
        return test

    def part(self, x: str, d: int) -> str:
        """A slice of a variable."""
        k, m = (lambda: self.length(max(d, 3))), (lambda: f"{self.e('int', 4)} % 5")
        return x + self.pick((
            lambda: f"[:{k()}]", lambda: f"[{k()}:]", lambda: f"[{m()} : {k()}]", lambda: f"[::{self.pick((-1, 2, 3))}]",
            lambda: f"[{m()} :: {self.pick((1, 2, -1))}]", lambda: f"[:: {m()} + 1]", lambda: "[1:]", lambda: "[:-1]",
            lambda: f"[-({m()}):]", lambda: f"[: -({m()}) - 1]",
        ))()  # fmt: skip

    def make_open(self, t: Open, d: int) -> list:
        """Producers of an array of any size."""
        return self.open_rows(t, d) if t.rest else [*self.open_made(t, d), *self.open_computed(t, d)]

    def open_made(self, t: Open, d: int) -> list:
        """Arrays with one axis: made by size, cut, chosen, joined."""
        E, k = self.inner(d), lambda: self.length(d)
        c = constructor(t.dtype)
        out = [
            lambda: f"np.full({k()}, {E(t.dtype)})",
            lambda: f"np.concatenate([{E(t)}, {E(t)}])",
            lambda: f"np.concatenate(({E(t)}, {E(Arr(t.dtype, self.shape(1, False)))}))",
            lambda: f"np.append({E(t)}, {E(t.dtype)})",
            lambda: f"np.repeat({E(t)}, {k()})[:{MOST}]",
            lambda: f"np.tile({E(t)}, {self.pick((1, 2))})[:{MOST}]",
            lambda: f"{E(Open(self.pick(tuple(o for o in ('f8', 'i8', 'b1') if o != t.dtype))))}.astype({c})",
            lambda: f"np.roll({E(t)}, {E('int')} % 4)",
            lambda: f"np.{self.pick(('flip', 'copy', 'ravel', 'zeros_like', 'ones_like'))}({E(t)})",
            lambda: f"{E(t)}{self.pick(('.copy()', '.reshape(-1)', '[::-1]', '[None].ravel()', '[:, None].T[0]'))}",
            lambda: f"{E(Open(t.dtype, (self.dims[1],)))}{self.pick(('[:, 0]', '[:, -1]', '.ravel()', '.T.ravel()'))}",
            lambda: (
                f"{E(Arr(t.dtype, (self.dims[0], self.dims[1])))}[:{k()}].{self.pick(('ravel()', 'T.reshape(-1)'))}"
            ),
        ]
        names = self.one_axis(t.dtype)
        if names:
            x, _ = self.pick(names)
            out += [lambda: self.part(x, d)] * 5
            out += [lambda: f"{x}[{self.mask(x, t.dtype, d)}]"] * 4
            out += [
                lambda: f"np.repeat({x}, np.arange(len({x})) % 3)",
                lambda: f"np.compress({self.mask(x, t.dtype, d)}, {x})",
                lambda: f"np.where({self.mask(x, t.dtype, d)}, {x}, {self.pick((x + '[::-1]', E(t.dtype)))})",
                lambda: f"{x}.reshape({self.pick((1, 2))}, -1).{self.pick(('T.ravel()', 'ravel()'))}",
                lambda: f"{x}[np.flatnonzero({self.mask(x, t.dtype, d)})]",
                lambda: f"{x}[{E(Open('i8'))} % {self.pick((1, 2, 'len(' + x + ')'))}]",
                lambda: f"np.take({x}, np.arange({k()}) % max(len({x}), 1))",
                lambda: f"np.stack([{x}, {x}{self.pick(('', '[::-1]'))}], axis={self.pick((0, 1))}).ravel()",
            ]
            if t.dtype != "b1":
                out += [lambda: f"np.{self.pick(('unique', 'sort'))}({x})"]
        if t.dtype != "b1":
            out += [lambda: f"np.zeros({self.open_shape(t, d)}{self.dtype_argument(t.dtype)})"]
        if t.dtype == "f8":
            out += [lambda: f"np.linspace({self.pick((0, -1.5))}, {self.pick((1, 2.0))}, {k()})"]
            lists = [n for n, v in self.env.items() if v.type == Lst("float")]
            if lists:
                out += [lambda: f"np.{self.pick(('array', 'asarray'))}({self.pick(lists)})"] * 2
            c1 = self.fresh("c")
            with self.bound({c1: "int"}):
                body = self.e("float", d + 2)
            out += [lambda: f"np.array([{body} for {c1} in range({k()})])"]
        if t.dtype == "i8":
            out += [
                *[lambda: f"np.arange({k()})"] * 3,
                lambda: f"np.arange({self.pick((0, 1, -2))}, {k()})",
                lambda: f"np.arange({E('int')} % 3, {k()}, {self.pick((1, 2, -1))})",
                lambda: f"np.bincount({E(t)} % 4)",
            ]
            lists = [n for n, v in self.env.items() if v.type == Lst("int")]
            if lists:
                out += [lambda: f"np.array({self.pick(lists)}, np.int64)"]
            if names := self.one_axis("f8", "i8", "f4", "b1"):
                y, of = self.pick(names)
                out += [
                    lambda: f"np.flatnonzero({self.mask(y, of, d)})",
                    lambda: f"np.{self.pick(('nonzero', 'where'))}({self.mask(y, of, d)})[0]",
                    lambda: f"np.argwhere({self.mask(y, of, d)})[:, 0]",
                    lambda: f"np.argsort({y}, kind='stable')",
                    lambda: f"np.cumsum({self.mask(y, of, d)})",
                    lambda: f"np.unique({y}, return_{self.pick(('index', 'inverse', 'counts'))}=True)[1]",
                ]
        return out

    def open_computed(self, t: Open, d: int) -> list:
        """Arrays with one axis, computed number by number or over the axis."""
        E, m = self.inner(d), self.dims[1]
        names = self.one_axis(t.dtype)
        x = self.pick(names)[0] if names else ""
        if t.dtype == "b1":
            of = self.pick(("f8", "i8"))
            out = [
                lambda: f"({E(Open(of))} {self.pick(('<', '>=', '!='))} {E(of)})",
                lambda: f"(~{E(t)})",
                lambda: f"np.isfinite({E(Open('f8'))})",
                lambda: f"({E(Open(of, (m,)))} > {E(of)}).{self.pick(('any', 'all'))}(axis=1)",
            ]
            return [*out, lambda: f"({x} {self.pick('&|^')} ~{x}[::-1])"] if x else out
        weak = "float" if t.dtype in FLOATS else "int"
        scalar = lambda: E(self.pick((weak, weak, t.dtype)))  # noqa: E731
        out = [
            *[lambda: f"({E(t)} {self.pick('+-*')} {scalar()})"] * 4,
            lambda: f"({scalar()} {self.pick('+-*')} {E(t)})",
            lambda: f"({E(t)} {self.pick(('//', '%'))} {scalar()})",
            lambda: f"np.{self.pick(('maximum', 'minimum'))}({E(t)}, {scalar()})",
            lambda: f"{self.pick(('abs', '-', 'np.square', 'np.negative'))}({E(t)})",
            lambda: f"np.{self.pick(('cumsum', 'diff', 'sort', 'sign'))}({E(t)})",
            lambda: f"np.clip({E(t)}, 0, 2)",
            lambda: f"({E(t)} {self.pick('+-*')} {E(t)})" if self.draw(4) == 0 else f"({E(t)} + {E(t.dtype)})",
            lambda: f"{E(Open(t.dtype, (m,)))}.sum(axis=1)",
            lambda: f"np.{self.pick(('max', 'min'))}({E(Open(t.dtype, (m,)))}, axis={self.pick((1, -1))})",
            lambda: f"np.pad({E(t)}, {self.pick((1, '(0, 2)'))})[:{MOST}]",
        ]
        if x:
            out += [
                *[
                    lambda: (
                        f"({x} {self.pick('+-*')} {self.pick((x, x + '[::-1]', f'np.arange(len({x}))', E(t.dtype)))})"
                    )
                ]
                * 4,
                lambda: f"({x}[1:] {self.pick('+-*')} {x}[:-1])",
                lambda: f"({x}[:, None] {self.pick('+-*')} {x}).sum(axis={self.pick((0, 1))})",
                lambda: f"np.outer({x}, {E(t)}).{self.pick(('sum(axis=1)', 'T.sum(axis=0)', 'ravel()'))}[:{MOST}]",
            ]
        if t.dtype in FLOATS:
            out += [
                lambda: f"({E(t)} / {scalar()})",
                lambda: f"np.{self.pick(('floor', 'sqrt', 'rint', 'trunc'))}({E(t)})",
                lambda: f"({E(Open(t.dtype, (m,)))} @ {E(Arr(t.dtype, (m,)))})",
            ]
            if self.smooth:
                out += [lambda: f"np.{self.pick(('exp', 'sin', 'tanh'))}({E(t)})"] * 2
        return out

    def open_rows(self, t: Open, d: int) -> list:
        """Arrays with two axes, the first of any size."""
        E, k, m = self.inner(d), (lambda: self.length(d)), t.rest[0]
        out = [
            lambda: f"np.{self.pick(('zeros', 'ones'))}(({k()}, {m}){self.dtype_argument(t.dtype)})",
            lambda: f"{E(Arr(t.dtype, (self.dims[0], m)))}[:{k()}]",
            lambda: f"{E(Arr(t.dtype, (self.dims[0], m)))}[{k()}:]",
            lambda: f"np.concatenate([{E(t)}, {E(t)}])[:{MOST}]",
            lambda: f"np.concatenate([{E(t)}, {E(Arr(t.dtype, (m,)))}[None]])[:{MOST}]",
            lambda: f"np.repeat({E(t)}, {self.pick((1, 2))}, axis=0)[:{MOST}]",
            lambda: f"np.broadcast_to({E(Arr(t.dtype, (m,)))}, ({k()}, {m}))",
            lambda: f"np.tile({E(Arr(t.dtype, (m,)))}, ({k()}, 1))",
            lambda: f"{E(Open(t.dtype))}.repeat({m}).reshape(-1, {m})",
            lambda: f"np.full(({k()}, {m}), {E(t.dtype)})",
        ]
        names = self.open_names(t.dtype, rest=t.rest)
        if names:
            x = self.pick(names)
            out += [
                lambda: f"{x}[{self.mask(x + '[:, 0]', t.dtype, d)}]",
                lambda: self.part(x, d),
                lambda: f"{x}[np.argsort({x}[:, -1], kind='stable')]",
                lambda: f"{x}[:, ::-1]",
            ]
        if t.dtype != "b1":
            out += [
                *[lambda: f"({E(t)} {self.pick('+-*')} {E(Arr(t.dtype, (m,)))})"] * 2,
                lambda: f"({E(t)} {self.pick('+-*')} {E(t.dtype)})",
                lambda: f"np.outer({E(Open(t.dtype))}, {E(Arr(t.dtype, (m,)))})",
                lambda: f"({E(Open(t.dtype))}[:, None] {self.pick('+-')} {E(Arr(t.dtype, (m,)))})",
                lambda: f"-({E(t)})",
            ]
        if t.dtype == "i8":
            out += [lambda: f"np.arange({k()} * {m}).reshape({self.pick((-1, f'({k()})'))}, {m})"]
        if t.dtype in FLOATS:
            out += [lambda: f"({E(t)} @ {E(Arr(t.dtype, (m, m)))})"]
        return out

    def sized(self, t, d: int) -> list:
        """Producers of numbers and of arrays of known sizes that read arrays of any size."""
        if isinstance(t, Arr):
            rows = self.open_names(t.dtype, rest=t.shape) if len(t.shape) == 1 else []
            if not rows:
                return []
            x = self.pick(rows)
            out = [lambda: f"{x}[{self.list_index(x, d)}]"]
            return out if t.dtype == "b1" else [*out, lambda: f"{x}.sum(axis=0)", lambda: f"np.sum({x}, 0)"]
        names = self.open_names()
        if not names:
            return []
        x = self.pick(names)
        of = self.env[x].type.dtype
        out = []
        if t == "int":
            out += [
                *[lambda: f"{self.pick((f'len({x})', f'{x}.size', f'{x}.shape[0]', f'np.size({x})'))}"] * 3,
                lambda: f"int(np.count_nonzero({x}))",
                lambda: f"int(np.{self.pick(('argmax', 'argmin'))}({x}))" if of != "b1" else f"int({x}.sum())",
            ]
        if t == "bool":
            out += [
                lambda: f"(len({x}) {self.pick(('>', '==', '<='))} {self.pick((0, 1, 2, 3))})",
                lambda: f"bool(np.{self.pick(('any', 'all'))}({x}))",
                lambda: f"np.array_equal({x}, {self.pick((x + '[::-1]', self.open_atom(self.env[x].type, d)))})",
                lambda: f"({x}.shape == {self.pick(('(2,)', '(0,)'))})",
            ]
        if t == of:
            out += [lambda: f"{x}[{self.list_index(x, d)}]"] * 2
            if t != "b1":
                out += [
                    *[lambda: self.pick((f"np.sum({x})", f"{x}.sum()"))] * (2 if t in ("f8", "i8", "f4") else 0),
                    lambda: f"{x}.{self.pick(('max', 'min'))}()",
                    lambda: f"np.{self.pick(('max', 'min'))}({x}, initial={self.pick((0, 2))})",
                ]
            if t in FLOATS:
                out += [lambda: f"np.mean({x})", lambda: f"({x} @ {x})", lambda: f"np.dot({x}, {x}[::-1])"]
        if t == "float" and of == "f8":
            out += [lambda: f"float({x}.sum())", lambda: f"float({x}[{self.list_index(x, d)}])"]
        return out

    # Statements.

    def sizes(self, indent: int) -> None:
        """One of the statements about such arrays."""
        if not self.open_names() or self.draw(4) == 0:
            return self.pick((self.new_open, self.grown, self.filled_open))(indent)
        return self.pick((
            self.changed_open, self.changed_open, self.shrunk, self.over_open, self.sizing_function, self.sizing_function,
            self.open_branches, self.kept_open, self.row_loop, self.sized_recursion,
        ))(indent)  # fmt: skip

    def new_open(self, indent: int) -> None:
        """`x = ...`."""
        name, t = self.fresh("s"), self.open_type()
        own = self.draw(3) == 0
        text = self.e(t)
        self.line(indent, f"{name} = np.array({text})" if own else f"{name} = {text}")
        self.bind(name, t, own=own)

    def grown(self, indent: int) -> None:
        """An array that grows in a loop, under conditions, from what it is."""
        name, i = self.fresh("s"), self.fresh("j")
        t = Open(self.pick(("f8", "f8", "i8")), (self.dims[1],) if self.draw(4) == 0 else ())
        start = f"np.zeros({(0, *t.rest) if t.rest else 0}{self.dtype_argument(t.dtype)})"
        self.line(indent, f"{name} = {self.pick((start, self.e(t)))}")
        self.line(indent, f"for {i} in {self.range_text()}:")
        with self.bound({i: "int"}):
            self.env[name] = self.variable(t)
            inner = indent + 1
            self.fuel = 8
            if self.draw(2):
                self.line(inner, f"if {self.condition()}:")
                self.line(
                    inner + 1,
                    self.pick(("continue", "break", f"{name} = {name}[1:]", f"{name} = {self.e(t)}[:{MOST}]")),
                )
            self.fuel = 8
            one = f"{self.e(Arr(t.dtype, t.rest), 2)}[None]" if t.rest else f"np.array([{self.e(t.dtype, 2)}])"
            self.line(inner, f"{name} = " + self.pick((
                f"np.concatenate([{name}, {one}])",
                f"np.concatenate([{one}, {name} {self.pick('+-*')} {self.e(t.dtype, 2)}])",
                f"np.concatenate([{name}, {self.e(t, 1)}])[:{MOST}]",
                f"np.append({name}, {self.e(t.dtype, 2)})" if not t.rest else f"np.concatenate([{one}, {name}])",
            )))  # fmt: skip
        self.bind(name, t)

    def filled_open(self, indent: int) -> None:
        """An array filled number by number."""
        name, i, n = self.fresh("s"), self.fresh("j"), self.fresh("n")
        t = Open(self.pick(("f8", "f8", "i8", "f4")))
        self.line(indent, f"{n} = {self.length(2)}")
        self.line(indent, f"{name} = np.{self.pick(('zeros', 'ones'))}({n}{self.dtype_argument(t.dtype)})")
        self.line(indent, f"for {i} in range({self.pick((n, n, f'len({name})', f'1, {n}', f'{n} - 1'))}):")
        with self.bound({i: "int", n: "int"}):
            self.fuel = 8
            value = self.e(t.dtype, 2)
            before = self.pick(("", f"{name}[{i} - 1] {self.pick('+-')} ", f"np.sum({name}[:{i}]) + "))
            if self.draw(3) == 0:
                self.line(indent + 1, f"if {self.condition()}:")
                self.line(indent + 2, self.pick(("continue", "break")))
            self.line(indent + 1, f"{name}[{i}] {self.pick(('=', '+='))} {before}{value}")
        self.bind(n, "int")
        self.bind(name, t, own=True)

    def changed_open(self, indent: int) -> None:
        """Changes in place."""
        mine = [n for n in self.open_names(rest=None) if self.env[n].own and not self.env[n].fixed]
        if not mine:
            return self.filled_open(indent)
        name = self.pick(mine)
        t = self.env[name].type
        value = {"f": "float", "i": "int", "b": "bool"}[t.dtype[0]]
        op = self.pick(("=", "=", "+=", "-=", "*=")) if t.dtype != "b1" else "="
        small = f"{self.e('int', 2)} % 9" if value == "int" else self.e(value, 2)
        column = f"{name}[:, 0]" if t.rest else name
        self.fuel = 8
        return self.line(indent, self.pick((
            f"{name}[{self.list_index(name, 2)}] {op} {small}",
            f"{self.part(name, 3)} {op} {small}",
            f"{self.part(name, 3)} {op} {small}",
            f"{name}[{self.mask(column, t.dtype, 2)}] {self.pick(('=', op))} {small}",
            f"{name} {op if op != '=' else '+='} {small}" if t.dtype != "b1" else f"{name} |= {name}[::-1]",
            f"{name}[::-1] {op} {name}.copy()",
        )))  # fmt: skip

    def shrunk(self, indent: int) -> None:
        """A loop that goes on while there is something left."""
        x, dtype = self.pick(self.one_axis("f8", "i8", "f4", "b1"))
        name, total = self.fresh("s"), self.fresh("x")
        self.line(indent, f"{name}, {total} = {x}, 0")
        self.line(indent, f"while {self.pick((f'len({name}) > 0', f'{name}.size > 1', f'{name}.size'))}:")
        self.line(
            indent + 1, f"{total} += {self.pick((f'len({name})', f'int({name}[0] != 1)', f'{name}.shape[0] * 2'))}"
        )
        if dtype == "b1":
            next_ = f"{name}[1:]"
        else:
            next_ = self.pick((
                f"{name}[1:]", f"{name}[1:] {self.pick('+-')} {name}[:-1]", f"{name}[{name} > {name}[0]]",
                f"{name}[: len({name}) // 2]",
                f"np.unique({name})[1:]",
                f"np.sort({name})[:-1]",
            ))  # fmt: skip
        if self.draw(3) == 0:
            with self.bound({name: Open(dtype), total: "int"}):
                self.fuel = 6
                self.line(indent + 1, f"if {self.condition()}:")
                self.line(indent + 2, "break")
        self.line(indent + 1, f"{name} = {next_}")
        self.bind(name, Open(dtype))
        self.bind(total, "int")

    def over_open(self, indent: int) -> None:
        """A loop over an array."""
        name = self.pick(self.open_names(rest=None))
        t, before = self.env[name].type, dict(self.env)
        item, i = self.fresh("j"), self.fresh("j")
        of = Arr(t.dtype, t.rest) if t.rest else t.dtype
        head, bound = self.pick((
            (f"{item} in {name}", {item: of}),
            (f"{i}, {item} in enumerate({name})", {i: "int", item: of}),
            (f"{i} in range(len({name}))", {i: "int"}),
            (f"{item}, {i} in zip({name}, {self.range_text()})", {item: of, i: "int"}),
            (f"{item} in {self.part(name, 3)}", {item: of}),
        ))  # fmt: skip
        self.line(indent, f"for {head}:")
        self.env[name] = self.variable(t, fixed=True)
        for n, kind in bound.items():
            self.env[n] = self.variable(kind, fixed=True)
        self.loops += 1
        self.block(indent + 1)
        self.loops -= 1
        self.env = {n: v for n, v in self.env.items() if n in before}
        self.env[name] = before[name]

    def row_loop(self, indent: int) -> None:
        """Prefixes and windows of an array, reduced in a loop."""
        x, dtype = self.pick(self.one_axis("f8", "i8", "f4", "b1"))
        i, total = self.fresh("j"), self.fresh("x")
        self.line(indent, f"{total} = {'0' if dtype != 'f8' else '0.0'}")
        self.line(indent, f"for {i} in range(len({x}) {self.pick(('', '+ 1', '- 1'))}):")
        piece = self.pick((f"{x}[:{i}]", f"{x}[{i}:]", f"{x}[{i} : {i} + 2]", f"{x}[max({i} - 1, 0) : {i} + 1]"))
        convert = {"f8": "float", "i8": "int", "f4": "int", "b1": "int"}[dtype]
        what = f"len({piece})" if dtype == "f4" else f"{convert}({piece}.sum())"
        self.line(indent + 1, f"{total} = {total} {self.pick('+-')} {what}")
        self.bind(total, "float" if dtype == "f8" else "int")

    def open_branches(self, indent: int) -> None:
        """An array that each branch makes of another size."""
        name, t = self.fresh("s"), self.open_type()
        if self.draw(3) == 0:
            self.line(indent, f"{name} = {self.e(t)} if {self.e('bool')} else {self.e(t)}")
        else:
            self.line(indent, f"if {self.condition()}:")
            self.line(indent + 1, f"{name} = {self.e(t)}")
            self.line(indent, "else:")
            self.fuel = 8
            self.line(indent + 1, f"{name} = {self.e(t)}")
        self.bind(name, t)

    def kept_open(self, indent: int) -> None:
        """Arrays in a tuple, in a dict, or captured by a function."""
        name, t = self.fresh("s"), self.open_type()
        kind = self.draw(3)
        if kind == 0:
            self.line(indent, f"{name} = ({self.e(t)}, {self.e('int')})")
            return self.bind(name, Tup((t, "int")))
        a, z = self.pick(self.open_names()), self.fresh("z")
        of = self.env[a].type
        if kind == 1:
            back, other = self.fresh("s"), self.fresh("s")
            self.line(indent, f"{name} = {{'a': {a}, 'b': {self.e(t)}}}")
            self.line(indent, f"{back}, {other} = {name}['a'], {name}['b']")
            self.bind(other, t)
            return self.bind(back, of)
        with self.closure({z: "int", a: of}):
            self.fuel = 8
            body = self.e(of, 1)
        f = self.fresh("f")
        self.line(indent, f"{f} = lambda {z}: {self.pick((body, f'{a}[:{z} % 4]', f'{a}[{z} % 3:]'))}")
        return self.bind(f, Fn(("int",), of))

    def sizing_function(self, indent: int) -> None:
        """An inner function that takes such an array and returns another."""
        f, a, k = (self.fresh(c) for c in "fak")
        t = self.env[self.pick(self.open_names())].type
        result = self.pick((t, t, self.open_type(), "int", t.dtype))
        self.line(indent, f"def {f}({a}, {k}):")
        with self.closure({a: t, k: "int"}):
            self.fuel = 8
            if self.draw(2):
                self.line(indent + 1, f"if {self.pick((f'len({a}) < 2', f'{k} > 1', self.e('bool', 2)))}:")
                self.line(indent + 2, f"return {self.e(result, 2)}")
            self.fuel = 10
            self.line(indent + 1, f"return {self.e(result, 1)}")
        cut = f"[:{MOST}]" if isinstance(result, Open) else ""
        name = self.fresh("s" if cut else "x")
        self.fuel = 8
        self.line(indent, f"{name} = {f}({self.e(t, 2)}, {self.e('int', 2)} % 4){cut}")
        self.bind(name, result)
        if self.draw(2):
            self.bind(f, Fn((t, "int"), result))

    def sized_recursion(self, indent: int) -> None:
        """A function that calls itself on a part, or grows an array on the way back."""
        f, a, k, name = (self.fresh(c) for c in "faks")
        dtype = self.pick(("f8", "i8"))
        t = Open(dtype)
        self.line(indent, f"def {f}({a}, {k}):")
        with self.closure({a: t, k: "int"}):
            self.fuel = 7
            self.line(indent + 1, f"if {k} <= 0 or len({a}) {self.pick(('< 2', '== 0'))}:")
            self.line(indent + 2, f"return {self.pick((a, self.e(t, 2), f'{a} * 2', f'{a}[:0]'))}")
            kind = self.draw(4)
            if kind == 0:
                again = f"{f}({a}[1:], {k} - 1)"
                self.line(indent + 1, f"return np.concatenate([{again}, np.array([{self.e(dtype, 2)}])])")
            elif kind == 1:
                self.line(indent + 1, f"m = len({a}) // 2")
                self.line(indent + 1, f"y = {f}({a}[:m], {k} - 1)")
                self.line(indent + 1, f"return np.concatenate([y, {f}({a}[m:], {k} - 2)])")
            elif kind == 2:
                self.line(indent + 1, f"p, rest = {a}[0], {a}[1:]")
                again = f"{f}(rest[rest < p], {k} - 1), np.array([p]), {f}(rest[rest >= p], {k} - 1)"
                self.line(indent + 1, f"return np.concatenate([{again}])")
            else:
                self.line(indent + 1, f"y = {f}({a}[{a} > {self.e(dtype, 3)}], {k} - 1)")
                with self.bound({"y": t}):
                    self.line(indent + 1, f"return {self.e(t, 1)}[:{MOST}]")
        self.fuel = 6
        self.line(indent, f"{name} = {f}({self.e(t, 2)}, {self.e('int', 2)} % 4)")
        self.bind(name, t)
