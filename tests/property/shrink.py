"""Makes a failing program smaller: deletes statements, takes bodies out of branches and loops, replaces expressions by parts.

A change is kept where the program still fails in the same executor with the same kind of message. Each attempt runs in a child
process where the failure ends the process.
"""

from __future__ import annotations

import ast
import copy
import multiprocessing
import random
import re
from collections.abc import Iterator

from .execute import EXECUTORS, Verdict, check, program_of


def serve(pipe) -> None:
    """Answer what to check with verdicts."""
    import warnings

    warnings.simplefilter("ignore")
    while True:
        try:
            what = pipe.recv()
        except EOFError:
            return
        try:
            verdict = check(*what)
        except Exception as error:  # no program any more
            verdict = Verdict("invalid", repr(error))
        pipe.send(verdict)


class Apart:
    """`check` in another process; a process that ends or hangs is a verdict too."""

    def __init__(self, timeout: float = 60):
        self.timeout, self.process = timeout, None

    def __call__(self, *what) -> Verdict:
        if self.process is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send(what)
            if self.pipe.poll(self.timeout):
                return self.pipe.recv()
            detail = "no answer"
        except (EOFError, OSError):
            detail = "the process ended"
        self.process.kill()
        self.process = None
        return Verdict("failed", detail, what[3][0] if len(what) > 3 and len(what[3]) == 1 else "process")


def signature(verdict: Verdict) -> tuple:
    """What makes two failures the same."""
    length = 60 if "internal" in verdict.detail else 14
    return verdict.kind, verdict.executor, re.sub(r"[^a-zA-Z]+", " ", verdict.detail.split("instead of")[0])[:length]


def smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Programs that are a little smaller."""
    blocks = [
        (node, name)
        for node in ast.walk(tree)
        for name in ("body", "orelse", "cases")
        if isinstance(getattr(node, name, None), list) and getattr(node, name)
    ]
    for k, (node, name) in enumerate(blocks):
        block = getattr(node, name)
        for i in reversed(range(len(block))):
            if len(block) == 1 and name == "body":
                new: list = (
                    [ast.Pass()]
                    if not isinstance(block[0], ast.Pass) and not isinstance(node, ast.Module | ast.Lambda)
                    else block
                )
                if new is block:
                    continue
            else:
                new = block[:i] + block[i + 1 :]
            yield replaced(tree, k, name, new)
            if isinstance(block[i], ast.If | ast.For | ast.While):
                for inner in (block[i].body, block[i].orelse):
                    if inner:
                        yield replaced(tree, k, name, block[:i] + inner + block[i + 1 :])
    count = sum(isinstance(n, ast.expr) for n in ast.walk(tree))
    for k in range(count):
        node = nth(tree, k)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and worth(part):
                yield with_expression(tree, k, part)
        if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            for i in range(len(node.elts)):
                part = copy.deepcopy(node)
                del part.elts[i]
                yield with_expression(tree, k, part)
        if not isinstance(node, ast.Constant | ast.Name | ast.Lambda | ast.JoinedStr | ast.FormattedValue):
            for literal in (ast.Constant(1), ast.Constant(1.5), ast.Constant(True)):
                yield with_expression(tree, k, literal)


def worth(part: ast.expr) -> bool:
    """Whether a part may stand for the whole."""
    if isinstance(part, ast.Constant | ast.Starred) or isinstance(getattr(part, "ctx", None), ast.Store):
        return False
    return not (isinstance(part, ast.Name) and part.id in ("np", "math", "float", "int", "len", "sum"))


def nth(tree: ast.AST, k: int) -> ast.expr:
    """The expression at a position of the walk."""
    return next(n for i, n in enumerate(n for n in ast.walk(tree) if isinstance(n, ast.expr)) if i == k)


def replaced(tree: ast.Module, k: int, name: str, new: list) -> ast.Module:
    """A copy whose `k`th block is another."""
    memo = copy.deepcopy((tree, new))
    again, block = memo
    found = [
        (node, field)
        for node in ast.walk(again)
        for field in ("body", "orelse", "cases")
        if isinstance(getattr(node, field, None), list) and getattr(node, field)
    ]
    setattr(found[k][0], name, block)
    return again


def with_expression(tree: ast.Module, k: int, part: ast.expr) -> ast.Module:
    """A copy whose `k`th expression is another."""
    again = copy.deepcopy(tree)
    target, part = nth(again, k), copy.deepcopy(part)
    for node in ast.walk(again):
        for field, value in ast.iter_fields(node):
            if value is target:
                setattr(node, field, part)
            elif isinstance(value, list) and any(v is target for v in value):
                value[[v is target for v in value].index(True)] = part
    return again


def shrink(text: str, calls: list[tuple], limit: int = 1500) -> tuple[str, tuple, Verdict]:
    """A smaller program that fails alike, one tuple of arguments for it, and its verdict."""
    check = Apart()
    wanted = check(text, calls, "<shrinking>")
    best, count = text, 0
    if wanted.kind != "failed":
        return text, calls[0], wanted
    executors = (wanted.executor,)
    if wanted.executor == "process":
        for name in EXECUTORS:
            if check(text, calls, "<shrinking>", (name,)).kind == "failed":
                executors = (name,)
                wanted.executor = name
                break
    for args in calls:
        verdict = check(text, [args], "<shrinking>", executors)
        if signature(verdict) == signature(wanted):
            calls = [args]
            break
    progress = True
    while progress:
        progress = False
        for tree in smaller(ast.parse(best)):
            count += 1
            if count > limit:
                break
            try:
                candidate = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
                if len(candidate) >= len(best):
                    continue
                verdict = check(candidate, calls, "<shrinking>", executors)
            except Exception:
                continue
            if signature(verdict) == signature(wanted):
                best, progress = candidate, True
                break
    return best, calls[0] if len(calls) == 1 else tuple(calls), check(best, calls, "<shrinking>", executors)


def shrink_seed(seed: int) -> str:
    """The program of a seed, made smaller, as text."""
    text, args, verdict = shrink(*program_of(random.Random(seed).randrange))
    return f"# seed {seed}: {verdict.kind} {verdict.executor}: {verdict.detail}\n# arguments: {args!r}\n{text}"
