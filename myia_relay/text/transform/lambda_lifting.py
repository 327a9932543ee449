"""Lambda lifting: functions within functions become definitions (T. Johnsson, "Lambda lifting", FPCA 1985).

    def @main(%l, %z) { @map(fn (%a) { %a * %z }, %l) }
    =>  def @main_fn0(%z, Closure=1) { fn (%a) { %a * %z } }
        def @main(%l, %z) { @map(@main_fn0(%z), %l) }

A function that captures nothing becomes a definition itself. One that captures variables becomes a definition of these, marked
`Closure=1`, which returns it. A function that `let` binds is never captured: where it is used it is made again from what it
captures, so it may be polymorphic and may call itself. What a set of such functions captures is a least fixpoint.
Functions marked `Primitive=1` stay: they are kernels.

Typed graphs have closures converted by inference, which specialises them for each use; this pass keeps them polymorphic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from ..tree import (
    CallExpr,
    Definition,
    Expression,
    Function,
    GlobalVar,
    GraphBinding,
    Let,
    Local,
    LocalVar,
    ModuleTree,
    Param,
    Statement,
    body,
)
from ..walk import free_locals
from .common.normal import all_operations, result, statements, temporary
from .common.passes import TreePass
from .common.rewriting import Copier, is_marked
from .common.type_expressions import is_closed


@dataclass(frozen=True)
class LambdaLift(TreePass):
    """Makes definitions of the functions within definitions."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with functions lifted; new definitions stand before the one that they come from."""
        found: dict[str, Definition] = {}
        taken = set(tree.definitions)
        for name, definition in tree.definitions.items():
            lifting = _Lifting(name, definition.function, taken)
            function = lifting.definition()
            found.update(lifting.lifted)
            found[name] = definition if function is definition.function else replace(definition, function=function)
        return tree.with_definitions(found)


class _Lifting:
    """Lifts the functions of one definition.

    Attributes:
        lifted: the new definitions.
        names: function -> the name of its definition.
        captures: function -> the variables that it captures, none of which is bound to a function.
        bound: local -> the function that `let` binds it to.
    """

    def __init__(self, name: str, function: Function, taken: set[str]):
        self.name, self.root, self.taken = name, function, taken
        self.lifted: dict[str, Definition] = {}
        self.bound: dict[Local, Function] = {}
        # A definition that makes a closure is what this pass makes: its function stays.
        stays = result(function.body) if is_marked(function, "Closure") and not statements(function.body) else None
        functions: list[Function] = []
        for local, op in all_operations(function.body):
            if isinstance(op, Function) and op is not stays and not is_marked(op, "Primitive"):
                functions.append(op)
                if local is not None:
                    self.bound[local] = op
        numbers = count()
        self.names = {f: self._fresh(numbers) for f in functions}
        self.captures = self._captures(functions)
        self.annotations = {p.local: p.annotation for f in (function, *functions) for p in f.params}

    def _fresh(self, numbers: count) -> str:
        name = next(n for n in (f"{self.name}_fn{k}" for k in numbers) if n not in self.taken)
        self.taken.add(name)
        return name

    def _captures(self, functions: list[Function]) -> dict[Function, dict[Local, None]]:
        free = {f: free_locals(f) for f in functions}
        captures = {f: {x: None for x in free[f] if x not in self.bound} for f in functions}
        changed = True
        while changed:
            changed = False
            for f in functions:
                for x in free[f]:
                    inner = captures.get(self.bound[x]) if x in self.bound else None
                    for y in inner or ():
                        if y not in captures[f]:
                            captures[f][y] = None
                            changed = True
        return captures

    def definition(self) -> Function:
        """The definition, with its functions lifted."""
        if not self.names:
            return self.root
        for function, name in self.names.items():
            self.lifted[name] = Definition(name, self.lift(function), span=function.span)
        copier = _Body(self, {p.local: LocalVar(p.local) for p in self.root.params}, annotations=True)
        return replace(self.root, body=copier.block(self.root.body))

    def lift(self, function: Function) -> Function:
        """The definition that stands for a function."""
        captured = self.captures[function]
        copier = _Body(self, {}, annotations=False)
        params = []
        for local in captured:
            annotation = self.annotations.get(local)
            params.append(
                Param(copier.fresh(local), annotation if annotation is not None and is_closed(annotation) else None)
            )
        inner = copier.whole(function)
        if not captured:
            return inner
        return Function(tuple(params), inner, attributes=(("Closure", 1),), span=function.span)


class _Body(Copier):
    """Copies code with calls of the new definitions in place of functions."""

    def __init__(self, lifting: _Lifting, values: dict[Local, Expression], annotations: bool):
        super().__init__(values, annotations)
        self.lifting = lifting
        self.out: list[Statement] = []

    def annotation(self, t):
        return t if t is not None and (self.annotations or is_closed(t)) else None

    def whole(self, function: Function) -> Function:
        """The function that a definition consists of."""
        return replace(super().function(function), result=self.annotation(function.result))

    def block(self, block: Expression) -> Expression:
        around, self.out = self.out, []
        try:
            for s in statements(block):
                if s.local in self.lifting.bound:
                    continue  # made anew where it is used
                value = self.operation(s.value)
                local = self.fresh(s.local)
                if isinstance(s, Let):
                    self.out.append(replace(s, local=local, value=value, annotation=self.annotation(s.annotation)))
                else:
                    self.out.append(GraphBinding(local, value, span=s.span))
            return body(self.out, self.operation(result(block)), block.span)
        finally:
            self.out = around

    def operation(self, op: Expression) -> Expression:
        if isinstance(op, Function) and op in self.lifting.names:
            return self.closure(op)
        return super().operation(op)

    def atom(self, x: Expression) -> Expression:
        if isinstance(x, LocalVar) and x.local in self.lifting.bound:
            return temporary(self.closure(self.lifting.bound[x.local]), self.out, x.span)
        return super().atom(x)

    def closure(self, function: Function) -> Expression:
        """What stands for a function: its definition, or a call of that."""
        name = GlobalVar(self.lifting.names[function], span=function.span)
        captured = self.lifting.captures[function]
        if not captured:
            return name
        return CallExpr(name, tuple(self.atom(LocalVar(x)) for x in captured), span=function.span)
