"""Generator expressions that are unpacked: `q, k, v = (x @ w for w in ws)`."""

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay


def products(x, ws):
    q, k, v = (x @ w for w in ws)
    return np.sum(q * k) + np.sum(v)


def swapped(a, b):
    a, b = (t * 2 for t in (b, a))
    first, *rest = (i * a for i in range(4) if i != 2)
    return a, b, first, rest


def nested(n):
    (a, b), c = ([k, k + 1] if k < n else k for k in (1, n))
    return a, b, c


def shadowed(x):
    t = 1.0
    u, v = (t * x for t in (2.0, 3.0))
    return u, v, t


def captured(x):
    f, g = (lambda y: y * k for k in (2.0, 3.0))  # noqa: B023
    return f(x), g(x)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_they_are_what_python_makes_of_them(executor):
    rng = np.random.default_rng(0)
    x, ws = rng.normal(size=(2, 3)), tuple(rng.normal(size=(3, 3, 3)))
    f = relay(products, executor=executor)
    assert np.isclose(f(x, ws), products(x, ws))
    assert grad(f)(x, ws).shape == x.shape
    for program, args in ((swapped, (3, 4)), (nested, (5,)), (shadowed, (2.0,)), (captured, (2.0,))):
        assert repr(relay(program, executor=executor)(*args)) == repr(program(*args))


def test_the_number_must_fit_and_once():
    def few(x):
        a, b, c = (x for _ in range(2))
        return a + b + c

    def again(x):
        (a, b) = c = (x for _ in range(2))
        return a, b, c

    with pytest.raises(CompileError, match="unpack"):
        relay(few)(1.0)
    with pytest.raises(CompileError, match="unpacked once"):
        relay(again)(1.0)


def test_a_list_of_floats_says_how_to_put_a_numpy_float_in():
    def distances(w, source):
        found = [float("inf")] * len(w)
        found[source] = 0.0
        for k in range(1, len(w)):
            found[k] = found[k - 1] + w[k]
        return found

    with pytest.raises(CompileError, match=r"is given np.float64; convert it: float\(...\)"):
        relay(distances)(np.ones(3), 0)
