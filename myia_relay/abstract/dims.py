"""Symbolic dimensions: array sizes as integer polynomials over names.

A dimension is a Python `int` where it is known and a `Dim` where it depends on a name ("n", "n*m", "2*n + 1").
Polynomials are kept in a canonical form, so equal expressions are equal values with equal hashes. Floor division and
other operations that are no polynomials become opaque atoms, which are identified by their text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from typing_extensions import TypeIs

Monomial = tuple[str, ...]  # sorted names with repetition: n*n*m is ("m", "n", "n")


class Dim:
    """An integer polynomial over symbolic names, with at least one name in it.

    Attributes:
        terms: monomial -> non-zero coefficient.
        atoms: for opaque names, how to evaluate them: name -> (operation, operands).
    """

    __slots__ = ("_key", "atoms", "terms")

    def __init__(self, terms: Mapping[Monomial, int], atoms: Mapping[str, tuple] | None = None):
        self.terms = {m: c for m, c in terms.items() if c}
        names = {name for m in self.terms for name in m}
        self.atoms = {k: v for k, v in (atoms or {}).items() if k in names}
        self._key = tuple(sorted(self.terms.items()))

    def __eq__(self, other) -> bool:
        return isinstance(other, Dim) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __add__(self, other: DimLike) -> DimLike:
        terms, atoms = _parts(other)
        out = dict(self.terms)
        for monomial, coefficient in terms.items():
            out[monomial] = out.get(monomial, 0) + coefficient
        return simplify(Dim(out, {**self.atoms, **atoms}))

    __radd__ = __add__

    def __neg__(self) -> DimLike:
        return self * -1

    def __sub__(self, other: DimLike) -> DimLike:
        return self + (-other)

    def __rsub__(self, other: DimLike) -> DimLike:
        return (-self) + other

    def __mul__(self, other: DimLike) -> DimLike:
        terms, atoms = _parts(other)
        out: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in terms.items():
                key = tuple(sorted(left + right))
                out[key] = out.get(key, 0) + a * b
        return simplify(Dim(out, {**self.atoms, **atoms}))

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        return divide(self, other)

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return divide(other, self)

    def __repr__(self) -> str:
        text = []
        for monomial, coefficient in sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            names = "*".join(monomial)
            if not monomial:
                piece = str(abs(coefficient))
            elif abs(coefficient) == 1:
                piece = names
            else:
                piece = f"{abs(coefficient)}*{names}"
            sign = "-" if coefficient < 0 else "+"
            text.append(piece if not text and sign == "+" else f"-{piece}" if not text else f"{sign} {piece}")
        return " ".join(text)

    def symbols(self) -> set[str]:
        """The plain names this dimension depends on (through opaque atoms too)."""
        out: set[str] = set()
        for monomial in self.terms:
            for name in monomial:
                if name in self.atoms:
                    for operand in self.atoms[name][1]:
                        out |= symbols(operand)
                else:
                    out.add(name)
        return out


DimLike = int | Dim


def _parts(value: DimLike) -> tuple[dict[Monomial, int], dict[str, tuple]]:
    return (value.terms, value.atoms) if isinstance(value, Dim) else ({(): int(value)}, {})


def simplify(dim: DimLike) -> DimLike:
    """An `int` if no name is left, else the dimension itself."""
    if isinstance(dim, Dim) and not any(dim.terms):
        return dim.terms.get((), 0)
    return dim


def symbol(name: str) -> Dim:
    """The dimension called `name`."""
    return Dim({(name,): 1})


def symbols(dim: DimLike) -> set[str]:
    """Names a dimension depends on; empty for an int."""
    return dim.symbols() if isinstance(dim, Dim) else set()


RUN_TIME = "_size"  # what the names of run-time sizes begin with; no annotation has such a name
_counter = itertools.count(1)


def fresh_size() -> Dim:
    """A new symbol for a size that a value decides; `bind_dim` gives it its value."""
    return symbol(f"{RUN_TIME}{next(_counter)}")


def run_time_symbols(names: Iterable[str]) -> set[str]:
    """Those names among some that stand for sizes that values decide."""
    return {name for name in names if name.startswith(RUN_TIME)}


def is_run_time(dim: DimLike) -> bool:
    """Whether a value decides a dimension, or a part of it."""
    return isinstance(dim, Dim) and any(name.startswith(RUN_TIME) for name in dim.symbols())


def divide(a: DimLike, b: DimLike) -> DimLike:
    """`a // b`: exact where the polynomial divides, else an opaque atom.

    By a positive number the result is in a normal form: `(b*q + r) // b = q + r // b`, where the coefficients of `r` are in
    [0, b), and `(x // c + r) // b = (x + c*r) // (c*b)`.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if a == b:
        return 1
    if isinstance(b, int) and isinstance(a, Dim) and all(c % b == 0 for c in a.terms.values()):
        return simplify(Dim({m: c // b for m, c in a.terms.items()}, a.atoms))
    if isinstance(a, Dim) and isinstance(b, int) and b > 0:
        return _divided(a, b)
    if isinstance(a, Dim) and isinstance(b, Dim) and len(b.terms) == 1:
        ((divisor, coefficient),) = b.terms.items()
        quotient: dict[Monomial, int] = {}
        for monomial, c in a.terms.items():
            rest = list(monomial)
            try:
                for name in divisor:
                    rest.remove(name)
            except ValueError:
                break
            if c % coefficient:
                break
            quotient[tuple(rest)] = c // coefficient
        else:
            return simplify(Dim(quotient, a.atoms))
    return _quotient(a, b)


def _divided(a: Dim, b: int) -> DimLike:
    """`a // b` in its normal form."""
    whole = simplify(Dim({m: c // b for m, c in a.terms.items()}, a.atoms))
    rest = simplify(Dim({m: c % b for m, c in a.terms.items()}, a.atoms))
    if isinstance(rest, int):
        return whole
    names = [m for m in rest.terms if m]
    if len(names) == 1 and len(names[0]) == 1 and rest.terms[names[0]] == 1 and names[0][0] in rest.atoms:
        _, (x, c) = rest.atoms[names[0][0]]
        if isinstance(c, int) and c > 0:
            return whole + divide(x + c * rest.terms.get((), 0), b * c)
    return whole + _quotient(rest, b)


def _quotient(a: DimLike, b: DimLike) -> Dim:
    """`a // b` as an opaque atom."""
    name = f"({a})//({b})"
    return Dim({(name,): 1}, {name: ("floordiv", (a, b))})


def told_by_run(a: DimLike, b: DimLike) -> bool:
    """Whether only a run tells if two sizes are equal: a value decides one, or one was divided."""
    return a != b and any(isinstance(d, Dim) and (d.atoms or is_run_time(d)) for d in (a, b))


def may_be_equal(a: DimLike, b: DimLike) -> bool:
    """Whether only run-time sizes can tell: one is a number, was divided, or is decided by a value.

    `2*n` and `3*n` are considered a mistake.
    """
    if a == b or isinstance(a, int) != isinstance(b, int):
        return True
    return any(isinstance(d, Dim) and (d.atoms or is_run_time(d)) for d in (a, b))


def is_known(shape: tuple[DimLike, ...]) -> TypeIs[tuple[int, ...]]:
    """Whether all dimensions of a shape are numbers."""
    return all(isinstance(d, int) for d in shape)


def known_size(dim: DimLike) -> int:
    """A dimension that is known to be a number."""
    assert not isinstance(dim, Dim), f"the size {dim} is not known"
    return int(dim)


def product(dims: Iterable[DimLike]) -> DimLike:
    """The product of dimensions: the number of elements of a shape."""
    return reduce(lambda x, y: x * y, dims, 1)


def never_negative(dim: DimLike) -> bool:
    """Whether a dimension is at least 0 whatever its names stand for (sizes are at least 0)."""
    return dim >= 0 if isinstance(dim, int) else all(c >= 0 for c in dim.terms.values())


def evaluate(dim: DimLike, lookup: Callable[[str], Any]) -> Any:
    """The value of a dimension, computed with the operators of whatever `lookup` returns for a name.

    Args:
        dim: the dimension.
        lookup: name -> value (an int, or an expression of a back end).
    """
    if not isinstance(dim, Dim):
        return dim
    total = None
    for monomial, coefficient in dim.terms.items():
        factor = None
        for name in monomial:
            if name in dim.atoms:
                _, (a, b) = dim.atoms[name]
                value = evaluate(a, lookup) // evaluate(b, lookup)
            else:
                value = lookup(name)
            factor = value if factor is None else factor * value
        term = coefficient if factor is None else factor if coefficient == 1 else factor * coefficient
        total = term if total is None else total + term
    return total
