"""Which type parameters a function needs to know where it is specialised: those that decide what a constructor makes.

A function needs a parameter if a constructor or a reference in it makes a value of a type with the parameter in it, or if it calls
a function that needs one and gives the parameter for it. Of functions that call each other this is a least fixpoint.

Input: a checked module. Output: for every function that is polymorphic, what it needs, in the order of its scheme.
"""

from __future__ import annotations

from typing import Any

from ..check.checked import Checked, Scheme
from ..tree import Body, ConstructorName, Expression, Function, GlobalVar, Let, Local, LocalVar, RefNew
from ..walk import expressions
from .types import variables


class Needs:
    """What the functions of a module need to know of their type parameters.

    Args:
        checked: the module.
        heaps: whether references exist at run time: then what makes one needs to know of what.
    """

    def __init__(self, checked: Checked, heaps: bool = False):
        self.checked, self.heaps = checked, heaps
        self._locals: dict[Local, tuple[Any, ...]] = {}
        self._globals: dict[str, tuple[Any, ...]] = dict.fromkeys(checked.tree.definitions, ())
        self._solve()

    def of_global(self, name: str) -> tuple[Any, ...]:
        """The parameters of the scheme of a definition that it needs."""
        return self._globals[name]

    def of_local(self, local: Local) -> tuple[Any, ...]:
        """The parameters of the scheme of a local function that it needs; none of anything that is not polymorphic."""
        return self._locals.get(local, ())

    def _solve(self) -> None:
        polymorphic = self.heaps or any(isinstance(e, ConstructorName) for e in self.checked.instances)
        while polymorphic:
            before = dict(self._globals), dict(self._locals)
            for name, definition in self.checked.tree.definitions.items():
                found = self._within(definition.function)
                self._globals[name] = _chosen(self.checked.schemes[name], found)
            if before == (self._globals, self._locals):
                return

    def _within(self, function: Function) -> dict[int, Any]:
        """The parameters that the expressions of a definition need; of local functions those of the functions around them."""
        # Statements of a body come before its result, so a local function is seen before its uses, but for those in itself.
        found: dict[int, Any] = {}
        stack: list[tuple[Expression | Local, dict[int, Any]]] = [(function, found)]
        closing: dict[int, tuple[Local, dict[int, Any], dict[int, Any]]] = {}
        while stack:
            top, into = stack.pop()
            if isinstance(top, Local):
                local, inner, outer = closing.pop(id(top))
                own = self._locals[local] = _chosen(self.checked.locals[local], inner)
                outer.update({k: v for k, v in inner.items() if v not in own})
                continue
            into.update({id(v): v for v in self.of_use(top)})
            if isinstance(top, Body):
                stack.append((top.result, into))
                for s in reversed(top.statements):
                    if isinstance(s, Let) and isinstance(s.value, Function) and self.checked.locals[s.local].params:
                        inner = {}
                        closing[id(s.local)] = s.local, inner, into
                        stack += [(s.local, into), (s.value, inner)]
                    else:
                        stack.append((s.value, into))
            else:
                stack.extend((e, into) for e in reversed(expressions(top)))
        return found

    def of_use(self, use: Expression) -> list[Any]:
        """The parameters that a use of something polymorphic needs."""
        if isinstance(use, ConstructorName):
            found = self.checked.instances.get(use)
            return variables(*found.images) if found is not None else []
        if isinstance(use, RefNew):
            return variables(self.checked.type_of(use)) if self.heaps else []
        return variables(*self.arguments(use))

    def arguments(self, use: Expression) -> tuple[Any, ...]:
        """The types that a use of a function gives for what that needs."""
        match use:
            case GlobalVar():
                needed = self.of_global(use.name)
            case LocalVar():
                needed = self.of_local(use.local)
            case _:
                return ()
        if not needed:
            return ()
        images = self.checked.images(use)
        return tuple(images.get(id(p), p) for p in needed)


def _chosen(scheme: Scheme, found: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(p for p in scheme.params if id(p) in found)
