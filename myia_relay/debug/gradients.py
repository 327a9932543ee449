"""Gradients of intermediate values: what the backward pass brings to each variable, by the names in the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..utils.errors import GradError, ValueError_, nearest
from ..utils.source import Loc
from .suspended import Reached

RESULT = "return"
"""The name under which the value of a `return` comes, which is no variable."""
Key = tuple[str, str]
"""(function, variable)"""


class Gradients(Mapping):
    """The derivatives of the result by variables: `gradients["hidden"]`, or `gradients["loss.hidden"]` for a function's.

    It is the derivative by the value that an assignment to the variable has made, through all that is done with this value
    afterwards: what `retain_grad` keeps in PyTorch. If the program came to such assignments more than once (in a loop, in a
    function that is called again), it is a list with a gradient for each, in the order of the forward pass. `visits` always gives a
    list. Parameters count as assigned when their function is called. A tuple, a record or a dict has a gradient of its structure.

    An entry is None, and a variable without any entry has no gradient, where no derivative goes through a value: it does not depend
    on what is differentiated by, or the result does not depend on it.
    """

    def __init__(self):
        self._visits: dict[Key, list[int]] = {}
        self._places: dict[Key, Loc] = {}
        self._found: dict[Key, dict[int, Any]] = {}

    def note(self, mark: Reached) -> None:
        """Variables are assigned in the forward pass."""
        for name in mark.place.binds:
            if name != RESULT:
                key = mark.place.function, name
                self._visits.setdefault(key, []).append(mark.visit)
                self._places[key] = mark.loc

    def record(self, mark: Reached) -> None:
        """The backward pass has come to an assignment."""
        for name in mark.place.binds:
            if name in mark.cotangents and name != RESULT:
                self._found.setdefault((mark.place.function, name), {})[mark.visit] = mark.cotangents[name]

    def visits(self, name: str) -> list[Any]:
        """The gradients by all values of a variable, in the order of the forward pass.

        Raises:
            ValueError_: no function, or more than one, has such a variable.
            GradError: no derivative goes through it.
        """
        key = self._key(name)
        if key not in self._found:
            raise GradError(
                f"no derivative goes through '{name}': it does not depend on what is differentiated by, or the result does not "
                "depend on it, or it holds no floats; or the backward pass has not come to it yet",
                self._places.get(key),
            )
        found = self._found[key]
        return [found.get(visit) for visit in self._visits[key]]

    def _key(self, name: str) -> Key:
        known = self._visits
        function, _, variable = name.rpartition(".")
        fitting = sorted(k for k in known if k[1] == variable and function in ("", k[0]))
        if not fitting:
            names = sorted({v for _, v in known})
            raise ValueError_(f"the program has not assigned to a variable '{name}'{nearest(variable, names)}")
        if len(fitting) > 1:
            choices = " or ".join(f"'{f}.{v}'" for f, v in fitting)
            raise ValueError_(f"more than one function has a variable '{variable}': say {choices}")
        return fitting[0]

    def __getitem__(self, name: str) -> Any:
        found = self.visits(name)
        return found[0] if len(found) == 1 else found

    def __iter__(self) -> Iterator[str]:
        """The names of variables that have gradients; with their functions, where several have one of the name."""
        names = [v for _, v in self._visits]
        return (v if names.count(v) == 1 else f"{f}.{v}" for f, v in self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<gradients of {', '.join(self) or 'nothing yet'}>"
