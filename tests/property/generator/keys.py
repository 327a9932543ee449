"""Random keys: split, folded in, carried by loops, passed to functions, and what is drawn from them.

In CPython a draw is a call of its own, of a program that is kept for each shape, so there are few of them.
"""

from __future__ import annotations

from .types import KEY, Arr, Fn, Open


class Keys:
    """Producers and statements; mixed into the writer."""

    def key_literal(self) -> str:
        """A key of a seed."""
        return f"random.key({self.pick((0, 1, 7, -3, 2**40))})"

    def key_names(self) -> list[str]:
        """Variables that are keys."""
        return [n for n, v in self.env.items() if v.type == KEY]

    def make_key(self, d: int) -> list:
        """Producers of a key."""
        names = self.key_names()
        k = self.pick(names) if names else self.key_literal()
        return [
            lambda: k,
            *[lambda: f"random.fold_in({k}, {self.e(self.pick(('int', 'int', 'i8')), d + 1)})"] * 3,
            lambda: f"random.fold_in({k}, {self.draw(100)})",
            lambda: f"random.split({k})[{self.pick((0, 1, -1))}]",
            lambda: f"random.split({k}, 3)[{self.index(3, d)}]",
            lambda: f"random.key({self.e('int', d + 1)} % 1000)",
        ]

    def draw_shape(self, shape: tuple) -> str:
        """A shape as an argument."""
        return str(shape[0]) if len(shape) == 1 and self.draw(2) else str(shape)

    def drawn(self, t, d: int) -> list:
        """Producers of a number or an array that draw it."""
        K = lambda: self.e(KEY, d + 1)  # noqa: E731
        E = self.inner(d + 1)
        low, high = (lambda: self.pick(("-1.0", "0.0", E("float")))), (lambda: self.pick(("1.0", "2.5", E("float"))))
        if t == "float":
            return [
                lambda: f"float(random.{self.pick(('normal', 'uniform', 'exponential', 'gumbel'))}({K()}))",
                lambda: f"float(random.uniform({K()}, (), {low()}, {high()}))",
                lambda: f"float(random.normal({K()}, (3,))[{self.index(3, d)}])",
                lambda: f"float(random.truncated_normal({K()}, -1.0, 0.5))",
            ]
        if t == "int":
            return [
                lambda: f"int(random.randint({K()}, (), {self.pick((0, -3))}, {self.pick((1, 5, 2**40))}))",
                lambda: f"int(random.randint({K()}, (), 0, {E('int')} % 7))",
                lambda: f"int(random.categorical({K()}, np.array([0.1, 0.7, 0.0])))",
                lambda: f"int(random.choice({K()}, 5))",
            ]
        if t == "bool":
            return [
                lambda: f"bool(random.bernoulli({K()}, {self.pick(('0.5', '0.1', E('float')))}))",
                lambda: f"bool(random.uniform({K()}) < {E('float')})",
            ]
        if isinstance(t, Open) and not t.rest:
            size = lambda: f"({self.length(d)},)"  # noqa: E731
            out = []
            if names := self.open_names(t.dtype):
                x = self.pick(names)
                out += [lambda: f"random.permutation({K()}, {x})"]
            return {
                "f8": [
                    *out,
                    *[lambda: f"random.{self.pick(('normal', 'uniform', 'exponential'))}({K()}, {size()})"] * 2,
                    lambda: f"random.uniform({K()}, {size()}, {low()}, {high()})",
                ],
                "f4": [*out, lambda: f"random.{self.pick(('normal', 'exponential'))}({K()}, {size()}, np.float32)"],
                "i8": [
                    *out,
                    lambda: f"random.permutation({K()}, {self.length(d)})",
                    lambda: f"random.randint({K()}, {size()}, 0, 4)",
                ],
                "b1": [*out, lambda: f"random.bernoulli({K()}, 0.4, {size()})"],
            }.get(t.dtype, [])
        if not isinstance(t, Arr) or not t.shape:
            return []
        shape = lambda: self.draw_shape(t.shape)  # noqa: E731
        out = [lambda: f"random.permutation({K()}, {E(t)})"] if t.dtype in ("f8", "i8") and len(t.shape) == 1 else []
        return {
            "f8": [
                *out,
                *[lambda: f"random.{self.pick(('normal', 'uniform', 'exponential', 'gumbel'))}({K()}, {shape()})"] * 2,
                lambda: f"random.uniform({K()}, {shape()}, {low()}, {high()})",
            ],
            "f4": [lambda: f"random.{self.pick(('normal', 'exponential'))}({K()}, {shape()}, np.float32)"],
            "i8": [*out, lambda: f"random.randint({K()}, {shape()}, -2, {self.pick((3, 100))})"],
            "b1": [lambda: f"random.bernoulli({K()}, 0.3, {shape()})"],
        }.get(t.dtype, [])

    # Statements.

    def keys(self, indent: int) -> None:
        """One of the statements about keys."""
        names = self.key_names()
        if not names or self.draw(4) == 0:
            name = self.fresh("q")
            self.line(indent, f"{name} = {self.e(KEY)}")
            return self.bind(name, KEY)
        return self.pick((
            self.split_key, self.split_key, self.key_loop, self.key_loop, self.over_keys, self.rejection, self.drawing_function,
        ))(indent)  # fmt: skip

    def split_key(self, indent: int) -> None:
        """`a, b = split(key)`."""
        key = self.pick(self.key_names())
        names = [self.fresh("q") for _ in range(2 + self.draw(2))]
        self.line(indent, f"{', '.join(names)} = random.split({key}{f', {len(names)}' if len(names) > 2 else ''})")
        for n in names:
            self.bind(n, KEY)

    def key_loop(self, indent: int) -> None:
        """A loop that carries a key and draws in each iteration."""
        key, sub, i, total = (self.fresh(c) for c in "qqjx")
        t = self.pick(("float", "int"))
        self.line(indent, f"{key}, {total} = {self.e(KEY, 2)}, {self.literal(t)}")
        self.line(indent, f"for {i} in {self.range_text()}:")
        inner = indent + 1
        with self.bound({i: "int", key: KEY, total: t}):
            carried = self.draw(2)
            if carried:
                self.line(inner, f"{key}, {sub} = random.split({key})")
            else:
                self.line(inner, f"{sub} = random.fold_in({key}, {i})")
            self.env[sub] = self.variable(KEY, fixed=True)
            self.fuel = 8
            drawn = self.pick(self.drawn(t, 2))()
            if self.draw(2):
                self.line(inner, f"if {self.pick(self.drawn('bool', 2))()}:")
                self.line(inner + 1, self.pick(("continue", "break", f"{total} = {self.e(t, 2)}")))
            self.line(inner, f"{total} = {total} {self.pick('+-')} {drawn}")
        self.bind(key, KEY)
        self.bind(total, t)

    def over_keys(self, indent: int) -> None:
        """A loop over keys."""
        key, sub, x = self.pick(self.key_names()), self.fresh("q"), self.fresh("x")
        self.line(indent, f"{x} = 0.0")
        count = self.pick(("2", "3", self.length(3)))
        self.line(indent, f"for {sub} in random.split({key}, {count}):")
        with self.bound({sub: KEY, x: "float"}):
            self.fuel = 8
            self.line(indent + 1, f"{x} = {x} {self.pick('+-')} {self.pick(self.drawn('float', 2))()}")
        self.bind(x, "float")

    def rejection(self, indent: int) -> None:
        """A loop that draws until it has what it wants."""
        key, n, x = self.pick(self.key_names()), self.fresh("n"), self.fresh("x")
        self.line(indent, f"{n}, {x} = 0, {self.e('float', 2)}")
        self.line(
            indent, f"while {x} {self.pick(('<', '>'))} {self.pick(('0.5', '-0.25'))} and {n} < {self.pick((3, 6))}:"
        )
        self.line(indent + 1, f"{x} = float(random.{self.pick(('normal', 'uniform'))}(random.fold_in({key}, {n})))")
        self.line(indent + 1, f"{n} += 1")
        self.bind(n, "int")
        self.bind(x, "float")

    def drawing_function(self, indent: int) -> None:
        """A function of a key, which may call itself."""
        f, k, n, x = self.fresh("f"), self.fresh("q"), self.fresh("n"), self.fresh("x")
        t = self.pick(("float", "int", "float", Arr("f8", (self.dims[0],))))
        self.line(indent, f"def {f}({k}, {n}):")
        with self.closure({k: KEY, n: "int"}):
            self.fuel = 8
            body = self.pick(self.drawn(t, 2))()
            recursive = self.draw(2) > 0
            if recursive:
                self.line(indent + 1, f"if {n} <= 0{self.pick(('', f' or random.uniform({k}) < 0.3'))}:")
                self.line(indent + 2, f"return {body}")
                again = f"{f}(random.fold_in({k}, {n}), {n} - 1)"
                self.line(indent + 1, f"return {again} {self.pick('+-')} {self.e(t, 2)}")
            else:
                self.line(indent + 1, f"return {body}")
        self.fuel = 6
        self.line(indent, f"{x} = {f}({self.e(KEY, 2)}, {self.e('int', 2)} % 4)")
        self.bind(x, t)
        if not recursive:  # which could be called with any number
            self.bind(f, Fn((KEY, "int"), t))
