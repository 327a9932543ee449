"""Calls of NumPy's functions that once had another answer than NumPy's, in every executor: values, dtypes, kinds, exceptions.

`tests/property/test_numpy_sweep.py` draws such calls at random.
"""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay

from ..property.numpy_sweep.compare import judge

INF, NAN = np.inf, np.nan
BIG = np.array([2**62 + 1, -(2**62) - 1, 3])
XS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
CASES = [
    ("np.linspace", "np.linspace(a0, a1, 4)", [np.array([0.0, 1.0]), np.array([3.0, -1.0])]),
    ("np.linspace", "np.linspace(a0, a1, 3, axis=-1)", [np.array([0.0, 1.0]), 2.0]),
    ("np.linspace", "np.linspace(a0, a1, 4, dtype=int)", [2, -5]),
    ("np.linspace", "np.linspace(a0, a1, 5)", [np.float32(0), np.float32(1)]),
    ("np.linspace", "np.linspace(a0, a1, 5, False, True)", [0.0, 1.0]),
    ("np.nanmax", "np.nanmax(a0)", [BIG]),
    ("np.nanmin", "np.nanmin(a0)", [BIG]),
    ("np.convolve", "np.convolve(a0, a1)", [np.array([1.0, INF, 2.0]), np.array([1.0, NAN])]),
    ("np.convolve", "np.convolve(a0, a1)", [np.array([1.0, 2.0]), 3.0]),
    ("np.correlate", "np.correlate(a0, a1, 'same')", [np.array([1.0, 2.0]), np.array([1.0, 5.0, -1.0, 2.0])]),
    ("np.correlate", "np.correlate(a0, a1, 'full')", [np.array([1.0, INF]), np.array([1.0, 5.0, -1.0])]),
    ("np.interp", "np.interp(a0, a1, a2)", [XS, XS, np.array([1.0, INF, 2.0, -INF, NAN, 3.0])]),
    ("np.interp", "np.interp(a0, a1, a2)", [XS, np.array([0.0, NAN, 2.0, 3.0, NAN, 5.0]), XS * 2]),
    ("np.interp", "np.interp(a0, a1, a2, left=-1.0, right=9.0)", [XS * 2 - 3, XS, XS]),
    ("np.quantile", "np.quantile(a0, 0)", [np.array([3, INF, -INF, 7.0])]),
    ("np.quantile", "np.quantile(a0, 0.0)", [np.array([3, INF, -INF, 7.0])]),
    ("np.quantile", "np.quantile(a0, 1)", [np.array([3, 1, 2], np.uint8)]),
    ("np.quantile", "np.quantile(a0, 0.5)", [np.array([True, False])]),
    ("np.vecdot", "np.vecdot(a0, a0)", [np.array([100, 100], np.int8)]),
    ("np.vecdot", "np.vecdot(2.0, a0)", [XS]),
    ("np.mean", "np.mean(a0, dtype=np.int64)", [np.array([1.5, 2.5, -7.0])]),
    ("np.var", "np.var(a0, ddof=0.5)", [XS]),
    ("np.var", "np.var(a0, ddof=9)", [XS]),
    ("np.logaddexp2", "np.logaddexp2(a0, a0)", [np.array([1, 5], np.int8)]),
    ("np.median", "np.median(a0)", [np.array([-0.0, -0.0])]),
    ("np.arange", "np.arange(3, dtype=bool)", []),
    ("np.eye", "np.eye(-1)", []),
    ("np.linspace", "np.linspace(0, -1, -1)", []),
    ("np.triu", "np.triu(a0)", [2.0]),
    ("np.tensordot", "np.tensordot(2.0, a0, 1)", [XS]),
    ("np.cross", "np.cross(a0, a1)", [XS[:2], XS[3:5]]),
    ("np.linalg.det", "np.linalg.det(a0)", [np.array([[[2.0, 1.0], [1.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]])]),
    ("np.linalg.matrix_power", "np.linalg.matrix_power(a0, -2)", [np.array([[2, 1], [1, 3]])]),
    ("np.max", "np.max(a0, initial=300)", [np.array([1], np.int8)]),
    ("np.max", "np.max(a0, initial=a1)", [np.array([1], np.int8), np.int64(300)]),
    ("np.sum", "np.sum(a0, dtype=np.int8, initial=a1)", [np.array([1], np.int8), np.uint64(2**64 - 1)]),
    ("np.max", "np.max(a0, initial=a1)", [np.array([1], np.uint8), np.int64(-6)]),
    ("np.transpose", "np.transpose(a0)", [np.float32(2)]),
    ("np.repeat", "np.repeat(a0, -1)", [XS]),
    ("np.take_along_axis", "np.take_along_axis(a0, a1, -2)", [np.ones((2, 2, 2)), np.array([[[0, 1]], [[1, 0]]])]),
    ("np.sum", "np.sum(a0, axis=True)", [XS]),
    ("np.power", "np.power(a0, a1)", [np.zeros((0, 2), int), np.array([-1, -2])]),
]


@pytest.mark.parametrize("name, text, args", CASES, ids=[text for _, text, _ in CASES])
@pytest.mark.sampled(13)
def test_numpy_says(executor, name, text, args):
    if text == "np.quantile(a0, 0)" and np.lib.NumpyVersion(np.__version__) < "2.3.0":
        pytest.skip("this NumPy interpolates between infinities, which later ones do not")
    verdict = judge(name, text, args, executor)
    assert verdict.kind == "same", str(verdict)


REFUSED = [
    (lambda x: np.cos(x, x), r"np\.cos takes 1 positional argument .* write out = np\.cos\(x\)"),
    (lambda x: np.add(x, x, x), r"np\.add takes 2 positional arguments .* write out = np\.add\(x1, x2\)"),
    (lambda x: np.cos(x, out=x), r"the argument 'out' is not supported .* write out = np\.cos\(\.\.\.\)"),
    (lambda x: np.add(x1=x, x2=x), "has no name in NumPy"),
    (lambda x: np.sum(x, axis=3), r"axis 3 is out of bounds for array of dimension 2; the shape is \(2, 3\)"),
    (lambda x: np.stack((x, x), 5), r"dimension 3; the shape is \(2, 3\) with 1 more axis"),
    (lambda x: np.mean(x, axis=(0, -2)), r"duplicate axis in \(0, -2\); the shape is \(2, 3\)"),
    (lambda x: np.transpose(x, (0, 0)), "repeated axis"),
    (lambda x: np.quantile(x, [[0.5]]), "take a number q, or a list of them"),
    (lambda x: np.convolve(x, 2.0), "it takes vectors"),
    (lambda x: np.linalg.inv(x[:, :2].astype(np.float16)), "float16 is unsupported in linalg"),
    (lambda x: np.rot90(x, int(x[0, 0])), "the function returns"),
]


@pytest.mark.parametrize("function, words", REFUSED, ids=[words for _, words in REFUSED])
def test_refusals_have_their_place(function, words):
    with pytest.raises(CompileError, match=words) as info:
        relay(executor="interpreter")(function)(np.ones((2, 3)))
    assert info.value.loc is not None and f'File "{__file__}"' in str(info.value)
    assert "library" not in str(info.value)


def test_what_is_not_used_is_refused_too():
    def f(x):
        np.eye(-1)
        return x

    with pytest.raises(CompileError, match="negative dimensions are not allowed"):
        relay(executor="interpreter")(f)(1.0)


def test_sizes_below_zero_at_run_time(executor):
    def f(x):
        return np.zeros(x.shape[0] - 2), np.eye(x.shape[0] - 2)

    from myia_relay import Float64, Tensor

    f.__annotations__["x"] = Tensor[Float64, ("n",)]
    compiled = relay(executor=executor)(f)
    assert [r.shape for r in compiled(np.ones(5))] == [(3,), (3, 3)]
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        compiled(np.ones(1))


def test_interp_has_its_slope_at_the_points():
    """A value of a point is taken as it is only where the line does not give it: derivatives see the line."""
    points, values = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 0.0])
    slope = grad(lambda x: np.interp(x, points, values))
    assert [slope(x) for x in (0.0, 0.5, 1.0, 2.0)] == [2.0, 2.0, -1.0, -1.0]
