"""Errors name the calls that led to where they arose, with their lines, as tracebacks of Python do."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest

from myia_relay import CompileError, Float, Tensor, grad, relay, relay_model, vmap

HERE = re.compile(r'File "' + re.escape(__file__) + r'", line (\d+), column \d+, in (\w+)')


def product(a, w):
    return a @ w  # product


def doubled(a, w):
    b = a * 2.0
    return product(b, w)  # doubled


def total(a, w):
    return np.sum(doubled(a, w))  # total


def checked(x):
    if x < 0:
        raise ValueError(f"negative: {x}")  # checked
    return x


def each(xs):
    t = 0.0
    for x in xs:
        t += checked(x)  # each
    return t


def twice(xs, ys):
    first = each(xs)  # twice, first
    second = each(ys)  # twice, second
    return first + second


def inner(xs, i):
    return xs[i]  # inner


def search(xs, n):
    return inner(xs, n) if n > 5 else search(xs, n + 1)  # search


def start(xs):
    return search(xs, 1)  # start


def higher(f, x):
    return f(x)  # higher


def nested(x):
    def half(y):
        return 1 // y  # half

    return higher(half, x) + higher(lambda y: half(y - 1), x)  # nested


def lines() -> dict[int, str]:
    """The marks at the ends of lines."""
    with open(__file__) as file:
        return {
            k: line.rsplit("  # ", 1)[1].strip() for k, line in enumerate(file, 1) if re.search(r"  # [a-z, ]+$", line)
        }


def chain(error: BaseException) -> list[str]:
    """The marks of the lines that an error names, outermost first; a line that follows itself counts once."""
    marks = lines()
    if isinstance(error, CompileError):
        numbers = [int(m[1]) for m in HERE.finditer(str(error))]
    else:
        numbers = [s.lineno for s in traceback.extract_tb(error.__traceback__) if s.filename == __file__]
    found = [marks[k] for k in numbers if k in marks]
    return [mark for mark, before in zip(found, ["", *found]) if mark != before]


@pytest.mark.parametrize("transform", [relay, grad, lambda f: relay(vmap(f))], ids=["relay", "grad", "vmap"])
def test_when_it_is_compiled(transform):
    size = (2, 3, 4) if transform not in (relay, grad) else (3, 4)
    with pytest.raises(CompileError) as caught:
        transform(total)(np.ones(size), np.ones((*size[:-2], 5, 6)))
    assert chain(caught.value) == ["total", "doubled", "product"]
    assert str(caught.value).index("return a @ w") > str(caught.value).index("doubled(a, w)")


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("change", [lambda f: f, grad], ids=["value", "gradient"])
def test_when_it_runs(executor, change):
    f = change(relay(twice, executor=executor))
    good, bad = np.ones(3), np.array([1.0, -2.0])
    with pytest.raises(ValueError, match="negative: -2.0") as caught:
        f(bad, good)
    assert chain(caught.value) == ["twice, first", "each", "checked"]
    with pytest.raises(ValueError, match="negative: -2.0") as caught:
        f(good, bad)
    assert chain(caught.value) == ["twice, second", "each", "checked"]


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_through_recursion_and_functions_as_values(executor):
    with pytest.raises(IndexError) as caught:
        relay(start, executor=executor)(np.ones(3))
    assert chain(caught.value) == ["start", "search", "inner"]
    for x, calls in ((0, ["nested", "higher", "half"]), (1, ["nested", "higher", "nested", "half"])):
        with pytest.raises(ZeroDivisionError) as caught:
            relay(nested, executor=executor)(x)
        assert chain(caught.value) == calls


def long(x, n):
    for i in range(n):
        x = np.sin(x) * np.cos(x + i) + np.tanh(x - i) * np.exp(-x * x) + np.sqrt(x * x + 1.0) - np.log(x * x + 2.0)
        x = x - np.arctan(x) + np.floor(x) * np.sign(x) - np.abs(x) / (1.0 + x * x) + np.maximum(x, 0.5 * i)
        if n > 7:
            raise ValueError(f"n is {n}")  # long
    return x


def between(x, n):
    y = long(x, n)  # between, first
    for k in range(3):
        y = y + np.tanh(y) * long(y + k, n + k)  # between, second
    return y


def ends(x, n):
    a = between(x, n)  # ends, first
    b = between(x + 1.0, n + 5)  # ends, second
    return a * b


def shared(n, k):
    if n == 0:
        return 1 // k  # shared, last
    return shared(n - 1, k) + n  # shared


def both(n):
    p = shared(n, 1)  # both, first
    q = shared(n + 1, n - 3)  # both, second
    return p + q


def deep(n):
    return shared(n, 0)  # deep


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_through_functions_that_are_not_inlined(executor):
    for f in (relay(ends, executor=executor), grad(relay(ends, executor=executor))):
        for n, calls in (
            (8, ["ends, first", "between, first", "long"]),
            (6, ["ends, first", "between, second", "long"]),
            (3, ["ends, second", "between, first", "long"]),
        ):
            for _ in range(2):  # what one error leaves behind is not in the next one
                with pytest.raises(ValueError, match="n is") as caught:
                    f(0.5, n)
                assert chain(caught.value) == calls
        assert np.isfinite(f(0.5, 0))
    f = relay(both, executor=executor)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            f(3)
        assert chain(caught.value) == ["both, second", "shared", "shared, last"]
        assert f(5) == both(5)


@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_through_a_deep_recursion(executor):
    with pytest.raises(ZeroDivisionError) as caught:
        relay(deep, executor=executor)(50_000)
    assert chain(caught.value) == ["deep", "shared", "shared, last"]
    assert len(traceback.extract_tb(caught.value.__traceback__)) < 50


@relay_model
def net(x: Tensor[Float, 4]):
    return tail(relay.linear(x, num_hidden=3))  # net


def tail(x):
    return relay.conv2d(x, num_filter=2, ksize=3)  # tail


def test_in_a_model():
    with pytest.raises(CompileError) as caught:
        relay.create_model(net)
    assert chain(caught.value) == ["net", "tail"]
