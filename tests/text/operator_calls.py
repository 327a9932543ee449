"""Applying an operator of Relay from Python, and asking the checker for the type of its result."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np

import myia_relay as relay
from myia_relay.text.check.module import check
from myia_relay.text.operators import CALLABLES, OPERATORS
from myia_relay.text.syntax.items import parse
from myia_relay.text.terms.terms import ANY, TensorTerm, TupleTerm, resolved

_numbers = itertools.count()


def frozen(value: Any) -> Any:
    """Lists as tuples, as the parser has them."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def _flattened(args, make):
    """Arguments as text, tuples of tensors among them, and the tensors."""
    leaves = []

    def text(a):
        if isinstance(a, tuple):
            return "(" + "".join(f"{text(x)}, " for x in a) + ")"
        leaves.append(a)
        return make(len(leaves) - 1)

    return ", ".join(map(text, args)), leaves


def function_of(name, args, attrs):
    """A Python function of the tensors in `args` that applies an operator, and the tensors."""
    full = OPERATORS[name].complete(tuple((k, frozen(v)) for k, v in attrs.items()))
    call, leaves = _flattened(args, lambda k: f"a{k}")
    keywords = "".join(f", {k}={v!r}" for k, v in full.items() if v is not None)
    call = (call + keywords).removeprefix(", ")
    source = f"def f({', '.join(f'a{k}' for k in range(len(leaves)))}):\n    return OP({call})\n"
    file = f"<operator {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"OP": CALLABLES[name], "__name__": __name__, "inf": np.inf, "nan": np.nan}
    exec(compile(source, file, "exec"), space)
    return space["f"], leaves


def apply(name, *args, executor="interpreter", **attrs):
    """The value of an application."""
    f, leaves = function_of(name, args, attrs)
    return relay.relay(executor=executor)(f)(*leaves)


def written(value):
    """An attribute as text."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, float):
        return f"{value!r}f64"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def program(name, args, attrs, size=None, through=False):
    """The text of a module that applies an operator to arguments of these shapes and dtypes.

    Args:
        name: of the operator.
        args: tensors, and tuples of them.
        attrs: its attributes.
        size: what to write for a size: a function of the number of the argument, the number of the axis, and the size.
        through: whether it is applied in a function of which nothing is declared, which `@main` calls.
    """
    size = size or (lambda argument, axis, n: n)
    call, leaves = _flattened(args, lambda k: f"%a{k}")
    inner = call + "".join(f", {k}={written(v)}" for k, v in attrs.items())
    applied = f"{name}({inner.removeprefix(', ')})"
    kinds = [
        f"Tensor[({', '.join(str(size(k, j, n)) for j, n in enumerate(np.shape(a)))}), {np.asarray(a).dtype.name}]"
        for k, a in enumerate(leaves)
    ]
    params = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(kinds))
    if not through:
        return f"def @main({params}) {{ {applied} }}"
    bare = ", ".join(f"%a{k}" for k in range(len(leaves)))
    return f"def @main({params}) {{ @helper({bare}) }}\ndef @helper({bare}) {{ {applied} }}"


def type_of(text):
    """The type of the result of a module's `@main`."""
    return resolved(check(parse(text)).schemes["main"].type.result)


def inferred(name, *args, **attrs):
    """The type that the checker finds for an application to arguments of these shapes and dtypes."""
    return type_of(program(name, args, attrs))


def agrees(term, value):
    """Whether a value has a type."""
    if isinstance(term, TupleTerm):
        return isinstance(value, tuple) and len(value) == len(term.elems) and all(map(agrees, term.elems, value))
    assert isinstance(term, TensorTerm), term
    have = np.shape(value)
    fits = len(have) == len(term.shape) and all(s is ANY or s == h for s, h in zip(term.shape, have, strict=True))
    return fits and term.dtype == np.asarray(value).dtype.name
