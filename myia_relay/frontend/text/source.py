"""From a Python function to its syntax tree.

The whole file (or notebook cell) is parsed once, so that line numbers are those of the file. It is also compiled again,
so that the text can be compared with the code that runs (`bytecode`). Texts that are in no file are in `prompt`.
"""

from __future__ import annotations

import ast
import linecache
import os
import types
from collections import OrderedDict
from typing import Any

from ...utils.errors import ParseError
from ...utils.source import Loc
from . import prompt
from .bytecode import by_place, extent_of, has_asserts_of_pytest, place, rewritten_by_pytest, same_code, same_place
from .tree import FunctionNode, children, extent, walk

_FILES: OrderedDict[tuple, Any] = OrderedDict()
_FILES_KEPT = 64


class Source:
    """Where a function is written.

    Attributes:
        function: the Python function.
        node: its `def` or `lambda`.
        file: the file's name as Python knows it.
    """

    def __init__(self, function: types.FunctionType, node: FunctionNode, file: str):
        self.function, self.node, self.file = function, node, file

    def loc(self, node: ast.AST, name: str | None = None) -> Loc:
        """The source range of a part of the tree."""
        return Loc(self.file, *extent(node), name or self.function.__name__)


def find(function: types.FunctionType) -> Source:
    """The syntax tree of a function.

    Raises:
        ParseError: there is no source, it is not the source of this function any more, or it is ambiguous.
    """  # noqa: DOC501 (a function makes the exception)
    code = function.__code__
    file = code.co_filename
    here = Loc(file, code.co_firstlineno, 0, code.co_firstlineno, 0, function.__name__)
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file, function.__globals__))
    node = _node(file, text, function, here) if text else None
    if node is not None:
        return Source(function, node, file)
    for piece in prompt.texts(code):
        try:
            node = _node(file, piece, function, here)
        except ParseError:
            continue  # a piece of the history that ends within a statement
        if node is not None:
            return Source(function, node, prompt.registered(piece))
    # From Python 3.13 on, "<string>" refers to the text of `python -c`, whatever code exec made under the same name.
    if not text or file in ("<string>", "<stdin>"):
        raise _no_source(function, here)
    raise ParseError(
        f"the source of '{function.__name__}' is not what runs: '{file}' has changed since it was imported; "
        "import it again (importlib.reload) or restart",
        here,
    )


def _no_source(function: types.FunctionType, here: Loc) -> ParseError:
    """The error for a function without source text."""
    file, why = here.file, "it was made by exec, eval, or typed at the prompt"
    advice = "put the function into a file or a notebook cell"
    if file == "<stdin>":
        why = "it was read from a pipe, or typed at a prompt that keeps no history"
        advice += ", or use IPython or the prompt of Python 3.13"
    elif file == "<dynamic-code>":
        why = "cloudpickle has sent it without its source"
        advice = "decorate it before it is sent, or put it into a module that the receiver can import"
    elif not file.startswith("<") and not os.path.exists(file):
        why = f"there is no file '{file}'"
        advice = "keep the .py file beside its byte code"
    elif file.startswith("<"):
        advice += ", or register its text: linecache.cache[name] = (len(text), None, text.splitlines(True), name)"
    return ParseError(
        f"the source of '{function.__name__}' cannot be found ({why}); the compiler reads source text: {advice}", here
    )


def _node(file: str, text: str, function: types.FunctionType, here: Loc) -> FunctionNode | None:
    """The syntax of a function within a text; None if the text is not what the function was compiled from.

    Raises:
        ParseError: the text does not parse, or it is ambiguous which function is meant.
    """
    code = function.__code__
    nodes, codes = _parsed(file, text, function, here)
    candidates = [node for node in nodes.get(place(code), ()) if _could_be(node, code)]
    compiled = codes.get(place(code), [])
    if has_asserts_of_pytest(code):
        compiled = [*compiled, *(c for codes in rewritten_by_pytest(file, text) for c in codes.get(place(code), []))]
    matching = [node for node in candidates if _is_compiled_to(node, code, compiled, candidates)]
    if len(matching) > 1 and len({ast.dump(node) for node in matching}) > 1:
        raise ParseError(
            "it is ambiguous which of several lambdas on this line is meant; put each on a line of its own, or use def",
            here,
        )
    return matching[0] if matching else None


def _parsed(file: str, text: str, function: types.FunctionType, here: Loc):
    """Functions of a file, as syntax and as code objects, both by (name, first line).

    Raises:
        ParseError: the file does not parse any more, or is nested too deeply.
    """
    flags = function.__code__.co_flags & (0x1000000 | 0x2000000)  # "from __future__ import annotations" and similar
    key = (file, text, flags)
    known = _FILES.get(key)
    if known is not None:
        _FILES.move_to_end(key)
        return known
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        module = ast.parse(text, file)
        top = compile(text, file, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ParseError(f"the file of '{function.__name__}' does not parse any more: {error}", here) from None
    except (RecursionError, MemoryError):
        raise ParseError(f"the source of '{function.__name__}' is nested too deeply; split it up", here) from None
    _mangle(module)
    nodes: dict[tuple[str, int], list[FunctionNode]] = {}
    for node in walk(module):
        if isinstance(node, FunctionNode):
            name = "<lambda>" if isinstance(node, ast.Lambda) else getattr(node, "_written", node.name)
            nodes.setdefault((name, _first_line(node)), []).append(node)
    codes = by_place(top)
    _FILES[key] = nodes, codes
    if len(_FILES) > _FILES_KEPT:
        _FILES.popitem(last=False)
    return nodes, codes


def _first_line(node: FunctionNode) -> int:
    """The first line of a `def`, with its decorators, or of a lambda."""
    return min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", [])]])


def _could_be(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether the parameters of a function with the same name and first line are those of the code."""
    a = node.args
    plain = [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
    stars = [p.arg for p in (a.vararg, a.kwarg) if p]
    count = code.co_argcount + code.co_kwonlyargcount
    ours = [*code.co_varnames[:count], *code.co_varnames[count : count + len(stars)]]
    return plain + stars == ours


def _mangle(module: ast.Module) -> None:
    """Mangle private names inside classes, as Python's compiler does: `__x` => `_C__x`."""
    stack: list[tuple[ast.AST, str | None]] = [(module, None)]
    while stack:
        node, cls = stack.pop()
        if cls:
            for attr in ("id", "attr", "arg", "name"):
                name = getattr(node, attr, None)
                if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                    if attr == "name":
                        renamed: Any = node
                        renamed._written = name
                    setattr(node, attr, f"_{cls}{name}")
        inner = node.name.lstrip("_") if isinstance(node, ast.ClassDef) else cls
        stack.extend((child, inner) for child in children(node))


def _is_compiled_to(node: FunctionNode, code: types.CodeType, compiled: list, candidates: list) -> bool:
    """Whether compiling `node` gives `code`.

    Args:
        node: one of the functions with this name, first line and parameters.
        code: the code that runs.
        compiled: the code objects with this name and first line, as the text gives them now.
        candidates: all of these functions.
    """
    if len(candidates) == 1:
        return any(same_code(new, code) for new in compiled)
    exact = [n for n in candidates if same_code(_compiled_alone(n, code), code)]
    within = extent_of(code)
    if within is not None and any(same_place(new, code) for new in compiled):
        # Positions are exact from 3.11 on: the code lies within the lambda, and not within a smaller one.
        inside = [n for n in exact or candidates if _contains(n, within)]
        return bool(inside) and node is min(inside, key=_span)
    return node in exact


def _contains(node: FunctionNode, within: tuple) -> bool:
    body = extent(node.body if isinstance(node, ast.Lambda) else node)
    return body[:2] <= within[0] and within[1] <= body[2:]


def _span(node: ast.AST) -> tuple[int, int]:
    line, column, end_line, end_column = extent(node)
    return end_line - line, end_column - column


def _compiled_alone(node: FunctionNode, code: types.CodeType) -> types.CodeType:
    """The code of one lambda or def taken out of its file, inside a function that has the variables it captures."""
    where: dict[str, Any] = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    arguments = ast.arguments([], [ast.arg(name, None, **where) for name in code.co_freevars], None, [], [], None, [])
    body: list[ast.stmt] = [ast.Return(node, **where)] if isinstance(node, ast.Lambda) else [node]
    around: Any = ast.FunctionDef("around", arguments, body, [], None, **where)
    if hasattr(around, "type_params") or "type_params" in ast.FunctionDef._fields:
        around.type_params = []
    compiled = compile(ast.Module([around], []), "<alone>", "exec", dont_inherit=True)
    outer = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    return next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == code.co_name)


def forget(file: str | None = None) -> None:
    """Drop cached syntax trees (of one file): for files that change while the process runs."""
    for key in [k for k in _FILES if file is None or k[0] == file]:
        del _FILES[key]
    linecache.checkcache(file)
