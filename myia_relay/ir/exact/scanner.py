"""The tokens of one line of an exact text (`ir.exact`), and errors with their places. `ir.reading` says what the lines mean.

Input: a text. Output: for a line a `LineScanner`, which hands out tokens and raises located errors.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from typing import Any, NamedTuple

from ...utils.errors import ParseError
from ...utils.source import Loc, register_text

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
  | (?P<sigil>[%@$](?:[\w.$]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
  | (?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d][\w.]*)
  | (?P<mark>//|.)
    """,
    re.VERBOSE,
)
DEEPEST = 100
"""Brackets in brackets of one line."""


class LineToken(NamedTuple):
    """A token: its kind ("string", "sigil", "number", "name", "mark", "end"), its text, and where it begins in its line."""

    kind: str
    text: str
    at: int


class ReadText:
    """A text that is read, for errors in it.

    Attributes:
        lines: its lines.
    """

    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()

    def fail(self, message: str, line: int, start: int = 0, end: int | None = None) -> ParseError:
        """The error at some characters of a line, which is counted from 0; at all of it without them.

        Args:
            message: what is wrong.
            line: the line.
            start, end: the characters.
        """
        shown = self.lines[line] if line < len(self.lines) else ""
        digest = hashlib.blake2s(self.text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        file = register_text(f"<graph {digest}>", "<graph>", self.text)
        first, last = (len(shown[:k].encode("utf-8", "surrogatepass")) for k in (start, end))
        return ParseError(message, Loc(file, line + 1, first, line + 1, max(last, first + 1)))


class LineScanner:
    """Hands out the tokens of a part of a line.

    Args:
        source: the text.
        line: the line, counted from 0.
        start, end: which characters of it; all without them.
    """

    def __init__(self, source: ReadText, line: int, start: int = 0, end: int | None = None):
        self.source, self.line = source, line
        text = source.lines[line]
        self.tokens: list[LineToken] = []
        for found in _TOKEN.finditer(text, start, len(text) if end is None else end):
            if found.lastgroup != "space":
                self.tokens.append(LineToken(str(found.lastgroup), found[0], found.start()))
        self.tokens.append(LineToken("end", "", len(text) if end is None else end))
        self.position = 0
        depth = 0
        for token in self.tokens:
            if token.kind == "mark":
                depth += (token.text in "([{") - (token.text in ")]}")
                if depth > DEEPEST:
                    self.position = self.tokens.index(token)
                    raise self.fail(f"more than {DEEPEST} brackets are open")

    @property
    def token(self) -> LineToken:
        """The next token."""
        return self.tokens[self.position]

    def fail(self, message: str, token: LineToken | None = None) -> ParseError:
        """The error at a token, the next one by default."""
        token = token or self.token
        return self.source.fail(message, self.line, token.at, token.at + len(token.text))

    def expected(self, what: str) -> ParseError:
        """The error that something is missing before the next token."""
        found = self.token.text
        return self.fail(f"{what} is needed here, not {found[:40]!r}" if found else f"{what} is missing here")

    def take(self) -> LineToken:
        """The next token, which is behind us then."""
        token = self.token
        self.position += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        """Whether the next token is this mark or word; it is taken then."""
        found = self.token.text == text
        self.position += found
        return found

    def expect(self, mark: str) -> None:
        """Take a mark.

        Raises:
            ParseError: there is another token.
        """
        if not self.accept(mark):
            raise self.expected(f"'{mark}'")

    def end(self) -> None:
        """Nothing more may stand in the line.

        Raises:
            ParseError: something does.
        """
        if self.token.kind != "end":
            raise self.expected("the end of the line")

    def name(self, sigil: str, what: str) -> str:
        """The name behind a sigil; one in quotes without them.

        Raises:
            ParseError: there is none.
        """
        if self.token.kind != "sigil" or self.token.text[0] != sigil:
            raise self.expected(what)
        name = self.unquoted(self.token.text[1:])
        self.take()
        return name

    def unquoted(self, name: str) -> str:
        """A name without its quotes, if it has some.

        Raises:
            ParseError: what stands in the quotes is no literal.
        """
        return self.literal(name) if name[:1] in ("'", '"') else name

    def literal(self, text: str) -> Any:
        """The value of a literal of Python: a string, bytes, a number.

        Raises:
            ParseError: it has none; at the next token.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a wrong escape
                return ast.literal_eval(text)
        except (SyntaxError, ValueError, Warning):
            raise self.fail("this is no literal") from None


__all__ = ["DEEPEST", "LineScanner", "LineToken", "ReadText"]
