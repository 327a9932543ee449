"""What is said of ill-formed texts: all of it, as `errors.txt` has it.

`pytest tests/text/syntax/test_errors.py --update-golden` writes the texts anew.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest

from myia_relay import CompileError, NameError_, ParseError, relay
from myia_relay.text.placement import placed
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
    text = "def @f() {\n" + "".join(f"  let %x{i} = %y{i};\n" for i in range(50)) + "  1\n}"
    with pytest.raises(NameError_) as caught:
        relay.parse_text(text)
    assert str(caught.value).count("also wrong") == 9 and "and 40 more" in str(caught.value)
