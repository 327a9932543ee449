"""Graphs that inference takes not to return: each has to raise, or to run for ever.

What is after an expression that does not return is not inferred, and where a branch, a loop or a function does not return, its
graph is given a placeholder for its output. If inference were wrong about it, the program would go on with that placeholder, and
give a result that nothing has computed.
"""

from __future__ import annotations

from ...ir.node import Apply, Constant, Graph
from ...ir.walk import graphs_reachable
from ...prims.ops.control import cond, for_loop, while_loop
from ...prims.ops.effects import check, raise_
from ...utils.errors import InternalError


def require_ends(program: Graph, unreturning: set[Graph]) -> None:
    """Check all graphs of a program.

    Args:
        program: its typed graph.
        unreturning: the graphs that are taken not to return.

    Raises:
        InternalError: one may return.
    """
    for graph in graphs_reachable(program) if unreturning else ():
        if graph in unreturning and not any(_ends(node, unreturning) for node in graph.nodes):
            raise InternalError(
                "infer", f"the output of {graph.name} is unset, and it neither raises nor runs for ever"
            )


def _ends(node: Apply, unreturning: set[Graph]) -> bool:
    """Whether nothing behind an application is reached."""
    if node.fn is cond:
        return node.attrs["then"] in unreturning and node.attrs["orelse"] in unreturning
    if node.fn is while_loop:
        test = node.attrs["cond"].output
        forever = isinstance(test, Constant) and bool(test.value)
        return forever or node.attrs["cond"] in unreturning or node.attrs["body"] in unreturning
    if node.fn is for_loop:
        return node.attrs["body"] in unreturning
    if node.fn is check:
        return isinstance(node.args[0], Constant) and not node.args[0].value
    return node.fn is raise_ or node.fn in unreturning
