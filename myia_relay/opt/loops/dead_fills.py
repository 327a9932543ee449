"""Arrays that loops overwrite from end to end need no initial fill; a sum with one term for each entry is a store.

    s = zeros(n (n - 1) / 2)                          s = memory
    for j in range(n):                                for j in range(n):
        for i in range(j + 1, n):             =>          for i in range(j + 1, n):
            s[at(j, i)] += v                                  s[at(j, i)] = v

where at(j, i) is each entry once. The adjoint of a loop that reads each entry of an array once adds once to each of its
zeros: the array would be written twice and read once more than necessary.

Each entry is written once if the innermost loop writes `lo ... hi - 1`, polynomials of the outer loops' indices
(`scalar_evolution`), and each iteration of the loop around it continues where the previous one ended, hi(j) = lo(j +
1), or the reverse. The same must hold for each further loop, and the outermost must go from 0 to the size of the array.
No range may be negative: hi >= lo throughout.

Input: a program without transforms, for an executor that changes arrays in place. Output: the same program.

Source: array region analysis as in B. Creusillet and F. Irigoin, "Interprocedural array region analyses" (IJPP 1996).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...abstract.types import Array
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applied
from ...ir.prim import REGISTRY, updates_one
from ...ir.rewrite import Rewriter, all_graphs
from ...ir.walk import users
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from ..analysis.polynomials import Polynomial, least
from ..analysis.ranges import analyse
from ..analysis.scalar_evolution import Forms
from ..rewrite.rules import filled

FIRST = LEAD["for_loop"]


class EntryRange(NamedTuple):
    """The entries `low ... high - 1`, each of them written once."""

    low: Polynomial
    high: Polynomial


@dataclass(frozen=True)
class EliminateDeadFills:
    """The pass."""

    name: str = "dead_fills"

    def __call__(self, graph: Graph) -> Graph:
        graphs = list(all_graphs(graph))
        nodes = [n for g in graphs for n in g.nodes]
        if not any(applied(n) == "for_loop" for n in nodes) or not any(map(updates_one, nodes)):
            return graph
        drop = _DropFills()
        drop.find(graphs, analyse(graph).forms)
        return drop.rewrite(graph) if drop.initial else graph


class _DropFills(Rewriter):
    """The rewriting.

    Attributes:
        initial: loops -> the carried arrays whose initial contents are never read.
        stores: sums that become stores.
    """

    def __init__(self) -> None:
        super().__init__()
        self.initial: dict[Apply, list[int]] = {}
        self.stores: set[Node] = set()

    def find(self, graphs: Iterable[Graph], forms: Forms) -> None:
        """Look for loops that overwrite an array."""
        chains = Chains(forms)
        for loop in (n for g in graphs for n in g.nodes if applied(n) == "for_loop"):
            for k in range(loop.attrs["carried"]):
                write, region = chains.of(loop, k)
                if write is None or region is None or applied(loop.args[FIRST + k]) == "undef":
                    continue
                if region.low.number != 0 or region.high.number != loop.args[FIRST + k].type.shape[0]:
                    continue
                if applied(write) == "index_add":
                    zero = filled(loop.args[FIRST + k])
                    if zero is None or zero != 0 or not may_drop_zero(write):
                        continue
                    self.stores.add(write)
                self.initial.setdefault(loop, []).append(k)

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        builder.origin = node.origin
        if node in self.initial:
            self.changed = True
            changed = list(args)
            for k in self.initial[node]:
                changed[FIRST + k] = builder.emit(REGISTRY["undef"], (), {"type": args[FIRST + k].type})
            args = tuple(changed)
        if node in self.stores:
            self.changed = True
            return builder.emit(REGISTRY["dynamic_update"], args, attrs, node.type)
        return super().node(builder, node, args, attrs)


def may_drop_zero(node: Apply) -> bool:
    """Whether 0 + v may be replaced by v: in derived code, and for numbers with only one zero."""
    return node.origin.via == "vjp" or not node.type.is_float


class Chains:
    """Loops through which an array is passed to be written in one place."""

    def __init__(self, forms: Forms):
        self.forms = forms
        self.memo: dict[tuple[Apply, int], tuple[Apply | None, EntryRange | None]] = {}

    def of(self, loop: Apply, k: int) -> tuple[Apply | None, EntryRange | None]:
        """The only write into an array that a loop carries, and the entries that it covers; None if there is none, or
        if it is unknown.
        """
        if (loop, k) not in self.memo:
            write, inside = self.inside(loop, k)
            self.memo[loop, k] = write, self.around(loop, inside) if inside is not None else None
        return self.memo[loop, k]

    def inside(self, loop: Apply, k: int) -> tuple[Apply | None, EntryRange | None]:
        """The same for one iteration."""
        body: Graph = loop.attrs["body"]
        outs, param, used = output_parts(body), body.params[1 + k], users(body)
        step = used.get(param, [])
        if (
            not isinstance(param.type, Array)
            or not param.type.shape
            or not isinstance(param.type.shape[0], int)
            or len(step) != 1
        ):
            return None, None
        (user,) = step
        if applied(user) == "for_loop":
            at = [j - FIRST for j, a in enumerate(user.args) if a is param]
            if len(at) != 1 or not 0 <= at[0] < user.attrs["carried"]:
                return None, None
            if body.output is user:
                return self.of(user, k) if at == [k] and user not in used else (None, None)
            made = [n for n in used.get(user, ()) if applied(n) != "get_item" or n.attrs["index"] == at[0]]
            if outs is None or made != [outs[k]] or used[made[0]] != [body.output]:
                return None, None
            return self.of(user, at[0])
        if not updates_one(user) or outs is None or user is not outs[k] or used[user] != [body.output]:
            return None, None
        if user.args[0] is not param or user.args.count(param) != 1:
            return None, None
        form = self.forms.of.get(user.args[2]) if user.attrs["axis"] == 0 else None
        return user, EntryRange(form, form + 1) if form is not None else None

    def around(self, loop: Apply, iteration: EntryRange) -> EntryRange | None:
        """The entries that all iterations of a loop cover."""
        v = self.forms.iterations.get(loop.attrs["body"])
        if v is None or v.low is None or v.high is None:
            return None
        if any(other.serial > v.serial for bound in iteration for other in bound.variables()):
            return None  # another in each iteration
        after = Polynomial.of(v) + 1
        if not never_negative(iteration.high - iteration.low) or not never_negative(v.high - v.low + 1):
            return None
        if iteration.low.at(v, after) == iteration.high:
            return EntryRange(iteration.low.at(v, v.low), iteration.low.at(v, v.high + 1))
        if iteration.high.at(v, after) == iteration.low:
            return EntryRange(iteration.high.at(v, v.high + 1), iteration.high.at(v, v.low))
        return None


def never_negative(p: Polynomial) -> bool:
    """Whether a polynomial is never negative."""
    low = least(p)
    return low is not None and low >= 0


__all__ = ["EliminateDeadFills"]
