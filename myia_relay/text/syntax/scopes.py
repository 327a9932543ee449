"""Which local a name means, while a definition is parsed."""

from __future__ import annotations

from ..tree import Local


class Scopes:
    """The locals in scope.

    A `let` is visible from its place to the end of its block. A graph binding is visible to the end of its function, in the
    functions within, and in blocks beside its own; each function has numbers of its own.

    Attributes:
        locals: by name.
        numbers: of each function around, innermost last: its graph bindings by number.
    """

    def __init__(self):
        self.locals: dict[str, Local] = {}
        self.numbers: list[dict[str, Local]] = [{}]
        self._hidden: list[tuple[str, Local | None]] = []

    def mark(self) -> int:
        """What `restore` needs to end the scope that begins here."""
        return len(self._hidden)

    def bind(self, local: Local) -> None:
        """Bring a local into scope, in place of another of its name."""
        self._hidden.append((local.name, self.locals.get(local.name)))
        self.locals[local.name] = local

    def restore(self, mark: int) -> None:
        """End a scope."""
        hidden, locals = self._hidden, self.locals
        while len(hidden) > mark:
            name, before = hidden.pop()
            if before is None:
                del locals[name]
            else:
                locals[name] = before

    def number(self, name: str) -> Local | None:
        """The graph binding of a number."""
        for numbers in reversed(self.numbers):
            found = numbers.get(name)
            if found is not None:
                return found
        return None
