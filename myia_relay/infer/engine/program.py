"""The result of inference: a typed program, and what calling it needs besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...abstract.types import Array
from ...ir.node import Graph, Node, Parameter
from ...utils.errors import TypeError_
from ..values.functions import families_in
from ..values.treedef import TreeDef, tree_structure
from ..values.values import Dyn
from .dependencies import Dependency, Hidden


@dataclass
class Program:
    """The result of inferring an entry function.

    Attributes:
        graph: the typed entry graph; parameters are the argument leaves, then the hidden arguments. None in a loaded program.
        result: the treedef of the result, from which Python values are rebuilt.
        hidden: what to pass as hidden arguments.
        dependencies: the free names it read.
        changes: how it changes its arguments in place. If it does, its result is a tuple of the result proper and the values that
            these arguments end with, as far as there are plans for them.
        arrays: the parameters of the graph that are arrays of the caller's, and are not changed: a result may be one of them.
    """

    graph: Any  # a `Graph`; None where only the code was loaded, which is never compiled again
    result: TreeDef
    hidden: list[Hidden]
    dependencies: list[Dependency]
    changes: tuple[ArgumentChange, ...] = ()
    arrays: tuple[int, ...] = ()

    @property
    def written(self) -> tuple[ArgumentChange, ...]:
        """The changes of arguments whose final values it returns."""
        return tuple(c for c in self.changes if c.plan is not None)

    def final_arrays(self) -> dict[int, int]:
        """The leaves of the result that are the final values of arrays -> the parameters that these arrays are."""
        out: dict[int, int] = {}
        leaf = 0
        for k, part in enumerate(self.result.parts if self.written else ()):
            change = self.written[k - 1] if k else None
            if change is not None and change.plan == "set" and change.parameter is not None:
                out[leaf] = change.parameter
            leaf += sum(1 for _ in part.leaves())
        return out


def require_returnable(treedef: TreeDef) -> None:
    """Refuse results that hold functions that exist in compiled code only.

    Raises:
        TypeError_: there is one.
    """
    stack = [treedef]
    while stack:
        top = stack.pop()
        stack.extend(top.parts)
        if top.tag == "cell":
            raise TypeError_(
                f"the function that is returned to Python changes '{top.info.name}', a variable of the function that made it, and "
                "compiled code keeps no variables between calls; return the new value, or call it in compiled code"
            )
        if top.tag == "iter" and top.info == "tuple":
            raise TypeError_(
                "a tuple of a length that is known at run time only cannot be returned to Python; make a list of it: list(...)"
            )
        if top.tag == "dyn" and families_in(top.info):
            raise TypeError_(
                f"{families_in(top.info)[0].name} is made at run time (in a recursion, a loop or a list of functions), and cannot "
                "be returned to Python; call it in compiled code, and return what it returns"
            )


@dataclass(frozen=True)
class ArgumentChange:
    """How a program changes an argument in place.

    Attributes:
        position: of the argument, keywords last.
        name: of the parameter.
        plan: what of the argument is overwritten by what of its final value: "set" for all that is in a list or an array; or
            ["list", plans], ["dict", {key: plan}] for its entries, with None for what stays, "new" for an entry that is another
            object, and new entries behind those of a list; or ["every", plan] for each of the entries of a list of any length.
        results: where in the result proper the argument itself is returned: () for the result, (k,) for an entry of it.
        origin: the place of the change.
        parameter: the parameter of the program that the argument is, if it is an array.

    The plan is None for an argument that is changed on paths that raise alone.
    """

    position: int
    name: str
    plan: Any
    results: tuple[tuple[int, ...], ...] = ()
    origin: Any = field(default=None, compare=False)
    parameter: int | None = None


@dataclass
class Outermost:
    """The function that a program calls first: Python's objects are its arguments.

    Attributes:
        function: what is called; if it is no Python function, changes of arguments are refused.
        given: its arguments, keywords last.
        plans: parameter -> the plan of `ArgumentChange`.
        changes: what has been found.
        before_raising: arguments that are changed on no path that returns; whether there is one that raises is known at the end.
    """

    function: Any = None
    given: tuple = ()
    plans: dict[int, Any] = field(default_factory=dict)
    changes: list[ArgumentChange] = field(default_factory=list)
    before_raising: list[ArgumentChange] = field(default_factory=list)

    def parameter(self, position: int) -> int | None:
        """The parameter of the program that an argument is, if it is an array."""
        value = self.given[position]
        if not isinstance(value, Dyn) or not isinstance(value.node, Parameter) or not isinstance(value.type, Array):
            return None
        return value.node.graph.params.index(value.node)

    def arrays_given(self, graph: Graph) -> tuple[int, ...]:
        """The parameters of the program that are arrays in arguments that it does not change."""
        changed = {c.position for c in self.changes}
        nodes: list[Node] = []
        for position, value in enumerate(self.given):
            if position not in changed:
                tree_structure(value, nodes, capture=lambda closure: ())
        given = {n for n in nodes if isinstance(n.type, Array)}
        return tuple(k for k, p in enumerate(graph.params) if p in given)


__all__ = ["ArgumentChange", "Outermost", "Program"]
