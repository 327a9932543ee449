"""Random operands for calls of NumPy's functions: every dtype and kind of scalar, ranks 0 to 3, empty, with edge values."""

from __future__ import annotations

import numpy as np

FLOATS = ("float64", "float32", "float16")
INTS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
DTYPES = ("bool", *INTS, *FLOATS)
SHAPES = (
    (),
    (0,),
    (1,),
    (3,),
    (4,),
    (5,),
    (0, 3),
    (2, 0),
    (1, 3),
    (2, 3),
    (3, 3),
    (3, 1),
    (2, 3, 4),
    (2, 2, 2),
    (1, 0, 2),
    (2, 1, 3),
)
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 1e-40, 1e5, -1e5, 6e4, 1e30, 1e300, 3.0)


class Draw:
    """Draws operands and the texts of options.

    Attributes:
        rng: where chance comes from.
        args: the operands drawn so far; a call's text names them `a0`, `a1`, ...
    """

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.args: list = []

    def chance(self, p: float) -> bool:
        """True with a probability."""
        return bool(self.rng.random() < p)

    def one(self, options):
        """One of several options."""
        return options[int(self.rng.integers(len(options)))]

    def dtype(self) -> str:
        """A dtype, float64 and int64 more often than others."""
        return self.one((*DTYPES, "float64", "float64", "float64", "float32", "int64"))

    def shape(self, ranks=(0, 1, 2, 3), empty: bool = True) -> tuple[int, ...]:
        """A shape of one of several ranks."""
        fitting = [s for s in SHAPES if len(s) in ranks and (empty or 0 not in s)]
        return self.one(fitting)

    def values(self, shape, dtype: str, edges: bool | None = None) -> np.ndarray:
        """An array: of everyday numbers, or (one in three) of numbers that are special to its dtype."""
        edges = self.chance(0.35) if edges is None else edges
        n = int(np.prod(shape))
        if dtype == "bool":
            out = self.rng.random(n) < 0.6
        elif dtype in FLOATS:
            out = np.round(self.rng.uniform(-4, 4, n), int(self.rng.integers(0, 4)))
            if edges:
                out = np.where(self.rng.random(n) < 0.6, self.rng.choice(EDGES, n), out)
        else:
            info = np.iinfo(dtype)
            out = self.rng.integers(max(info.min, -6), 7, n)
            if edges:
                special = [info.min, info.max, info.min + 1, info.max - 1, 0, 1]
                picks = [special[int(k)] for k in self.rng.integers(0, len(special), n)]
                return np.array([p if self.chance(0.6) else int(v) for p, v in zip(picks, out)], dtype).reshape(shape)
        with np.errstate(all="ignore"):
            return np.asarray(out).astype(dtype).reshape(shape)

    def give(self, value) -> str:
        """The text that names an operand."""
        self.args.append(value)
        return f"a{len(self.args) - 1}"

    def array(self, ranks=(0, 1, 2, 3), dtype: str | None = None, shape=None, edges=None, empty=True) -> str:
        """An array operand."""
        shape = self.shape(ranks, empty) if shape is None else shape
        return self.give(self.values(shape, dtype or self.dtype(), edges))

    def number(self, edges=None) -> str:
        """A number without axes: Python's, a NumPy scalar, a literal."""
        kind = self.one(("python", "numpy", "literal"))
        x = self.values((), self.dtype(), edges)[()]
        if kind == "numpy":
            return self.give(x)
        value = x.item()
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = 7
        if kind == "python" or value != value or value in (np.inf, -np.inf):
            return self.give(value)
        return f"({value!r})"

    def operand(self, ranks=(0, 1, 2, 3), edges=None) -> str:
        """An array most often, else a number."""
        return self.number(edges) if self.chance(0.2) and 0 in ranks else self.array(ranks, edges=edges)

    def pair(self, edges=None) -> tuple[str, str]:
        """Two operands: of one shape, of shapes that broadcast, of any shapes, one a number."""
        kind = self.one(("same", "same", "broadcast", "any", "number", "number"))
        if kind == "number":
            two = [self.array(edges=edges), self.number(edges)]
            return (two[0], two[1]) if self.chance(0.7) else (two[1], two[0])
        shape = self.shape()
        other = shape if kind == "same" else tuple(d if self.chance(0.6) else 1 for d in shape)
        if kind == "any":
            other = self.shape()
        elif kind == "broadcast" and self.chance(0.4):
            other = other[1:]
        first = self.dtype()
        second = first if self.chance(0.4) else self.dtype()
        return self.array(shape=shape, dtype=first, edges=edges), self.array(shape=other, dtype=second, edges=edges)

    def rank(self, name: str) -> int:
        """The rank of an operand named by a text."""
        return np.ndim(self.args[int(name[1:])]) if name[:1] == "a" and name[1:].isdigit() else 0

    def axis(self, name: str, many: bool = True, none: bool = True) -> str:
        """The text of an axis for an operand: mostly one that it has."""
        rank = self.rank(name)
        if none and self.chance(0.1):
            return "None"
        if many and rank > 1 and self.chance(0.25):
            axes = self.rng.permutation(rank)[: int(self.rng.integers(0, rank + 1))]
            return repr(tuple(int(k) - rank * self.chance(0.3) for k in axes))
        if rank and not self.chance(0.06):
            return repr(int(self.rng.integers(-rank, rank)))
        return self.one(("0", "1", "-1", "3", "True", "1.0", "[0]", "np.int8(0)", "(0, 0)"))
