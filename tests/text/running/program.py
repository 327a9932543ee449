"""One program of the suite: Relay text, what it is called with, and what must come of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from myia_relay import relay

F = np.float32
I = np.int32


@dataclass(frozen=True)
class Value:
    """A value of a data type: `Value("Cons", 1, Value("Nil"))`."""

    constructor: str
    fields: tuple[Any, ...]

    def __init__(self, constructor: str, *fields: Any):
        object.__setattr__(self, "constructor", constructor)
        object.__setattr__(self, "fields", fields)


@dataclass(frozen=True)
class Global:
    """A definition of the module, as an argument."""

    name: str


def values(*entries: Any) -> Value:
    """A `List` of values."""
    out = Value("Nil")
    for entry in reversed(entries):
        out = Value("Cons", entry, out)
    return out


@dataclass(frozen=True, eq=False)
class Program:
    """A program and its outcome.

    Attributes:
        title: the point of it.
        text: the module.
        args: arguments of `call`.
        expected: the result; Python numbers stand for tensors of rank 0.
        call: the definition that is called.
        wrt: the positions of a gradient, if that is what is computed.
        order: how many gradients are nested.
        raises: the class of the error of the call, and a part of its message.
    """

    title: str
    text: str
    args: tuple = ()
    expected: Any = None
    call: str = "main"
    wrt: Any = None
    order: int = 1
    raises: tuple[type[Exception], str] | None = None


def made(module: Any, value: Any) -> Any:
    """An argument for a module."""
    if isinstance(value, Value):
        return module[value.constructor](*[made(module, f) for f in value.fields])
    if isinstance(value, Global):
        return module[value.name]
    if isinstance(value, tuple):
        return tuple(made(module, v) for v in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def result(program: Program, module: Any) -> Any:
    """What the call of a program gives."""
    f = module[program.call]
    for _ in range(program.order if program.wrt is not None else 0):
        f = relay.grad(f, program.wrt)
    return f(*[made(module, a) for a in program.args])


def agree(got: Any, want: Any) -> bool:
    """Whether a result is what is expected: constructors, structure, dtypes of arrays, kinds of numbers, values."""
    if isinstance(want, Value):
        return got.constructor == want.constructor and agree(tuple(got.fields), want.fields)
    if isinstance(want, tuple):
        return isinstance(got, tuple) and len(got) == len(want) and all(map(agree, got, want))
    if isinstance(want, np.ndarray):
        same = isinstance(got, np.ndarray) and got.dtype == want.dtype and got.shape == want.shape
        return same and bool(np.allclose(got, want, rtol=2e-5, atol=1e-6, equal_nan=True))
    if isinstance(want, np.generic):
        return isinstance(got, np.generic) and got.dtype == want.dtype and bool(np.isclose(got, want, equal_nan=True))
    kinds = {bool: "b", int: "iu", float: "f"}[type(want)]
    if not isinstance(got, np.generic) or got.dtype.kind not in kinds:
        return False
    return bool(np.isclose(got, want, rtol=2e-5, atol=1e-6, equal_nan=True)) if type(want) is float else got == want
