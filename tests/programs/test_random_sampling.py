"""`relay.random`: gamma and truncated normal numbers, permutations and choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import GradError, ShapeError, TypeError_, grad, relay, vmap
from myia_relay.prims.ops.random import gamma_slope

from .random_draws import EXECUTORS, KEY, N, chi_square, kolmogorov_smirnov, normal_distribution, same_bits

random = relay.random
WEIGHTS = np.array([0.1, 0.0, 0.3, 0.6])


def draws(key, bound):
    return (
        random.gamma(key, 2.5, (40,)),
        random.gamma(key, np.array([0.3, 1.0, 20.0]), (5, 3)),
        random.gamma(key, 0.7),
        random.gamma(key, 1.7, (9,), np.float32),
        random.truncated_normal(key, -1.0, bound, (33,)),
        random.truncated_normal(key, bound, np.inf, (20,), np.float32),
        random.truncated_normal(key, -bound, bound * 2),
        random.permutation(key, 17),
        random.permutation(key, np.arange(30.0).reshape(15, 2)),
        random.choice(key, 5, (6,)),
        random.choice(key, np.array([1.5, 2.5, 3.5]), (2, 2)),
        random.choice(key, 5, (3,), replace=False),
        random.choice(key, 4, (8,), p=WEIGHTS),
        random.choice(key, 4, (2,), replace=False, p=WEIGHTS),
    )


def test_every_executor_draws_the_same_bits():
    wanted, *others = (relay(draws, executor=executor)(KEY, 0.7) for executor in EXECUTORS)
    for other in others:
        for number, (x, y) in enumerate(zip(wanted, other, strict=True)):
            assert same_bits(x, y), number


def test_large_draws_have_the_same_bits():
    for draw in (
        lambda key: random.gamma(key, 0.8, (N // 4,)),
        lambda key: random.truncated_normal(key, -0.5, 3.0, (N // 4,)),
    ):
        assert same_bits(relay(draw)(KEY), relay(draw, executor="interpreter")(KEY))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.gamma(key, 2.5, (9,)),
        lambda key: random.truncated_normal(key, 0.0, 1.0, (3,)),
        lambda key: random.permutation(key, 9),
        lambda key: random.permutation(key, np.arange(6).reshape(3, 2)),
        lambda key: random.choice(key, 5, (3,), replace=False),
        lambda key: random.choice(key, 4, (3,), p=WEIGHTS),
    ],
)
def test_a_batch_of_keys_draws_as_a_loop(draw):
    keys = random.split(KEY, 4)
    one, batch = relay(draw), vmap(draw)(keys)
    for i in range(4):
        assert np.array_equal(batch[i], one(keys[i]))


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 2.5, 100.0])
def test_gamma(a):
    x = random.gamma(KEY, a, (N,))
    assert abs(x.mean() - a) < 5 * math.sqrt(a / N)
    assert abs(x.var() - a) < 5 * math.sqrt((2 * a * a + 6 * a) / N)
    digamma = (math.lgamma(a + 1e-5) - math.lgamma(a - 1e-5)) / 2e-5
    logs = np.log(x)
    assert abs(logs.mean() - digamma) < 5 * logs.std() / math.sqrt(N)
    if a == 1.0:
        assert kolmogorov_smirnov(x[:50_000], lambda v: -math.expm1(-v)) > 1e-3
    if a == 0.5:  # half of a square of a normal number
        assert kolmogorov_smirnov(x[:50_000], lambda v: math.erf(math.sqrt(v))) > 1e-3
    if a == 2.5:
        assert kolmogorov_smirnov(x[:5_000], lambda v: below(a, v)) > 1e-3


def below(a, z):
    """The regularised incomplete gamma function, by its series."""
    term = total = 1 / a
    n = a
    while term > total * 1e-18:
        n += 1
        term *= z / n
        total += term
    return math.exp(a * math.log(z) - z - math.lgamma(a)) * total


def test_gamma_is_nan_where_its_shape_is_not_positive():
    x = random.gamma(KEY, np.array([np.nan, -1.0, 0.0, 1.0]))
    assert np.isnan(x).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    "a, z", [(2.5, 1.3), (2.5, 4.0), (0.3, 0.01), (0.3, 2.0), (30.0, 25.0), (30.0, 45.0), (400.0, 410.0)]
)
def test_the_derivative_of_gamma_keeps_the_probability(a, z):
    step = 1e-4 * a
    density = math.exp((a - 1) * math.log(z) - z - math.lgamma(a))
    wanted = -(below(a + step, z) - below(a - step, z)) / (2 * step) / density
    digamma = (math.lgamma(a + 1e-5) - math.lgamma(a - 1e-5)) / 2e-5
    assert abs(gamma_slope(a, z, digamma) - wanted) < 1e-5 * wanted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("a", [0.6, 3.0])
def test_gradients_of_expectations_by_the_shape_of_gamma(a):
    # E[x] = a and E[log x] = digamma(a)
    slope = relay(grad(lambda a, key: np.sum(random.gamma(key, a, (N,))) / N))(a, KEY)
    assert abs(slope - 1) < 0.02
    slope = relay(grad(lambda a, key: np.sum(np.log(random.gamma(key, a, (N,)))) / N))(a, KEY)
    trigamma = (math.lgamma(a + 1e-3) - 2 * math.lgamma(a) + math.lgamma(a - 1e-3)) / 1e-6
    assert abs(slope - trigamma) < 0.02 * trigamma


def test_gamma_has_no_second_derivative():
    with pytest.raises(GradError, match="no second one"):
        grad(grad(lambda a: random.gamma(KEY, a)))(2.5)


@pytest.mark.parametrize("lower, upper", [(-1.0, 2.0), (0.5, np.inf), (-np.inf, -1.0), (-np.inf, np.inf), (-3.0, -2.5)])
def test_truncated_normal(lower, upper):
    x = random.truncated_normal(KEY, lower, upper, (50_000,))
    assert lower <= x.min() and x.max() <= upper
    low, high = normal_distribution(lower), normal_distribution(upper)
    assert kolmogorov_smirnov(x, lambda v: (normal_distribution(v) - low) / (high - low)) > 1e-3


def test_truncated_normal_far_out():
    for lower in (9.0, 30.0):
        x = random.truncated_normal(KEY, lower, np.inf, (10_000,))
        assert x.min() >= lower and abs(np.mean(x - lower) * lower - 1) < 0.05
        y = random.truncated_normal(KEY, -np.inf, -lower, (10_000,))
        assert np.array_equal(y, -x)
    assert np.all(random.truncated_normal(KEY, 50.0, 51.0, (10,)) == 50.0)  # where the tail is no float any more


@pytest.mark.parametrize("lower, upper", [(-0.5, 1.0), (1.0, 3.0), (-4.0, 0.1)])
def test_truncated_normal_is_differentiated_by_its_bounds(lower, upper):
    def f(lower, upper):
        return np.sum(random.truncated_normal(KEY, lower, upper, (10,)))

    by_lower, by_upper = grad(f, (0, 1))(lower, upper)
    value, step = relay(f), 1e-6
    assert abs(by_lower - (value(lower + step, upper) - value(lower - step, upper)) / (2 * step)) < 1e-6
    assert abs(by_upper - (value(lower, upper + step) - value(lower, upper - step)) / (2 * step)) < 1e-6


def test_permutation():
    x = random.permutation(KEY, 1000)
    assert (
        x.dtype == np.int64 and np.array_equal(np.sort(x), np.arange(1000)) and not np.array_equal(x, np.arange(1000))
    )
    orders = vmap(lambda key: random.permutation(key, 4))(random.split(KEY, 24_000))
    counts = np.unique(orders @ np.array([64, 16, 4, 1]), return_counts=True)[1]
    assert len(counts) == 24 and chi_square(counts, 1000) > 1e-3
    rows = np.arange(12).reshape(4, 3)
    assert np.array_equal(random.permutation(KEY, rows), rows[random.permutation(KEY, 4)])
    assert np.array_equal(random.permutation(KEY, rows, axis=1), rows[:, random.permutation(KEY, 3)])
    assert random.permutation(KEY, 0).tolist() == []
    assert grad(lambda x: random.permutation(KEY, x)[0])(np.zeros(5)).sum() == 1


def test_choice():
    x = random.choice(KEY, 4, (N,), p=WEIGHTS)
    assert chi_square(np.bincount(x)[[0, 2, 3]], N * WEIGHTS[[0, 2, 3]]) > 1e-3 and 1 not in x
    assert chi_square(np.bincount(random.choice(KEY, 6, (N,))), N / 6) > 1e-3
    same = random.choice(KEY, 4, (100,), p=WEIGHTS * 7.0)
    assert np.mean(same == random.choice(KEY, 4, (100,), p=WEIGHTS)) > 0.99
    some = random.choice(KEY, np.arange(10.0), (4,), replace=False)
    assert len(set(some.tolist())) == 4 and some.dtype == np.float64
    rows = np.arange(12).reshape(4, 3)
    assert random.choice(KEY, rows, (2, 5)).shape == (2, 5, 3)
    assert random.choice(KEY, rows, (2,), axis=1).shape == (4, 2)
    assert same_bits(random.choice(KEY, 7), random.randint(KEY, (), 0, 7))
    first = vmap(lambda key: random.choice(key, 4, (2,), replace=False, p=WEIGHTS))(random.split(KEY, 20_000))
    assert chi_square(np.bincount(first[:, 0], minlength=4)[[0, 2, 3]], 20_000 * WEIGHTS[[0, 2, 3]]) > 1e-3
    assert not np.any(first[:, 0] == first[:, 1]) and 1 not in first


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda key: random.gamma(key), TypeError, "a"),
        (lambda key: random.gamma(key, np.ones(3), (4,)), ShapeError, "gamma: a"),
        (lambda key: random.truncated_normal(key, 1.0, 1.0), ValueError, "lower >= upper"),
        (lambda key: random.truncated_normal(key, np.nan, 1.0), ValueError, "lower >= upper"),
        (lambda key: random.permutation(key, 2.5), TypeError_, "takes an int or an array"),
        (lambda key: random.permutation(key, -1), ShapeError, "negative dimensions"),
        (lambda key: random.permutation(key, np.zeros(3), axis=1), Exception, "axis"),
        (lambda key: random.choice(key, 0, (2,)), ValueError, "nothing to draw from"),
        (lambda key: random.choice(key, 3, (4,), replace=False), ValueError, "4 of 3 cannot be drawn"),
        (lambda key: random.choice(key, 3, (4,), p=np.ones(2)), ValueError, "one weight for each part"),
        (lambda key: random.choice(key, 3, p=np.array([1.0, -1.0, 1.0])), ValueError, "negative or NaN"),
        (lambda key: random.choice(key, 4, (4,), False, WEIGHTS), ValueError, "fewer weights"),
    ],
)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        relay(call)(KEY)
