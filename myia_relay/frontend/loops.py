"""Loops stay loops: a body graph over the variables that iterations pass to each other.

A variable is carried if the body binds it and something reads it later, at the head of the next iteration or after the
loop. `break` and `return` leave through the status: a `for` whose body may leave returns "go on" as its last value, a
`while` tests the status in its condition.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node, Parameter
from ..utils.source import Origin
from .assignments import bind_target
from .blocks import Continuation, block, branches, live_after
from .conditionals import condition
from .context import BREAK, EXHAUSTED, NORMAL, RETURN, STATEMENTS, BlockState, ParseContext, handles
from .marks import again, ends_header
from .objects import loop_begins, loop_ends
from .text import scope as scopes


@dataclass(eq=False)
class Carried:
    """The variables that a loop carries.

    Attributes:
        names: variables and pseudo-variables, in order.
        initial: their values before the first iteration.
        live: variables that are needed at the head or after the loop.
        leaves: how the body may leave: "break", "return".
    """

    names: list[str]
    initial: list[Node]
    live: set[str]
    leaves: set[str]


def _carried(p: ParseContext, stmt: ast.For | ast.While, own: list[ast.AST], status: bool) -> Carried:
    """What a loop carries; `own` are the parts that run in every iteration."""
    live = p.live.head(stmt) | p.live.after(stmt) | p.kept.keys()
    names, initial = [], []
    env = p.state.env
    for name in sorted((scopes.bindings(own) | p.procedures.mutated(own)) & p.scope.locals & live - p.scope.cells):
        names.append(name)
        initial.append(env.get(name) or Constant(syntax.UNBOUND))
        p.settle(initial[-1], stmt)
        flag = env.get(f"$bound.{name}") or (Constant(False) if name not in env else None)
        if flag is not None:
            names.append(f"$bound.{name}")
            initial.append(flag)
    leaves = scopes.jumps(stmt.body) & {"break", "return"}
    if status:
        names.append("$status")
        initial.append(Constant(NORMAL))
    if "return" in leaves:
        names.append("$ret")
        initial.append(Constant(syntax.UNBOUND))
    loop_begins(p, initial)
    return Carried(names, initial, live, leaves)


def _enter(p: ParseContext, graph: Graph, carried: Carried, origin: Origin) -> list[Parameter]:
    """Start a graph that takes the carried values, and make it the current state."""
    env = dict(p.state.env)
    params = [graph.add_parameter(name, origin=origin) for name in carried.names]
    p.entered[graph] = len(p.entered)
    for name, param, initial in zip(carried.names, params, carried.initial, strict=True):
        env[name] = param
        p.flows.setdefault(param, (initial,))
    env["$status"] = Constant(NORMAL)
    p.state = BlockState(graph, env)
    return params


def _ends(p: ParseContext, carried: Carried, params: list[Parameter], at: Origin, more: Sequence[Node] = ()) -> None:
    """Close a body: it returns the current values of what the loop carries."""
    state = p.state
    if state.dead is not None:
        state.graph.output = state.dead
        return
    outs = []
    for name, param in zip(carried.names, params, strict=True):
        if name.startswith("$bound."):
            bound = name.removeprefix("$bound.") in state.env
            value = state.env.get(name) or Constant(bound)
        else:
            value = state.env.get(name) or Constant(syntax.UNBOUND)
        p.settle(value, at)
        outs.append(value)
        p.flows[param] = (*p.flows[param], value)
    state.graph.output = p.apply(syntax.make_tuple, *outs, *more, at=at)


def _leave(p: ParseContext, carried: Carried, result: Apply, params: list[Parameter], origin: Origin) -> None:
    """Bind the results of the loop."""
    for name, value, param in zip(
        carried.names, p.parts(result, carried.names, origin, single=False), params, strict=True
    ):
        p.state.env[name] = value
        p.flows[value] = (param,)
    loop_ends(p)


def _go_on(p: ParseContext, origin: Origin) -> Node:
    """Whether the status allows another iteration: normal or continue."""
    status = p.state.status
    if p.state.dead is not None:
        return Constant(False)
    if status is not None:
        return Constant(status < BREAK)
    return p.apply(operator.lt, p.state.env["$status"], Constant(BREAK), at=origin)


@handles(STATEMENTS, ast.For)
def for_statement(p: ParseContext, stmt: ast.For):
    """`for x in xs: ... else: ...`."""
    origin, base = p.origin(stmt), p.state
    iterable = p.expr(stmt.iter)
    status = "return" in scopes.jumps(stmt.body) or bool(stmt.orelse) and "break" in scopes.jumps(stmt.body)
    carried = _carried(p, stmt, [stmt.target, *stmt.body], status)
    graph = Graph(f"{p.root.name}.for", parent=base.graph, origin=origin)
    graph.flags["repeats"] = True
    item = graph.add_parameter(
        stmt.target.id if isinstance(stmt.target, ast.Name) else "item", origin=p.origin(stmt.target)
    )
    p.items[item] = iterable
    params = _enter(p, graph, carried, origin)
    p.loops.append(carried.live)
    p.iterated.append(iterable)
    p.here = p.live.bound(stmt)
    before = again(p, stmt) if p.marked else {}
    bind_target(p, stmt.target, item)
    if p.marked:
        ends_header(p, stmt, before)
    yield block(p, stmt.body, carried.live, "loop")
    p.iterated.pop()
    p.loops.pop()
    stops = bool(carried.leaves)
    _ends(p, carried, params, origin, [_go_on(p, origin)] if stops else [])
    p.state = base
    attrs = {"names": tuple(carried.names), **({"stops": True} if stops else {})}
    result = p.apply(syntax.for_, iterable, Constant(graph), *carried.initial, at=origin, attrs=attrs)
    _leave(p, carried, result, params, origin)
    yield _after(p, stmt, carried, False, origin)


@handles(STATEMENTS, ast.While)
def while_statement(p: ParseContext, stmt: ast.While):
    """`while c: ... else: ...`."""
    origin, base = p.origin(stmt), p.state
    forever = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)
    # A condition that binds variables is moved into the body, where they are visible: `while True: if not c: exhausted;
    # ...`
    moved = bool((scopes.bindings([stmt.test]) | p.procedures.mutated([stmt.test])) & p.scope.locals) or _may_change(
        p, stmt.test
    )
    leaves = bool(scopes.jumps(stmt.body) & {"break", "return"}) or moved
    carried = _carried(p, stmt, [stmt.test, *stmt.body], leaves)
    head = Graph(f"{p.root.name}.while.test", parent=base.graph, origin=p.origin(stmt.test))
    head.flags["repeats"] = True
    test_params = _enter(p, head, carried, origin)
    if leaves:
        p.state.env["$status"] = test_params[carried.names.index("$status")]
        going = p.apply(operator.lt, p.state.env["$status"], Constant(BREAK), at=stmt.test)
    else:
        going = None
    if forever or moved:
        head.output = going or Constant(True)
    elif going is None:
        if p.marked:
            again(p, stmt)
        head.output = condition(p, stmt.test)
    else:
        head.output = _both(p, going, stmt)
    p.state = base
    graph = Graph(f"{p.root.name}.while", parent=base.graph, origin=origin)
    graph.flags["repeats"] = True
    params = _enter(p, graph, carried, origin)
    p.loops.append(carried.live)
    if moved:
        p.here = p.live.during(stmt) | carried.live
        if p.marked:
            again(p, stmt)
        cond = condition(p, stmt.test)
        yield branches(
            p,
            cond,
            lambda: block(p, stmt.body, carried.live, "loop"),
            [Continuation(stmt, lambda p, more, live_end: p.state.jump(EXHAUSTED))],
            False,
            carried.live,
            origin,
            "while",
        )
    else:
        yield block(p, stmt.body, carried.live, "loop")
    p.loops.pop()
    _ends(p, carried, params, origin)
    for test_param, param in zip(test_params, params, strict=True):
        p.flows[test_param] = (param,)
    p.state = base
    attrs = {"names": tuple(carried.names)}
    result = p.apply(syntax.while_, Constant(head), Constant(graph), *carried.initial, at=origin, attrs=attrs)
    _leave(p, carried, result, params, origin)
    if forever and "break" not in carried.leaves:
        # Only `return` leaves the loop, so what follows is never reached.
        p.state.env.setdefault("$ret", Constant(syntax.UNBOUND))
        p.state.jump(RETURN)
        return
    yield _after(p, stmt, carried, moved, origin)


def _may_change(p: ParseContext, test: ast.expr) -> bool:
    """Whether a condition may call an inner function that assigns to variables of this one."""
    around: ParseContext | None = p
    while around is not None and not around.scope.cells:
        around = around.outer
    return around is not None and any(isinstance(part, ast.Call) for part in ast.walk(test))


def _both(p: ParseContext, going: Node, stmt: ast.While) -> Node:
    """`going and test`, lazily."""
    base, test = p.state, stmt.test
    p.state = p.fork("while.and", p.origin(test))
    then = p.state.graph
    if p.marked:
        again(p, stmt)
    then.output = p.apply(bool, condition(p, test), at=test)
    p.state = base
    other = Graph(f"{p.root.name}.while.stop", parent=base.graph, origin=p.origin(test))
    other.output = Constant(False)
    return p.apply(syntax.if_, going, Constant(then), Constant(other), at=test)


def _after(p: ParseContext, stmt: ast.For | ast.While, carried: Carried, moved: bool, origin: Origin):
    """The `else` clause, and the status after the loop; a step."""
    env = p.state.env
    status = env["$status"]
    if isinstance(status, Constant):
        if stmt.orelse:
            if "break" not in carried.leaves:
                yield block(p, stmt.orelse, live_after(p, stmt) | _outer_live(p))
        return

    def outward() -> Node | Constant:
        """3 if the loop was left by `return`, else 0."""
        if "return" not in carried.leaves:
            return Constant(NORMAL)
        returned = p.apply(operator.eq, status, Constant(RETURN), at=origin)
        return p.apply(operator.mul, returned, Constant(RETURN), at=origin, name="$status")

    if not stmt.orelse:
        env["$status"] = outward()
        return

    def run_else():
        p.state.jump(NORMAL)
        return block(p, stmt.orelse, live)

    def skip_else(p: ParseContext, more: bool, live_end: set[str]) -> None:
        p.state.env["$status"] = outward()

    live = p.live.after(stmt) | _outer_live(p)
    env["$status"] = Constant(NORMAL)
    if moved:
        ran_out = p.apply(operator.eq, status, Constant(EXHAUSTED), at=origin)
    else:
        ran_out = p.apply(operator.lt, status, Constant(BREAK), at=origin)
    yield branches(p, ran_out, run_else, [Continuation(stmt, skip_else)], False, live, origin, "else")


def _outer_live(p: ParseContext) -> set[str]:
    """What the enclosing loop needs, to which an `else` clause may jump."""
    return p.loops[-1] if p.loops else set()
