"""The parser of expressions, blocks and functions."""

from __future__ import annotations

from ...utils.errors import ParseError, nearest
from ..lexer import OPENING, Tokens
from ..span import Span
from ..tree import (
    Arm,
    Attributes,
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    GlobalVar,
    GraphBinding,
    IfExpr,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    OperatorName,
    Param,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    Statement,
    TensorConstant,
    TupleExpr,
    TypeExpr,
    body,
)
from ..walk import bound_locals
from .constants import full, pooled
from .cursor import INSTEAD, Abandoned
from .patterns import PatternParser
from .scopes import Scopes

BINARY = {
    ":=": (0, ":="),
    "||": (1, "logical_or"),
    "&&": (2, "logical_and"),
    "==": (3, "equal"),
    "!=": (3, "not_equal"),
    "<": (4, "less"),
    "<=": (4, "less_equal"),
    ">": (4, "greater"),
    ">=": (4, "greater_equal"),
    "+": (5, "add"),
    "-": (5, "subtract"),
    "*": (6, "multiply"),
    "/": (6, "divide"),
}
"""Binary operators: how tightly they bind, and the operator that they call."""

STARTING = frozenset("( { ! - local graph global name number True False fn if match".split())
"""Kinds of tokens with which an expression may begin."""
POSTFIX = frozenset("( projection < [ .".split())
WITHIN_TYPES = frozenset("name number ( ) [ ] , : ? fn ->".split())


class ExpressionParser(PatternParser):
    """Expressions.

    Attributes:
        scopes: the locals in scope.
        globals: all uses of globals.
        operators: all uses of operators.
        pool: the constants of the metadata.
    """

    def __init__(self, tokens: Tokens, pool: list[Literal | TensorConstant] | None = None):
        super().__init__(tokens)
        self.scopes = Scopes()
        self.globals: list[GlobalVar] = []
        self.operators: list[OperatorName] = []
        self.pool = pool or []
        self._atoms = {
            "local": self._local,
            "graph": self._graph,
            "global": self._global,
            "name": self._name,
            "number": lambda: self.number(self.pos),
            "True": self._truth,
            "False": self._truth,
            "(": self._parentheses,
            "{": self.block,
            "fn": self._function,
            "if": self._if,
            "match": self._match,
        }

    # ------------------------------------------------ blocks

    def block(self) -> Expression:
        """`{ statements result }`: a scope."""
        opened = self.expect("{", "{")
        mark = self.scopes.mark()
        result = self.statements(opened)
        self.scopes.restore(mark)
        self.close(opened)
        return result

    def statements(self, opened: int) -> Expression:
        """Statements and a result, up to the bracket that closes the one at `opened`, which is not read.

        Errors end a statement, and are noted.

        Raises:
            Abandoned: the definition ends here.
        """
        found: list[Statement] = []
        start, kinds = self.pos, self.kinds
        closing = OPENING[kinds[opened]]
        while True:
            begin, kind = self.pos, kinds[self.pos]
            try:
                if kind == "let":
                    found.append(self._let())
                elif kind == "graph" and kinds[begin + 1] == "=":
                    found.append(self._binding())
                else:
                    result = self._result(closing, opened, found)
                    if result is not None:
                        return body(found, result, self.since(start))
            except ParseError as error:
                self.report(error)
                self.pos = begin  # so that brackets within the statement are skipped whole
                stopped = self.skip(";", closing)
                if stopped == ";":
                    self.pos += 1
                elif stopped != closing:
                    raise Abandoned from None
                if kinds[self.pos] == closing:
                    return TupleExpr((), span=self.since(begin))

    def _result(self, closing: str, opened: int, found: list[Statement]) -> Expression | None:
        """The result of a block; None where it was a statement (`e;`), which is added to `found`."""
        begin = self.pos
        kind = self.kinds[begin]
        if kind == closing:
            what = "a block ends in an expression, its value; " if found else "the block is empty; "
            self.fail(f"{what}the unit value is ()")
        if kind == "local" and self.kinds[begin + 1] in ("=", ":"):
            self.scopes.bind(Local(self.texts[begin][1:], span=self.here()))
            self.fail(f"a local is bound by let: let {self.texts[begin]} = value;", self.tokens.span(begin, begin + 1))
        result = self.expression()
        if self.kinds[self.pos] == closing:
            return result
        if self.accept(";"):
            found.append(Let(Local("_", span=result.span), result, span=self.since(begin)))
            return None
        note = (f"the {self.kinds[opened]} opened here", self.tokens.span(opened, opened).loc)
        notes = [note] if self.kinds[self.pos] == "end" else [self._behind(), note]
        self.unexpected(f"an operator, ; or {closing}", *notes)

    def _behind(self) -> tuple:
        """A note that shows the end of what was read last."""
        end = self.tokens.ends[self.pos - 1]
        return "something is missing behind this", Span(self.source, max(end - 1, 0), end).loc

    def _let(self) -> Let:
        start, kinds = self.pos, self.kinds
        self.pos += 1
        at = self.pos
        name = self.texts[at]
        if kinds[at] == "name":
            self.fail(f"a local has a %: let %{name} = value; result", self.tokens.span(at, at))
        if kinds[at] == "graph":
            self.fail(f"a graph binding has no let: {name} = value;", self.tokens.span(start, at))
        self.expect("local", "the name of a local: %name")
        local = Local(name[1:], span=self.tokens.span(at, at))
        bound = False
        try:
            annotation = self.type() if self.accept(":") else None
            self.expect("=", "= and a value" if annotation is not None else ": and a type, or = and a value")
            if self._value_is_function():
                self.scopes.bind(local)
                bound = True
            value = self.expression()
            self.end_of_statement("let")
        finally:
            if not bound:
                self.scopes.bind(local)
        return Let(local, value, annotation, span=self.since(start))

    def end_of_statement(self, what: str) -> None:
        """Read the `;` behind a statement."""
        if self.kinds[self.pos] == ";":
            self.pos += 1
            return
        self.unexpected(f"; behind the value of the {what}", self._behind())

    def _value_is_function(self) -> bool:
        """Whether the value that begins here is a function, as it stands or in brackets. Only then a let sees itself."""
        kinds, match, at, around = self.kinds, self.tokens.match, self.pos, []
        while kinds[at] in ("(", "{"):
            around.append(at)
            at += 1
        if kinds[at] != "fn":
            return False
        while kinds[at] != "{":
            if kinds[at] in ("end", ";", "def"):
                return False
            at += 1
        at = match.get(at, at) + 1
        for opened in reversed(around):
            if match.get(opened) != at:
                return False
            at += 1
        return kinds[at] == ";" or kinds[at] not in ("(", "projection") and kinds[at] not in BINARY

    def _binding(self) -> GraphBinding:
        start, kinds = self.pos, self.kinds
        name = self.texts[start][1:]
        local = Local(name, span=self.tokens.span(start, start))
        self.pos += 2
        numbers = self.scopes.numbers[-1]
        before = numbers.get(name)
        try:
            value = self.expression()
            if not self.accept(";") and kinds[self.pos] not in STARTING and kinds[self.pos] != "let":
                if kinds[self.pos] in ("}", ")"):
                    self.fail("a graph binding is followed by an expression, the value of the block")
                self.unexpected("; or an expression", self._behind())
        finally:
            if before is not None:
                note = ("it was bound here", before.span.loc if before.span else None)
                self.note(f"%{name} is bound twice in this function", self.tokens.span(start, start), note)
            numbers[name] = local
        return GraphBinding(local, value, span=self.since(start))

    # ------------------------------------------------ operators

    def expression(self) -> Expression:
        """An expression of any kind."""
        kinds = self.kinds
        start = self.pos
        first = self.operand()
        found = BINARY.get(kinds[self.pos])
        if found is None:
            return first
        # Operators that wait for their right operand, and operands with where they begin.
        waiting: list[tuple[int, str, int]] = []
        operands: list[tuple[Expression, int, int]] = [(first, start, self.pos)]
        while found is not None:
            strength, name = found
            while waiting and (waiting[-1][0] > strength or waiting[-1][0] == strength and name != ":="):
                self._reduce(waiting, operands)
            waiting.append((strength, name, self.pos))
            self.pos += 1
            start = self.pos
            operands.append((self.operand(), start, self.pos))
            found = BINARY.get(kinds[self.pos])
        while waiting:
            self._reduce(waiting, operands)
        return operands[0][0]

    def _reduce(self, waiting: list[tuple[int, str, int]], operands: list[tuple[Expression, int, int]]) -> None:
        _, name, at = waiting.pop()
        right, _, end = operands.pop()
        left, start, _ = operands.pop()
        span = Span(self.source, self.tokens.starts[start], self.tokens.ends[end - 1])
        if name == ":=":
            operands.append((RefWrite(left, right, span=span), start, end))
        else:
            operator = OperatorName(name, span=self.tokens.span(at, at))
            operands.append((CallExpr(operator, (left, right), span=span), start, end))

    def operand(self) -> Expression:
        """An expression without binary operators."""
        kinds, start = self.kinds, self.pos
        if kinds[start] not in ("-", "!"):
            return self._atom_with_postfix()
        while kinds[self.pos] in ("-", "!"):
            self.pos += 1
        at = self.pos
        if kinds[at] == "number" and kinds[at - 1] == "-":
            at -= 1
            result = self._postfix(self.number(at, negative=True), at)
        else:
            result = self._atom_with_postfix()
        while at > start:
            at -= 1
            span = self.since(at)
            if kinds[at] == "!":
                result = RefRead(result, span=span)
            else:
                result = CallExpr(OperatorName("negative", span=self.tokens.span(at, at)), (result,), span=span)
        return result

    def _atom_with_postfix(self) -> Expression:
        start = self.pos
        atom = self._atoms.get(self.kinds[start])
        if atom is None:
            self.unexpected("an expression")
        result = atom()
        return self._postfix(result, start) if self.kinds[self.pos] in POSTFIX else result

    def _postfix(self, result: Expression, start: int) -> Expression:
        """An atom, which begins at `start`, with the calls and projections behind it."""
        kinds = self.kinds
        while True:
            kind = kinds[self.pos]
            if kind == "(":
                result = self._call(result, start, ())
            elif kind == "projection":
                text = self.texts[self.pos][1:].strip()
                self.pos += 1
                if len(text) > 9:
                    self.fail("no tuple has so many parts", self.tokens.span(self.pos - 1, self.pos - 1))
                result = Projection(result, int(text), span=self.since(start))
            elif kind == "<" and self._at_type_arguments():
                opened, self.pos = self.pos, self.pos + 1
                types = self._type_arguments(opened)
                result = self._call(result, start, types)
            elif kind == "[" and kinds[self.pos + 1] == "number" and kinds[self.pos + 2] == "]":
                text = self.texts[self.pos + 1]
                self.fail(f"the modern spelling of a projection is e.{text}", self.tokens.span(self.pos, self.pos + 2))
            elif kind == "." and kinds[self.pos + 1] == "name":
                self.fail("values have no fields by name; a part of a tuple is written e.0, fields are matched")
            else:
                return result

    def _at_type_arguments(self) -> bool:
        """Whether `<` begins types that are followed by `>(`, rather than a comparison."""
        kinds, at = self.kinds, self.pos + 1
        if kinds[at] not in ("name", "number", "(", "?", "fn"):
            return False
        while kinds[at] in WITHIN_TYPES:
            if kinds[at] in ("(", "["):
                at = self.tokens.match.get(at, at)
            at += 1
        return kinds[at] == ">" and kinds[at + 1] == "(" and all(k in WITHIN_TYPES for k in kinds[self.pos + 1 : at])

    def _type_arguments(self, opened: int) -> tuple[TypeExpr, ...]:
        found = []
        while self.kinds[self.pos] != ">":
            found.append(self.type_argument())
            if not self.listed(">"):
                break
        self.close(opened, ", or >")
        return tuple(found)

    def _call(self, callee: Expression, start: int, types: tuple[TypeExpr, ...]) -> Expression:
        opened, self.pos = self.pos, self.pos + 1
        kinds = self.kinds
        args = []
        attributes: Attributes = ()
        while kinds[self.pos] != ")":
            if self.at_attribute():
                at = self.pos
                attributes = self.attributes(")", opened)
                if not isinstance(callee, OperatorName):
                    self.note("only operators take attributes", self.since(at))
                break
            args.append(self.expression())
            if not self.listed(")"):
                break
        self.close(opened, ", or )")
        span = self.since(start)
        if isinstance(callee, ConstructorName) and not args and not types and not self.constructors[callee.name].fields:
            return ConstructorName(callee.name, span=span)  # `Nil()` is `Nil`
        return CallExpr(callee, tuple(args), attributes, types, span=span)

    # ------------------------------------------------ atoms

    def _local(self) -> Expression:
        name = self.texts[self.pos][1:]
        span = self.tokens.span(self.pos, self.pos)
        self.pos += 1
        local = self.scopes.locals.get(name)
        if local is None:
            known = [f"%{n}" for n in self.scopes.locals]
            advice = nearest(f"%{name}", known) or "; a let is visible behind it, in its block"
            self.unbound(f"%{name} is not bound here{advice}", span)
            local = Local(name, span=span)
        return LocalVar(local, span=span)

    def _graph(self) -> Expression:
        name = self.texts[self.pos][1:]
        span = self.tokens.span(self.pos, self.pos)
        self.pos += 1
        local = self.scopes.number(name)
        if local is None:
            self.unbound(f"%{name} is not bound here; a graph binding is visible behind it, in its function", span)
            local = Local(name, span=span)
        return LocalVar(local, span=span)

    def _global(self) -> Expression:
        self.pos += 1
        found = GlobalVar(self.texts[self.pos - 1][1:], span=self.tokens.span(self.pos - 1, self.pos - 1))
        self.globals.append(found)
        return found

    def _truth(self) -> Expression:
        self.pos += 1
        return Literal(self.kinds[self.pos - 1] == "True", "bool", span=self.tokens.span(self.pos - 1, self.pos - 1))

    def _parentheses(self) -> Expression:
        opened, self.pos = self.pos, self.pos + 1
        found = []
        while self.kinds[self.pos] != ")":
            if self.kinds[self.pos] == "let":
                self.fail("statements stand in braces: { let %x = value; result }")
            found.append(self.expression())
            if not self.listed(")"):
                break
        self.close(opened, "an operator, , or )")
        if len(found) == 1 and self.kinds[self.pos - 2] != ",":
            return found[0]
        return TupleExpr(tuple(found), span=self.since(opened))

    def _name(self) -> Expression:
        at, name = self.pos, self.texts[self.pos]
        following = self.kinds[at + 1]
        span = self.tokens.span(at, at)
        self.pos += 1
        if name in self.constructors:
            return ConstructorName(name, span=span)
        if following == "(" and name in ("ref", "ref_read", "ref_write"):
            return self._reference(at)
        if name == "meta" and following == "[":
            return pooled(self, self.pool, at)
        if name == "Constant" and following == "(":
            return full(self, at)
        if name == "Ref" and following in STARTING and following not in ("-", "!", "if", "match", "{"):
            value = self._atom_with_postfix()
            return RefNew(value, span=self.since(at))
        if name in INSTEAD:
            self.fail(f"{name} means nothing here; {INSTEAD[name]}", span)
        operator = OperatorName(name, span=span)
        self.operators.append(operator)
        return operator

    def _reference(self, at: int) -> Expression:
        name, opened = self.texts[at], self.pos
        self.pos += 1
        operands = [self.expression()] if self.kinds[self.pos] != ")" else []
        while self.listed(")"):
            operands.append(self.expression())
        self.close(opened, ", or )")
        span = self.since(at)
        due = 2 if name == "ref_write" else 1
        if len(operands) != due:
            self.note(f"{name} takes {due} argument{'s' * (due > 1)}, not {len(operands)}", span)
            return TupleExpr((), span=span)
        if name == "ref":
            return RefNew(operands[0], span=span)
        if name == "ref_read":
            return RefRead(operands[0], span=span)
        return RefWrite(operands[0], operands[1], span=span)

    def _if(self) -> Expression:
        heads: list[tuple[int, Expression, Expression]] = []  # if, else if, else if, ...: may be many
        while True:
            start = self.pos
            self.pos += 1
            if self.kinds[self.pos] != "(":
                self.fail("the condition stands in parentheses: if (condition) { .. } else { .. }")
            opened, self.pos = self.pos, self.pos + 1
            mark = self.scopes.mark()
            condition = self.statements(opened)
            self.scopes.restore(mark)
            self.close(opened)
            if self.kinds[self.pos] != "{":
                self.unexpected("{ and the branch: if (condition) { .. } else { .. }")
            then = self.block()
            if self.kinds[self.pos] != "else":
                self.unexpected("else { .. }: an if has a value, so it has both branches")
            self.pos += 1
            heads.append((start, condition, then))
            if self.kinds[self.pos] != "if":
                break
        if self.kinds[self.pos] != "{":
            self.unexpected("{ and the other branch, or if")
        result = self.block()
        for start, condition, then in reversed(heads):
            result = IfExpr(condition, then, result, span=self.since(start))
        return result

    def _match(self) -> Expression:
        start = self.pos
        self.pos += 1
        complete = not self.accept("?")
        atom = self._atoms.get(self.kinds[self.pos])
        if atom is None:
            self.unexpected("the value that is matched: match (value) { pattern => result, .. }")
        value = atom()
        opened = self.expect("{", "{ and arms: pattern => result, ..")
        arms = []
        self.accept("|")
        while self.kinds[self.pos] != "}":
            begin = self.pos
            mark = self.scopes.mark()
            pattern = self.pattern()
            for local in bound_locals(pattern):
                self.scopes.bind(local)
            if not self.accept("=>") and not self.accept("->"):
                self.unexpected("=> and a result")
            result = self.expression()
            self.scopes.restore(mark)
            arms.append(Arm(pattern, result, span=self.since(begin)))
            if not self.accept(",") and self.kinds[self.pos] != "|":
                break
            self.accept("|")
        self.close(opened, ", or }")
        return MatchExpr(value, tuple(arms), complete, span=self.since(start))

    # ------------------------------------------------ functions

    def _function(self) -> Expression:
        start = self.pos
        self.pos += 1
        if self.kinds[self.pos] == "global":
            self.fail("a function expression has no name; let %f = fn (..) { .. }; names it")
        return self.function(start)

    def function(self, start: int) -> Function:
        """A function from its type parameters on; its span begins at `start`."""
        mark = self.scopes.mark()
        hidden = self.declare(self.type_params())
        declared = tuple(self.declared[name] for name, _ in self._hidden[hidden:])
        self.implicit.append({})
        self.scopes.numbers.append({})
        try:
            params, attributes = self._params_of_function()
            result = self.type(relations=False) if self.accept("->") else None
            relations = self.where()
            for p in params:
                self.scopes.bind(p.local)
            if self.kinds[self.pos] != "{":
                if self.kinds[self.pos] == "=":
                    self.fail("the body of a function stands in braces: { .. }")
                self.unexpected("{ and the body of the function")
            content = self.block()
        finally:
            self.scopes.numbers.pop()
            implicit = self.implicit.pop()
            self.scopes.restore(mark)
            self.restore(hidden)
        type_params = (*declared, *implicit.values())
        return Function(params, content, result, type_params, attributes, relations, span=self.since(start))

    def _params_of_function(self) -> tuple[tuple[Param, ...], Attributes]:
        opened = self.expect("(", "( and the parameters")
        params: dict[str, Param] = {}
        attributes: Attributes = ()
        while self.kinds[self.pos] != ")":
            at = self.pos
            if self.at_attribute():
                attributes = self.attributes(")", opened)
                break
            if self.kinds[at] == "name":
                self.fail(f"a parameter has a %: %{self.texts[at]}")
            self.expect("local", "a parameter: %name, or %name: type")
            name, span = self.texts[at][1:], self.tokens.span(at, at)
            annotation = self.type() if self.accept(":") else None
            if name in params:
                self.note(f"two parameters are called %{name}", span)
            params[name] = Param(Local(name, span=span), annotation, span=self.since(at))
            if not self.listed(")"):
                break
        self.close(opened, ", or )")
        return tuple(params.values()), attributes
