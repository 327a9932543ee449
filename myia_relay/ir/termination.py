"""Which loops are known to end: only these may be removed when their values are unused.

    while i < n: i += 1        ends: an integer moves towards a bound that does not change
    while err > tol: ...       may run for ever, as CPython's would

Idea: a loop ends if its condition implies a comparison of a carried integer with something that does not change, and
each iteration moves the integer towards it. A counter that could jump over its bound and wrap is not accepted, unless
it is a Python integer, whose sums are checked. A counted loop ends if its body does. Every other loop counts as one
that may not end.

Input: an application of a typed graph. Output: whether it is known to end.
"""

from __future__ import annotations

from ..abstract.types import Scalar
from .node import Apply, Constant, Graph, Node, Parameter, applied, applies

Env = dict[Node, Node]  # a parameter of the condition -> what it stands for elsewhere

TOWARDS = {"lt": 1, "le": 1, "gt": -1, "ge": -1}
FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def ends(loop: Apply) -> bool:
    """Whether a `while_loop` always ends, apart from loops inside it."""
    condition, body = loop.attrs["cond"], loop.attrs["body"]
    carried = loop.attrs["carried"]
    if isinstance(condition.output, Constant):
        return not condition.output.value
    if applied(body.output) != "make_struct":
        return False
    after: Env = dict(zip(condition.params, body.output.args[:carried]))
    before: Env = dict(zip(condition.params, body.params))
    return any(_approaches(test, after, before, body) for test in _implied(condition))


def _implied(graph: Graph) -> list[tuple[Apply, Env]]:
    """Comparisons that hold if a graph's output is true, each with the values of its parameters in the outermost graph."""
    found: list[tuple[Apply, Env]] = []
    stack: list[tuple[Node, Env]] = [(graph.output, {p: p for p in graph.params})]
    while stack:
        node, env = stack.pop()
        if applies(node, "logical_and"):
            stack += [(a, env) for a in node.args]
        elif applies(node, "cond") and _is_false(node.attrs["orelse"].output):
            stack.append((node.args[0], env))
            then = node.attrs["then"]
            stack.append((then.output, {p: _outside(env, a) for p, a in zip(then.params, node.args[1:])}))
        elif applies(node, *TOWARDS) or applies(node, "where") and _directed(node):
            found.append((node, env))
    return found


def _outside(env: Env, node: Node) -> Node:
    """The value of a node in the outermost graph."""
    return env.get(node, node)


def _is_false(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is False


def _directed(node: Apply) -> bool:
    """`i < stop if step > 0 else i > stop`, the form that `range` has if the sign of its step is not known."""
    up, down = node.args[1:]
    return applies(up, "lt") and applies(down, "gt") and up.args == down.args


def _approaches(test: tuple[Apply, Env], after: Env, before: Env, body: Graph) -> bool:
    """Whether each iteration moves one side of a comparison towards the other, which does not change."""
    node, env = test
    if applies(node, "where"):
        left, right = (_outside(env, a) for a in node.args[1].args)
        new = after.get(left)
        # `range` has checked that its step is not zero, and its sign is that of the test.
        step = new.args[1] if applies(new, "add") and new.args[0] is before[left] else None
        return step in body.params[len(after) :] and _stays(right, after, before)
    name = applied(node)
    left, right = (_outside(env, a) for a in node.args)
    return _moves(left, right, name, after, before) or _moves(right, left, FLIPPED[name], after, before)


def _moves(counter: Node, bound: Node, name: str, after: Env, before: Env) -> bool:
    """Whether `counter` is a carried integer that each iteration moves towards a bound that does not change."""
    new = after.get(counter)
    t = counter.type
    if new is None or not isinstance(t, Scalar) or "int" not in t.dtype or not _stays(bound, after, before):
        return False
    if not applies(new, "add", "sub"):
        return False
    adds = applied(new) == "add"
    a, b = new.args
    if b is before[counter] and adds:
        a, b = b, a
    if a is not before[counter] or not isinstance(b, Constant):
        return False
    step = int(b.value) * (1 if adds else -1) * TOWARDS[name]
    # In steps of one, a counter cannot miss its bound, unless that is the last number and may be reached.
    return step > 0 and (t.weak or step == 1 and name in ("lt", "gt"))


def _stays(node: Node, after: Env, before: Env) -> bool:
    """Whether a value of the condition is the same in every iteration."""
    if isinstance(node, Constant):
        return True
    return isinstance(node, Parameter) and (node not in after or after[node] is before[node])
