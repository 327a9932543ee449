"""Sequences of statements, and branches.

A jump ends a branch. If one side of an `if` certainly jumps, the statements after the `if` are put into the other side:

    if c: return a          t = if_(c, {a}, {rest...})
    rest...            =>   return t

This needs no flag and duplicates nothing. If it is not certain, the statements after the `if` are put under
`if_(eq($status, 0), ...)`. The branches opened in this way are kept on a list and closed at the end of the block, so
their depth does not use Python's stack.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ..ir.node import Constant, Node
from ..utils.errors import ParseError
from ..utils.source import Origin
from .conditionals import condition
from .context import CONTINUE, NORMAL, RETURN, STATEMENTS, BlockState, ParseContext, handles
from .marks import begins, ends
from .refusals import refuse_statement
from .text.scope import bindings, jumps


@dataclass(eq=False)
class OpenBranch:
    """A branch that stays open until the end of its block.

    Attributes:
        base: the state before the branch.
        cond: its condition.
        closed: the side that is complete.
        open_then: whether the open side is the one that runs where the condition holds.
        origin: where it is written.
        queue: statements of the open side, to be parsed before what follows the branch.
    """

    base: BlockState
    cond: Node
    closed: BlockState
    open_then: bool
    origin: Origin
    queue: list = field(default_factory=list)


@dataclass(eq=False)
class Continuation:
    """The rest of a statement, to be parsed as if it were a statement of its own.

    Attributes:
        stmt: the statement.
        run: `(p, more, live_end) -> step` that parses the rest.
    """

    stmt: ast.stmt
    run: Callable


def block(p: ParseContext, stmts: list, live_end: set[str], kind: str = "branch"):
    """Parse statements into the current state; a step for `trampoline.run`.

    Args:
        p: the function.
        stmts: the statements, or `Continuation`s.
        live_end: variables that whoever looks at the state afterwards needs.
        kind: "function" (ends with `return None`), "loop" (ends with `continue`) or "branch".
    """
    frames: list[OpenBranch] = []
    queue = deque(stmts)
    while queue:
        item = queue.popleft()
        stmt = item.stmt if isinstance(item, Continuation) else item
        reach = p.state.reach
        if reach == "no":
            break
        if reach == "maybe":
            frames.append(_guard(p, p.origin(stmt)))
        more = kind != "branch" or bool(queue)
        p.here, p.statement = p.live.during(stmt), stmt
        p.waiting.clear()
        before = begins(p, stmt) if p.marked and item is stmt else None
        try:
            result = _start(p, item, more, live_end)
            if inspect.isgenerator(result):
                result = yield result
        except ParseError as error:
            _recover(p, stmt, error)
        except RecursionError:
            raise p.refuse("this statement is nested too deeply; give names to parts of it", stmt) from None
        else:
            if before is not None:
                ends(p, stmt, before)
            if isinstance(result, OpenBranch):
                frames.append(result)
                queue.extendleft(reversed(result.queue))
    if kind == "function":
        if p.state.reach == "maybe":
            frames.append(_guard(p, p.origin(p.node)))
        if p.state.reach == "yes":
            p.state.env["$ret"] = Constant(None, origin=p.origin(p.node))
            p.state.jump(RETURN)
    for frame in reversed(frames):
        _close(p, frame, live_end, kind)
    if kind == "loop":
        _at_loop_end(p.state)


def _start(p: ParseContext, item, more: bool, live_end: set[str]):
    """Call the handler of a statement; it returns a step if it contains statements.

    Raises:
        ParseError: statements of this kind are not part of the language.
    """  # noqa: DOC501 (a function makes the exception)
    if isinstance(item, Continuation):
        return item.run(p, more, live_end)
    handler = STATEMENTS.get(type(item))
    if handler is None:
        raise refuse_statement(p, item)
    if isinstance(item, (ast.If, ast.Match)):
        return handler(p, item, more, live_end)
    return handler(p, item)


def _recover(p: ParseContext, stmt: ast.stmt, error: ParseError) -> None:
    """Record a refusal and continue with the next statement, so that all refusals are reported together."""
    p.errors.append(error)
    for name in bindings([stmt]) & p.scope.locals:
        p.state.env[name] = Constant(None)
        p.state.env.pop(f"$bound.{name}", None)


def _guard(p: ParseContext, origin: Origin) -> OpenBranch:
    """Open the branch that runs if the status is normal."""
    base = p.state
    cond = p.apply(operator.eq, base.env["$status"], Constant(NORMAL), at=origin)
    skipped = p.fork("skipped", origin)
    if p.loops:
        skipped.jumped = True
    else:
        skipped.jump(RETURN)  # outside loops, control cannot leave in another way
    p.state = p.fork("rest", origin)
    p.state.jump(NORMAL)
    return OpenBranch(base, cond, skipped, True, origin)


def _close(p: ParseContext, frame: OpenBranch, live_end: set[str], kind: str) -> None:
    opened = p.state
    if kind == "loop":
        _at_loop_end(opened)
        _at_loop_end(frame.closed)
    p.state = frame.base
    then, other = (opened, frame.closed) if frame.open_then else (frame.closed, opened)
    p.join(frame.cond, then, other, live_end, frame.origin)


def _at_loop_end(state: BlockState) -> None:
    """At the end of a loop's body, `continue` and reaching the end are the same."""
    if state.dead is None and state.status == CONTINUE:
        state.jump(NORMAL)


def branches(p: ParseContext, cond: Node, then, other, more: bool, live: set[str], at: Origin, label="if"):
    """Parse both sides of a branch, and join them or leave one of them open; a step.

    Args:
        p: the function.
        cond: the condition.
        then: makes the step for the side that runs where the condition holds.
        other: the statements of the other side.
        more: whether anything follows in the block.
        live: variables that are needed after the branch.
        at: where the branch is written.
        label: names the graphs.

    Returns:
        A `OpenBranch` where one side stays open.
    """
    base = p.state
    p.state = p.fork(f"{label}.then", at)
    yield then()
    left = p.state
    p.state = base
    p.state = right = p.fork(f"{label}.else", at)
    # A chain of `elif`s whose bodies return needs no joins: the rest of the chain continues in the open side.
    if more and left.reach == "no" and (left.dead is None or other):
        return OpenBranch(base, cond, left, False, at, list(other))
    if other:
        yield block(p, other, live)
        right = p.state
    p.state = base
    if more and right.reach == "no" and right.dead is None and left.reach != "no":
        p.state = left
        return OpenBranch(base, cond, right, True, at)
    p.join(cond, left, right, live, at)
    return None


@handles(STATEMENTS, ast.If)
def if_statement(p: ParseContext, stmt: ast.If, more: bool, live_end: set[str]):
    """`if c: ... else: ...`."""
    cond = condition(p, stmt.test)
    live = live_after(p, stmt)
    frame = yield branches(
        p,
        cond,
        lambda: block(p, stmt.body, live),
        stmt.orelse,
        more,
        live,
        p.origin(stmt.test),
    )
    return frame


def live_after(p: ParseContext, stmt: ast.stmt) -> set[str]:
    """Variables that are live after a statement, also if control leaves it by a jump."""
    live = p.live.after(stmt) | p.kept.keys()
    if p.loops and jumps([stmt]) & {"break", "continue"}:
        live |= p.loops[-1]
    return live
