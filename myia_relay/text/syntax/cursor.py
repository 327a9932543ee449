"""What all parts of the parser share: the position among the tokens, and errors with advice."""

from __future__ import annotations

import re
from typing import NoReturn

from ...utils.errors import NameError_, ParseError
from ..errors import Errors
from ..lexer import CLOSING, OPENING, Tokens
from ..span import Span

NAMES = ("name", "let", "if", "else", "fn", "match", "def", "True", "False")
"""Kinds of tokens that may name an attribute."""

INSTEAD = {
    "true": "write True",
    "false": "write False",
    "in": "the modern spelling is let %x = value; result",
    "then": "the modern spelling is if (condition) { .. } else { .. }",
    "elif": "write else if",
    "return": "there is no return: the last expression of a block is its value",
    "while": "loops are functions that call themselves: let %loop = fn (%i) { .. %loop(%i + 1) .. };",
    "for": "loops are functions that call themselves: let %loop = fn (%i) { .. %loop(%i + 1) .. };",
    "lambda": "functions are written fn (%x) { .. }",
    "fun": "functions are written fn (%x) { .. }",
    "func": "functions are written fn (%x) { .. }",
    "and": "write &&",
    "or": "write ||",
    "not": "write logical_not(..)",
    "null": "the unit value is ()",
    "var": "write let %x = value;",
    "inf": "write inff, or infinity of another dtype: inff64",
    "nan": "write nanf, or another dtype's: nanf64",
    "Grad": 'the modern spelling is relay.grad(module["f"]) from Python, or relay.transform.Gradient()(module)',
}
"""What to write instead of words of other languages, and of the older papers."""


_MARKS = re.compile(r"(?<!\S)(->|=>|[(){}\[\]<>,;:=])(?=\s|$|,)")
_QUOTED = r"'\1'"


class Abandoned(Exception):
    """A definition is given up; its errors are noted."""


class Cursor:
    """A position in the tokens of a text.

    Attributes:
        tokens: all of them.
        pos: of the next one.
        errors: found so far.
    """

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.kinds, self.texts = tokens.kinds, tokens.texts
        self.source = tokens.source
        self.pos = 0
        self.errors = Errors()

    # ------------------------------------------------ places

    def here(self) -> Span:
        """The place of the next token."""
        return self.tokens.span(self.pos, self.pos)

    def since(self, first: int) -> Span:
        """From a token to the last one read."""
        return Span(self.source, self.tokens.starts[first], self.tokens.ends[max(self.pos - 1, first)])

    # ------------------------------------------------ reading

    def accept(self, kind: str) -> bool:
        """Whether the next token is of a kind; it is read then."""
        if self.kinds[self.pos] == kind:
            self.pos += 1
            return True
        return False

    def expect(self, kind: str, what: str) -> int:
        """Read a token of a kind; its position. `what` says what is due, in an error."""
        if self.kinds[self.pos] != kind:
            self.unexpected(what)
        self.pos += 1
        return self.pos - 1

    def close(self, opened: int, what: str = "") -> None:
        """Read the bracket that closes the one at position `opened`."""
        kind = OPENING.get(self.kinds[opened], ">")
        if self.kinds[self.pos] == kind:
            self.pos += 1
            return
        note = (f"the {self.kinds[opened]} opened here", self.tokens.span(opened, opened).loc)
        self.unexpected(what or f"{kind}", note)

    def listed(self, closing: str) -> bool:
        """Behind an element of a list: whether another follows. Reads the comma; one may stand behind the last element."""
        return self.accept(",") and self.kinds[self.pos] != closing

    # ------------------------------------------------ errors

    def found(self) -> str:
        """The next token in words."""
        kind, text = self.kinds[self.pos], self.texts[self.pos]
        if kind == "end":
            return "the end of the text"
        return f"'{text}'" if len(text) < 40 else f"'{text[:36]} ..'"

    def unexpected(self, what: str, *notes: tuple) -> NoReturn:
        """Another token is due.

        Raises:
            ParseError: always.
        """
        text, kind = self.texts[self.pos], self.kinds[self.pos]
        due, colon, example = what.partition(": ") if not what.startswith(":") else (what, "", "")
        message = f"expected {_MARKS.sub(_QUOTED, due)}{colon}{example}, found {self.found()}"
        if text in INSTEAD and kind == "name":
            message += f"; {INSTEAD[text]}"
        elif kind == "=" and "operator" in what:
            message += "; a comparison is written =="
        elif kind in CLOSING and self.pos not in self.tokens.match:
            message += f"; no {CLOSING[kind]} stands before it"
        raise ParseError(message, self.here().loc, *notes)

    def fail(self, message: str, span: Span | None = None, *notes: tuple) -> NoReturn:
        """Syntax that does not go on.

        Raises:
            ParseError: always.
        """
        raise ParseError(message, (span or self.here()).loc, *notes)

    def note(self, message: str, span: Span, *notes: tuple) -> None:
        """Note an error that parsing can go on behind."""
        self.errors.append(ParseError(message, span.loc, *notes))

    def unbound(self, message: str, span: Span, *notes: tuple) -> None:
        """Note a name that means nothing."""
        self.errors.append(NameError_(message, span.loc, *notes))

    # ------------------------------------------------ going on behind an error

    def report(self, error: ParseError) -> None:
        """Note an error that was raised, unless it only follows from a character that means nothing just before it."""
        start, stop = self.tokens.ends[self.pos - 1] if self.pos else 0, self.tokens.starts[self.pos]
        if not any(start <= at <= stop for at in self.tokens.strange):
            self.errors.append(error)

    def skip(self, *stops: str) -> str:
        """Go to a token of one of some kinds outside of brackets, or to where the definition must have ended; its kind."""
        kinds, match = self.kinds, self.tokens.match
        while True:
            kind = kinds[self.pos]
            if kind in stops or kind == "end" or self.at_item():
                return kind
            partner = match.get(self.pos, 0) if kind in OPENING else 0
            self.pos = max(partner, self.pos) + 1

    def at_item(self) -> bool:
        """Whether a definition begins."""
        kind, text = self.kinds[self.pos], self.texts[self.pos]
        if kind == "def":
            return self.kinds[self.pos + 1] == "global"
        after = self.pos + 1
        if kind == "name" and text == "extern":
            return self.texts[after] == "type"
        return kind == "name" and text == "type" and self.kinds[after] == "name"
