"""Operators on Python numbers and NumPy scalars: just what CPython and NumPy make of them, exceptions included."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
import sys
import warnings

import numpy as np
import pytest

from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS
from myia_relay.prims.api.operators import OPERATORS, truth
from myia_relay.utils.errors import CompileError

from .staged import run

TOP = 2**63 - 1
INTS = [0, 1, 2, 3, -1, -2, 7, -7, 63, 64, 2**31, 3037000500, 2**53 + 1, 2**62, TOP, -TOP, -TOP - 1]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1 / 3,
    -2.5,
    2.0,
    3.0,
    1e308,
    5e-324,
    2.0**63,
    2.0**53,
    math.inf,
    -math.inf,
    math.nan,
]
BOOLS = [True, False]
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
]
UNARY = [
    operator.neg,
    operator.pos,
    operator.invert,
    operator.not_,
    builtins.abs,
    builtins.int,
    builtins.float,
    builtins.bool,
]


def outcome(fn, *args):
    """The value of a call, or its exception's class and text."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fn(*args)
    except CompileError:
        return "refused"
    except TypeError:
        return "refused"
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)


def assert_same(ours, theirs, what):
    if isinstance(theirs, tuple) and isinstance(theirs[0], type):
        assert ours == theirs, what
        return
    assert type(ours) is type(theirs), (what, ours, theirs)
    if isinstance(theirs, float | np.floating) and theirs != theirs:
        assert ours != ours, (what, ours, theirs)
        return
    assert ours == theirs, (what, ours, theirs)
    if isinstance(theirs, float | np.floating):
        assert math.copysign(1, ours) == math.copysign(1, theirs), (what, ours, theirs)


def expected(op, *args):
    """CPython's outcome within the language: ints have 64 bits, no complex numbers."""
    if op in (operator.pow, operator.lshift) and all(isinstance(a, int) for a in args) and abs(args[1]) > 10000:
        if op is operator.lshift and args[1] > 0:
            return 0 if args[0] == 0 else OverflowError
        if op is operator.pow and args[1] > 0:
            return OverflowError if abs(args[0]) > 1 else int(args[0]) ** (args[1] % 2 + 2)
    value = outcome(op, *args)
    if isinstance(value, int) and not isinstance(value, bool) and not -TOP - 1 <= value <= TOP:
        return OverflowError
    if isinstance(value, complex):
        return ValueError
    return value


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "left, right", [(INTS, INTS), (FLOATS, FLOATS), (INTS, FLOATS), (FLOATS, INTS), (BOOLS, INTS), (BOOLS, BOOLS)]
)
@pytest.mark.sampled(4)
def test_binary_operators(op, left, right):
    for x, y in itertools.product(left, right):
        if op is operator.pow and isinstance(y, int) and isinstance(x, int) and y < 0:
            continue  # a float of an int: the type depends on the value; below
        wanted = expected(op, x, y)
        ours = outcome(lambda x, y: run(OPERATORS[op], x, y), x, y)
        if wanted in (OverflowError, ValueError):
            assert isinstance(ours, tuple) and ours[0] is wanted, (op, x, y, ours)
            continue
        assert_same(ours, wanted, (op.__name__, x, y))


@pytest.mark.parametrize("x", [0, 1, 2, -2, 7])
@pytest.mark.parametrize("y", [-3, -1, 0, 1, 2, 3, 5])
def test_int_power_with_a_known_exponent(x, y):
    def rule(b, v):
        return OPERATORS[operator.pow](b, v, b.var(b.constant(y)))

    assert_same(outcome(lambda v: run(rule, v), x), outcome(operator.pow, x, y), (x, y))


@pytest.mark.parametrize("y", [-2, -1, 0, 1, 2, 3, 0.5, -0.5, 2.5, 400])
def test_float_power_with_a_known_exponent(y):
    for x in FLOATS:
        wanted = expected(operator.pow, x, y)
        ours = outcome(lambda v: run(lambda b, w: OPERATORS[operator.pow](b, w, b.var(b.constant(y))), v), x)
        if wanted is ValueError:  # complex
            assert ours == "refused"
        else:
            assert_same(ours, wanted, (x, y))


def test_a_negative_exponent_at_run_time_raises():
    with pytest.raises(ValueError, match="-1 is a negative exponent.*float"):
        run(OPERATORS[operator.pow], 2, -1)


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.__name__)
def test_unary_operators(op):
    for x in INTS + FLOATS + BOOLS:
        wanted = expected(op, x)
        ours = outcome(lambda x: run(OPERATORS[op], x), x)
        if wanted is OverflowError:
            assert ours[0] is OverflowError, (op, x)
        else:
            assert_same(ours, wanted, (op.__name__, x))


def test_divmod_and_round():
    for x, y in itertools.product([7, -7, 0, 7.5, -7.5], [2, -2, 0, 2.0, 0.0]):
        ours, theirs = outcome(lambda x, y: run(IMPLEMENTATIONS[divmod], x, y), x, y), outcome(divmod, x, y)
        assert ours == theirs, (x, y)
    for x in [0.5, 1.5, -2.5, 2.4, 7, True, math.nan, math.inf]:
        assert_same(outcome(lambda x: run(OPERATORS[round], x), x), outcome(round, x), x)


def test_min_and_max_are_python_s():
    for x, y in itertools.product(FLOATS, FLOATS):
        assert_same(run(OPERATORS[max], x, y), max(x, y), (x, y))
        assert_same(run(OPERATORS[min], x, y), min(x, y), (x, y))
    assert run(OPERATORS[max], 1, 5, 3) == 5
    with pytest.raises(CompileError, match="max\\(int, float\\)"):
        run(OPERATORS[max], 1, 2.0)


def test_truth():
    for x in [*INTS, *FLOATS, *BOOLS, np.float64("nan"), np.int8(0), np.array([0.0]), np.array(3)]:
        assert run(truth, x) is bool(x)
    for bad in (np.zeros(2), np.zeros(0)):
        with pytest.raises(CompileError, match="ambiguous"):
            run(truth, bad)


SCALARS = [
    True,
    3,
    -300,
    2.5,
    np.True_,
    np.int8(-7),
    np.int8(-128),
    np.uint8(250),
    np.int16(300),
    np.int64(5),
    np.uint64(2**63 + 5),
    np.float16(2.5),
    np.float32(0.1),
    np.float64(-1.5),
    np.float64(0.0),
    np.int64(0),
    np.array(2.5),
    np.array(3, np.int32),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_numpy_scalars(op):
    for x, y in itertools.product(SCALARS, SCALARS):
        if not (isinstance(x, np.generic | np.ndarray) or isinstance(y, np.generic | np.ndarray)):
            continue
        wanted = outcome(op, x, y)
        ours = outcome(lambda x, y: run(OPERATORS[op], x, y), x, y)
        if isinstance(wanted, tuple) and isinstance(wanted[0], type):
            assert ours[0] is wanted[0], (op, x, y, ours, wanted)
            continue
        if isinstance(wanted, str) or isinstance(ours, str):
            assert ours == wanted, (op, repr(x), repr(y), ours, wanted)
            continue
        assert type(ours) is type(wanted), (op, repr(x), repr(y), ours, wanted)
        assert ours.dtype == wanted.dtype
        rtol = 1e-15 if op is operator.pow else 0  # NumPy's vector code for powers is an ulp off, where it is used
        np.testing.assert_allclose(ours, wanted, rtol=rtol, atol=0, err_msg=f"{op} {x!r} {y!r}")


@pytest.mark.parametrize(
    "op", [operator.neg, operator.pos, operator.invert, builtins.abs, builtins.int, builtins.float]
)
def test_numpy_scalars_alone(op):
    for x in SCALARS:
        if isinstance(x, np.generic | np.ndarray):
            if op is int and x.dtype == np.uint64:
                continue  # beyond 64 bits
            wanted, ours = outcome(op, x), outcome(lambda x: run(OPERATORS[op], x), x)
            assert type(ours) is type(wanted) and ours == wanted, (op, repr(x), ours, wanted)


MATH = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "log2"),
    *("log10", "sqrt", "fabs", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "degrees", "radians", "erf"),
)


@pytest.mark.parametrize("name", MATH)
def test_math_functions(name):
    fn = getattr(math, name)
    for x in [*FLOATS, 0.3, -0.7, 710.0, -1, 0, 3, True]:
        wanted, ours = outcome(fn, x), outcome(lambda x: run(IMPLEMENTATIONS[fn], x), x)
        if isinstance(wanted, int) and not isinstance(wanted, bool) and abs(wanted) > TOP:
            wanted = (OverflowError, None)
        if isinstance(wanted, tuple):
            assert ours[0] is wanted[0], (name, x, ours, wanted)
            continue
        assert type(ours) is type(wanted), (name, x)
        assert ours == pytest.approx(wanted, rel=1e-14, nan_ok=True), (name, x)


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "copysign", "fmod", "isclose"])
def test_math_functions_of_two(name):
    fn = getattr(math, name)
    for x, y in itertools.product(FLOATS, FLOATS):
        if name == "copysign" and y != y:
            continue
        if name == "pow" and x == 0 and y == -math.inf and sys.version_info < (3, 11):
            continue  # an infinity, as IEEE has it, from Python 3.11 on
        wanted, ours = outcome(fn, x, y), outcome(lambda x, y: run(IMPLEMENTATIONS[fn], x, y), x, y)
        if isinstance(wanted, tuple):
            assert ours[0] is wanted[0], (name, x, y, ours, wanted)
            continue
        assert type(ours) is type(wanted), (name, x, y)
        assert ours == pytest.approx(wanted, rel=1e-14, nan_ok=True), (name, x, y)
