"""Expressions whose value is a number: Python's and NumPy's scalars."""

from __future__ import annotations

from .types import CODES, FLOATS, INTS, Arr, Fn, Rec, Tup, constructor

INT_LITERALS = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "5",
    "7",
    "10",
    "64",
    "255",
    "2**31",
    "(2**53 + 1)",
    "2**62",
    "9223372036854775807",
    "(-9223372036854775808)",
)
FLOAT_LITERALS = (
    *("0.0", "1.0", "0.5", "-2.0", "3.75", "-0.0", "1e-3", "0.1", "2.5", "-1.5"),
    *("1e308", "5e-324", "1e16", "math.inf", "-math.inf", "math.nan", "2.0**53"),
)
ODD = 6  # every so manieth literal is an edge


class Numbers:
    """Producers of scalar expressions; mixed into the writer."""

    def literal_int(self) -> str:
        return self.pick(INT_LITERALS if self.draw(ODD) == 0 else INT_LITERALS[:8])

    def literal_float(self) -> str:
        return self.pick(FLOAT_LITERALS if self.draw(ODD) == 0 else FLOAT_LITERALS[:9])

    def literal(self, t) -> str:
        """A literal of a scalar type."""
        if t == "int":
            return self.literal_int()
        if t == "float":
            return self.literal_float()
        if t == "bool":
            return self.pick(("True", "False"))
        small = {"u1": ("0", "1", "7", "200"), "b1": ("True", "False")}.get(t)
        if small is None:
            small = ("0", "1", "-3", "7", "2**30") if t in INTS else None
        return f"{constructor(t)}({self.pick(small) if small else self.literal_float()})"

    # Where numbers come from.

    def some_array(self, dtypes, depth: int, ranks=(1, 2), empty: bool = False) -> tuple[str, Arr]:
        """An array expression and its type, a variable where there is one."""
        have = [
            (n, v.type)
            for n, v in self.env.items()
            if isinstance(v.type, Arr)
            and v.type.dtype in dtypes
            and len(v.type.shape) in ranks
            and (empty or 0 not in v.type.shape)
        ]
        if have and self.draw(4):
            return self.pick(have)
        t = Arr(self.pick(dtypes), self.shape(self.pick(ranks), empty))
        return self.e(t, depth + 1), t

    def index(self, n: int, d: int) -> str:
        """An index into an axis of size n: mostly inside."""
        kind = self.draw(10)
        if kind < 5 and n:
            return str(self.draw(2 * n) - n)
        if kind < 9 and n:
            return f"{self.e('int', d + 1)} % {n}"
        return self.e("int", d + 1)

    def element(self, dtypes, d: int) -> str:
        """One element of an array."""
        x, t = self.some_array(dtypes, d)
        return f"{x}[{', '.join(self.index(n, d) for n in t.shape)}]"

    def reduction(self, dtypes, names, d: int) -> str:
        """A reduction of a whole array."""
        name = self.pick(names)
        x, _ = self.some_array(dtypes, d, empty=name in ("sum", "prod", "any", "all"))
        return f"np.{name}({x})" if self.draw(2) else f"{x}.{name}()"

    def structural(self, t, d: int) -> list:
        """Items of tuples, fields of records, results of calls: whatever in scope has the type."""
        found = []
        for n, v in self.env.items():
            if isinstance(v.type, Tup):
                found += [
                    f"{n}[{i if self.draw(3) else i - len(v.type.elems)}]" for i, e in enumerate(v.type.elems) if e == t
                ]
                if v.type.elems and set(v.type.elems) == {t} and self.draw(3) == 0:
                    found.append(f"{n}[{self.index(len(v.type.elems), d)}]")
            elif isinstance(v.type, Rec):
                found += self.fields(n, v.type, t)
            elif hasattr(v.type, "items"):
                found += [f"{n}[{k!r}]" for k, e in v.type.items if e == t]
        return found

    def fields(self, n: str, r: Rec, t) -> list[str]:
        """Fields and methods of a record that have a type."""
        from .records import FIELDS

        found = [f"{n}.{f}" for f, e in FIELDS[r.name] if e == t]
        if r.name == "Point" and t == "float":
            found += [f"{n}.norm2()", f"{n}.total"]
        if r.name == "Box" and t == "float":
            found += [f"{n}.low.x", f"{n}.high.total"]
        if r.name == "Grade":
            found += {"float": [f"{n}.score", f"{n}.best"], "int": [f"len({n})", f"{n}[0]"]}.get(t, [])
        if r.name == "Span" and t == "int":
            found += [f"{n}.length", f"{n}.within({self.literal('int')})", f"{n}[{self.pick((0, 1, -1))}]", f"len({n})"]
        return found

    def calls(self, t, d: int) -> list:
        """Calls of functions in scope that return a type."""
        return [
            lambda n=n, v=v: self.call(n, v.type, d)
            for n, v in self.env.items()
            if isinstance(v.type, Fn) and v.type.result == t
        ]

    # Producers by type.

    def make_int(self, d: int) -> list:
        E = self.inner(d)
        return [
            *[lambda: f"({E('int')} {self.pick('+-*')} {E('int')})"] * 4,
            lambda: f"({E('int')} {self.pick(('//', '%'))} {E('int')})",
            lambda: f"({E('int')} {self.pick(('//', '%'))} {self.pick((2, 3, 7, -3, 10))})",
            lambda: f"(-{E('int')})",
            lambda: f"(~{E(self.pick(('int', 'int', 'bool')))})",
            lambda: f"(+{E(self.pick(('int', 'bool')))})",
            lambda: f"abs({E('int')})",
            lambda: f"{self.pick(('min', 'max'))}({', '.join(E('int') for _ in range(2 + self.draw(2)))})",
            lambda: f"({E('int')} {self.pick('&|^')} {E('int')})",
            lambda: f"({E('int')} << {self.pick((1, 3, 31, 62))})",
            lambda: f"({E('int')} << ({E('int')} % 8))",
            lambda: f"({E('int')} >> {self.pick((0, 1, 5, 63, 64))})",
            lambda: f"({E('int')} >> ({E('int')} & 15))",
            lambda: f"({E('int')} ** {self.pick((0, 1, 2, 3))})",
            lambda: f"({self.pick((2, 3, -2, 10))} ** ({E('int')} % {self.pick((4, 8, 20))}))",
            lambda: f"int({E(self.pick(('float', 'bool', 'f8', 'f4', 'i8', 'i4', 'u1', 'b1')))})",
            lambda: f"{self.pick(('round', 'math.floor', 'math.ceil', 'math.trunc'))}({E('float')})",
            lambda: f"({E('bool')} {self.pick('+-*')} {E(self.pick(('int', 'bool')))})",
            lambda: f"({E('int')} {self.pick(('and', 'or'))} {E('int')})",
            lambda: f"divmod({E('int')}, {E('int')})[{self.draw(2)}]",
            lambda: f"sum([{', '.join(E('int') for _ in range(1 + self.draw(3)))}])",
            lambda: self.comprehension("int", d),
            lambda: f"{self.some_array(('i8', 'i4', 'u1'), d)[0]}.sum().item()",
            lambda: (
                f"int(np.{self.pick(('argmax', 'argmin', 'count_nonzero'))}({self.some_array(('f8', 'f4', 'i8', 'b1'), d)[0]}))"
            ),
            lambda: (
                f"{self.some_array(('f8', 'i8'), d, empty=True)[0]}.{self.pick(('size', 'ndim', 'shape[0]', 'shape[-1]'))}"
            ),
            lambda: f"len({self.some_array(('f8', 'i8', 'f4'), d, empty=True)[0]})",
            lambda: f"len({E(Tup(('int', 'float')))})",
            lambda: f"pow({E('int')}, {self.pick((2, 3))})",
            lambda: f"int({E('f8')} {self.pick(('<', '>='))} {E('float')})",
            lambda: f"(({E('int')}, {E('int')}) + ({E('int')},) * 2)[{self.draw(4)}]",
            lambda: f"len(({E('int')}, {E('float')}, 1)[{self.pick(('1:', '::-1', ':2', '-1:'))}])",
            lambda: f"sum({self.comprehended('int', d)})",
            lambda: f"int({self.pick(('max', 'min', 'sum'))}({self.some_array(('i8',), d, ranks=(1,))[0]}))",
            lambda: (
                f"int(isinstance({E(self.pick(('int', 'bool', 'f8')))}, {self.pick(('int', 'float', '(int, bool)'))}))"
            ),
        ]

    def make_float(self, d: int) -> list:
        E = self.inner(d)
        return [
            *[lambda: f"({E('float')} {self.pick('+-*/')} {E('float')})"] * 5,
            lambda: f"({E('float')} {self.pick(('//', '%'))} {E('float')})",
            lambda: f"({E('float')} {self.pick(('+', '-', '*', '/', '//', '%'))} {E(self.pick(('int', 'bool')))})",
            lambda: f"({E('int')} {self.pick(('+', '-', '*', '/', '//', '%'))} {E('float')})",
            lambda: f"({E('int')} / {E('int')})",
            lambda: f"(-{E('float')})",
            lambda: f"(+{E('float')})",
            lambda: f"abs({E('float')})",
            lambda: f"float({E(self.pick(('int', 'bool', 'f8', 'f4', 'i8', 'u1', 'b1')))})",
            lambda: f"{self.pick(('min', 'max'))}({', '.join(E('float') for _ in range(2 + self.draw(2)))})",
            lambda: f"({E('float')} ** {self.pick((0, 1, 2, 3, -1, -2))})",
            lambda: (
                f"({E('int')} ** {self.pick((-1, -2, 0.5 if self.smooth else -3))})"
                if not self.smooth
                else f"abs({E('float')}) ** 0.5"
            ),
            lambda: f"({E('float')} {self.pick(('and', 'or'))} {E('float')})",
            lambda: f"divmod({E('float')}, {E('float')})[{self.draw(2)}]",
            lambda: f"math.{self.pick(('fabs', 'sqrt'))}(abs({E('float')}))",
            lambda: f"math.{self.pick(('fabs', 'sqrt'))}({E('float')})",
            lambda: f"math.copysign({E('float')}, {E('float')})",
            lambda: f"math.fmod({E('float')}, {E('float')})",
            lambda: f"sum([{', '.join(E('float') for _ in range(1 + self.draw(3)))}], {self.literal('float')})",
            lambda: self.comprehension("float", d),
            lambda: f"{self.some_array(FLOATS, d)[0]}.max().item()",
            lambda: f"{self.element(FLOATS, d)}.item()",
            *(
                [
                    lambda: (
                        f"math.{self.pick(('sin', 'cos', 'exp', 'tanh', 'atan', 'erf', 'log1p', 'expm1', 'sinh'))}({E('float')})"
                    )
                ]
                * 4
                if self.smooth
                else []
            ),
            *([lambda: f"math.{self.pick(('log', 'log2', 'log10'))}(abs({E('float')}))"] if self.smooth else []),
            *(
                [lambda: f"math.{self.pick(('atan2', 'hypot', 'pow'))}({E('float')}, {E('float')})"]
                if self.smooth
                else []
            ),
        ]

    def make_bool(self, d: int) -> list:
        E = self.inner(d)
        order = ("<", "<=", ">", ">=", "==", "!=")

        def same(kinds):
            k = self.pick(kinds)
            return f"{E(k)} {self.pick(order)} {E(k)}"

        return [
            *[lambda: f"({same(('int', 'float', 'int', 'float', 'bool'))})"] * 4,
            lambda: f"bool({same(tuple(CODES))})",
            lambda: f"({E('float')} {self.pick(order)} {E('int')})",
            lambda: f"({E('int')} {self.pick(order)} {E('float')})",
            lambda: f"({E('int')} {self.pick(order)} {E('int')} {self.pick(order)} {E('int')})",
            lambda: f"({E('float')} < {E('float')} <= {E('float')} {self.pick(('<', '!='))} {E('int')})",
            lambda: f"bool({E('i8')} {self.pick(order)} {E(self.pick(('int', 'float', 'f8', 'i4', 'u1')))})",
            lambda: f"({E('bool')} {self.pick(('and', 'or'))} {E('bool')})",
            lambda: f"({E('bool')} {self.pick('&|^')} {E('bool')})",
            lambda: f"(not {E(self.pick(('bool', 'int', 'float', 'f8', 'b1')))})",
            lambda: f"bool({E(self.pick(('int', 'float', 'f8', 'f4', 'i8', 'b1')))})",
            lambda: f"math.{self.pick(('isnan', 'isinf', 'isfinite'))}({E('float')})",
            lambda: f"({E('int')} {self.pick(('in', 'not in'))} ({E('int')}, {E('int')}, 1))",
            lambda: f"({E('float')} in ({E('float')}, 0.0))",
            lambda: f"(({E('int')}, {E('float')}) {self.pick(order)} ({E('int')}, {E('float')}))",
            lambda: f"{self.pick(('any', 'all'))}({self.comprehended('bool', d)})",
            lambda: (
                f"bool({self.pick(('any', 'all'))}({self.some_array(('b1', 'f8', 'i8'), d, ranks=(1,), empty=True)[0]}))"
            ),
            lambda: f"{self.pick(('any', 'all'))}([{E('bool')}, {E('bool')}])",
            lambda: f"({E(Tup(('int', 'float')))} {self.pick(('==', '!='))} {E(Tup(('int', 'float')))})",
            lambda: f"bool({self.pick(('np.any', 'np.all'))}({self.some_array(('b1', 'f8', 'i8'), d, empty=True)[0]}))",
            lambda: f"bool({self.element(('f8', 'i8', 'i4', 'b1'), d)} {self.pick(('==', '!='))} {E('int')})",
        ]

    def make_numpy_scalar(self, t: str, d: int) -> list:
        E = self.inner(d)
        out = [
            lambda: f"{constructor(t)}({E({'b1': 'bool'}.get(t, 'float' if t in FLOATS else 'int'))})",
            *[lambda: self.element((t,), d)] * 3,
        ]
        if t == "b1":
            k = self.pick(("f8", "f4", "i8", "i4"))
            return [
                *out,
                *[lambda: f"({E(k)} {self.pick(('<', '<=', '==', '!=', '>', '>='))} {E(k)})"] * 2,
                lambda: f"({E('b1')} {self.pick('&|^')} {E('b1')})",
                lambda: f"(~{E('b1')})",
                lambda: f"np.logical_{self.pick(('and', 'or', 'xor'))}({E('b1')}, {E('bool')})",
                lambda: f"np.{self.pick(('isnan', 'isfinite', 'isinf'))}({E('f8')})",
                lambda: self.reduction(("b1", "f8", "i8"), ("any", "all"), d),
            ]
        out += [
            *[lambda: f"({E(t)} {self.pick('+-*')} {E(t)})"] * 2,
            lambda: (
                f"({E(t)} {self.pick('+-*')} {E('int')})" if t != "u1" else f"({E(t)} {self.pick('+-*')} {E('u1')})"
            ),
            lambda: f"({E(t)} {self.pick(('//', '%'))} {E(t)})",
            lambda: f"abs({E(t)})",
            lambda: f"(-{E(t)})",
            lambda: f"np.{self.pick(('maximum', 'minimum'))}({E(t)}, {E(t)})",
            lambda: f"np.{self.pick(('abs', 'sign', 'square'))}({E(t)})",
            lambda: f"{E(self.pick(tuple(CODES)))}.astype({constructor(t)})",
            lambda: self.reduction((t,), ("max", "min"), d),
            lambda: f"{self.pick(('max', 'min', 'sum'))}({self.some_array((t,), d, ranks=(1,))[0]})",
            lambda: f"{self.pick(('tuple', 'list'))}({self.some_array((t,), d, ranks=(1,))[0]})[{self.pick((0, -1))}]",
            lambda: f"np.where({E('b1')}, {E(t)}, {E(t)})[()]",
        ]
        if t in FLOATS:
            out += [
                lambda: f"({E(t)} {self.pick('+-*/')} {E('float')})",
                lambda: f"({E('float')} {self.pick('+-*/')} {E(t)})",
                lambda: f"({E(t)} / {E(t)})",
                lambda: f"({E(t)} ** {self.pick((2, 3, 0, 1, -1))})",
                lambda: f"np.{self.pick(('floor', 'ceil', 'trunc', 'rint', 'sqrt'))}({E(t)})",
                lambda: self.reduction((t,), ("sum", "mean", "prod"), d),
                lambda: f"round({E(t)}, 0)" if self.draw(4) == 0 else f"np.copysign({E(t)}, {E(t)})",
            ]
            if self.smooth:
                out += [lambda: f"np.{self.pick(('exp', 'sin', 'tanh', 'log1p', 'cos', 'arctan'))}({E(t)})"] * 3
        if t == "f8":
            out += [
                lambda: f"({E('f4')} {self.pick('+-*/')} {E('f8')})",
                lambda: f"({E('i8')} {self.pick('+-*/')} {E(self.pick(('f8', 'float', 'f4')))})",
                lambda: f"({E('i8')} / {E(self.pick(('i8', 'int', 'i4')))})",
                lambda: self.reduction(("i8", "b1", "i4"), ("mean",), d),
                lambda: f"({E(Arr('f8', (self.dims[0],)))} @ {E(Arr('f8', (self.dims[0],)))})",
            ]
        if t in INTS:
            out += [
                lambda: f"({E(t)} {self.pick('&|^')} {E(t)})",
                lambda: f"(~{E(t)})",
                lambda: f"({E(t)} {self.pick(('<<', '>>'))} {self.pick((0, 1, 3))})",
                lambda: f"({E(t)} {self.pick(('<<', '>>'))} {E(t)})",
                lambda: f"({E(t)} {self.pick(('//', '%'))} {self.pick((2, 3, 0, 1))})",
                lambda: f"({E(t)} ** {self.pick((2, 3, 0))})",
            ]
        if t == "i8":
            out += [
                lambda: (
                    f"np.{self.pick(('argmax', 'argmin'))}({self.some_array(('f8', 'f4', 'i8', 'i4', 'b1'), d)[0]})"
                ),
                lambda: self.reduction(("i8", "i4", "b1"), ("sum", "prod"), d),
                lambda: f"({E('i4')} {self.pick('+-*')} {E('i8')})",
                lambda: f"({E('b1')} {self.pick('+*')} {E('i8')})",
            ]
        return out

    def comprehended(self, t: str, d: int) -> str:
        """A generator expression over a few items."""
        name = self.fresh("c")
        with self.bound({name: "int"}):
            return f"{self.e(t, d + 1)} for {name} in {self.pick(('range(3)', '(1, 2)', 'range(2, 0, -1)'))}"

    def comprehension(self, t: str, d: int) -> str:
        """A sum, maximum or minimum over a comprehension of known length."""
        name = self.fresh("c")
        source, kind = self.pick(
            (
                (f"range({self.pick((1, 2, 3))})", "int"),
                (f"({self.e(t, d + 1)}, {self.e(t, d + 1)})", t),
                (f"range({self.pick((3, 5))}, 0, -2)", "int"),
            )
        )
        with self.bound({name: kind}):
            body = self.e(t, d + 1)
            condition = f" if {name} > 0" if self.draw(5) == 0 and source.startswith("range(3") else ""
        if t == "float":
            return f"sum([{body} for {name} in {source}{condition}], 0.0)"
        return f"{self.pick(('sum', 'max', 'sum'))}([{body} for {name} in {source}])"
