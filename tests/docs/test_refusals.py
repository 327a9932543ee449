"""`docs/refusals.md` lists what is refused, and what the compiler says: constructs, and what tests of Python's snippets refuse.

`pytest tests/docs/test_refusals.py --update-golden` writes the page anew.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from myia_relay import CompileError, relay
from myia_relay.frontend.refusals import _ADVICE
from tests.programs import test_kinds, test_python_expressions, test_python_statements

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "refusals.md"
HEAD = """# What is refused

Every refusal is an error when the function is first called with such arguments. It names the file, the line and the expression,
says what is wrong and, where there is something, what to write instead. This list is made from the compiler's own table and from
its tests, and a test compares it with them.

## Constructs

| construct | what the error says |
|---|---|
"""
SYNTAX = {
    "AsyncFunctionDef": "async def", "AsyncFor": "async for", "AsyncWith": "async with", "With": "with", "ClassDef": "class",
    "Try": "try", "TryStar": "except*", "Import": "import", "ImportFrom": "from ... import", "Await": "await", "Yield": "yield",
    "YieldFrom": "yield from", "Set": "{a, b}", "SetComp": "{a for a in b}", "GeneratorExp": "(a for a in b)", "Starred": "*a",
    "TypeAlias": "type A = ...", "TemplateStr": 't"..."',
}  # fmt: skip
"""Class of `ast` -> how it is written."""
NEWER = {
    "TryStar": _ADVICE[ast.Try].replace("'try'", "'try' with 'except*'"),
    "TypeAlias": "'type' inside a function is not part of the language; define the alias at the top level of the module",
    "TemplateStr": "template strings are not part of the language; write an f-string",
}
"""What older versions of Python do not have in their `ast`."""
FAMILIES = {
    "Expressions": (test_python_expressions, "Of a list `l`, a tuple `t`, a string `s`, a dict `d`, an int `n` and a float `x`."),
    "Statements": (test_python_statements, "Of the same."),
    "Functions of NumPy": (test_kinds, "Of a float32 array `f`, an int8 array `i`, an int `n` and a float `x`."),
}  # fmt: skip


def constructs() -> dict[str, str]:
    """How a construct is written -> the advice."""
    advice = {kind.__name__: text for kind, text in _ADVICE.items()} | NEWER
    return {SYNTAX[name]: advice[name] for name in SYNTAX}


def pinned(module) -> dict[str, str]:
    """What a family of tests refuses."""
    name = "refused_" + module.__name__.rpartition("_")[2] + ".json"
    return json.loads(Path(module.__file__).with_name(name).read_text())


def cell(code: str) -> str:
    """Code in a table."""
    return "`" + code.replace("|", "\\|") + "`"


def prose(text: str) -> str:
    """Text in a table, without markup."""
    return re.sub(r"([*_<|])", r"\\\1", text)


def rows(text: str) -> dict[str, str]:
    """The rows of the tables of a text."""
    found = re.findall(r"^\| `(.*?)` \| (.*) \|$", text, re.MULTILINE)
    return {code.replace("\\|", "|"): re.sub(r"\\([*_<|])", r"\1", message) for code, message in found}


def written() -> str:
    """The page, as it ought to be."""
    text = HEAD + "".join(f"| {cell(code)} | {prose(advice)} |\n" for code, advice in constructs().items())
    for title, (module, intro) in FAMILIES.items():
        text += f"\n## {title}\n\n{intro}\n\n| program | what the error says |\n|---|---|\n"
        for program in pinned(module):
            with pytest.raises(CompileError) as caught:
                relay(module.program(program), executor="interpreter")(*module.ARGS)
            message = " ".join(caught.value.message.split())
            text += f"| {cell(program)} | {prose(f'{type(caught.value).__name__}: {message}')} |\n"
    return text


def test_the_page_lists_what_is_refused(updating):
    if updating:
        PAGE.write_text(written(), "utf-8")
    listed = rows(PAGE.read_text("utf-8"))
    wanted = constructs()
    for module, _ in FAMILIES.values():
        wanted |= pinned(module)
    assert list(listed) == list(wanted), "to write it anew: pytest tests/docs/test_refusals.py --update-golden"
    for code, message in wanted.items():
        assert listed[code].startswith(message), code


def test_the_table_of_constructs_has_every_advice_of_the_front_end():
    assert {kind.__name__ for kind in _ADVICE} <= set(SYNTAX)
