"""What the engine needs to know of the language; it is passed to the engine when that is made.

The engine walks parsed graphs and keeps specialisations. It does not know what a construct or a call means for the
values at hand: handlers do, and these call the engine in turn, for the body of a branch or the call of a function. So
that imports still point down, the engine knows only this protocol, and `infer.language.language` implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...ir.syntax import Syntax


@dataclass(frozen=True)
class Language:
    """The handlers of one language.

    Attributes:
        constructs: the handler of each construct: a coroutine `(engine, frame, node) -> Val`.
        call: the handler of calls: a coroutine `(engine, frame, fn, args, kwargs, origin, site) -> Val`.
    """

    constructs: Mapping[Syntax, Callable]
    call: Callable
