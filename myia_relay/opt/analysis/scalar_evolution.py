"""Scalar evolution: which polynomials the integers inside loops are, and the bounds that follow; range analysis with
polynomials.

A loop's index is a variable between two polynomials, its bounds. Sums, products and exact quotients of polynomials are
polynomials, as long as nothing wraps. Any other integer is a variable of its own, within the numbers of its interval.
For example, `i - j` is known to be positive if `i` begins at `j + 1`, whatever `j` is.

Input: applications with intervals, in the order of `ranges`. Output: narrower intervals; for each integer its
polynomial, and for each loop the variable that is its index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...abstract.dims import Dim
from ...ir.node import Apply, Constant, Graph, Node, applies
from .intervals import FALSE, TRUE, Interval, meet, within
from .polynomials import Polynomial, Variable, least, most

COMPARED = {"lt": (1, 0, -1), "le": (1, 0, 0), "gt": (0, 1, -1), "ge": (0, 1, 0)}
"""A comparison -> the operands whose difference, plus this number, is not negative where it holds."""

COMPUTED = ("add", "sub", "mul", "neg", "right_shift", "floordiv", "maximum", "minimum", "where")


class Forms:
    """The result of the analysis.

    Attributes:
        of: integer -> the polynomial that it is; None where its graph is run in several places.
        iterations: the body of a loop -> what tells its iterations apart: the index, or the number of the iteration.
        None likewise, and where
            nothing is known of it.
        sizes: name of a symbolic dimension -> its variable.
    """

    def __init__(self) -> None:
        self.of: dict[Node, Polynomial | None] = {}
        self.iterations: dict[Graph, Variable | None] = {}
        self.sizes: dict[str, Variable] = {}

    def keep(self, found: Mapping[Node, Polynomial]) -> None:
        """Keep the results of a graph that is evaluated for the last time, in one place."""
        for node, form in found.items():
            self.of[node] = None if node in self.of else form

    def enter(self, loop: Apply, step: Interval, facts: Any, inner: Any, last: bool) -> None:
        """The index of a loop, in its body.

        Args:
            last: whether the body is run for the last time in this place.
        """
        if step[0] <= 0 <= step[1]:
            return
        body, (start, stop) = loop.attrs["body"], (self.form(a, facts) for a in loop.args[:2])
        first, end = start.number, stop.number
        if step[0] == step[1] and first is not None and end is not None:
            iteration = Variable(Polynomial.of(0), Polynomial.of(len(range(int(first), int(end), step[0])) - 1))
            form = Polynomial.of(iteration) * step[0] + start
        else:
            iteration = Variable(start, stop - 1) if step[0] > 0 else Variable(stop + 1, start)
            form = Polynomial.of(iteration)
        inner.forms[body.params[0]] = form
        if last:
            exact = step[0] == step[1] and (abs(step[0]) == 1 or first is not None and end is not None)
            self.iterations[body] = iteration if exact and body not in self.iterations else None

    def form(self, node: Node, facts: Any) -> Polynomial:
        """The polynomial of an integer: a variable, if nothing more is known."""
        if isinstance(node, Constant):
            return Polynomial.of(int(node.value))
        found = facts.forms.get(node)
        if found is None:
            found = self.size(node)
            if not found:
                low, high = map(Polynomial.of, facts[node])
                found = Polynomial.of(Variable(low, high))
            facts.forms[node] = found
        return found

    def size(self, node: Node) -> Polynomial | None:
        """The polynomial of a symbolic size, of names that mean the same everywhere; None where it is none."""
        dim = node.attrs["dim"] if applies(node, "dim_size") else None
        if not isinstance(dim, Dim) or dim.atoms:
            return None
        total = Polynomial.of(0)
        for names, coefficient in dim.terms.items():
            term = Polynomial.of(coefficient)
            for name in names:
                term = term * Polynomial.of(self.sizes.setdefault(name, Variable(Polynomial.of(0))))
            total = total + term
        return total

    def narrowed(self, node: Apply, value: Interval, facts: Any, whole: Interval, fits: bool) -> Interval:
        """The part of a result's interval, which may exceed its dtype, that is consistent with its polynomial.

        Args:
            whole: the interval of its dtype.
            fits: whether it is known not to wrap.
        """
        name = node.fn.name
        if name in COMPARED:
            return self.compared(node, facts) if value == (0, 1) else value
        form = self.computed(node, value, facts)
        if form is None or not form.is_small:
            return value
        if is_tighter(form):
            low, high = least(form), most(form)
            value = meet(value, (value[0] if low is None else low, value[1] if high is None else high)) or value
        if fits or within(value, whole):
            facts.forms[node] = form
        return value

    def computed(self, node: Apply, value: Interval, facts: Any) -> Polynomial | None:
        """The polynomial of a result, if it does not wrap; None if there is none, or if it is a plain number."""
        name = node.fn.name
        if value[0] == value[1] or name not in COMPUTED:
            return None
        if name == "where":
            chosen = {TRUE: 1, FALSE: 2}.get(facts[node.args[0]])
            return None if chosen is None else self.form(node.args[chosen], facts)
        if name in ("maximum", "minimum"):
            same = [a for a in node.args if not isinstance(a, Constant) and facts[a] == value]
            other = [facts[a] for a in node.args if a not in same]
            return self.form(same[0], facts) if len(same) == 1 and other and _decided(name, value, other[0]) else None
        x = self.form(node.args[0], facts)
        if name == "neg":
            return -x
        if name in ("right_shift", "floordiv"):
            divisor = _divisor(name, node.args[1])
            return None if divisor is None else x.divided(divisor)
        y = self.form(node.args[1], facts)
        return x + y if name == "add" else x - y if name == "sub" else x * y

    def compared(self, node: Apply, facts: Any) -> Interval:
        """What a comparison is known to be."""
        more, less, number = COMPARED[node.fn.name]
        x, y = (self.form(node.args[k], facts) for k in (more, less))
        difference = x - y + number
        low = least(difference)
        if low is not None and low >= 0:
            return TRUE
        high = most(difference)
        return FALSE if high is not None and high < 0 else (0, 1)


def _decided(name: str, value: Interval, other: Interval) -> bool:
    """Whether one value is always the greater (or always the lesser) of two."""
    return other[1] <= value[0] if name == "maximum" else other[0] >= value[1]


def _divisor(name: str, node: Node) -> int | None:
    """The number that is divided by, if it is known."""
    if not isinstance(node, Constant):
        return None
    number = int(node.value)
    if name == "right_shift":
        return 1 << number if 0 < number < 64 else None
    return number or None


def is_tighter(form: Polynomial) -> bool:
    """Whether a polynomial is more precise than intervals: a variable occurs twice, or its bounds depend on others."""
    seen: set[Variable] = set()
    for monomial in form.terms:
        for v in set(monomial):
            if v in seen or not v.has_fixed_bounds:
                return True
            seen.add(v)
    return False


__all__ = ["Forms"]
