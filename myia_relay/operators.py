"""`relay.register_op`: operators that users add to the language, with all their rules in one place.

    @relay.register_op(elementwise=True)
    def softclip(x, *, limit=1.0):
        return limit * np.tanh(x / limit)               # any Python: it runs as it is

    @softclip.defvjp
    def _(x, out, dout, limit=1.0):                     # in the language: compiled, and differentiated again
        return (dout * (1.0 - (out / limit) ** 2),)

See docs/operators.md.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from .derivatives import vjp as _pullback_of
from .infer.transforms import registered as _registered  # noqa: F401  what their calls mean
from .ir.prim import REGISTRY
from .prims.ops.c_functions import CFunction
from .prims.ops.registered import Operator, TensorType
from .utils.errors import TypeError_, ValueError_


def register_op(
    function: Callable | None = None,
    *,
    name: str | None = None,
    infer: Callable | None = None,
    elementwise: bool = False,
    dtype: Any = None,
    vjp: Callable | None = None,
    jvp: Callable | None = None,
    batch: str | Callable | None = None,
    lower: Callable | None = None,
    symbol: str | None = None,
    library: str | os.PathLike | None = None,
    signature: str | None = None,
) -> Any:
    """Make an operator of a function; a decorator.

    What the function is depends on what else is said:

    - nothing: it is written in the language, in terms of other operators, and is compiled with the program;
    - `infer` or `elementwise`: it is any Python, run as it is from compiled code; it must not change its arguments;
    - `symbol` and `signature`: it names the parameters, and a C function computes.

    Positional parameters are numbers and arrays, keyword-only ones static attributes.

    Args:
        function: the function.
        name: the operator's name in messages; the function's by default.
        infer: the type relation, `(*TensorType, **attrs) -> TensorType`, or a tuple of these for several results.
        elementwise: each element of the result comes from one of each argument, with broadcasting; derives `infer` and `batch`.
        dtype: of an elementwise result: a dtype, or a function of the arguments' dtypes. Without it arguments are promoted to a
            common float dtype, which the result has.
        vjp: the reverse rule; see `Operator.defvjp`.
        jvp: the forward rule `(args, tangents, **attrs) -> tangent`, in place of `vjp`, which is its transpose. In the language.
        batch: under `vmap`: "leading" where the function takes a leading axis on every argument, or a Python function
            `(batched, *args, **attrs) -> result` of arguments of which `batched[i]` says whether they have that axis.
            By default it runs for one example after the other.
        lower: `(te, *tensors, **attrs) -> tensor`, native code in TVM's tensor expressions: `te.compute`, `te.topi`, `te.tir`.
            The function is still what the other executors run. It must have one result and not raise.
        symbol: the C function that computes the result.
        library: the shared library it is in; None for what the process has loaded.
        signature: in C: "double(double)" for one element, "void(const double *x, double *out, int64_t out_size)" for arrays.

    Returns:
        The operator: call it in compiled code or plain Python.

    Raises:
        TypeError_: the function or a rule is no function, or has `*args` or `**kwargs`.
        ValueError_: the options contradict each other, or the name is taken by a built-in operator.
    """
    if function is None:
        return lambda f: register_op(
            f, name=name, infer=infer, elementwise=elementwise, dtype=dtype, vjp=vjp, jvp=jvp, batch=batch, lower=lower,
            symbol=symbol, library=library, signature=signature,
        )  # fmt: skip
    function = getattr(function, "__relay_function__", function)
    if not inspect.isfunction(function):
        raise TypeError_(f"register_op decorates a function, not {type(function).__name__}")
    chosen = name or function.__name__
    if chosen in REGISTRY:
        raise ValueError_(f"'{chosen}' is an operator of myia_relay itself; give yours another name=")
    for option, rule in (("infer", infer), ("vjp", vjp), ("jvp", jvp), ("lower", lower)):
        if rule is not None and not callable(rule):
            raise TypeError_(f"register_op: {option} is a function, not {type(rule).__name__}")
    _refuse_parameters(chosen, function)
    if vjp is not None and jvp is not None:
        raise ValueError_("register_op: give vjp or jvp; the other one is its transpose")
    c_function = None
    if symbol is not None or signature is not None or library is not None:
        if symbol is None or signature is None:
            raise ValueError_("register_op: a C function needs symbol= and signature=")
        c_function = CFunction(symbol, library, signature)
        if c_function.scalar:
            elementwise, dtype = True, c_function.returned
    if elementwise and infer is not None:
        raise ValueError_("register_op: elementwise=True derives infer; give dtype= where the result's is another one")
    if not elementwise and infer is None:
        for option, value in (("dtype", dtype), ("batch", batch), ("lower", lower), ("signature", c_function)):
            if value is not None:
                raise ValueError_(
                    f"register_op: {option} is for operators with a relation; give infer= (or elementwise=True) too"
                )
    if dtype is not None and not elementwise:
        raise ValueError_("register_op: dtype is for elementwise operators; infer says it otherwise")
    if (
        isinstance(batch, str)
        and batch != "leading"
        or batch is not None
        and not isinstance(batch, str)
        and not callable(batch)
    ):
        raise ValueError_(f"register_op: batch is 'leading' or a function, not {batch!r}")
    if batch is not None and (elementwise or c_function is not None):
        raise ValueError_("register_op: batch is for Python functions with infer; the others need none")
    op = Operator(
        chosen, function, relation=infer, elementwise=elementwise, dtype=dtype, vjp=vjp if jvp is None else _transposed(jvp),
        batch=batch, lower=lower, c_function=c_function,
    )  # fmt: skip
    if c_function is not None:
        c_function.refuse_unknown(op.parameters, op.attributes)
    return op


def _refuse_parameters(name: str, function: Callable) -> None:
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError_(
                f"register_op: {name} has the parameter {p}, and an operator's parameters are written one by one"
            )


def _transposed(jvp: Callable) -> Callable:
    """The reverse rule that is the transpose of a forward rule."""

    def rule(*values, **attrs):
        *args, _, dout = values

        def linear(*tangents):
            return jvp(tuple(args), tangents, **attrs)

        return _pullback_of(linear, *args)[1](dout)

    return rule


__all__ = ["Operator", "TensorType", "register_op"]
