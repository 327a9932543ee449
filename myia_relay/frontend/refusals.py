"""What is outside the language, why, and what to write instead."""

from __future__ import annotations

import ast

from ..utils.errors import ParseError
from .context import EXPRESSIONS, ParseContext, handles
from .text.scope import FUNCTIONS, body_of
from .text.tree import children

_ADVICE: dict[type, str] = {
    ast.AsyncFunctionDef: "'async def' is not part of the language: functions do not wait; write 'def'",
    ast.AsyncFor: "'async for' is not part of the language: compiled functions do not wait; write 'for'",
    ast.AsyncWith: "'async with' is not part of the language: compiled functions do not wait",
    ast.With: "'with' is not part of the language: there are no resources to hold; open it around the call",
    ast.ClassDef: "'class' inside a function is not part of the language; define it at the top level of the module",
    ast.Try: "'try' is not part of the language: exceptions end the function; test the condition with 'if', "
    "or catch the exception around the call",
    ast.Import: "'import' inside a function is not part of the language; import at the top of the module",
    ast.ImportFrom: "'from ... import' inside a function is not part of the language; import at the top of the module",
    ast.Await: "'await' is not part of the language: compiled functions do not wait",
    ast.Yield: "'yield' is not part of the language: build a list and return it",
    ast.YieldFrom: "'yield from' is not part of the language: build a list and return it",
    ast.Set: "a set display is not part of the language; write a tuple or a list, or a dict with string keys",
    ast.SetComp: "a set comprehension is not part of the language; write a list comprehension",
    ast.GeneratorExp: "a generator expression is only possible as the sole argument of a call such as sum(...); "
    "write a list comprehension in brackets",
    ast.Starred: "a starred expression is not possible here; write it inside a tuple or a list",
}
_CONTEXTS = {
    name: f"'with {name}()' is not needed, and 'with' is not part of the language: {text}"
    for name, text in (
        (
            "no_grad",
            "derivatives are computed where grad asks for them; relay.stop_gradient(x) keeps them from a value",
        ),
        ("inference_mode", "derivatives are computed where grad asks for them; call the function itself"),
        ("enable_grad", "derivatives are computed where grad asks for them: relay.grad(f)(x)"),
        ("autocast", "cast arrays with x.astype(dtype), or write relay.fit(..., precision='bfloat16')"),
        ("errstate", "floats follow IEEE and warn of nothing; @relay(debug_nans=True) finds the first NaN"),
    )
}
"""What is said of blocks that other libraries want."""
for _name, _text in (
    ("TryStar", _ADVICE[ast.Try].replace("'try'", "'try' with 'except*'")),
    (
        "TypeAlias",
        "'type' inside a function is not part of the language; define the alias at the top level of the module",
    ),
    ("TemplateStr", "template strings are not part of the language; write an f-string"),
):
    if hasattr(ast, _name):
        _ADVICE[getattr(ast, _name)] = _text


def refuse_statement(p: ParseContext, stmt: ast.stmt) -> ParseError:
    """The error for a statement that has no handler."""
    message = _ADVICE.get(type(stmt), f"'{type(stmt).__name__}' statements are not part of the language")
    if isinstance(stmt, ast.With):
        called = ast.unparse(stmt.items[0].context_expr).partition("(")[0].rpartition(".")[2]
        message = _CONTEXTS.get(called, message)
    return p.refuse(message, _first_line(stmt))


def _first_line(stmt: ast.stmt) -> ast.AST:
    """A stand-in for a compound statement that covers its keyword, not its whole body."""
    if stmt.end_lineno == stmt.lineno:
        return stmt
    words: dict[type[ast.stmt], str] = {
        ast.AsyncFunctionDef: "async def",
        ast.AsyncFor: "async for",
        ast.AsyncWith: "async with",
        ast.ClassDef: "class",
    }
    keyword = words.get(type(stmt), type(stmt).__name__.lower().removesuffix("star"))
    end = stmt.col_offset + len(keyword)
    return ast.Pass(lineno=stmt.lineno, col_offset=stmt.col_offset, end_lineno=stmt.lineno, end_col_offset=end)


def check_kind(p: ParseContext) -> None:
    """Refuse generators and coroutines as a whole, at the words that make them so.

    Raises:
        ParseError: the function is one.
    """  # noqa: DOC501 (a function makes the exception)
    if isinstance(p.node, ast.AsyncFunctionDef):
        raise refuse_statement(p, p.node)
    # All parts are searched: a `yield` that is never reached still makes a generator.
    stack = list(reversed(body_of(p.node)))
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            raise p.refuse(_ADVICE[type(part)], part)
        if not isinstance(part, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(reversed(children(part)))


@handles(EXPRESSIONS, *[kind for kind in _ADVICE if issubclass(kind, ast.expr)])
def refused_expression(p: ParseContext, node: ast.expr):
    """An expression that is outside the language."""
    raise p.refuse(_ADVICE[type(node)], node)
