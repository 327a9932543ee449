"""The kernels of `numeric_kernels`, beside NumPy: values, dtypes and what became of the arguments."""

import copy

import numpy as np
import pytest

from myia_relay import relay
from tests.programs.numeric_kernels import KERNELS

EXECUTORS = ("native", "python", "interpreter")


def arrays(value) -> list:
    """The parts of results and arguments."""
    return [a for part in value for a in arrays(part)] if isinstance(value, tuple | list) else [value]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_kernels(name, executor):
    function, make = KERNELS[name]
    args = [m() for m in make]
    ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
    with np.errstate(all="ignore"):
        expected = function(*theirs)
        got = relay(function, executor=executor)(*ours)
    for x, y in zip(arrays([got, ours]), arrays([expected, theirs]), strict=True):
        assert type(x) is type(y)
        if x is None:
            continue
        assert np.asarray(x).dtype == np.asarray(y).dtype
        tolerance = 2e-5 if np.asarray(y).dtype == np.float32 else 1e-10
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=1e-12)
