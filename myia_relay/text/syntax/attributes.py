"""The parser of numbers, texts and attributes."""

from __future__ import annotations

import re

from ..dtypes import DTYPES, SUFFIXES, is_float, read_number
from ..tree import Attribute, Literal
from .cursor import NAMES
from .types import TypeParser

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
}


DEEPEST_LIST = 20  # lists in lists


class AttributeParser(TypeParser):
    """Literals and attributes."""

    def number(self, start: int, negative: bool = False) -> Literal:
        """The number at the position, as a literal.

        Args:
            start: of a minus sign before it, else of the number.
            negative: whether there is one.
        """
        text = self.texts[self.pos]
        self.pos += 1
        span = self.since(start)
        try:
            value, dtype = read_number(text, negative)
        except ValueError as error:
            self.note(str(error), span)
            value, dtype = 0, "int32"
        return Literal(value, dtype, span=span)

    def text(self) -> str:
        """The text at the position, without quotes and escapes."""
        at = self.pos
        self.pos += 1

        def char(found: re.Match) -> str:
            code = found[1]
            if len(code) > 1 and int(code[1:], 16) <= 0x10FFFF:
                return chr(int(code[1:], 16))
            if code not in _ESCAPES:
                self.note(f"there is no escape \\{code}; a backslash is written \\\\", self.tokens.span(at, at))
                return code
            return _ESCAPES[code]

        return _ESCAPE.sub(char, self.texts[at][1:-1])

    def attributes(self, closing: str, opened: int) -> tuple[tuple[str, Attribute], ...]:
        """`name=value, ..` up to a closing bracket, which is not read."""
        found: dict[str, Attribute] = {}
        while self.kinds[self.pos] != closing:
            at = self.pos
            if not self.at_attribute():
                if self.kinds[at] in ("name", "end", *(")", "]", "}", ";")):
                    self.close(opened, "an attribute: name=value")
                self.fail("arguments stand before attributes", self.here())
            name = self.texts[at]
            if name in found:
                self.note(f"the attribute {name} is given twice", self.tokens.span(at, at))
            self.pos += 2
            found[name] = self.attribute()
            if not self.listed(closing):
                break
        return tuple(found.items())

    def at_attribute(self) -> bool:
        """Whether `name=` comes next."""
        return self.kinds[self.pos + 1] == "=" and self.kinds[self.pos] in NAMES

    def attribute(self) -> Attribute:
        """The value of an attribute. The suffix of a number is read and means nothing."""
        kind, word, start = self.kinds[self.pos], self.texts[self.pos], self.pos
        if kind == "string":
            return self.text()
        if kind in ("number", "-"):
            return self._number_of_attribute()
        if kind in ("True", "False"):
            self.pos += 1
            return kind == "True"
        if kind == "name" and word == "None":
            self.pos += 1
            return None
        if kind in ("[", "("):
            return self._list()
        if kind == "name" and word in DTYPES:
            self.fail(f'a dtype as an attribute stands in quotes: "{word}"')
        if kind in ("local", "graph", "global"):
            self.fail(f"attributes are constants, and {word} is a value", self.tokens.span(start, start))
        self.unexpected('an attribute: a number, True, False, None, a "text", or a list of them')

    def _number_of_attribute(self) -> int | float:
        start = self.pos
        negative = self.accept("-")
        if self.kinds[self.pos] != "number":
            self.unexpected("a number")
        text = self.texts[self.pos]
        stem = re.fullmatch(r"(inf|nan|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(\w*)", text, re.ASCII)
        suffix = stem[2] if stem else ""
        if stem is None or suffix and suffix not in SUFFIXES or len(text) > 300:
            literal = self.number(start, negative)
            if not self.errors:
                self.note(f"{text[:40]} is no number", self.since(start))
            return literal.value
        self.pos += 1
        whole = stem[1].isdigit() and not (suffix and is_float(SUFFIXES[suffix]))
        value = int(stem[1]) if whole else float(stem[1])
        return -value if negative else value

    def _list(self) -> Attribute:
        # Lists in lists are kept on a stack: (position of the bracket, elements so far).
        stack: list[tuple[int, list[Attribute]]] = []
        while True:
            if self.kinds[self.pos] in ("[", "("):
                stack.append((self.pos, []))
                if len(stack) > DEEPEST_LIST:
                    self.fail(f"lists in attributes nest at most {DEEPEST_LIST} deep")
                self.pos += 1
                if self.kinds[self.pos] not in ("]", ")"):
                    continue
            else:
                stack[-1][1].append(self.attribute())
            while True:
                opened, found = stack[-1]
                closing = "]" if self.kinds[opened] == "[" else ")"
                if found and self.listed(closing):
                    break
                self.close(opened, f", or {closing}")
                stack.pop()
                value: Attribute = tuple(found)
                if self.kinds[opened] == "(" and len(found) == 1 and self.kinds[self.pos - 2] != ",":
                    value = found[0]
                if not stack:
                    return value
                stack[-1][1].append(value)
