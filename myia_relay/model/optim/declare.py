"""The decorator that makes a public optimiser of an update rule: `optimiser`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...abstract.types import Ref
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.language.registry import special
from ...infer.objects.leaves import to_python
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Static, Val
from ...utils.errors import TypeError_
from ..model import Model
from .on_models import Optimiser, made_in_compiled_code
from .on_trees import TreeOptimiser, record_of
from .rule import RULES, UpdateRule, is_number, rule_of


def optimiser(
    *, needs: Mapping[str, str] | None = None, fills: Mapping[str, str] | None = None
) -> Callable[[Callable], Callable[..., Any]]:
    """Declare an optimiser: its rule becomes the function that makes it, for a model or for trees, anywhere.

    Args:
        needs: slots that are there only if a hyper-parameter or switch is on -> which one.
        fills: slots that begin with the value of a hyper-parameter -> which one.
    """

    def declare(function: Callable) -> Callable[..., Any]:
        name = function.__name__
        rule = RULES[name] = rule_of(name, function, needs or {}, fills or {})

        def make(model=None, *args, **options):
            given, mask = arguments(rule, () if model is None else (model, *args), options)
            if model is None:
                return TreeOptimiser.of(rule, given, mask)
            return Optimiser(rule, model, given, mask)

        async def compiled(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
            if args and not (isinstance(args[0], Dyn) and isinstance(args[0].type, Ref)):
                raise TypeError_(needs_a_model(rule, describe(args[0])))
            given, mask = arguments(rule, args, kwargs)
            mask = Static(None) if mask is None else mask
            if args:
                return made_in_compiled_code(engine, frame, rule, args[0], given, mask, site)
            return record_of(frame, rule, given, mask)

        keywords = [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v) for n, v in rule.defaults.items()
        ]
        if "weight_decay" in rule.defaults:
            keywords.append(inspect.Parameter("mask", inspect.Parameter.KEYWORD_ONLY, default=None))
        first = inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
        make.__name__ = make.__qualname__ = name
        make.__module__ = __name__.rpartition(".")[0]
        make.__doc__ = function.__doc__
        make.__signature__ = inspect.Signature([first, *keywords])  # pyright: ignore[reportFunctionMemberAccess]
        special(make)(compiled)
        return make

    return declare


def needs_a_model(rule: UpdateRule, what: str) -> str:
    return (
        f"relay.optim.{rule.name} needs a model, not {what}; for a tree of arrays make one without it: "
        f"relay.optim.{rule.name}(lr=...), then init(params) and update(params, grads, state)"
    )


def arguments(rule: UpdateRule, args: tuple, options: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """The hyper-parameters that are given, as Python's values or inference's, and the mask.

    Args:
        rule: the optimiser.
        args: positional arguments: a model, then hyper-parameters in their order.
        options: the others.

    Raises:
        TypeError_: there is no such hyper-parameter, it is given twice or is no number; the first argument is no model.
        ValueError_: it is out of range.
    """
    if args and not isinstance(args[0], Val) and not isinstance(getattr(args[0], "model", args[0]), Model):
        raise TypeError_(needs_a_model(rule, type(args[0]).__name__))
    names = list(rule.defaults)
    if len(args) > len(names) + 1:
        raise TypeError_(f"relay.optim.{rule.name} takes a model and {', '.join(names)}")
    given = dict(zip(names, args[1:], strict=False))
    if both := given.keys() & options.keys():
        raise TypeError_(f"relay.optim.{rule.name}: {', '.join(sorted(both))} is given twice")
    given |= options
    rule.require_known(given)
    mask = given.pop("mask", None)
    checked = {}
    for name, value in given.items():
        staged = isinstance(value, Val)
        known = not staged or isinstance(value, Static) or isinstance(value, Dyn) and value.known
        if rule.is_switch(name) and staged:
            value, known = to_python(value, f"relay.optim.{rule.name}: {name}"), True
        elif isinstance(value, Static) or staged and known:
            python = value.value if isinstance(value, Static) else value.known_value
            if name == "lr" and callable(python):
                known = False
            else:
                value = python
        if known:
            rule.require_valid(name, value)
        elif name != "lr" and not is_number(value):
            raise TypeError_(f"relay.optim.{rule.name}: {name} is a number, not {describe(value)}")
        checked[name] = value
    return checked, mask


__all__ = ["optimiser"]
