"""What the engine asks of the language, handed down to it when it is made.

The engine goes through parsed graphs and keeps specialisations; what a construct or a call means for the values at hand is
no business of its own. Its handlers call the engine in turn: for the body of a branch, for the call of a function. So that
imports point down all the same, the engine knows only this protocol, and `infer.language.language` fills it in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...ir.syntax import Syntax


@dataclass(frozen=True)
class Language:
    """The handlers of one language.

    Attributes:
        constructs: what each construct means: a coroutine `(engine, frame, node) -> Val`.
        call: what calling a value means: a coroutine `(engine, frame, fn, args, kwargs, origin, site) -> Val`.
    """

    constructs: Mapping[Syntax, Callable]
    call: Callable
