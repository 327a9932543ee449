"""Random trees of modules that can be written, with names that collide on purpose. They need not have a type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from myia_relay.text import tree as T
from myia_relay.text.dtypes import DTYPES, integer_range, is_float, rounded

_X = TypeVar("_X")
NAMES = ("x", "x1", "y", "_", "a/b", "x", "f")
OPERATORS = ("add", "nn.conv2d", "where", "negative", "image.resize2d")
RELATIONS = ("Broadcast", "Identity")
ATTRIBUTES = ("axis", "let", "match", "dtype")
CONSTRUCTORS = {"Nil": 0, "Cons": 2, "Some": 1, "Rose": 2}

LIST = T.TypeParam("A")
TYPES: dict[str, T.TypeDef | T.ExternType] = {
    "List": T.TypeDef(
        "List",
        (LIST,),
        (
            T.ConstructorDef("Cons", (T.TypeVar(LIST), T.DataType("List", (T.TypeVar(LIST),)))),
            T.ConstructorDef("Nil"),
        ),
    ),
    "Option": T.TypeDef("Option", (option := T.TypeParam("A"),), (T.ConstructorDef("Some", (T.TypeVar(option),)),)),
    "Handle": T.ExternType("Handle"),
    "Sized": T.ExternType(
        "Sized", (T.TypeParam("A", "Shape"), T.TypeParam("n", "ShapeVar"), T.TypeParam("d", "BaseType"))
    ),
    "Tree": T.TypeDef("Tree", (), (T.ConstructorDef("Rose", (T.TupleType(()), T.DataType("Tree"))),)),
}


class RandomTrees:
    """Makes trees.

    Args:
        pick: an index below a number.
    """

    def __init__(self, pick: Callable[[int], int]):
        self.pick = pick
        self.locals: list[T.Local] = []
        self.numbers: list[list[T.Local]] = []
        self.params: list[T.TypeParam] = []
        self.implicit: list[dict[str, T.TypeParam]] = []

    def one(self, of: Sequence[_X]) -> _X:
        return of[self.pick(len(of))]

    def several(self, make: Callable[[], _X], most: int = 3) -> tuple[_X, ...]:
        return tuple(make() for _ in range(self.pick(most + 1)))

    def module(self) -> T.ModuleTree:
        """A module of one to three definitions."""
        names = ["main", "f", "g"][: 1 + self.pick(3)]
        self.globals = names
        found = {}
        for name in names:
            self.locals, self.numbers, self.params, self.implicit = [], [], [], []
            found[name] = T.Definition(name, self.function(3 + self.pick(3)))
        return T.ModuleTree(TYPES, found)

    # ------------------------------------------------ types

    def type(self, depth: int = 2) -> T.TypeExpr:
        kind = self.pick(9 if depth else 4)
        if kind == 0:
            return T.scalar(self.one(DTYPES))
        if kind == 1:
            shapes = [p for p in self.params if p.kind == "Shape"]
            dtypes = [p for p in self.params if p.kind == "BaseType"]
            shape: Any = T.TypeVar(self.one(shapes)) if shapes and not self.pick(3) else self.several(self.size)
            return T.TensorType_(shape, T.TypeVar(self.one(dtypes)) if dtypes and self.pick(2) else self.one(DTYPES))
        if kind == 2:
            types = [p for p in self.params if p.kind == "Type"]
            return T.TypeVar(self.one(types)) if types else T.Blank()
        if kind == 3:
            return self.one((T.DataType("Handle"), T.DataType("Tree"), T.Blank()))
        inner = lambda: self.type(depth - 1)  # noqa: E731
        if kind == 4:
            return T.TupleType(self.several(inner))
        if kind == 5:
            return T.RefType(inner())
        if kind == 6:
            return T.DataType(self.one(("List", "Option")), (inner(),))
        if kind == 7:
            shape = T.ShapeExpr(self.one(((2, T.ANY_SIZE), (3,), 4, T.ANY_SIZE)))
            return T.DataType("Sized", (shape, T.ShapeExpr(3), T.scalar("int8")))
        own = self.type_params()
        hidden, self.params = self.params, _shadowed(self.params, own)
        params, result = self.several(inner), inner()
        relations = self.relations() if self.pick(2) else ()
        self.params = hidden
        return T.FunctionType(params, result, own, relations)

    def size(self) -> Any:
        kind = self.pick(4)
        if kind < 2:
            return (3, 10)[kind]
        if kind == 2:
            return T.ANY_SIZE
        name = self.one(("n", "m"))
        for p in reversed(self.params):
            if p.name == name:
                return T.TypeVar(p)
        for implicit in reversed(self.implicit):
            if name in implicit:
                return T.TypeVar(implicit[name])
        param = self.implicit[-1][name] = T.TypeParam(name, "ShapeVar", implicit=True)
        return T.TypeVar(param)

    def type_params(self) -> tuple[T.TypeParam, ...]:
        names = ["A", "B", "n", "List"][: self.pick(5) if not self.pick(2) else 0]
        return tuple(T.TypeParam(name, self.one(T.KINDS)) for name in names)

    def relations(self) -> tuple[T.RelationClause, ...]:
        return self.several(
            lambda: T.RelationClause(self.one(RELATIONS), None if self.pick(2) else self.several(lambda: self.type(1))),
            2,
        )

    def annotation(self) -> T.TypeExpr | None:
        return self.type() if self.pick(3) == 0 else None

    # ------------------------------------------------ expressions

    def local(self) -> T.Local:
        return T.Local(self.one(NAMES))

    def function(self, depth: int) -> T.Function:
        own = self.type_params()
        outer = len(self.locals), self.params
        self.params = _shadowed(self.params, own)
        self.implicit.append({})
        self.numbers.append([])
        names = [n for n in dict.fromkeys(NAMES) if not self.pick(3)]
        params = tuple(T.Param(T.Local(name), self.annotation()) for name in names)
        attributes = self.attributes()
        result = self.annotation()
        relations = self.relations() if self.pick(4) == 0 else ()
        self.locals.extend(p.local for p in params)
        content = self.block(depth - 1)
        self.numbers.pop()
        implicit = self.implicit.pop()
        del self.locals[outer[0] :]
        self.params = outer[1]
        return T.Function(params, content, result, (*own, *implicit.values()), attributes, relations)

    def block(self, depth: int) -> T.Expression:
        mark = len(self.locals)
        statements: list[T.Statement] = []
        for _ in range(self.pick(3)):
            if self.pick(3) == 0:
                binding = T.GraphBinding(T.Local(str(len(self.numbers[-1]))), self.expression(depth - 1))
                self.numbers[-1].append(binding.local)
                statements.append(binding)
                continue
            local, annotation = self.local(), self.annotation()
            if self.pick(4) == 0 and depth > 0:
                self.locals.append(local)
                statements.append(T.Let(local, self.function(depth - 1), annotation))
                continue
            value = self.expression(depth - 1)
            if isinstance(value, T.Function):  # such a let would see itself
                value = T.TupleExpr((value,))
            statements.append(T.Let(local, value, annotation))
            self.locals.append(local)
        result = T.body(statements, self.expression(depth - 1))
        del self.locals[mark:]
        return result

    def attributes(self) -> T.Attributes:
        if self.pick(3):
            return ()
        return tuple((name, self.attribute(2)) for name in ATTRIBUTES if self.pick(2))

    def attribute(self, depth: int) -> T.Attribute:
        values: tuple[T.Attribute, ...] = (
            1,
            -3,
            1.5,
            -0.0,
            1e-05,
            float("inf"),
            True,
            None,
            'te"xt\n\\',
            "é\x00",
            10**20,
        )
        if depth and self.pick(3) == 0:
            return self.several(lambda: self.attribute(depth - 1))
        return self.one(values)

    def literal(self) -> T.Literal:
        dtype = self.one(DTYPES)
        if dtype == "bool":
            return T.Literal(bool(self.pick(2)), dtype)
        if is_float(dtype):
            value = self.one((0.0, -0.0, 1.0, 0.1, -1e-3, 3e4, float("inf"), float("-inf"), float("nan"), 1 / 3))
            return T.Literal(rounded(value, dtype), dtype)
        return T.Literal(self.one((0, 1, 100, *integer_range(dtype))), dtype)

    def atom(self) -> T.Expression:
        kind = self.pick(8)
        if kind < 3 and self.locals:
            visible = {local.name: local for local in self.locals}
            return T.LocalVar(visible[self.one(list(visible))])
        if kind == 3:
            visible = {local.name: local for numbers in self.numbers for local in numbers}
            if visible:
                return T.LocalVar(visible[self.one(list(visible))])
        if kind == 4:
            return T.GlobalVar(self.one(self.globals))
        if kind == 5:
            return T.ConstructorName(self.one(list(CONSTRUCTORS)))
        if kind == 6:
            return T.OperatorName(self.one(OPERATORS))
        if kind == 7:
            return T.constant(np.arange(self.pick(4) + 1).astype(self.one(("int8", "float32", "bool"))).reshape(1, -1))
        return self.literal()

    def expression(self, depth: int) -> T.Expression:
        if depth <= 0:
            return self.atom()
        inner = lambda: self.expression(depth - 1)  # noqa: E731
        kind = self.pick(14)
        if kind == 0:
            return T.TupleExpr(self.several(inner))
        if kind == 1:
            return T.Projection(inner(), self.pick(12))
        if kind == 2:
            condition = inner()
            return T.IfExpr(condition, self.block(depth - 1), self.block(depth - 1))
        if kind == 3:
            value = inner()
            return T.MatchExpr(value, self.several(lambda: self.arm(depth - 1)), bool(self.pick(2)))
        if kind == 4:
            return T.RefNew(inner())
        if kind == 5:
            return T.RefRead(inner())
        if kind == 6:
            return T.RefWrite(inner(), inner())
        if kind == 7:
            return self.function(depth - 1)
        if kind == 8:
            return self.block(depth - 1)
        if kind < 11:
            return T.CallExpr(T.OperatorName(self.one(OPERATORS)), self.several(inner), self.attributes())
        if kind == 11:
            constructor = self.one([name for name, fields in CONSTRUCTORS.items() if fields])
            return T.CallExpr(T.ConstructorName(constructor), self.several(inner))
        if kind == 12:
            callee = inner()
            types = tuple(self.type(1) for _ in range(self.pick(3)))
            args = (inner(), *self.several(inner, 2))  # `Nil()` would be `Nil`
            return T.CallExpr(callee, args, (), types)
        return self.atom()

    def arm(self, depth: int) -> T.Arm:
        self.fresh = iter(dict.fromkeys(NAMES))
        mark = len(self.locals)
        pattern = self.pattern(2)
        result = self.expression(depth)
        del self.locals[mark:]
        return T.Arm(pattern, result)

    def pattern(self, depth: int) -> T.PatternExpr:
        kind = self.pick(4 if depth else 2)
        if kind == 0:
            name = next(self.fresh, None)
            if name is not None:
                local = T.Local(name)
                found = T.VariablePattern(local, self.annotation())
                self.locals.append(local)
                return found
        if kind == 2:
            return T.TuplePattern(self.several(lambda: self.pattern(depth - 1)))
        if kind == 3:
            return T.ConstructorPattern(self.one(list(CONSTRUCTORS)), self.several(lambda: self.pattern(depth - 1)))
        return T.WildcardPattern()


def _shadowed(params: list[T.TypeParam], own: tuple[T.TypeParam, ...]) -> list[T.TypeParam]:
    names = {p.name for p in own}
    return [p for p in params if p.name not in names] + list(own)
