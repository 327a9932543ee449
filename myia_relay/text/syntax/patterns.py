"""The parser of patterns."""

from __future__ import annotations

from ...utils.errors import nearest
from ..lexer import Tokens
from ..tree import (
    ConstructorDef,
    ConstructorPattern,
    Local,
    PatternExpr,
    TuplePattern,
    VariablePattern,
    WildcardPattern,
)
from ..walk import bound_locals
from .attributes import AttributeParser

DEEPEST = 100  # patterns in patterns


class PatternParser(AttributeParser):
    """Patterns.

    Attributes:
        constructors: of the module, by name.
    """

    def __init__(self, tokens: Tokens):
        super().__init__(tokens)
        self.constructors: dict[str, ConstructorDef] = {}
        self._depth = 0

    def pattern(self) -> PatternExpr:
        """A whole pattern, whose variables differ."""
        self._depth = 0
        found = self._pattern()
        seen: set[str] = set()
        for local in bound_locals(found):
            if local.name in seen and local.span is not None:
                self.note(f"%{local.name} stands twice in this pattern", local.span)
            seen.add(local.name)
        return found

    def _pattern(self) -> PatternExpr:
        start, kind, text = self.pos, self.kinds[self.pos], self.texts[self.pos]
        if kind == "local":
            self.pos += 1
            local = Local(text[1:], span=self.tokens.span(start, start))
            annotation = self.type() if self.accept(":") else None
            return VariablePattern(local, annotation, span=self.since(start))
        if kind == "(":
            fields = self._fields()
            if len(fields) == 1 and self.kinds[self.pos - 2] != ",":
                return fields[0]
            return TuplePattern(fields, span=self.since(start))
        if kind in ("number", "True", "False", "string", "-"):
            self.fail("a pattern holds no literals; compare with if (..) { .. } else { .. }")
        if kind != "name":
            self.unexpected("a pattern: _, %x, Constructor(..), (.., ..)")
        self.pos += 1
        span = self.tokens.span(start, start)
        if text == "_":
            return WildcardPattern(span=span)
        if text not in self.constructors:
            self.unbound(f"there is no constructor {text}{nearest(text, self.constructors)}", span)
        fields = self._fields() if self.kinds[self.pos] == "(" else ()
        return ConstructorPattern(text, fields, span=self.since(start))

    def _fields(self) -> tuple[PatternExpr, ...]:
        opened, self.pos = self.pos, self.pos + 1
        found = []
        self._depth += 1
        if self._depth > DEEPEST:
            self.fail(
                f"patterns nest at most {DEEPEST} deep; match what is within in an arm",
                self.tokens.span(opened, opened),
            )
        while self.kinds[self.pos] != ")":
            found.append(self._pattern())
            if not self.listed(")"):
                break
        self._depth -= 1
        self.close(opened, ", or )")
        return tuple(found)
