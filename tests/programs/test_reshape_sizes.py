"""Sizes of a new shape that are computed when the program runs: a negative one is what is left, as NumPy has it."""

import linecache

import numpy as np
import pytest

from myia_relay import CompileError, Float64, ShapeError, Tensor, grad, relay, vmap
from tests.programs.compare import differences

X = np.linspace(-1.0, 2.0, 12)
FAR = 2**62 + 3  # four times this is 12 in 64 bits
SHAPES = {
    "x.reshape(k)": [(-1, 0), (-5, 0), (12, 0), (3, 0), (0, 0)],
    "np.reshape(x, (k,))": [(-1, 0), (12, 0)],
    "x.reshape(k, 3)": [(-1, 0), (-(2**63), 0), (4, 0), (3, 0)],
    "x.reshape(k, 5)": [(-1, 0), (4, 0)],
    "x[:m].reshape((k, 0))": [(-1, 0), (4, 0), (4, 1)],
    "x.reshape([4, k])": [(-1, 0), (3, 0), (FAR, 0)],
    "x.reshape(-3, 4)": [(0, 0)],
    "x.reshape(k, -1)": [(-1, 0), (4, 0), (5, 0), (0, 0), (FAR, 0)],
    "x.reshape(2, k, -7, m)": [(2, 3), (-1, 3), (2, -1), (FAR, 4)],
    "x.reshape(k, m)": [(-1, 4), (4, -1), (-1, -2), (3, 4), (-1, 0), (5, -1), (2, 5), (0, 4), (FAR, 4)],
    "x.reshape(2, k, m)": [(-1, 2), (3, -4), (-1, -1), (3, 2), (-1, 5), (3, 3)],
    "x[:m].reshape(k)": [(-1, 5), (5, 5), (4, 5), (-1, 0), (0, 0)],
    "x[:m].reshape(k, 2)": [(-1, 4), (2, 4), (-1, 5), (3, 4), (-1, 0), (0, 0)],
    "x[:m].reshape(k, m)": [(-1, 4), (1, 4), (-1, 0), (7, 0)],
    "x[:m].reshape(-1, m)": [(0, 4), (0, 0)],
    "np.zeros((k, m)).reshape(m, k)": [(2, 3), (0, 3)],
}


def function(expression):
    """A function of an array and two ints."""
    text = f"def f(x, k, m):\n    return {expression}\n"
    name = f"<{expression}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("expression", SHAPES)
def test_a_negative_size_is_what_is_left(expression, executor):
    f = function(expression)
    compiled = relay(executor=executor)(f)
    for k, m in SHAPES[expression]:
        try:
            wanted = f(X, k, m)
        except ValueError as error:
            with pytest.raises(ValueError) as caught:
                compiled(X, k, m)
            assert str(caught.value).splitlines()[-1] == str(error), (k, m)
        else:
            assert not differences(compiled(X, k, m), wanted), (k, m)
    assert compiled.cache_info().misses == 1


def test_an_empty_array_of_named_sizes(executor):
    """NumPy cannot tell what is left beside a 0."""

    def f(x: Tensor[Float64, ("n", "m")]):  # noqa: F821
        return x.reshape(-1, x.shape[1])

    compiled = relay(executor=executor)(f)
    assert np.array_equal(compiled(X.reshape(4, 3)), X.reshape(4, 3))
    with pytest.raises(ValueError, match=r"cannot reshape array of size 0 into shape \(0\)"):
        compiled(np.zeros((3, 0)))


def split(x, k, m):
    y = x.reshape(k % 6 - 1, 3) ** 2
    z = x.reshape(m, k)
    for i in range(k % 3 + 1):
        y = y + i * np.sum(z[0])
    return np.sum(y * np.arange(3.0)) + np.sum(z * z[::-1])


@pytest.mark.parametrize(("k", "m"), [(-1, 6), (6, -1), (6, 2), (-102, 2)])
@pytest.mark.sampled(4)
def test_gradients(k, m, executor):
    def differentiated(x):
        step = 1e-6 * np.eye(12)
        return np.array([(split(x + s, k, m) - split(x - s, k, m)) / 2e-6 for s in step])

    got = relay(executor=executor)(grad(split))(X, k, m)
    assert np.allclose(got, differentiated(X), rtol=1e-6, atol=1e-7)


def test_vmap(executor):
    f = relay(executor=executor)(vmap(lambda x, k: np.sum(x.reshape(k, 3), axis=0), in_axes=(0, None)))
    for k in (-1, 4):
        assert np.allclose(f(np.stack([X, X + 1]), k), [X.reshape(4, 3).sum(0), (X + 1).reshape(4, 3).sum(0)])
    of_each = relay(executor=executor)(vmap(lambda x, k: np.sum(x.reshape(k, 3), axis=0)))
    assert np.allclose(of_each(np.stack([X, X]), np.array([-1, 4])), [X.reshape(4, 3).sum(0)] * 2)
    with pytest.raises(ValueError, match=r"cannot reshape array of size 12 into shape \(5,3\)"):
        of_each(np.stack([X, X]), np.array([4, 5]))
    own_sizes = relay(executor=executor)(vmap(lambda x, k: np.sum(x.reshape(k, -1)[0])))
    with pytest.raises(CompileError, match="the size of this array differs between the examples of vmap"):
        own_sizes(np.stack([X, X]), np.array([3, 4]))


def either(x, k):
    if k < 0:
        return x.reshape(k, 4), x.reshape(k)
    return x.reshape(4, k), x.reshape(12)[k:]


def steps(x, k):
    total = 0.0
    for i in range(3):
        y = x.reshape(k - i, -1 if i else 4)
        total = total + np.sum(y[0])
    return total


def test_branches_and_loops(executor):
    """Branches differ in sizes that are computed."""
    f = relay(executor=executor)(either)
    for k in (-1, 3):
        assert not differences(f(X, k), either(X, k))
    g = relay(executor=executor)(steps)
    assert np.allclose(g(X, 3), steps(X, 3))
    with pytest.raises(ValueError, match="can only specify one unknown dimension"):
        g(X, -1)


def test_sizes_of_other_types_are_refused():
    for size in ("True", "k > 0", "1.0", "x[0]"):
        with pytest.raises(TypeError, match="reshape: a size must be an int") as caught:
            relay(function(f"x.reshape({size}, 12)"))(X, 1, 0)
        assert caught.value.loc
    with pytest.raises(ShapeError, match="can only specify one unknown dimension"):
        relay(function("x.reshape(-1, -2)"))(X, 1, 0)
    with pytest.raises(ShapeError, match=r"cannot reshape array of shape \(12,\) into shape \(\?, 0\)"):
        relay(function("x.reshape(k, 0)"))(X, 1, 0)
