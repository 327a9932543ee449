"""Integers as polynomials of the indices of the loops around them, and the bounds of such polynomials.

    for j in range(n):
        for i in range(j + 1, n):
            at = (n - 1) j - j (j - 1) / 2 + (i - j - 1)      lies in 0 ... n (n - 1) / 2 - 1

Intervals lose the relation between `i` and `j`; a polynomial keeps it. The maximum is found by eliminating the
variables, the innermost loop's first. If the polynomial is increasing in a variable throughout, its maximum is at the
end of that variable's range, which is a polynomial of the outer variables. In the end a number is left. A quadratic in
a variable whose range is given by two numbers has its maximum at an end or at its vertex. All bounds hold for real
variables too, so signs of derivatives are decided in the same way.

Output of `most` and `least`: a bound that no value exceeds, or None if this method finds none.

Source: R. van Engelen, J. Birch, Y. Shou, B. Walsh and K. Gallivan, "A unified framework for nonlinear dependence
testing and symbolic analysis" (ICS 2004); M. Haghighat and C. Polychronopoulos, "Symbolic analysis for parallelizing
compilers" (TOPLAS 1996).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

TERMS = 24  # terms of a polynomial that is kept
DEGREE = 4
STEPS = 200  # polynomials that are examined for one bound
_serials = itertools.count()


@dataclass(eq=False)
class Variable:
    """An integer with known bounds: the index of a loop, a size, or one of which nothing else is known.

    Attributes:
        low, high: polynomials of variables that were made before this one; None where there is no bound.
        serial: the order in which variables were made.
    """

    low: Polynomial | None = None
    high: Polynomial | None = None
    serial: int = field(default_factory=lambda: next(_serials))

    @property
    def has_fixed_bounds(self) -> bool:
        """Whether its bounds do not depend on other variables."""
        return all(bound is None or bound.number is not None for bound in (self.low, self.high))


Monomial = tuple[Variable, ...]  # in the order in which they were made, with repetition


class Polynomial:
    """Sums of products of variables, with rational coefficients. Immutable."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int | Fraction]):
        self.terms = {m: c for m, c in terms.items() if c}

    @classmethod
    def of(cls, what: int | Variable) -> Polynomial:
        """A number, or a variable."""
        return cls({(what,): 1} if isinstance(what, Variable) else {(): what})

    @property
    def number(self) -> int | Fraction | None:
        """Its value, if it has no variables."""
        return self.terms.get((), 0) if not any(self.terms) else None

    @property
    def is_small(self) -> bool:
        """Whether it is small enough to be kept."""
        return len(self.terms) <= TERMS and all(len(m) <= DEGREE for m in self.terms)

    def variables(self) -> list[Variable]:
        """The variables in it, the last made first."""
        return sorted({v for m in self.terms for v in m}, key=lambda v: -v.serial)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        for m, c in _terms(other).items():
            terms[m] = terms.get(m, 0) + c
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        made = object.__new__(Polynomial)
        made.terms = {m: -c for m, c in self.terms.items()}
        return made

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -(other if isinstance(other, Polynomial) else Polynomial.of(other))

    def __mul__(self, other: Polynomial | int | Fraction) -> Polynomial:
        terms: dict[Monomial, int | Fraction] = {}
        for m, c in self.terms.items():
            for n, d in _terms(other).items():
                both = tuple(sorted((*m, *n), key=lambda v: v.serial))
                terms[both] = terms.get(both, 0) + c * d
        return Polynomial(terms)

    def by_powers(self, v: Variable) -> list[Polynomial]:
        """The coefficients of the powers of a variable, the constant one first."""
        out: list[dict[Monomial, int | Fraction]] = []
        for m, c in self.terms.items():
            power = m.count(v)
            out += [{} for _ in range(power + 1 - len(out))]
            out[power][tuple(x for x in m if x is not v)] = c
        return [Polynomial(terms) for terms in out] or [Polynomial({})]

    def at(self, v: Variable, value: Polynomial) -> Polynomial:
        """The polynomial in which a variable is replaced by another polynomial."""
        return _composed(self.by_powers(v), value)

    def divided(self, divisor: int) -> Polynomial | None:
        """The polynomial divided by a number, if the quotient is always an integer; None if it is not, or if deciding
        that takes long.
        """
        quotient = self * Fraction(1, divisor)
        period = math.lcm(*(Fraction(c).denominator for c in quotient.terms.values()))
        variables = quotient.variables()
        if period ** len(variables) > 64:
            return None
        for point in itertools.product(range(period), repeat=len(variables)):
            values = dict(zip(variables, point))
            if sum(c * math.prod(values[v] for v in m) for m, c in quotient.terms.items()) % 1:
                return None
        return quotient


def _composed(powers: list[Polynomial], value: Polynomial) -> Polynomial:
    """The polynomial of a value with these coefficients, the constant one first."""
    *rest, total = powers
    for coefficient in reversed(rest):
        total = total * value + coefficient
    return total


def _slope(powers: list[Polynomial], v: Variable) -> Polynomial:
    """The derivative by a variable of the polynomial with these coefficients of its powers."""
    if len(powers) == 2:
        return powers[1]
    total = Polynomial({})
    for power, coefficient in enumerate(powers[1:], 1):
        total = total + coefficient * Polynomial({(v,) * (power - 1): power})
    return total


def _terms(value: Polynomial | int | Fraction) -> Mapping[Monomial, int | Fraction]:
    return value.terms if isinstance(value, Polynomial) else {(): value}


def most(p: Polynomial) -> int | None:
    """A number that a polynomial does not exceed, for integers within the bounds of its variables; None if none is found."""
    found = _at_ends(p, True)
    if found is NotImplemented:
        found = _Search().most(p)
    return None if found is None else math.floor(found)


def least(p: Polynomial) -> int | None:
    """A number that a polynomial does not fall below; None if none is found."""
    found = _at_ends(p, False)
    if found is NotImplemented:
        found = most(-p)
        return None if found is None else -found
    return None if found is None else math.ceil(found)


def _at_ends(p: Polynomial, greatest: bool) -> Any:
    """The greatest or least value of a sum of multiples of variables whose bounds are numbers, which most polynomials are; None
    if there is none, `NotImplemented` for other polynomials."""
    total: int | Fraction | None = 0
    for monomial, coefficient in p.terms.items():
        number: int | Fraction | None = 1
        if monomial:
            v = monomial[0]
            end = v.high if (coefficient > 0) is greatest else v.low
            number = None if end is None else end.number
            if len(monomial) > 1 or end is not None and number is None:
                return NotImplemented
        total = None if total is None or number is None else total + coefficient * number
    return total


class _Search:
    """Bounds of polynomials of real variables, in a limited number of steps."""

    def __init__(self) -> None:
        self.steps = 0

    def most(self, p: Polynomial) -> int | Fraction | None:
        self.steps += 1
        if p.number is not None:
            return p.number
        if self.steps > STEPS or not p.is_small:
            return None
        v = p.variables()[0]
        powers = p.by_powers(v)
        slope = _slope(powers, v)
        if self.rises(slope):
            return self.most(_composed(powers, v.high)) if v.high is not None else None
        if self.rises(-slope):
            return self.most(_composed(powers, v.low)) if v.low is not None else None
        if len(powers) > 3 or v.low is None or v.high is None:
            return None
        if len(powers) == 2 or self.rises(powers[2]):  # linear or convex: at an end
            ends = [self.most(_composed(powers, end)) for end in (v.low, v.high)]
            known = [end for end in ends if end is not None]
            return max(known) if len(known) == len(ends) else None
        numbers = [c.number for c in powers if c.number is not None]
        if len(numbers) < 3:
            return None
        a, b, c = numbers
        return a - Fraction(b**2, 4 * c)  # concave and not monotone: at most its value at the vertex

    def rises(self, slope: Polynomial) -> bool:
        """Whether a polynomial is never negative."""
        if (number := slope.number) is not None:
            return number >= 0
        low = self.most(-slope)
        return low is not None and low <= 0


__all__ = ["Polynomial", "Variable", "least", "most"]
