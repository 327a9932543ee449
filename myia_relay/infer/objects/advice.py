"""Advice for names that the language does not have: what to write instead, where the name alone tells."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import numpy as np

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
    "heapq": (
        "keep the list sorted (find the place in a loop, and xs.insert(place, v)), or take the least one: xs.pop(xs.index(min(xs)))"
    ),
    "bisect": "write np.searchsorted(np.array(xs), v), or the loop that halves an interval",
    "statistics": "write np.mean, np.median, np.std or np.var of an array",
    "decimal": "numbers are ints of 64 bits and floats: write float(...)",
    "fractions": "numbers are ints of 64 bits and floats: write float(...)",
    "struct": _OUTSIDE,
    "queue": "a queue is a list and the place of its first entry: xs.append(v), then v = xs[first] and first += 1",
    "scipy": "it is no function of NumPy: write it in Python, or register it with relay.register_op",
    "collections": "write a list, a tuple or a dict with string keys; a deque is a list and the place of its first entry",
}
_NAMES = {
    "builtins.input": _OUTSIDE,
    "builtins.eval": "write the expression itself",
    "builtins.exec": "write the statements themselves",
    "builtins.hasattr": "which attributes a value has follows from its type: test that with isinstance",
    "builtins.setattr": "objects do not change; write dataclasses.replace(object, name=value)",
    "builtins.ord": "the characters of strings are known at compile time only; pass numbers, such as list(text.encode())",
    "builtins.chr": "a string of a character that is computed cannot be made: return the number, and call chr outside",
    **dict.fromkeys(
        ("builtins.hex", "builtins.oct", "builtins.bin", "builtins.format", "builtins.repr", "builtins.ascii"),
        "return the number, and make a text of it outside; str(...) and f-strings are part of the language",
    ),
    **dict.fromkeys(
        ("builtins.bytes", "builtins.bytearray", "builtins.memoryview", "array.array"),
        "write a NumPy array of uint8, or a list of ints",
    ),
    **dict.fromkeys(
        ("builtins.vars", "builtins.dir", "builtins.globals", "builtins.locals"), "read the names themselves"
    ),
    "builtins.delattr": "objects do not change; write dataclasses.replace(object, name=value)",
    "builtins.object": "write None, or a frozen dataclass without fields",
    "builtins.issubclass": "write isinstance(value, cls)",
    "builtins.hash": "compare values with ==; a table of numbers is an array, with searchsorted",
    "builtins.compile": "write the statements themselves",
    "copy.copy": "write x.copy() of an array, list or dict; other values do not change, and need no copy",
    "copy.deepcopy": "write x.copy() of an array; [row.copy() for row in xs] of a list of lists",
    **dict.fromkeys(
        ("functools.cmp_to_key", "functools.singledispatch", "functools.cached_property"),
        "write a function of your own",
    ),
    "numpy.roots": "write a loop of Newton's method, or call it outside",
    "numpy.poly1d": "keep the coefficients in an array, and write np.polyval(p, x)",
    "numpy.block": "write np.concatenate of rows, each an np.concatenate",
    "numpy.matrix": "write an array of two axes, and @ for products",
    "numpy.ndarray": "write np.empty(shape), np.zeros(shape) or np.array(values)",
    "numpy.matvec": "write (x @ v[..., None])[..., 0]",
    "numpy.vecmat": "write (v[..., None, :] @ x)[..., 0, :]",
    **dict.fromkeys(("numpy.put", "numpy.place"), "write x[index] = values, or x[mask] = values"),
    "numpy.extract": "write x[mask]",
    "numpy.fromfunction": "write the function of np.arange(n)[:, None] and np.arange(m)",
    "numpy.fromiter": "write np.array([... for ...])",
    "numpy.frompyfunc": "write relay.vmap(f)(x), or call f on the whole array",
    **dict.fromkeys(
        ("numpy.nditer", "numpy.ndenumerate", "numpy.ndindex"), "write a loop for each axis: for i in range(n)"
    ),
    "numpy.piecewise": "write np.where(condition, x, y)",
    "builtins.id": "values have no addresses; compare them with ==",
    "builtins.set": "write a list or a tuple, or np.unique of an array",
    "builtins.frozenset": "write a list or a tuple, or np.unique of an array",
    "functools.lru_cache": "compiled code computes anew; decorate a function at the top level of the module, where it is ignored",
    "functools.cache": "compiled code computes anew; decorate a function at the top level of the module, where it is ignored",
    **dict.fromkeys(("numpy.load", "numpy.save", "numpy.loadtxt", "numpy.genfromtxt", "numpy.savez"), _OUTSIDE),
    "numpy.vectorize": "write relay.vmap(f)(x), or call f on the whole array",
}
_SAME = {
    "scipy.special.erf": "math.erf(x) of a number, or relay.erf(x)",
    "scipy.special.erfc": "1 - relay.erf(x), or math.erfc(x) of a number",
    "scipy.special.expit": "relay.sigmoid(x)",
    "scipy.special.log_expit": "-relay.softplus(-x)",
    "scipy.special.logit": "np.log(p / (1 - p))",
    "scipy.special.softplus": "relay.softplus(x)",
    "scipy.special.softmax": "relay.softmax(x)",
    "scipy.special.log_softmax": "relay.log_softmax(x)",
    "scipy.special.logsumexp": "relay.logsumexp(x)",
    "scipy.special.xlogy": "np.where(x == 0, 0.0, x * np.log(y))",
    "scipy.special.cbrt": "np.cbrt(x)",
    "scipy.special.exp2": "np.exp2(x)",
    "scipy.special.expm1": "np.expm1(x)",
    "scipy.special.log1p": "np.log1p(x)",
    "scipy.special.gamma": "math.gamma(x) of a number",
    "scipy.special.gammaln": "math.lgamma(x) of a number",
    "scipy.special.comb": "math.comb(n, k)",
    "scipy.special.factorial": "math.factorial(n)",
    "scipy.signal.convolve": "np.convolve(x, y) of vectors",
    "scipy.linalg.expm": "a loop that scales, sums the series and squares",
    **{
        f"scipy.linalg.{f}": f"np.linalg.{f}(x)"
        for f in ("inv", "det", "cholesky", "qr", "svd", "eigh", "norm", "pinv", "solve")
    },
    **{f"cmath.{f}": f"np.{f}(z)" for f in ("exp", "isfinite", "isinf", "isnan")},
    "cmath.phase": "np.angle(z)",
    "numpy.linalg.outer": "np.outer(x, y)",
}
"""Functions of libraries -> what computes the same."""
_UFUNC_METHODS = {
    "outer": "write the operation of x[:, None] and y, such as x[:, None] + y",
    "accumulate": "write np.cumsum(x), np.cumprod(x), np.maximum.accumulate as a loop, or relay.scan",
    "reduceat": "write a loop over the bounds: np.sum(x[start:end])",
    "reduce": "write np.sum(x), np.prod(x), np.max(x), np.min(x), np.all(x) or np.any(x)",
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
    name = getattr(value, "__name__", type(value).__name__)
    if isinstance(owner, np.ufunc):  # np.add.outer
        return f"{name_of(owner)}.{name}"
    if isinstance(value, np.ufunc):
        return f"numpy.{name}" if getattr(np, name, None) is value else f"{_library_of(value)}{name}"
    module = getattr(value, "__module__", None) or (type(owner).__module__ if owner is not None else "")
    if module in ("io", "_io") and name == "open":
        module = "builtins"
    module = (
        module.removeprefix("_") if "." not in module else module.partition("._")[0]
    )  # where the user imports it from
    return name if module in ("", "builtins") else f"{module}.{name}"


def _library_of(value: np.ufunc) -> str:
    """Where a ufunc that is none of NumPy's comes from, with a dot behind; empty where that is not known."""
    special = sys.modules.get("scipy.special")
    return "scipy.special." if special is not None and getattr(special, value.__name__, None) is value else ""


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
    same = _SAME.get(full)
    if same is not None:
        return f"write {same}"
    if full.startswith("numpy.") and full.endswith((".outer", ".accumulate", ".reduceat", ".reduce")):
        return _UFUNC_METHODS.get(full.rpartition(".")[2])
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
    repeats = any(is_text(a) or isinstance(a, Seq) and a.kind in ("list", "tuple") for a in args)
    if name in ("mul", "imul") and repeats and any(a.type.is_float for a in numbers):
        kind = next("float" if a.type.weak else f"numpy.{a.type.dtype}" for a in numbers if a.type.is_float)
        return TypeError_(f"can't multiply sequence by non-int of type '{kind}'")
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
