"""The parser of types."""

from __future__ import annotations

from ...utils.errors import nearest
from ..dtypes import DTYPES
from ..lexer import Tokens
from ..tree import (
    ANY_SIZE,
    KINDS,
    Blank,
    DataType,
    FunctionType,
    Kind,
    RefType,
    RelationClause,
    ShapeExpr,
    Size,
    TensorType_,
    TupleType,
    TypeExpr,
    TypeParam,
    TypeVar,
)
from .cursor import Cursor

DEEPEST = 100  # types in types
RESERVED = {*DTYPES, "Tensor", "ref", "RefType", "_", "forall", "Ref"}
"""Names of types that cannot be given to others."""


class TypeParser(Cursor):
    """Types, and the type parameters in scope.

    Attributes:
        declared: the declared type parameters in scope, by name.
        data_types: all uses of data types.
        implicit: for each function around, innermost last, the shape variables that it is the outermost to name.
    """

    def __init__(self, tokens: Tokens):
        super().__init__(tokens)
        self.declared: dict[str, TypeParam] = {}
        self.implicit: list[dict[str, TypeParam]] = []
        self.data_types: list[DataType] = []
        self._hidden: list[tuple[str, TypeParam | None]] = []
        self._nesting = 0

    # ------------------------------------------------ scopes of type parameters

    def declare(self, params: tuple[TypeParam, ...]) -> int:
        """Bring type parameters into scope; what `restore` needs to take them out again."""
        mark = len(self._hidden)
        for p in params:
            self._hidden.append((p.name, self.declared.get(p.name)))
            self.declared[p.name] = p
        return mark

    def restore(self, mark: int) -> None:
        """Take out of scope what was declared since."""
        while len(self._hidden) > mark:
            name, before = self._hidden.pop()
            if before is None:
                del self.declared[name]
            else:
                self.declared[name] = before

    def type_param(self, name: str) -> TypeParam | None:
        """The type parameter of a name."""
        found = self.declared.get(name)
        if found is None:
            for implicit in reversed(self.implicit):
                found = implicit.get(name)
                if found is not None:
                    break
        return found

    def type_params(self) -> tuple[TypeParam, ...]:
        """`[A, n: ShapeVar]` or `<A, n: ShapeVar>`, where there is one."""
        opened = self.pos
        closing = {"[": "]", "<": ">"}.get(self.kinds[opened])
        if closing is None:
            return ()
        self.pos += 1
        return self._params(opened, closing)

    def _params(self, opened: int, closing: str) -> tuple[TypeParam, ...]:
        found: dict[str, TypeParam] = {}
        while self.kinds[self.pos] != closing:
            at = self.expect("name", "the name of a type parameter")
            name, kind = self.texts[at], "Type"
            span = self.tokens.span(at, at)
            if self.accept(":"):
                kind = self.texts[self.expect("name", "a kind: Type, Shape, ShapeVar or BaseType")]
                if kind not in KINDS:
                    self.pos -= 1
                    self.fail(f"there is no kind {kind}; there are {', '.join(KINDS)}{nearest(kind, KINDS)}")
            if name in RESERVED or "." in name:
                self.note(f"a type parameter cannot be called {name}", span)
            if name in found:
                self.note(f"two type parameters are called {name}", span)
            kinds: dict[str, Kind] = {k: k for k in KINDS}
            found[name] = TypeParam(name, kinds[kind], span=span)
            if not self.listed(closing):
                break
        if closing == ">":
            self.expect(">", ">")
        else:
            self.close(opened, f", or {closing}")
        return tuple(found.values())

    # ------------------------------------------------ types

    def type(self, relations: bool = True) -> TypeExpr:
        """A type.

        Args:
            relations: whether `where` behind a function type belongs to it; behind the type of a result it is the function's.
        """
        self._nesting += 1
        found = self._nested_type(relations)
        self._nesting -= 1
        return found

    def _nested_type(self, relations: bool) -> TypeExpr:
        heads = []  # of `fn (..) -> fn (..) -> ..`
        while True:
            if self._nesting + len(heads) > DEEPEST:
                self._nesting = 0
                self.fail(f"types nest at most {DEEPEST} deep")
            start = self.pos
            outer: tuple[TypeParam, ...] = ()
            if self.kinds[start] == "name" and self.texts[start] == "forall":
                self.pos += 1
                opened = self.expect("(", "( and type parameters")
                outer = self._params(opened, ")")
                self.accept(",")
                if self.kinds[self.pos] != "fn":
                    self.unexpected("a function type behind forall")
            if self.kinds[self.pos] != "fn":
                break
            self.pos += 1
            params = (*outer, *self.type_params())
            mark = self.declare(params)
            arguments = self._listed_types(self.expect("(", "( and the types of the parameters"))
            self.expect("->", "-> and the type of the result")
            heads.append((start, params, mark, arguments))
        result = self._plain_type()
        for start, params, mark, arguments in reversed(heads):
            clauses = self.where() if relations else ()
            self.restore(mark)
            result = FunctionType(arguments, result, params, clauses, span=self.since(start))
        return result

    def _listed_types(self, opened: int, argument: bool = False) -> tuple[TypeExpr, ...]:
        closing = {"(": ")", "[": "]", "<": ">"}[self.kinds[opened]]
        found = []
        while self.kinds[self.pos] != closing:
            found.append(self.type_argument() if argument else self.type())
            if not self.listed(closing):
                break
        self.close(opened, f", or {closing}")
        return tuple(found)

    def _plain_type(self) -> TypeExpr:
        start, kind, name = self.pos, self.kinds[self.pos], self.texts[self.pos]
        if kind == "(":
            self.pos += 1
            fields = self._listed_types(start)
            if len(fields) == 1 and self.kinds[self.pos - 2] != ",":
                return fields[0]
            return TupleType(fields, span=self.since(start))
        if kind == "[":
            self.fail("the modern spelling of a tuple's type is (t, ..)")
        if kind in ("number", "?"):
            self.fail("a size is no type; a tensor's type is written Tensor[(2, 3), float32]")
        if kind in ("local", "global"):
            self.fail(f"names of types have no {name[0]}")
        if kind != "name":
            self.unexpected("a type")
        self.pos += 1
        span = self.tokens.span(start, start)
        if name in DTYPES:
            return TensorType_((), name, span=span)
        if name == "Tensor":
            return self._tensor(start)
        if name == "_":
            return Blank(span=span)
        if name in ("ref", "RefType") and self.kinds[self.pos] == "(" or name == "Ref" and self.kinds[self.pos] == "[":
            opened, self.pos = self.pos, self.pos + 1
            content = self.type()
            self.close(opened)
            return RefType(content, span=self.since(start))
        param = self.type_param(name)
        if param is not None:
            if self.kinds[self.pos] == "[":
                self.fail(f"the type parameter {name} takes no types", self.since(start))
            return TypeVar(param, span=span)
        args: tuple[TypeExpr, ...] = ()
        if self.kinds[self.pos] == "[":
            self.pos += 1
            args = self._listed_types(self.pos - 1, argument=True)
        found = DataType(name, args, span=self.since(start))
        self.data_types.append(found)
        return found

    def type_argument(self) -> TypeExpr:
        """What stands for a type parameter of any kind: a type, a shape, a size."""
        start, kind = self.pos, self.kinds[self.pos]
        if kind in ("number", "?"):
            size = self._size()
            assert not isinstance(size, TypeVar)
            return ShapeExpr(size, span=self.since(start))
        if kind == "(" and self._is_shape(start):
            return ShapeExpr(self._sizes(), span=self.since(start))
        return self.type()

    def _is_shape(self, opened: int) -> bool:
        """Whether brackets hold sizes, one of them at least a number or `?`."""
        closing = self.tokens.match.get(opened, opened)
        inside = self.kinds[opened + 1 : closing]
        return ("number" in inside or "?" in inside) and all(k in ("number", "?", "name", ",") for k in inside)

    def _tensor(self, start: int) -> TypeExpr:
        opened = self.expect("[", "[ and shape and dtype: Tensor[(2, 3), float32]")
        kind = self.kinds[self.pos]
        if kind == "name":
            shape = self._variable("shape")
        elif kind == "(":
            shape = self._sizes()
        elif kind == "number":
            self.fail(f"a shape stands in parentheses: ({self.texts[self.pos]})")
        else:
            self.unexpected("a shape: (2, 3), (n, ?), or a variable of kind Shape")
        self.expect(",", ", and a dtype")
        at = self.expect("name", "a dtype")
        name = self.texts[at]
        if name in DTYPES:
            dtype = name
        else:
            self.pos -= 1
            dtype = self._variable("dtype")
        self.accept(",")
        self.close(opened)
        return TensorType_(shape, dtype, span=self.since(start))

    def _variable(self, what: str) -> TypeVar:
        """A declared type parameter as a shape or a dtype; an error is noted where there is none."""
        at, name = self.pos, self.texts[self.pos]
        self.pos += 1
        span = self.tokens.span(at, at)
        param = self.type_param(name)
        if param is None:
            kind: Kind = "Shape" if what == "shape" else "BaseType"
            known = [*self.declared, *(DTYPES if what == "dtype" else ())]
            declare = f"; declare it as a type parameter: [{name}: {kind}]"
            self.unbound(f"there is no {what} {name}{nearest(name, known) or declare}", span)
            param = TypeParam(name, kind, span=span)
        return TypeVar(param, span=span)

    def _sizes(self) -> tuple[Size, ...]:
        opened, self.pos = self.pos, self.pos + 1
        found: list[Size] = []
        while self.kinds[self.pos] != ")":
            found.append(self._size())
            if not self.listed(")"):
                break
        self.close(opened, ", or )")
        return tuple(found)

    def _size(self) -> Size:
        at, kind, text = self.pos, self.kinds[self.pos], self.texts[self.pos]
        if kind == "-":
            self.fail("a size is not negative; ? is a size that is not known")
        if kind not in ("number", "?", "name"):
            self.unexpected("a size: a number, ? or a name")
        self.pos += 1
        span = self.tokens.span(at, at)
        if kind == "?":
            return ANY_SIZE
        if kind == "number":
            digits = text.removesuffix("i64").removesuffix("i32")
            if not digits.isdigit() or len(digits) > 18:
                self.note(f"{text} is no size", span)
                return ANY_SIZE
            return int(digits)
        param = self.type_param(text)
        if param is None and text in DTYPES:
            self.note(f"{text} is a dtype, no size; a dtype stands behind the shape: Tensor[(2, 3), {text}]", span)
            return ANY_SIZE
        if param is None:
            param = TypeParam(text, "ShapeVar", implicit=True, span=span)
            if self.implicit:
                self.implicit[-1][text] = param
            else:
                self.unbound(f"there is no size {text}; declare it as a type parameter: [{text}: ShapeVar]", span)
        return TypeVar(param, span=span)

    def where(self) -> tuple[RelationClause, ...]:
        """`where Broadcast(A, B, C), Identity`, where there is one."""
        if self.kinds[self.pos] != "name" or self.texts[self.pos] != "where":
            return ()
        self.pos += 1
        found = []
        while self.kinds[self.pos] == "name":
            at = self.pos
            self.pos += 1
            args = None
            if self.kinds[self.pos] == "(":
                self.pos += 1
                args = self._listed_types(self.pos - 1, argument=True)
            found.append(RelationClause(self.texts[at], args, span=self.since(at)))
            if not self.accept(","):
                break
        if not found:
            self.unexpected("the name of a relation: Broadcast, Identity, ..")
        return tuple(found)
