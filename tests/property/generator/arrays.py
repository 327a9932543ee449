"""Expressions whose value is an array of a known dtype and shape."""

from __future__ import annotations

from .types import FLOATS, INTS, Arr, constructor

LOWER = {
    "f8": ("f4", "i8", "i4", "b1", "u1"),
    "f4": ("b1", "u1"),
    "i8": ("i4", "b1", "u1"),
    "i4": ("b1", "u1"),
    "u1": ("b1",),
}
WEAK = {
    "f8": ("float", "int", "bool"),
    "f4": ("float", "int"),
    "i8": ("int", "bool"),
    "i4": ("int",),
    "u1": (),
    "b1": (),
}


class Arrays:
    """Producers of array expressions; mixed into the writer."""

    def shape(self, rank: int, empty: bool = True) -> tuple[int, ...]:
        """A shape of the program's own dimensions, now and then with an axis of 1 or 0."""
        dims = []
        for k in range(rank):
            odd = self.draw(14)
            dims.append(
                1
                if odd == 0
                else 0
                if odd == 1 and empty and self.empties
                else self.dims[(k + (self.draw(3) == 0)) % 2]
            )
        return tuple(dims)

    def array_literal(self, t: Arr) -> str:
        """An array made of constants."""
        n = t.shape[0] if t.shape else 1
        if t.shape and t.dtype in ("f8", "i8", "b1") and n and len(t.shape) == 1 and self.draw(2):
            kind = {"f8": "float", "i8": "int", "b1": "bool"}[t.dtype]
            items = [self.literal(kind) for _ in range(n)]
            if all(abs(eval(i, {"math": __import__("math")})) < 2**62 for i in items) or kind == "float":
                return f"np.array([{', '.join(items)}])"
        dtype = "" if t.dtype == "f8" and self.draw(2) else f", {constructor(t.dtype)}"
        kind = self.draw(4)
        if kind == 0 and len(t.shape) == 1 and t.dtype == "i8":
            return f"np.arange({n})"
        if kind == 1 and t.dtype in ("f8", "f4", "i8"):
            return f"np.full({t.shape}, {self.pick((2, 3, -1))}{dtype or ', np.float64'})"
        return f"np.{self.pick(('zeros', 'ones'))}({t.shape}{dtype})"

    def operand(self, t: Arr, d: int) -> str:
        """An operand that keeps an elementwise operation with a `t` of this dtype and shape."""
        kind = self.draw(10)
        if kind < 4:
            return self.e(t, d + 1)
        if kind == 4 and LOWER.get(t.dtype):
            return self.e(Arr(self.pick(LOWER[t.dtype]), t.shape), d + 1)
        if kind < 7 and WEAK[t.dtype]:
            return self.e(self.pick(WEAK[t.dtype]), d + 1)
        if kind == 7:
            return self.e(t.dtype, d + 1)
        if len(t.shape) == 2:
            return self.e(Arr(t.dtype, self.pick((t.shape[1:], (1, t.shape[1]), (t.shape[0], 1)))), d + 1)
        return self.e(t, d + 1)

    def make_array(self, t: Arr, d: int) -> list:
        """Producers of an array."""
        if t.shape == ():
            return [lambda: f"np.{self.pick(('array', 'asarray'))}({self.e(t.dtype, d + 1)})"]
        out = [*self.moved(t, d), *self.moved(t, d)[:3]]
        E = self.inner(d)
        if t.dtype == "b1":
            k = Arr(self.pick(("f8", "f4", "i8", "i4")), t.shape)
            return [
                *out,
                *[lambda: f"({E(k)} {self.pick(('<', '<=', '==', '!=', '>', '>='))} {self.operand(k, d)})"] * 6,
                lambda: f"({E(t)} {self.pick('&|^')} {E(t)})",
                lambda: f"(~{E(t)})",
                lambda: f"np.logical_{self.pick(('and', 'or', 'xor'))}({E(t)}, {E(t)})",
                lambda: f"np.logical_not({E(k)})",
                lambda: f"np.{self.pick(('isnan', 'isfinite', 'isinf'))}({E(Arr('f8', t.shape))})",
            ]
        arithmetic = [
            *[lambda: f"({E(t)} {self.pick('+-*')} {self.operand(t, d)})"] * 5,
            *[lambda: f"({self.operand(t, d)} {self.pick('+-*')} {E(t)})"] * 2,
            lambda: f"({E(t)} {self.pick(('//', '%'))} {self.operand(t, d)})",
            lambda: f"(-{E(t)})",
            lambda: f"abs({E(t)})",
            lambda: f"({E(t)} ** {self.pick((2, 3, 0, 1))})",
            lambda: f"np.{self.pick(('maximum', 'minimum'))}({E(t)}, {self.operand(t, d)})",
            lambda: f"np.where({E(Arr('b1', t.shape))}, {E(t)}, {self.operand(t, d)})",
            lambda: f"np.{self.pick(('sign', 'abs', 'square', 'negative'))}({E(t)})",
            lambda: f"np.{self.pick(('add', 'subtract', 'multiply'))}({E(t)}, {self.operand(t, d)})",
            lambda: f"np.clip({E(t)}, {self.pick((0, 1))}, {self.pick((2, 5))})",
        ]
        if t.dtype in FLOATS:
            arithmetic += [
                *[lambda: f"({E(t)} / {self.operand(t, d)})"] * 2,
                lambda: f"np.{self.pick(('floor', 'ceil', 'trunc', 'rint', 'sqrt', 'round'))}({E(t)})",
                lambda: f"({E(t)} ** {self.pick((-1, 0.5, -2))})",
                lambda: f"np.copysign({E(t)}, {E(t)})",
                *(
                    [lambda: f"np.{self.pick(('exp', 'sin', 'tanh', 'cos', 'log1p', 'arctan', 'expm1'))}({E(t)})"] * 4
                    if self.smooth
                    else []
                ),
            ]
        if t.dtype == "f8":
            arithmetic.append(lambda: f"({E(Arr('i8', t.shape))} / {self.operand(Arr('i8', t.shape), d)})")
        if t.dtype in INTS:
            arithmetic += [
                lambda: f"({E(t)} {self.pick('&|^')} {E(t)})",
                lambda: f"(~{E(t)})",
                lambda: f"({E(t)} {self.pick(('<<', '>>'))} {self.pick((0, 1, 3))})",
                lambda: f"({E(t)} {self.pick(('<<', '>>'))} {E(t)})",
            ]
        if t.dtype == "i8" and len(t.shape) == 1:
            wide = (*t.shape, self.dims[1])
            arithmetic += [
                lambda: (
                    f"np.{self.pick(('argmax', 'argmin', 'count_nonzero'))}({E(Arr(self.pick(('f8', 'i8')), wide))}, axis=1)"
                ),
                lambda: f"np.sum({E(Arr(self.pick(('i4', 'b1')), wide))}, axis={self.pick((1, -1))})",
            ]
        return [*out, *arithmetic]

    def moved(self, t: Arr, d: int) -> list:
        """Arrays of the same elements in another order, parts, conversions, sums over axes."""
        E = self.inner(d)
        others = tuple(k for k in ("f8", "f4", "i8", "i4", "b1") if k != t.dtype)
        out = [
            lambda: self.array_literal(t),
            lambda: f"{E(Arr(self.pick(others), t.shape))}.astype({constructor(t.dtype)})",
            lambda: (
                f"{E(t)}[{', '.join(self.pick((':', '::-1', '...')) if k == 0 else ':' for k in range(len(t.shape)))}]".replace(
                    "[..., :]", "[..., ::-1]"
                )
            ),
            lambda: f"np.{self.pick(('flip', 'copy', 'ascontiguousarray'))}({E(t)})",
            lambda: f"np.roll({E(t)}, {self.pick((1, -1, 2))}, axis={self.draw(len(t.shape))})",
            lambda: f"{E(t)}.{self.pick(('copy()', 'reshape(' + str(t.shape) + ')'))}",
            lambda: f"np.broadcast_to({E(t.dtype)}, {t.shape})",
            lambda: f"np.{self.pick(('zeros_like', 'ones_like'))}({E(t)})",
            lambda: f"np.full_like({E(t)}, {E(t.dtype)})",
            lambda: f"np.repeat({E(Arr(t.dtype, (*t.shape[:-1], 1)))}, {t.shape[-1]}, axis=-1)",
            lambda: f"np.tile({E(t)}, 1)",
            lambda: f"np.pad({E(Arr(t.dtype, (*t.shape[:-1], t.shape[-1])))}, 1)[{', '.join(['1:-1'] * len(t.shape))}]",
        ]
        if len(t.shape) == 1:
            n, m = t.shape[0], self.dims[1]
            out += [
                *[lambda: f"{E(Arr(t.dtype, (m, n)))}[{self.index(m, d)}]"] * 2,
                lambda: f"{E(Arr(t.dtype, (n, m)))}[:, {self.draw(2 * m) - m}]",
                lambda: f"{E(Arr(t.dtype, (n + 1,)))}[{self.pick(('1:', ':-1'))}]",
                lambda: f"{E(Arr(t.dtype, (2 * n,)))}[::2]",
                lambda: f"{E(Arr(t.dtype, (n, 1)))}.ravel()",
                lambda: f"np.concatenate([{E(Arr(t.dtype, (n,)))}, {E(Arr(t.dtype, (1,)))}])[:-1]",
                lambda: f"np.diag({E(Arr(t.dtype, (n, n)))})",
                *([lambda: f"np.max({E(Arr(t.dtype, (n, m)))}, axis=1)"] if m else []),
                *([lambda: f"{E(Arr(t.dtype, (n, m)))}.min(axis={self.pick((1, -1))})"] if m else []),
            ]
            if n:
                gathered = f"[{', '.join(str(self.draw(2 * n) - n) for _ in range(n))}]"
                out += [
                    lambda: f"{E(t)}[{gathered}]",
                    lambda: f"{E(t)}[np.array({gathered})]",
                    lambda: f"np.take({E(t)}, {gathered})",
                    lambda: f"{E(t)}[{E(Arr('i8', (n,)))} % {n}]",
                    lambda: f"np.array([{', '.join(E(t.dtype) for _ in range(n))}])",
                ]
            if t.dtype in ("f8", "f4", "i8"):
                out += [
                    lambda: f"np.sum({E(Arr(t.dtype, (n, m)))}, axis=1)",
                    lambda: f"{E(Arr(t.dtype, (m, n)))}.sum(axis={self.pick((0, -2))})",
                    lambda: f"np.cumsum({E(t)})",
                    lambda: f"np.diff({E(Arr(t.dtype, (n + 1,)))})",
                ]
            if t.dtype in FLOATS:
                out += [
                    lambda: f"({E(Arr(t.dtype, (n, m)))} @ {E(Arr(t.dtype, (m,)))})",
                    *([lambda: f"np.mean({E(Arr(t.dtype, (m, n)))}, axis=0)"] if m else []),
                ]
        if len(t.shape) == 2:
            n, m = t.shape
            out += [
                *[lambda: f"{E(Arr(t.dtype, (m, n)))}.T"] * 2,
                lambda: f"np.swapaxes({E(Arr(t.dtype, (m, n)))}, 0, 1)",
                lambda: f"{E(Arr(t.dtype, (n * m,)))}.reshape({n}, {m if n == 0 or m == 0 else -1})",
                lambda: f"{E(Arr(t.dtype, (n + 1, m)))}[{self.pick(('1:', ':-1'))}]",
                lambda: f"{E(Arr(t.dtype, (n, 2 * m)))}[:, ::{self.pick((2, -2))}]",
                *([lambda: f"np.stack([{', '.join(E(Arr(t.dtype, (m,))) for _ in range(n))}])"] if 0 < n < 4 else []),
                *([lambda: f"{E(Arr(t.dtype, (m,)))}[None]"] if n == 1 else []),
                *([lambda: f"{E(Arr(t.dtype, (n,)))}[:, None]"] if m == 1 else []),
                *(
                    [
                        lambda: (
                            f"{self.pick(('np.max', 'np.min'))}({E(Arr(t.dtype, (n, self.dims[0])))}, axis=1, keepdims=True)"
                        )
                    ]
                    if m == 1 and self.dims[0]
                    else []
                ),
                lambda: f"{self.pick(('np.tril', 'np.triu'))}({E(t)})",
            ]
            if t.dtype in FLOATS:
                k = self.dims[0]
                out += [
                    lambda: f"({E(Arr(t.dtype, (n, k)))} @ {E(Arr(t.dtype, (k, m)))})",
                    lambda: f"np.outer({E(Arr(t.dtype, (n,)))}, {E(Arr(t.dtype, (m,)))})",
                    *([lambda: f"np.sum({E(Arr(t.dtype, (n, k)))}, axis=1, keepdims=True)"] if m == 1 else []),
                ]
        return out
