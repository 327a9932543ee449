"""Arrays whose sizes were divided meet: a run tells whether they are equal, in every executor."""

import numpy as np
import pytest

from myia_relay import Float64, ShapeError, Tensor, relay
from tests.programs.compare import differences

LONG, SHORT = ("n",), ("m",)


def sums(x: Tensor[Float64, LONG], y: Tensor[Float64, SHORT]):
    return x.reshape(-1, 2)[:, 0] + y


def assigned(x: Tensor[Float64, LONG], y: Tensor[Float64, SHORT]):
    z = np.zeros(x.shape[0] // 2)
    z[:] = y
    return z


def products(x: Tensor[Float64, LONG], y: Tensor[Float64, SHORT]):
    return np.ones((3, x.shape[0] // 2)) @ np.ones((y.shape[0], 2))


def joined(x: Tensor[Float64, LONG], y: Tensor[Float64, SHORT]):
    return np.concatenate([np.ones((2, x.shape[0] // 2)), np.ones((1, y.shape[0]))])


def chosen(x: Tensor[Float64, LONG], y: Tensor[Float64, SHORT]):
    return np.where(y > 2, np.ones(x.shape[0] // 2), y)


@pytest.mark.parametrize("function", [sums, assigned, products, joined, chosen])
def test_divided_sizes_that_agree(function):
    f = relay(function)
    for n in (6, 0, 10):
        x, y = np.arange(float(n)), np.arange(n / 2)
        for run in (f, f.interpret, relay(function, executor="python")):
            assert not differences(run(x, y), function(x, y))
    for run in (f, f.interpret):
        with pytest.raises(ShapeError, match="sizes (3 and 4|4 and 3) meet"):
            run(np.ones(6), np.ones(4))
    assert f.cache_info().misses == 1
