"""Advice for names that the language does not have: what to write instead, where the name alone tells."""

from __future__ import annotations

import os
import types
from typing import Any

from ...abstract.types import Array, Scalar
from ...utils.errors import CompileError, TypeError_
from ..values.kinds import is_text
from ..values.treedef import describe
from ..values.values import Dyn, Seq, Val

_OUTSIDE = "call it outside and pass what it returns as an argument"
_DRAWS = (
    "it gives another number at each call: draw from a key with relay.random, or draw the numbers outside and pass them as an "
    "argument"
)
_MODULES = {
    **dict.fromkeys(("random", "numpy.random", "secrets"), _DRAWS),
    "time": "a program has no clock: read it outside, around the call",
    "datetime": "a program has no clock: read it outside, around the call",
    "sys": "it acts on Python itself: call it outside",
    "torch": "arrays are NumPy's here: use the function of NumPy or relay that does the same",
    "tensorflow": "arrays are NumPy's here: use the function of NumPy or relay that does the same",
    "jax": "arrays are NumPy's here: use the function of NumPy or relay that does the same",
    "pandas": "compiled code computes on arrays: take them out of the frame outside (df.to_numpy()) and pass them",
    **dict.fromkeys(("io", "os", "pathlib", "json", "pickle", "re", "logging", "subprocess", "urllib"), _OUTSIDE),
    "itertools": "write loops, or a comprehension",
    "collections": "write a list, a tuple or a dict with string keys",
}
_NAMES = {
    "builtins.input": _OUTSIDE,
    "builtins.eval": "write the expression itself",
    "builtins.exec": "write the statements themselves",
    "builtins.hasattr": "which attributes a value has follows from its type: test that with isinstance",
    "builtins.setattr": "objects do not change; write dataclasses.replace(object, name=value)",
    "builtins.next": "write a `for` loop, or take the entry of a list: xs[0]",
    "builtins.id": "values have no addresses; compare them with ==",
    "builtins.set": "write a list or a tuple, or np.unique of an array",
    "builtins.frozenset": "write a list or a tuple, or np.unique of an array",
    "functools.lru_cache": "compiled code computes anew; decorate a function at the top level of the module, where it is ignored",
    "functools.cache": "compiled code computes anew; decorate a function at the top level of the module, where it is ignored",
    **dict.fromkeys(("numpy.load", "numpy.save", "numpy.loadtxt", "numpy.genfromtxt", "numpy.savez"), _OUTSIDE),
    "numpy.vectorize": "write relay.vmap(f)(x), or call f on the whole array",
    "numpy.apply_along_axis": "write relay.vmap(f, in_axes=...)(x)",
}
ARRAY_METHODS = {
    **{f: f"write relay.{f}(x)" for f in ("relu", "sigmoid", "softmax", "log_softmax")},
    **{f: f"write np.{f}(x)" for f in ("abs", "cos", "exp", "log", "sin", "sqrt", "tan", "tanh")},
    **{f + "_": f"write x = x.{f}(...), or x[...] = value" for f in ("fill", "clip")},
    **dict.fromkeys(("add_", "sub_", "mul_", "div_"), "write x += y, x -= y, x *= y, x /= y"),
    "append": "an array has a fixed size: make a new one with np.concatenate, or append to a list",
    "backward": "derivatives are functions here: relay.grad(f)(x)",
    "bmm": "write x @ y",
    "clamp": "write np.clip(x, low, high)",
    "contiguous": "arrays are in memory in their order already",
    "cpu": "arrays are in memory already",
    "cuda": "arrays are in memory; choose the machine by @relay(target=...)",
    "detach": "write relay.stop_gradient(x)",
    "device": "arrays are in memory; choose the machine by @relay(target=...)",
    "double": "write x.astype(np.float64)",
    "expand": "write np.broadcast_to(x, shape)",
    "float": "write x.astype(np.float32)",
    "gather": "write np.take_along_axis(x, index, axis)",
    "grad": "derivatives are functions here: relay.grad(f)(x)",
    "long": "write x.astype(np.int64)",
    "masked_fill": "write np.where(mask, value, x)",
    "matmul": "write x @ y",
    "mm": "write x @ y",
    "norm": "write np.linalg.norm(x)",
    "numpy": "it is an array already",
    "permute": "write x.transpose(...)",
    "requires_grad_": "name the parameters to differentiate by: relay.grad(f, 'x')",
    "requires_grad": "name the parameters to differentiate by: relay.grad(f, 'x')",
    "sort": "write x = np.sort(x)",
    "to": "write x.astype(dtype)",
    "topk": "write relay.top_k(x, k)",
    "type": "write x.astype(dtype)",
    "unsqueeze": "write x[None], or np.expand_dims(x, axis)",
    "view": "write x.reshape(...)",
    "zero_": "write x[...] = 0.0, or make a new array: np.zeros_like(x)",
}
"""Attributes that arrays have in other libraries, or outside compiled code."""
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>", "neg": "unary -", "pos": "unary +", "invert": "unary ~", "iadd": "+=", "isub": "-=",
    "imul": "*=", "itruediv": "/=",
}  # fmt: skip
"""The symbols of operators, by their names in `operator`."""
_STANDARD = os.path.dirname(os.__file__) + os.sep


def name_of(value: Any) -> str:
    """A callable's name as the user writes it: `random.random`, `numpy.fft.fft`."""
    owner = getattr(value, "__self__", None)
    module = getattr(value, "__module__", None) or (type(owner).__module__ if owner is not None else "")
    if module in ("io", "_io") and getattr(value, "__name__", "") == "open":
        module = "builtins"
    name = getattr(value, "__name__", type(value).__name__)
    return name if module in ("", "builtins") else f"{module}.{name}"


def cannot_be_compiled(value: Any, reason: str = "") -> str:
    """The message for a callable that is neither Python source nor known.

    Args:
        value: the callable.
        reason: why it cannot be compiled.
    """
    name = name_of(value)
    if name == "open":
        return "open cannot be compiled: read the file outside, and pass what is in it as an argument"
    advice = _advice(name)
    if advice is not None:
        return f"{name} cannot be compiled: {advice}"
    why = reason or "it is neither Python source nor a function that myia_relay knows"
    return f"{name} cannot be compiled: {why}; write it in Python, or register it with relay.register_op"


def has_advice(value: Any) -> bool:
    """Whether the name of a callable alone determines what to write instead."""
    return _advice(name_of(value)) is not None


def _advice(name: str) -> str | None:
    full = name if "." in name else f"builtins.{name}"
    places = (full.rpartition(".")[0], full.partition(".")[0])
    return _NAMES.get(full) or next((_MODULES[place] for place in places if place in _MODULES), None)


def is_known_foreign(cls: type) -> bool:
    """Whether there is advice for a class of Python or of a library."""
    full = f"{cls.__module__}.{cls.__name__}"
    return full in _NAMES or cls.__module__.partition(".")[0] in _MODULES


def is_of_library(function: types.FunctionType) -> bool:
    """Whether a function is part of a library or of Python itself, not written by the user."""
    file = function.__code__.co_filename
    return "site-packages" in file or file.startswith(_STANDARD)


def unsupported(op, args: list[Val]) -> CompileError:
    """CPython's message for an operator that does not support its operands."""
    name = getattr(op, "__name__", str(op))
    kinds = " and ".join("str" if is_text(a) else describe(a) for a in args)
    advice = ""
    numbers = [a for a in args if isinstance(a, Dyn) and isinstance(a.type, Scalar)]
    if name in ("add", "iadd") and len(args) == 2 and numbers and any(map(is_text, args)):
        advice = "; make a string of the number first: str(...), or write an f-string"
    arrays = any(isinstance(a, Dyn) and isinstance(a.type, Array) for a in args)
    if arrays and any(isinstance(a, Seq) and a.kind in ("list", "tuple") for a in args):
        advice = "; make an array of it first: np.array(...)"
    run_time = any(not a.known for a in numbers)
    if name in ("mul", "imul") and run_time and any(isinstance(a, Seq) and a.kind == "tuple" for a in args):
        return TypeError_(
            "a tuple has a length known at compile time, and how often this one is repeated is known at run time only; "
            "repeat a list: [...] * n"
        )
    if name in ("mul", "imul") and run_time and any(map(is_text, args)):
        return TypeError_(
            "how often this string is repeated is known at run time only, and a string of such a length cannot be made in "
            "compiled code: return the number, and repeat the string outside"
        )
    return TypeError_(f"unsupported operand type(s) for {SYMBOLS.get(name, name)}: {kinds}{advice}")
