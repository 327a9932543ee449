"""Names for printing: unique within a definition, and such that the parser reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)


class UniqueNames:
    """Names that are given once each: `x`, then `x1`, `x2`, ...

    Args:
        taken: names that are not given.
    """

    def __init__(self, taken: Iterable[str] = ()):
        self.taken = set(taken)
        self._next: dict[str, int] = {}

    def give(self, wanted: str, sizes: bool = False) -> str:
        """A name like the one that is wanted: itself the first time.

        Args:
            wanted: a name, perhaps one that cannot be written.
            sizes: whether it is one of a type parameter, which has no `/`.
        """
        name = wanted
        if _NAME.fullmatch(name) is None or sizes and "/" in name:
            name = re.sub(r"[^A-Za-z0-9_]", "_", name)
            if not name[:1].isalpha():
                name = f"v{name}"
        if name in self.taken:
            number = self._next.get(name, 1)
            while f"{name}{number}" in self.taken:
                number += 1
            self._next[name] = number + 1
            name = f"{name}{number}"
        self.taken.add(name)
        return name
