"""What is said of ill-formed texts: all of it, as `errors.txt` has it.

`pytest tests/text/syntax/test_errors.py --update-golden` writes the texts anew.
"""

from __future__ import annotations

import re
import traceback
import tracemalloc
from pathlib import Path

import pytest

from myia_relay import CompileError, NameError_, ParseError, relay
from myia_relay.text.lexer import tokenize
from myia_relay.text.placement import placed
from myia_relay.text.span import SourceText
from myia_relay.text.syntax.items import parse
from tests.text.syntax.ill_formed import ILL_FORMED, OPERATORS

GOLDEN = Path(__file__).with_name("errors.txt")
LONGEST = 120  # characters of a line


def said(text: str) -> str:
    """The text and the error that it raises."""
    with pytest.raises(CompileError) as caught:
        placed(parse(text, OPERATORS))
    error = caught.value
    message = str(error).strip("\n")
    if type(error).__name__ not in message:
        message = f"{type(error).__name__}: {message}"
    lines = [*(f"> {line}" for line in text.splitlines()), *message.splitlines()]
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 2] + ".." for line in lines)


@pytest.fixture(scope="module")
def golden(request) -> list[str]:
    """The texts, one for each program."""
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text("\n\n".join(map(said, ILL_FORMED)) + "\n", "utf-8")
    parts = re.split(r"\n\n(?=>)", GOLDEN.read_text("utf-8").rstrip("\n"))
    assert len(parts) == len(ILL_FORMED), "pytest tests/text/syntax/test_errors.py --update-golden"
    return parts


@pytest.mark.parametrize("i", range(len(ILL_FORMED)))
def test_errors(i, golden):
    assert said(ILL_FORMED[i]).splitlines() == golden[i].splitlines()


@pytest.mark.parametrize("text", ILL_FORMED)
def test_an_error_of_syntax_names_its_place(text):
    with pytest.raises(CompileError) as caught:
        relay.parse_text(text)
    error = caught.value
    assert error.loc is not None and f"<text>:{error.loc.line}:" in str(error)
    assert error.loc.line <= len(text.splitlines()) + 1
    assert "myia_relay/" not in "".join(traceback.format_exception(error)).replace("tests/", "").split("parse_text")[-1]


def test_classes_of_errors():
    with pytest.raises(SyntaxError) as caught:
        relay.parse_text("def @f( { 1 }")
    assert isinstance(caught.value, ParseError) and caught.value.lineno == 1 and caught.value.offset == 9
    with pytest.raises(NameError) as unbound:
        relay.parse_text("def @f() { %x }")
    assert isinstance(unbound.value, NameError_)


def test_a_text_has_the_name_of_its_file(tmp_path):
    path = tmp_path / "f.relay"
    path.write_text("def @f() {\n  %x }")
    with pytest.raises(NameError_) as caught:
        relay.parse_text(path.read_text(), name=str(path))
    assert str(path) in str(caught.value) and "line 2, column 3" in str(caught.value)


def test_other_things_are_no_text():
    with pytest.raises(TypeError, match="takes a text, not bytes"):
        relay.parse_text(b"def @main() { 1 }")


def test_an_error_in_a_notebook():
    with pytest.raises(ParseError) as caught:
        relay.parse_text("def @f() { <1 }")
    assert "&lt;1" in caught.value._repr_html_()


def test_columns_count_characters():
    with pytest.raises(NameError_) as caught:
        relay.parse_text('def @f(%x) { abs(%x, a="äöü") + %y }')
    head, line, carets, *_ = str(caught.value).strip("\n").splitlines()
    assert head.strip() == "<text>:1:33" and line[carets.index("^") :].startswith("%y }")


def test_many_errors_are_counted():
    text = "def @f() {{\n{}  1\n}}".format
    with pytest.raises(NameError_) as caught:
        relay.parse_text(text("".join(f"  let %x{i} = %y{i};\n" for i in range(15))))
    assert str(caught.value).count("also wrong") == 9 and "and 5 more" in str(caught.value)


N = 10_000
MANY = {
    "characters": "def @f() { " + "$ " * N + "1 }",
    "locals": "def @f() { (" + ", ".join(f"%x{k}" for k in range(N)) + ") }",
    "globals": "def @f() { (" + ", ".join(f"@g{k}()" for k in range(N)) + ") }",
    "operators": "def @f() { (" + ", ".join(f"op{k}(1)" for k in range(N)) + ") }",
    "syntax": "".join(f"def @f{k}() {{ let ; 1 }}\n" for k in range(N)),
    "types": "".join(f"def @f{k}(%x: int32) {{ add(%x, 1f) }}\n" for k in range(40)),
    "arguments": "".join(f"def @f{k}(%x: int32) {{ negative(%x, %x) }}\n" for k in range(N)),
    "no relay": "x y z\n" * N,
}


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_twenty_errors_are_enough(text):
    with pytest.raises(CompileError) as caught:
        relay.parse_text(text)
    assert len(caught.value.notes) <= 12
    assert text.startswith("x") or caught.value.notes[-1] == "and more: the first 20 were looked for"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('def @f() { "' + "a" * 1_000_000 + "\n }", "this text has no closing quote on its line"),
        ('def @f() { "' + "\\n" * 200_000 + "\n }", "this text has no closing quote on its line"),
        ("def @f() { %" + "a" * 1_000_000 + " }", "this name has more than 1000 characters"),
        ("def @f() { %x" + "/a" * 20_000 + " }", "expected|has more|means nothing|not bound"),
        ("def @f() { x" + ".a" * 20_000 + " }", "expected|has more|means nothing|operator"),
        ("def @f() { " + "1" * 1_000_000 + " }", "this number has more than 1000 characters"),
    ],
    ids=["quote", "escapes", "name", "path", "dots", "number"],
)
def test_long_tokens_take_little_memory(text, message):
    tracemalloc.start()
    try:
        with pytest.raises(CompileError, match=message) as caught:
            relay.parse_text(text)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 20_000


def test_long_texts_in_quotes():
    tokens = tokenize(SourceText('"' + '\\"a' * 100_000 + '" "" "\\\\" "b'))
    assert tokens.kinds[:3] == ["string"] * 3 and len(tokens.texts[0]) == 300_002 and tokens.texts[2] == '"\\\\"'
    assert len(tokens.errors) == 1
