"""Finding what is decorated: wrappers and transforms around a Python function, and the annotations of its parameters; the errors
that leave a decorated function.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from .abstract.annotations import TensorAnnotation
from .abstract.families import note_scope
from .utils.attributes import own_attribute
from .utils.debugging import debugging
from .utils.errors import TypeError_
from .utils.raising import for_user
from .utils.source import Origin, is_ours


def note_local_classes() -> None:
    """Record the variables of the function in which another is decorated: annotations of dataclasses made there refer
    to them.
    """
    frame = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None and frame.f_locals is not frame.f_globals:
        note_scope(frame.f_locals)


def wrapped_by(function: Any) -> Any:
    """What a wrapper or a transform is applied to; None if it is neither."""
    derived = own_attribute(function, "__relay_derived__")
    if derived is not None:
        return derived[1]
    inner = own_attribute(function, "__relay_function__")
    return inner if inner is not None else own_attribute(function, "__relay_model__")


def layers(function: Any) -> Iterator[Any]:
    """A function, what it wraps or transforms, and so on down to the Python function."""
    yield function
    while (function := wrapped_by(function)) is not None:
        yield function


def place_of(function: Any, parameter: str | int | None = None) -> Origin | None:
    """The place where a decorated function, or a parameter of it, is defined; None if it is not known."""
    from .frontend import parse

    try:
        graph = parse(source_function(function))
    except Exception:  # its source may be missing, which is reported elsewhere
        return None
    signature = graph.signature
    if parameter is not None and signature is not None and parameter in signature.names:
        return graph.params[signature.names.index(parameter)].origin
    return graph.origin


def source_function(function: Any) -> Any:
    """The Python function at the bottom of wrappers and transforms."""
    *_, source = layers(function)
    return source


def check_decorated(function: Any) -> None:
    """Refuse to decorate what has no Python source.

    Raises:
        TypeError_: not a Python function, nor anything made of one.
    """
    wrapped = wrapped_by(function) is not None
    known = types.FunctionType | types.MethodType | functools.partial | functools._lru_cache_wrapper
    if wrapped or isinstance(function, known):
        return
    if callable(function) and isinstance(type(function).__call__, types.FunctionType):
        return
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise TypeError_(f"@relay stands under @{kind}, not above it: write @{kind} on the line before @relay")
    what = f"the class {function.__name__}" if isinstance(function, type) else repr(function)
    raise TypeError_(
        f"@relay compiles functions that are written in Python, and this is {what}; wrap it: relay(lambda x: ...)"
    )


def parameter_annotations(function: Any) -> tuple[list[str], list]:
    """Names and evaluated annotations of a function's parameters; none of arrays where they are batches, which have more axes."""
    target = source_function(function)
    batched = any(getattr(layer, "__relay_derived__", ("",))[0] in ("vmap", "batch_mean") for layer in layers(function))
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return [], []
    try:
        hints = inspect.get_annotations(target, eval_str=True)
    except Exception:
        hints = {}
    found = [hints.get(n) for n in parameters]
    return list(parameters), [None if batched and isinstance(h, TensorAnnotation) else h for h in found]


def at_boundary(method: Callable) -> Callable:
    """A method of `Relay` whose errors are as a user's call raises them."""

    @functools.wraps(method)
    def guarded(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            problem = for_user(error, debugging(), self._place)
        raise problem

    return guarded
