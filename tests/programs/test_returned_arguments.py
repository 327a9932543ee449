"""What a call returns: the very array that it was given, where the function returns it unchanged; otherwise memory of its own."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import relay
from tests.programs.cases import EXECUTORS, Cases
from tests.programs.compare import differences

case = Cases()
X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])


class Pair(NamedTuple):
    first: np.ndarray
    n: int


@case((X,))
def itself(x):
    return x


@case((X, Y))
def in_a_tuple(x, y):
    return y, x, 3


@case((X,))
def in_a_list(x):
    return [x, x * 2]


@case((X,))
def in_a_dict(x):
    return {"a": x, "b": x + 1}


@case((X,))
def in_a_record(x):
    return Pair(x, 3)


@case((Pair(X, 2),), (Pair(Y, 3),))
def of_a_record(p):
    return p.first, p.n


@case(({"a": X, "b": Y},))
def of_a_dict(d):
    return d["b"]


@case(([X, Y],))
def of_a_list(xs):
    return xs[1], xs[0]


@case((X, 1), (X, 0))
def on_one_path(x, n):
    if n > 0:
        return x
    return x * 2


@case((X, Y, 1), (X, Y, 0), (X, Y, -2))
def one_of_two(x, y, n):
    if n > 0:
        return x
    if n < -1:
        return y
    return x + y


@case((X, Y, 1), (X, Y, 0))
def always_one_of_two(x, y, n):
    return x if n > 0 else y


def identity(x):
    return x


def chosen(x, y, n):
    return identity(x) if n > 0 else y * 2


@case((X, Y, 1), (X, Y, 0))
def through_helpers(x, y, n):
    return chosen(y, x, n), chosen(x, y, n), identity(y)


def recursion(x, n):
    return x if n == 0 else recursion(x, n - 1)


@case((X, 3))
def through_a_recursion(x, n):
    return recursion(x, n)


@case((X,))
def through_a_closure(x):
    def inner():
        return x

    return inner()


@case((X, 2), (X, 0))
def no_iterations(x, n):
    for _ in range(n):
        x = x * 2
    return x


@case((X, 3), (X, 2))
def out_of_a_loop(x, n):
    for i in range(n):
        if x[i] > 2:
            return x
    return x * 0


@case((X,))
def copies(x):
    return x.copy(), np.array(x), +x, x.astype(np.float64), x + 0, np.where(True, x, x), x * 1, np.asarray(x)


@case((X,))
def twice(x):
    y = x * 2
    return y, y, [y]


@case((X, Y))
def beside_a_changed_one(x, y):
    x[0] = 5.0
    return {"x": x, "y": y, "z": x.copy()}


def arrays(value) -> list[np.ndarray]:
    """The arrays in a value, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [a for part in parts for a in arrays(part)]


def objects(result, args) -> list[int]:
    """For each array of a result, which of the arrays of the arguments, or else of the result, it is."""
    known = [*arrays(args), *arrays(result)]
    return [next(k for k, other in enumerate(known) if other is a) for a in arrays(result)]


@case.each
def test_the_objects_are_those_of_cpython(function, args, executor):
    compiled = relay(function, executor=executor)
    own = copy.deepcopy(args)
    want = function(*own)
    for _ in range(2):
        given = copy.deepcopy(args)
        got = compiled(*given)
        assert differences(got, want) == []
        assert objects(got, given) == objects(want, own)


def constants(n):
    return (
        np.zeros(2),
        [1, 2],
        {"a": np.ones(2), "b": [0.5]},
        np.arange(3),
        np.array([1.0, 2.0]) if n > 0 else np.eye(2)[0],
    )


def of_an_argument(x):
    return x.copy(), x[1:], x.T, np.asarray(x) * 1, x.reshape(-1), np.sort(x), np.broadcast_to(x, (3,))


def scribble(value) -> None:
    """Overwrite everything in a value."""
    for array in arrays(value):
        array[...] = 77
    if isinstance(value, list):
        value[:] = [99]
    for part in value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else ():
        scribble(part)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "args"), [(constants, (1,)), (constants, (0,)), (of_an_argument, (X,))])
def test_no_later_call_sees_what_is_done_to_a_result(function, args, executor):
    compiled = relay(function, executor=executor)
    given = copy.deepcopy(args)
    first = compiled(*given)
    want = copy.deepcopy(first)
    scribble(first)
    assert differences(given, args) == []
    assert differences(compiled(*given), want) == []


def test_into_takes_a_copy():
    out = np.zeros(3)
    x = X.copy()
    assert relay(itself).into(out)(x) is out
    assert out is not x
    assert out.tolist() == X.tolist()
    both = (np.zeros(3), np.zeros(3))
    relay(lambda x, n: (x if n > 0 else x * 2, x)).into(both)(x, 1)
    assert both[0].tolist() == both[1].tolist() == X.tolist()
