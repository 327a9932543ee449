"""Each optimisation can be left out, and programs mean the same without it."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.utils.switches import OPTIMISATIONS, VARIABLE, is_left_out


def program(x, matrix, which):
    """Something for everyone: branches, counters, inner loops, updates, rows, products, recursion."""

    def power(y, n):
        return 1.0 if n == 0 else y * power(y, n - 1)

    def one(row, k):
        return np.array([row[0] * row[1], row[1] - row[2], np.sin(row[2])]) * matrix[k, 0]

    total, count = 0.0, 0
    y = x.copy()
    for i in range(len(x)):
        j = count
        while total < 0.1 * j:
            total += 0.05 * y[j % 5, 0]
        y[i, 1] = total * x[i, 0] if i % 2 else power(x[i, 2], 3)
        count += 1
    z = relay.vmap(one)(y, which) @ matrix
    return np.sum(z * z) + total


def both(x, matrix, which):
    return relay.value_and_grad(program)(x, matrix, which)


@pytest.fixture(scope="module")
def arguments():
    rng = np.random.default_rng(2)
    return rng.random((40, 3)), rng.random((3, 3)), rng.integers(0, 3, 40)


@pytest.fixture(scope="module")
def wanted(arguments):
    return relay(executor="interpreter")(both)(*arguments)


@pytest.mark.sampled(36)
@pytest.mark.parametrize("name", sorted(OPTIMISATIONS))
def test_left_out(name, arguments, wanted, monkeypatch):
    monkeypatch.setenv(VARIABLE, name)
    value, gradient = relay(both)(*arguments)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-9, atol=1e-12)


def test_names(monkeypatch):
    monkeypatch.setenv(VARIABLE, " soa_kernels, blas ,")
    assert is_left_out("blas") and is_left_out("soa_kernels") and not is_left_out("in_place")
    monkeypatch.setenv(VARIABLE, "soa_kernel")
    with pytest.raises(ValueError, match="no optimisation 'soa_kernel'.*soa_kernels"):
        is_left_out("blas")
    with pytest.raises(ValueError, match="MYIA_RELAY_WITHOUT"):
        relay(lambda x: x + 1.5)(2.0)


def test_every_switch_is_asked_for():
    """A name that nobody looks at would be a switch without effect."""
    from pathlib import Path

    import myia_relay

    sources = "".join(p.read_text() for p in Path(myia_relay.__file__).parent.rglob("*.py") if p.name != "switches.py")
    for name in OPTIMISATIONS:
        assert f'is_left_out("{name}")' in sources or f'name: str = "{name}"' in sources, name
