"""The parser of modules: definitions, data types, extern types."""

from __future__ import annotations

from collections.abc import Collection

from ...utils.collector import resting
from ...utils.deep import deeply
from ...utils.errors import ParseError, nearest
from ..errors import Enough, Errors, raise_all
from ..lexer import tokenize
from ..span import SourceText
from ..tree import ConstructorDef, Definition, ExternType, ModuleTree, TypeDef
from .constants import read_pool
from .cursor import Abandoned
from .expressions import ExpressionParser
from .types import RESERVED

DEEPEST = 10_000  # brackets within brackets
SHALLOW = 40  # as deeply as the stack of any caller allows


def parse(
    text: str | SourceText, operators: Collection[str] | None = None, base: ModuleTree | None = None
) -> ModuleTree:
    """The tree of a module's text, with all names resolved.

    Args:
        text: the text.
        operators: the names of the operators; None where names that are not bound are not to be looked up.
        base: a module whose types and definitions are added, in front.

    Returns:
        The tree; graph bindings stand where the text has them (`placement.placed` moves them).

    Raises:
        ParseError: the first error found is one of syntax; the others are its notes.
        NameError_: it is a name that means nothing.
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    found: list[Errors] = []
    tree = ModuleTree()
    with resting():
        try:
            tokens = tokenize(source)
            found.append(tokens.errors)
            depth, deepest = tokens.depth
            if depth > DEEPEST:
                message = f"brackets nest more than {DEEPEST} deep"
                raise ParseError(message, tokens.span(deepest, deepest).loc)
            pool = read_pool(tokens)
            parser = ModuleParser(tokens, pool, operators, base or ModuleTree())
            found.append(parser.errors)
            tree = parser.module() if depth <= SHALLOW else deeply(parser.module)
        except Enough as enough:
            if all(errors is not enough.errors for errors in found):  # of the tokens
                found.append(enough.errors)
    if any(found):
        raise_all([error for errors in found for error in errors])
    return tree


class ModuleParser(ExpressionParser):
    """Modules.

    Attributes:
        base: a module whose names are known.
        known_operators: names of operators; None where they are not to be looked up.
    """

    def __init__(self, tokens, pool, operators: Collection[str] | None, base: ModuleTree):
        super().__init__(tokens, pool)
        self.base = base
        self.known_operators = operators
        self.types: dict[str, TypeDef | ExternType] = {}
        self.definitions: dict[str, Definition] = {}
        self.constructors.update({name: c for name, (_, c) in base.constructors.items()})

    def module(self) -> ModuleTree:
        """All items: types first, as the names of constructors decide what a bare name is."""
        starts = self._starts()
        for start in starts:
            if self.kinds[start] != "def":
                self._item(start)
        for start in starts:
            if self.kinds[start] == "def":
                self._item(start)
        self._look_up()
        return ModuleTree({**self.base.types, **self.types}, {**self.base.definitions, **self.definitions})

    def _starts(self) -> list[int]:
        """Where items begin. What stands before the first one is an error."""
        found = []
        if not self.at_item() and self.kinds[self.pos] != "end":
            self._no_item()
            self.pos += 1
            self.skip()
        while self.kinds[self.pos] != "end":
            found.append(self.pos)
            self.pos += 2
            self.skip()
        return found

    def _no_item(self) -> None:
        text = self.texts[self.pos]
        message = f"expected a definition, found {self.found()}; a module is made of "
        message += "def @f(..) { .. }, type Name { .. } and extern type Name"
        if text == "def" and self.kinds[self.pos + 1] == "name":
            message = f"a global has an @: def @{self.texts[self.pos + 1]}(..) {{ .. }}"
        elif text in ("fn", "let", "import", "from") or self.kinds[self.pos] in ("local", "graph"):
            word = "there is no import: relay.parse_text(text, prelude=True) adds the prelude"
            message = (
                word
                if text in ("import", "from")
                else f"{self.found()} stands outside of a definition; put it into one: def @main() {{ .. }}"
            )
        self.note(message, self.here())

    def _item(self, start: int) -> None:
        """Read an item, and check that another begins behind it."""
        self.pos = start
        try:
            if self.kinds[start] == "def":
                self._definition()
            else:
                self._type()
            if self.kinds[self.pos] != "end" and not self.at_item():
                self._no_item()
        except ParseError as error:
            self.report(error)
        except Abandoned:
            if not self.errors or self.errors[-1].loc != self.here().loc:  # else the error says so
                self._unclosed(start)
        except RecursionError:
            self.note("this is nested too deeply", self.tokens.span(start, start))

    def _unclosed(self, start: int) -> None:
        """Note brackets that the end of the definition leaves open, where an error within hid them."""
        stop = self.pos
        for i in range(start, stop):
            if self.kinds[i] == "{" and i not in self.tokens.match:
                place = self.tokens.span(i, i)
                self.note("this { is not closed", place)
                return

    def _definition(self) -> None:
        start = self.pos
        self.pos += 1
        at = self.expect("global", "@ and a name")
        name = self.texts[at][1:]
        before = self.definitions.get(name)
        span = self.tokens.span(at, at)
        if before is not None or name in self.base.definitions:
            self._twice(f"@{name}", span, before)
        try:
            function = self.function(start)
        except (ParseError, Abandoned):
            self.definitions.setdefault(name, None)  # type: ignore[arg-type]  nothing is made of a text with errors
            raise
        self.definitions[name] = Definition(name, function, span=span)

    def _twice(self, what: str, span, before) -> None:
        notes = [("it was defined here", before.span.loc)] if before is not None and before.span is not None else []
        advice = "" if before is not None else " by the prelude; take another name"
        self.note(f"{what} is defined already{advice}", span, *notes)

    def _type(self) -> None:
        start = self.pos
        extern = self.texts[self.pos] == "extern"
        self.pos += 2 if extern else 1
        at = self.expect("name", "the name of the type")
        name, span = self.texts[at], self.tokens.span(at, at)
        before = self.types.get(name)
        if before is not None or name in self.base.types:
            self._twice(f"the type {name}", span, before)
        if name in RESERVED or "." in name:
            self.note(f"a type cannot be called {name}", span)
        params = self.type_params()
        if extern:
            self.types[name] = ExternType(name, params, span=self.since(start))
            return
        self.types[name] = ExternType(name, params)  # until it is known what is in it
        mark = self.declare(params)
        try:
            constructors = self._constructors()
        finally:
            self.restore(mark)
        self.types[name] = TypeDef(name, params, constructors, span=self.since(start))

    def _constructors(self) -> tuple[ConstructorDef, ...]:
        opened = self.expect("{", "{ and constructors: type List[A] { Cons(A, List[A]), Nil, }")
        found = []
        while self.kinds[self.pos] != "}":
            at = self.expect("name", "the name of a constructor")
            name, span = self.texts[at], self.tokens.span(at, at)
            fields = ()
            if self.accept("("):
                fields = self._listed_types(self.pos - 1)
            constructor = ConstructorDef(name, fields, span=self.since(at))
            before = self.constructors.get(name)
            if before is not None:
                mine = before if before.span is not None and before.span.source is self.source else None
                self._twice(f"the constructor {name}", span, mine)
            elif name == "_" or "." in name:
                self.note(f"{name} is no name for a constructor", span)
            elif self.known_operators is not None and name in self.known_operators:
                self.note(f"{name} is the name of an operator; a constructor needs another", span)
            self.constructors[name] = constructor
            found.append(constructor)
            if not self.listed("}"):
                break
        self.close(opened, ", or }")
        return tuple(found)

    # ------------------------------------------------ names

    def _look_up(self) -> None:
        """Note the globals, operators and data types that there are not."""
        definitions = {*self.definitions, *self.base.definitions}
        types = {*self.types, *self.base.types}
        for use in self.globals:
            if use.name not in definitions and use.span is not None:
                known = nearest(f"@{use.name}", [f"@{name}" for name in definitions])
                self.unbound(f"@{use.name} is not defined in this module{known}", use.span)
        for use in self.data_types:
            if use.name not in types and use.span is not None:
                self.unbound(self._unknown_type(use.name, types), use.span)
        if self.known_operators is None:
            return
        for use in self.operators:
            if use.name not in self.known_operators and use.span is not None:
                self.unbound(self._unknown_operator(use.name, definitions), use.span)

    def _unknown_type(self, name: str, types: set[str]) -> str:
        from ..dtypes import DTYPES

        advice = nearest(name, [*types, *DTYPES, "Tensor"])
        if not advice:
            advice = f"; type parameters are declared: def @f[{name}](..)" if len(name) <= 2 else ""
        return f"there is no type {name}{advice}"

    def _unknown_operator(self, name: str, definitions: set[str]) -> str:
        assert self.known_operators is not None
        if name in definitions:
            return f"there is no operator {name}; the definition is called @{name}"
        if name in self.scopes_seen():
            return f"there is no operator {name}; a local is written %{name}"
        if name[:1].isupper():
            return f"there is no constructor {name}{nearest(name, self.constructors)}"
        last = [known for known in self.known_operators if known.rsplit(".", 1)[-1] == name]
        advice = f"; did you mean '{last[0]}'?" if last else nearest(name, [*self.known_operators, *self.constructors])
        return f"there is no operator {name}{advice}"

    def scopes_seen(self) -> set[str]:
        """The names of locals in the text."""
        return {text[1:] for kind, text in zip(self.kinds, self.texts) if kind == "local"}
