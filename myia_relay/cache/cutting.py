"""Slices that turn out to reach beyond their axes, where NumPy cuts them off.

`x[1:]`, `x[:9]` of an axis with a named size n, and windows `x[i : i + 3]`, are taken to end within the axis: their sizes are then
n - 1, 9 and 3, which the rest of the program may rely on, and a check costs next to nothing. Where the check fails, the call is
compiled again with this slice cut off, to a size that only the run tells; later calls of the signature run that program too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.build import NO_CUTS, Cuts
from ..utils.compiling import compiling
from ..utils.errors import CompileError, SliceBeyond


class SliceCuts:
    """Which slices of a decorated function are cut off, for each signature."""

    def __init__(self):
        self.cuts: dict[tuple, Cuts] = {}
        self.refused: dict[tuple, CompileError] = {}  # why a slice of a signature cannot be cut off

    def of(self, key: Any, structural: bool) -> Cuts:
        """Those of a signature."""
        return self.cuts.get((key, structural), NO_CUTS) if self.cuts else NO_CUTS

    def cut_off(self, function: Any, args: tuple, kwargs: dict, beyond: SliceBeyond, run: Callable) -> Any:
        """The result of a call in which a slice reached beyond its axis.

        Args:
            function: a `Relay`.
            args, kwargs: of the call.
            beyond: what it raised.
            run: makes the call: `(args, kwargs) -> result`.

        Raises:
            SliceBeyond: no program cuts it off, or the call has written or printed something before.
        """
        while True:
            with compiling():
                compiled, _ = function._compiled(args, kwargs)
                structural = function._structural
                key = function._signature(args, kwargs, [], structural)[0], structural
                before = self.cuts.get(key, NO_CUTS)
                if before.all or key in self.refused or not compiled.repeatable:
                    raise beyond from self.refused.get(key)
                self.cuts[key] = before.and_also(beyond.origin)
                function._quick.clear()
                function._fast.clear()
                try:
                    function._compiled(args, kwargs)
                except CompileError as error:
                    self.cuts[key], self.refused[key] = before, error
                    raise beyond from error
            try:
                return run(args, kwargs)
            except SliceBeyond as another:
                beyond = another
