"""`match`: patterns become tests, from left to right; each test is made only if those before it succeeded.

    case P: body      =>  if_(test of P, {captures; body}, {the other cases})

This is the form of a pattern with a single test. A pattern with several tests, or with a guard, computes a flag and its
captures first:

    (matched, l, r) = if_(isinstance(s, Node), {if_(isinstance(s.left, Leaf), {(True, ...)}, {(False, unbound)})}, ...)

so that the other cases occur once. As in Python, captures are bound when the whole pattern has matched, before the
guard.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from ..ir import syntax
from ..ir.node import Constant, Node
from .assignments import bind
from .blocks import Continuation, block, branches, live_after
from .conditionals import conditional
from .context import STATEMENTS, ParseContext, handles
from .text.scope import bindings

Captures = list[tuple[str, Node, ast.AST]]


@handles(STATEMENTS, ast.Match)
def match_statement(p: ParseContext, stmt: ast.Match, more: bool, live_end: set[str]):
    """`match subject: case ...`; if no case matches, nothing happens."""
    subject = p.expr(stmt.subject)
    if stmt.cases:
        frame = yield _case(p, stmt, subject, 0, more, live_end)
        return frame
    return None


def _case(p: ParseContext, stmt: ast.Match, subject: Node, k: int, more: bool, live_end: set[str]):
    """The cases from number `k` on; a step."""
    case = stmt.cases[k]
    live = live_after(p, stmt)
    names = bindings([case.pattern])
    before = {key: p.state.env.get(key) for name in names for key in (name, f"$bound.{name}")}
    captures: Captures = []

    def bind_all() -> None:
        p.here = p.live.bound(case)
        for name, value, at in captures:
            bind(p, name, value, at)

    if _irrefutable(case.pattern):
        _open(p, case.pattern, subject, captures, lambda: None)
        bind_all()
        if case.guard is None:
            yield block(p, case.body, live)
            return None
        cond = p.expr(case.guard)

        def prepare() -> None:
            """Nothing is left to do: the captures were bound before the guard."""
    elif _single_test(case.pattern) and case.guard is None:
        cond = _test(p, case.pattern, subject)

        def prepare() -> None:
            _open(p, case.pattern, subject, captures, lambda: None)
            bind_all()
    else:

        def matched() -> Node:
            bind_all()
            return Constant(True) if case.guard is None else p.expr(case.guard)

        if case.guard is None:
            for name in names:
                p.state.env.pop(name, None)
                p.state.env.pop(f"$bound.{name}", None)
        cond = _attempt(p, case.pattern, subject, captures, matched)

        def prepare() -> None:
            for name in names:
                p.state.env.pop(f"$bound.{name}", None)

    def then():
        prepare()
        return block(p, case.body, live)

    def other(p: ParseContext, more: bool, live_end: set[str]):
        if case.guard is None:
            # The pattern has not matched, so it has bound nothing.
            for key, value in before.items():
                if value is None:
                    p.state.env.pop(key, None)
                else:
                    p.state.env[key] = value
        if k + 1 < len(stmt.cases):
            return _case(p, stmt, subject, k + 1, more, live_end)
        return None

    frame = yield branches(p, cond, then, [Continuation(stmt, other)], more, live, p.origin(case.pattern), "case")
    return frame


def _plain(pattern: ast.pattern) -> ast.pattern:
    """A pattern without the `as` around it."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    return pattern


def _irrefutable(pattern: ast.pattern) -> bool:
    return isinstance(_plain(pattern), (ast.MatchAs, ast.MatchStar))


def _single_test(pattern: ast.pattern) -> bool:
    """Whether the pattern is a single test with nothing but captures inside."""
    inner = _plain(pattern)
    if isinstance(inner, ast.MatchClass):
        return all(_irrefutable(part) for part in [*inner.patterns, *inner.kwd_patterns])
    if isinstance(inner, ast.MatchSequence):
        return all(_irrefutable(part) for part in inner.patterns)
    return isinstance(inner, (ast.MatchValue, ast.MatchSingleton))


def _test(p: ParseContext, pattern: ast.pattern, subject: Node) -> Node:
    """The outermost test of a pattern."""
    inner = _plain(pattern)
    if isinstance(inner, ast.MatchValue):
        return p.apply(operator.eq, subject, p.expr(inner.value), at=inner)
    if isinstance(inner, ast.MatchSingleton):
        return p.apply(operator.is_, subject, p.constant(inner.value, inner), at=inner)
    if isinstance(inner, ast.MatchClass):
        return p.apply(isinstance, subject, p.expr(inner.cls), at=inner)
    if isinstance(inner, ast.MatchSequence):
        star = any(isinstance(part, ast.MatchStar) for part in inner.patterns)
        attrs = {"length": len(inner.patterns) - star, "star": star}
        return p.apply(syntax.match_sequence, subject, at=inner, attrs=attrs)
    if isinstance(inner, ast.MatchMapping):
        raise p.refuse("a mapping pattern is not part of the language; match a dataclass or a tuple", inner)
    raise p.refuse(f"'{type(inner).__name__}' is not part of the language", inner)


def _attempt(
    p: ParseContext, pattern: ast.pattern, subject: Node, captures: Captures, matched: Callable[[], Node]
) -> Node:
    """Test a whole pattern; the result is `matched()` if it matches, else False."""
    inner = _plain(pattern)
    if _irrefutable(inner):
        return _open(p, pattern, subject, captures, matched)
    if isinstance(inner, ast.MatchOr):
        if bindings([inner]):
            raise p.refuse(
                "alternatives '|' that capture names are not part of the language; write a case for each", inner
            )

        def alternatives(k: int) -> Node:
            found = _attempt(p, inner.patterns[k], subject, [], lambda: Constant(True))
            if k + 1 == len(inner.patterns):
                return found
            return conditional(p, found, lambda: Constant(True), lambda: alternatives(k + 1), inner, "or")

        cond = alternatives(0)
    else:
        cond = _test(p, inner, subject)
    return conditional(
        p, cond, lambda: _open(p, pattern, subject, captures, matched), lambda: Constant(False), inner, "case"
    )


def _open(p: ParseContext, pattern: ast.pattern, subject: Node, captures: Captures, matched: Callable):
    """Take a subject apart whose outermost test succeeded, and continue with the patterns inside."""
    while isinstance(pattern, (ast.MatchAs, ast.MatchStar)):
        if pattern.name is not None:
            captures.append((pattern.name, subject, pattern))
        inner = getattr(pattern, "pattern", None)
        if inner is None:
            return matched()
        pattern = inner
    parts: list[tuple[ast.pattern, Callable[[], Node]]] = []
    if isinstance(pattern, ast.MatchClass):
        for k, part in enumerate(pattern.patterns):
            parts.append((part, lambda k=k, part=part: _field(p, pattern, subject, k, part)))
        for attr, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            parts.append((part, lambda attr=attr, part=part: p.apply(getattr, subject, Constant(attr), at=part)))
    elif isinstance(pattern, ast.MatchSequence):
        stars = [k for k, part in enumerate(pattern.patterns) if isinstance(part, ast.MatchStar)]
        count = len(pattern.patterns)
        before = stars[0] if stars else count
        attrs = {"before": before, "star": bool(stars), "after": count - before - 1 if stars else 0}
        if not all(_wildcard(part) for part in pattern.patterns):
            elements = p.apply(syntax.unpack, subject, at=pattern, attrs=attrs)
            for k, part in enumerate(pattern.patterns):
                parts.append((part, lambda k=k, part=part: p.apply(operator.getitem, elements, Constant(k), at=part)))
    parts = [(part, value) for part, value in parts if not _wildcard(part)]

    def step(k: int):
        if k == len(parts):
            return matched()
        part, value = parts[k]
        return _attempt(p, part, value(), captures, lambda: step(k + 1))

    return step(0)


def _field(p: ParseContext, pattern: ast.MatchClass, subject: Node, k: int, at: ast.AST) -> Node:
    cls = p.expr(pattern.cls)
    return p.apply(syntax.match_field, subject, cls, at=at, attrs={"position": k})


def _wildcard(pattern: ast.pattern) -> bool:
    return (
        isinstance(pattern, (ast.MatchAs, ast.MatchStar))
        and pattern.name is None
        and (getattr(pattern, "pattern", None) is None)
    )
