"""Which references of a module exist at run time: those of which inference could not know at compile time what they refer to.

Most references are cells, which inference follows (`infer.engine.cells`): they cost nothing, and derivatives go through them.
Where a program may make any number of references of one type and keep them, they are places in a heap
(`infer.objects.references`). That is so for contents of a type if references to it occur

- in a field of a data type, or in the arguments of an instance: `List[ref(int32)]`;
- in the result of a function that calls itself, directly or through others;
- in the parameters of such a function that makes some.

A type decides for all references to contents of it, so a reference is always of one kind. Where a type parameter is the content, it
decides for all contents.

Input: a checked module. Output: `Heaps`, to be asked about a content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...abstract.declared import Declaration, parts_of
from ...abstract.references import RefTo
from ...abstract.types import Type
from ..check.checked import Checked
from ..terms.terms import CellTerm, DataTerm, children, resolved
from ..tree import Function, GlobalVar, Let, Local, LocalVar, RefNew
from ..walk import walk
from .types import ground


class Heaps:
    """The contents of references that are places in heaps.

    Args:
        checked: the module.
        declarations: name of a data type -> its declaration.

    Attributes:
        every: whether all references are.
        contents: the types of their contents, as far as they are known.
    """

    def __init__(self, checked: Checked, declarations: Callable[[str], Declaration]):
        self.checked, self.declarations = checked, declarations
        self.every = False
        self.contents: dict[Type, None] = {}
        if any(isinstance(e, RefNew) for e in checked.types):
            self._find()

    def __bool__(self) -> bool:
        return self.every or bool(self.contents)

    def holds(self, content: Type) -> bool:
        """Whether references to contents of a type are places in a heap."""
        return content in self.contents or self.every

    def lacks(self, content: Type) -> bool:
        """Whether references to contents of a type that is not known yet can be places in a heap."""
        return content not in self.contents

    def add(self, content: Type) -> None:
        """Note that there are references to contents of a type, and to all references in them."""
        todo = [content]
        for found in todo:
            if found not in self.contents:
                self.contents[found] = None
                todo.extend(part.content for part in parts_of(found) if isinstance(part, RefTo))

    def _find(self) -> None:
        for scheme in self.checked.constructors.values():
            t = resolved(scheme.type)
            for part in getattr(t, "params", ()):
                self._add(cells_in([part]))
        for term in self.checked.types.values():
            for part in _parts(resolved(term)):
                if isinstance(part, DataTerm):
                    self._add(cells_in(part.args))
        for function, within in self._recursive():
            t = resolved(self.checked.types[function])
            self._add(cells_in([t.result]))
            made = {self._content(e) for e in within if isinstance(e, RefNew)}
            self._add(
                c for c in cells_in(t.params) if not made.isdisjoint((ground(c.elem, {}, self.declarations), None))
            )

    def _content(self, made: RefNew) -> Type | None:
        t = resolved(self.checked.types[made])
        return ground(t.elem, {}, self.declarations) if isinstance(t, CellTerm) else None

    def _add(self, cells: Iterable[CellTerm]) -> None:
        for cell in cells:
            content = ground(cell.elem, {}, self.declarations)
            if content is None:
                self.every = True
            else:
                self.add(content)

    def _recursive(self) -> Iterator[tuple[Function, list[Any]]]:
        """The functions that may call themselves, with the expressions in them and in what they call."""
        definitions = {name: d.function for name, d in self.checked.tree.definitions.items()}
        bodies: dict[str | Local, list[Any]] = {name: list(walk(f)) for name, f in definitions.items()}
        functions: dict[str | Local, Function] = {**definitions}
        for expressions in list(bodies.values()):
            for e in expressions:
                for s in getattr(e, "statements", ()):
                    if isinstance(s, Let) and isinstance(s.value, Function):
                        functions[s.local], bodies[s.local] = s.value, list(walk(s.value))
        calls = {
            f: {e.name if isinstance(e, GlobalVar) else e.local for e in body if isinstance(e, GlobalVar | LocalVar)}
            & functions.keys()
            for f, body in bodies.items()
        }
        for name, function in functions.items():
            reached: set[str | Local] = set()
            todo = [*calls[name]]
            while todo:
                top = todo.pop()
                if top not in reached:
                    reached.add(top)
                    todo.extend(calls[top])
            if name in reached:
                yield function, [e for f in reached for e in bodies[f]]


def _parts(term: Any) -> list[Any]:
    """A term and all terms in it."""
    found = [term]
    for part in found:
        found.extend(children(part))
    return found


def cells_in(terms: Iterable[Any]) -> list[CellTerm]:
    """The types of references in terms."""
    return [part for term in terms for part in _parts(resolved(term)) if isinstance(part, CellTerm)]


__all__ = ["Heaps", "cells_in"]
