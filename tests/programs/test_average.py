"""np.average: its weights, its dtypes, and what it refuses, as NumPy has them."""

import numpy as np
import pytest

from myia_relay import grad, relay, vmap

A = np.arange(6.0).reshape(2, 3)
INTS = A.astype(int)
SINGLE = A.astype(np.float32)
CASES = [
    (A, None, None),
    (A, 0, None),
    (INTS, 1, None),
    (np.zeros((0, 3)), 0, None),
    (np.zeros((0, 3)), 1, None),
    (np.zeros((3, 0)), 0, None),
    (A, None, A),
    (SINGLE, None, SINGLE),
    (SINGLE, None, A),
    (SINGLE, 1, INTS),
    (INTS, 0, INTS + 1),
    (INTS, None, SINGLE),
    (A, 0, np.array([1.0, 2.0])),
    (A, 1, np.array([1.0, 2.0, 3.0])),
    (SINGLE, -1, np.array([1, 2, 3])),
    (INTS, 1, np.array([True, False, True])),
    (A, 1, np.array([1.0, np.nan, 0.0])),
    (A, None, A * 0),
    (A, 1, np.array([1.0, -1.0, 0.0])),
    (A, None, np.ones(3)),
    (A, 1, np.ones(2)),
    (A, 0, A),
]


def function(axis, weighted):
    if weighted:
        return lambda x, w: np.average(x, axis=axis, weights=w)
    return lambda x: np.average(x, axis=axis)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
@pytest.mark.parametrize("k", range(len(CASES)))
@pytest.mark.sampled(4)
def test_average(k, executor):
    x, axis, w = CASES[k]
    f, args = function(axis, w is not None), (x,) if w is None else (x, w)
    compiled = relay(f, executor=executor)
    try:
        want = f(*args)
    except (ZeroDivisionError, TypeError, ValueError) as error:
        with pytest.raises(type(error), match="divi|normalized|Axis|[Ss]hape"):
            compiled(*args)
        return
    got = compiled(*args)
    np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
    assert (type(got), got.dtype) == (type(want), want.dtype)


def test_derivatives_and_batches():
    weights = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(grad(lambda x: np.average(x, weights=weights))(A[0]), weights / 6)
    rows = relay(vmap(lambda x: np.average(x, weights=weights)))(A)
    np.testing.assert_allclose(rows, np.average(A, axis=1, weights=weights))
    with pytest.raises(ZeroDivisionError):
        relay(vmap(lambda w: np.average(weights, weights=w)))(A - 1)
