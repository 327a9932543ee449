"""`relay.random`: the generator against its published vectors, distributions by statistics, all executors bit for bit."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import (
    CompileError,
    Float,
    ShapeError,
    Tensor,
    TypeError_,
    UInt64,
    checkpoint,
    grad,
    relay,
    relay_model,
    scan,
    vmap,
)
from myia_relay.prims.ops.random import threefry2x32

from .random_draws import EXECUTORS, KEY, N, chi_square, kolmogorov_smirnov, normal_distribution, same_bits

random = relay.random

VECTORS = [
    # counter, key, word: Random123's kat_vectors, "threefry2x32 20"
    (0x0000000000000000, 0x0000000000000000, 0x6B20015999BA4EFE),
    (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x1CB996FCBB002BE7),
    (0x243F6A8885A308D3, 0x13198A2E03707344, 0xC4923A9C483DF7A0),
]


@pytest.mark.parametrize("counter, key, word", VECTORS)
def test_the_generator_is_threefry(counter, key, word):
    assert threefry2x32(np.uint64(key), np.uint64(counter)) == word
    for executor in EXECUTORS:
        assert relay(random.fold_in, executor=executor)(np.uint64(key), np.uint64(counter)) == word


def test_keys_are_those_of_jax():
    # jax.random.key_data(jax.random.split(jax.random.key(0))), jax 0.5 and later
    words = [[1797259609, 2579123966], [928981903, 3453687069]]
    assert random.split(random.key(0)).tolist() == [high << 32 | low for high, low in words]


def test_draws_are_those_of_jax():
    # jax 0.10, jax_enable_x64
    key = random.key(42)
    assert random.bits(key, (2, 2), np.uint32).tolist() == [[2098992034, 2919706841], [2646866425, 2409546199]]
    assert random.fold_in(key, 77) == 14361814000881202823
    wanted = [-0.18471174528191162, -2.169824560397754, 0.18693555179382582, 0.6122653570510951]
    assert np.allclose(random.normal(key, (4,)), wanted, rtol=1e-14, atol=0)


def test_a_key_is_a_number():
    assert same_bits(random.key(42), np.uint64(42))
    assert same_bits(random.key(-1), np.uint64(2**64 - 1))
    assert same_bits(relay(lambda n: random.key(n))(-1), np.uint64(2**64 - 1))
    assert repr(random.key(42)) == "np.uint64(42)"


def test_split_and_fold_in_agree():
    keys = random.split(KEY, 5)
    assert keys.dtype == np.uint64 and keys.shape == (5,) and len(set(keys.tolist())) == 5
    assert [random.fold_in(KEY, i) for i in range(5)] == keys.tolist()
    assert random.split(KEY, (5,)).tolist() == random.split(KEY, n=5).tolist() == keys.tolist()
    assert random.split(KEY, (2, 3)).ravel().tolist() == random.split(KEY, 6).tolist()
    first, second = random.split(KEY)
    assert same_bits(first, keys[0]) and same_bits(second, keys[1])
    assert random.fold_in(KEY, 2**40 + 1) != random.fold_in(KEY, 1)


# The same bits everywhere.


def draws(key):
    a, b = random.split(key)
    return (
        random.bits(a, (5,)),
        random.bits(a, (5,), np.uint8),
        random.uniform(a, (3, 11)),
        random.uniform(b, (67,), -1.5, 2.7),
        random.uniform(b, (67,), -1.5, 2.7, np.float32),
        random.uniform(b, (33,), 3.0, 4.7, "float16"),
        random.normal(a),
        random.normal(b, (3, 50)),
        random.normal(b, (65,), dtype=np.float32),
        random.normal(b, (40,), dtype="float16"),
        random.normal(random.fold_in(key, 3), (), np.float32),
        random.exponential(a, (70,)),
        random.exponential(b, (), np.float32),
        random.gumbel(a, (2, 35)),
        random.gumbel(a, (70,), np.float32),
        random.bernoulli(a, 0.3, (100,)),
        random.bernoulli(a, np.array([0.0, 0.25, 1.0])),
        random.categorical(a, np.log(np.arange(1.0, 6.0))),
        random.categorical(b, np.zeros((4, 5), np.float32), shape=(3, 4)),
        random.randint(a, (40,), -3, 9),
        random.randint(a, (40,), -(2**62), 2**62 + 5),
        random.randint(a, (), 0, 256, np.uint8),
    )


def test_every_executor_draws_the_same_bits(seed=7):
    wanted, *others = (relay(draws, executor=executor)(random.key(seed)) for executor in EXECUTORS)
    for other in others:
        for number, (x, y) in enumerate(zip(wanted, other, strict=True)):
            assert same_bits(x, y), number
    assert same_bits(random.normal(random.split(random.key(seed))[1], (3, 50)), wanted[7])


def test_large_draws_have_the_same_bits():
    for draw in (random.normal, random.gumbel):
        for dtype in (np.float64, np.float32):
            f = relay(lambda key, draw=draw, dtype=dtype: draw(key, (N,), dtype))
            oracle = relay(f.__wrapped__, executor="interpreter")
            assert same_bits(f(KEY), oracle(KEY))


def test_a_draw_is_fused_and_keeps_its_bits():
    x = np.linspace(-1, 1, 1000)
    f = relay(lambda key, x: np.sum(random.normal(key, (1000,)) + x) - np.sum(random.normal(key, (1000,))))
    assert abs(f(KEY, x)) < 1e-10
    mask = relay(lambda key, x: np.where(random.bernoulli(key, 0.5, (1000,)), x, 0.0))(KEY, x)
    assert same_bits(mask, np.where(random.bernoulli(KEY, 0.5, (1000,)), x, 0.0))


def test_an_element_is_that_of_its_counter():
    long, short = random.bits(KEY, (100,)), random.bits(KEY, (3, 4))
    assert same_bits(long[:12].reshape(3, 4), short)
    assert same_bits(random.normal(KEY, (6,)).reshape(2, 3), random.normal(KEY, (2, 3)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.normal(key, (9,)),
        lambda key: random.split(key, 3),
        lambda key: random.fold_in(key, 5),
        lambda key: random.randint(key, (2, 2), 0, 5),
        lambda key: random.uniform(key, (4,), np.zeros(4), 2.0),
        lambda key: random.categorical(key, np.zeros((3, 6))),
        lambda key: random.bernoulli(key, 0.5, (7,)),
    ],
)
def test_a_batch_of_keys_draws_as_a_loop(draw):
    keys = random.split(KEY, 4)
    one = relay(draw)
    batch = vmap(draw)(keys)
    for i in range(4):
        assert np.array_equal(batch[i], one(keys[i]))
    pairs = vmap(vmap(draw))(random.split(KEY, (2, 2)))
    assert np.array_equal(pairs.reshape(batch.shape), batch)


def test_parameters_are_batched_too():
    keys, low = random.split(KEY, 3), np.array([0.0, 10.0, 20.0])
    got = vmap(lambda key, low: random.uniform(key, (2,), low, low + 1.0))(keys, low)
    assert np.array_equal(
        got, [relay(lambda k, x: random.uniform(k, (2,), x, x + 1.0))(k, x) for k, x in zip(keys, low)]
    )


def walk(key, n):
    x, total = 0.0, 0.0
    for i in range(n):
        step = random.normal(random.fold_in(key, i))
        x = x + step
        if random.uniform(random.fold_in(key, -i - 1)) < 0.5:
            total += x
    return total


def recursive(key, n):
    if n == 0:
        return 0.0
    here, rest = random.split(key)
    return random.normal(here) + recursive(rest, n - 1)


@pytest.mark.parametrize("program, n", [(walk, 200), (recursive, 12)])
def test_draws_in_loops_and_recursion(program, n):
    wanted = program(KEY, n) if program is recursive else None
    results = [relay(program, executor=executor)(KEY, n) for executor in EXECUTORS]
    assert results[0] == results[1] == results[2]
    assert wanted is None or results[0] == wanted


def test_a_closure_draws():
    def noisy(scale):
        return lambda key, x: x + scale * random.normal(key, x.shape)

    f = relay(lambda key, x: noisy(0.5)(key, x))
    assert same_bits(f(KEY, np.zeros(3)), 0.5 * random.normal(KEY, (3,)))


def test_sizes_may_be_symbols():
    f = relay(lambda key, x: x + random.normal(key, x.shape))
    for n in (3, 5):
        assert same_bits(f(KEY, np.zeros((n, 2))), random.normal(KEY, (n, 2)))


def test_a_constant_key_makes_no_constant():
    @relay
    def f():
        return np.sum(random.normal(random.key(0), (100_000,)))

    nodes = str(f.ir(stage="optimized"))
    assert "threefry2x32" in nodes and len(nodes) < 5_000
    assert abs(f() - np.sum(random.normal(random.key(0), (100_000,)))) < 1e-9


class Chain(NamedTuple):
    """What a scan carries."""

    key: random.Key
    x: float


def carrying(key: random.Key, keys: Tensor[UInt64, (Any,)]):
    def step(chain, _):
        first, second = random.split(chain.key)
        return Chain(first, chain.x + random.normal(second)), chain.x

    total = 0.0
    for one in random.split(key, 3):
        total += random.uniform(one)
    chain, path = scan(step, Chain(key, 0.0), np.arange(4))
    each = vmap(lambda key: random.uniform(key))(keys)
    return total, chain, path, each, random.normal(keys[len(keys) - 1]), vmap(lambda i: random.key(i))(np.arange(3))


def test_keys_are_values():
    keys = random.split(KEY, 3)
    wanted, *others = (relay(carrying, executor=executor)(KEY, keys) for executor in EXECUTORS)
    for other in others:
        assert all(same_bits(np.asarray(a), np.asarray(b)) for a, b in zip(wanted[2:], other[2:], strict=True))
        assert wanted[:2] == other[:2]
    assert wanted[0] == 0.0 + sum(random.uniform(key) for key in keys)
    assert same_bits(wanted[4], random.normal(keys[2])) and wanted[5].tolist() == [0, 1, 2]


def test_keys_are_carried_through_derivatives():
    def chain(w, key):
        for _ in range(5):
            key, here = random.split(key)
            w = w * (1.0 + 0.1 * random.normal(here))
        return w**2

    for executor in EXECUTORS:
        first = relay(grad(chain), executor=executor)(2.0, KEY)
        assert abs(first - 2 * relay(chain)(2.0, KEY) / 2.0) < 1e-12
        assert abs(relay(grad(grad(chain)), executor=executor)(2.0, KEY) - first / 2.0) < 1e-12
        remade = grad(lambda w: checkpoint(lambda v: chain(v, KEY))(w))
        assert abs(relay(remade, executor=executor)(2.0) - first) < 1e-12


@relay_model
def noisy_net(x: Tensor[Float, 10], key: random.Key):
    hidden = relay.linear(x, num_hidden=8)
    return np.where(random.bernoulli(key, 0.5, hidden.shape), hidden * 2.0, 0.0)


def test_a_model_takes_a_key():
    model = relay.create_model(noisy_net)
    gradient = relay.grad(model, lambda x, key: np.sum(noisy_net(x, key)), (np.ones(10, np.float32), KEY))
    bias = next(v for k, v in gradient.items() if k.endswith("bias"))
    assert np.array_equal(bias, random.bernoulli(KEY, 0.5, (8,)) * 2.0)


# Distributions.


def test_bits_are_fair_and_independent():
    bits = random.bits(KEY, (N,))
    table = (bits[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    ones = table.sum(0)
    assert np.all(np.abs(ones - N / 2) < 5 * math.sqrt(N) / 2)
    bytes_ = np.bincount(np.frombuffer(bits.tobytes(), np.uint8), minlength=256)
    assert chi_square(bytes_, N * 8 / 256) > 1e-4
    correlation = np.corrcoef(table[:20_000].T.astype(float)) - np.eye(64)
    assert np.max(np.abs(correlation)) < 5.5 / math.sqrt(20_000)


def test_streams_of_split_keys_are_independent():
    keys = random.split(KEY, 8)
    streams = np.stack([random.bits(key, (N // 4,)) for key in keys])
    top = (streams >> np.uint64(60)).astype(int)
    for i in range(8):
        for j in range(i):
            joint = np.bincount(top[i] * 16 + top[j], minlength=256)
            assert chi_square(joint, N / 4 / 256) > 1e-5
    normals = np.stack([random.normal(key, (N // 4,)) for key in keys])
    correlation = np.corrcoef(normals) - np.eye(8)
    assert np.max(np.abs(correlation)) < 5 / math.sqrt(N / 4)
    # of neighbouring counters of one key, and of a key with what is split from it
    x = random.normal(KEY, (N,))
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 5 / math.sqrt(N)
    assert abs(np.corrcoef(x[: N // 4], normals[0])[0, 1]) < 10 / math.sqrt(N)


@pytest.mark.parametrize("dtype, slack", [("float64", 0), ("float32", 0), ("float16", 0.001)])
def test_uniform(dtype, slack):
    x = random.uniform(KEY, (N,), dtype=dtype)
    assert x.dtype == dtype and x.min() >= 0 and x.max() < 1
    wide = x.astype(np.float64)
    assert abs(wide.mean() - 0.5) < 5 * math.sqrt(1 / 12 / N) + slack
    assert abs(wide.var() - 1 / 12) < 0.002
    if not slack:
        assert kolmogorov_smirnov(wide[:50_000], lambda v: v) > 1e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_normal(dtype):
    x = random.normal(KEY, (N,), dtype)
    assert x.dtype == dtype
    wide = x.astype(np.float64)
    for power, moment, deviation in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs(np.mean(wide**power) - moment) < 5 * math.sqrt(deviation / N)
    assert kolmogorov_smirnov(wide[:50_000], normal_distribution) > 1e-3
    assert abs(np.mean(np.abs(wide) > 3) - 0.0026998) < 5 * math.sqrt(0.0027 / N)


def test_the_tails_of_normal_numbers():
    @relay
    def extreme(key):
        x = random.normal(key, (4_000_000,))
        return np.max(x), np.min(x), np.sum((np.abs(x) > 5.0) * 1)

    high, low, beyond = extreme(KEY)
    assert 4.5 < high < 6.5 and -6.5 < low < -4.5
    assert 0 <= beyond <= 10  # 2.3 expected


def test_exponential_and_gumbel():
    x = random.exponential(KEY, (N,))
    assert x.min() > 0 and abs(x.mean() - 1) < 5 / math.sqrt(N) and abs(x.var() - 1) < 5 * math.sqrt(8 / N)
    assert kolmogorov_smirnov(x[:50_000], lambda v: -math.expm1(-v)) > 1e-3
    g = random.gumbel(KEY, (N,))
    assert abs(g.mean() - 0.5772156649) < 5 * math.pi / math.sqrt(6 * N)
    assert kolmogorov_smirnov(g[:50_000], lambda v: math.exp(-math.exp(-v))) > 1e-3


def test_bernoulli():
    assert abs(random.bernoulli(KEY, 0.3, (N,)).mean() - 0.3) < 5 * math.sqrt(0.21 / N)
    assert random.bernoulli(KEY).dtype == bool and random.bernoulli(KEY, np.full((2, 3), 0.5)).shape == (2, 3)
    outside = random.bernoulli(KEY, np.array([-1.0, 0.0, np.nan, 1.0, 2.0]), (1000, 5)).mean(0)
    assert outside.tolist() == [0, 0, 0, 1, 1]


def test_categorical():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    x = random.categorical(KEY, np.log(p), shape=(N,))
    assert x.dtype == np.int64 and chi_square(np.bincount(x, minlength=4), N * p) > 1e-3
    never = random.categorical(KEY, np.array([0.0, -np.inf, 0.0]), shape=(1000,))
    assert 1 not in never
    columns = random.categorical(KEY, np.log(np.stack([p, p[::-1]], 1)), axis=0, shape=(N, 2))
    assert chi_square(np.bincount(columns[:, 1], minlength=4), N * p[::-1]) > 1e-3


def test_randint():
    x = random.randint(KEY, (N,), -3, 9)
    assert x.dtype == np.int64 and chi_square(np.bincount(x + 3, minlength=12), N / 12) > 1e-3
    wide = random.randint(KEY, (N,), -(2**62), 2**62 + 2**61)  # a remainder of 64 bits would show
    assert chi_square(np.histogram(wide, 5, (-(2**62), 2**62 + 2**61))[0], N / 5) > 1e-3
    rows = random.randint(KEY, (N, 2), np.array([0, 10]), np.array([2, 13]))
    assert rows.min(0).tolist() == [0, 10] and rows.max(0).tolist() == [1, 12]
    assert random.randint(KEY, (5,), 0, 1).tolist() == [0] * 5
    assert random.randint(KEY, (1000,), -128, 128, np.int8).min() == -128
    runtime = relay(lambda key, high: random.randint(key, (50,), 0, high))
    assert same_bits(runtime(KEY, 7), random.randint(KEY, (50,), 0, 7))
    assert same_bits(runtime(KEY, 2**50), random.randint(KEY, (50,), 0, 2**50))


# Derivatives.


def differences(f, x, step=1e-6):
    return (f(x + step) - f(x - step)) / (2 * step)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(random.uniform(KEY, (5,), x, 3.0) ** 2),
        lambda x: np.sum(random.uniform(KEY, (5,), -1.0, x) ** 2),
        lambda x: np.sum(np.tanh(x + x * random.normal(KEY, (5,)))),
        lambda x: np.sum(np.exp(-x * random.exponential(KEY, (5,)))),
        lambda x: np.sum(np.exp((np.array([x, 1.0, 0.3]) + random.gumbel(KEY, (3,))) / 5.0)),
    ],
)
def test_draws_are_reparameterised(f):
    for executor in EXECUTORS:
        compiled = relay(f, executor=executor)
        assert abs(relay(grad(f), executor=executor)(0.7) - differences(compiled, 0.7)) < 1e-7


def test_a_chain_of_draws_is_differentiated():
    def loss(scale, key):
        x = 1.0
        for i in range(6):
            x = x + scale * random.normal(random.fold_in(key, i)) * x
        return x**2

    got = grad(loss)(0.3, KEY)
    assert abs(got - differences(lambda s: relay(loss)(s, KEY), 0.3)) < 1e-6 * abs(got)


def test_integer_draws_have_no_gradient():
    f = relay(lambda x: np.sum(x[random.randint(KEY, (4,), 0, 3)]))
    x = np.array([1.0, 2.0, 3.0])
    counts = np.bincount(random.randint(KEY, (4,), 0, 3), minlength=3)
    assert grad(f)(x).tolist() == counts.tolist()
    logits = np.array([0.1, 0.2])
    assert grad(lambda w: np.sum(w) * random.categorical(KEY, w))(logits).shape == (2,)


# Plain calls.


def test_plain_calls_find_their_program():
    before = random.normal.cache_info().misses
    wanted = {}
    for shape in ((3,), (4,), 3, (), (2, 2)):
        for dtype in (np.float32, "float64"):
            wanted[shape, dtype] = random.normal(KEY, shape, dtype)
    again = {(shape, dtype): random.normal(KEY, dtype=dtype, shape=shape) for shape, dtype in wanted}
    for case, x in wanted.items():
        assert x.dtype == case[1] and same_bits(x, again[case]) and same_bits(x, random.normal(KEY, *case))
    assert random.normal(KEY, [2, 2]).shape == (2, 2)
    assert random.normal.cache_info().misses <= before + 2 * len(wanted) + 1
    with pytest.raises(TypeError_, match="a size must be an int"):
        random.normal(KEY, (2, True))
    assert random.randint(KEY, (), 0, 2**40) >= 2**20  # one program for all bounds
    assert random.randint(KEY, (), 0, 2) < 2


def test_functions_are_pickled_by_name():
    for f in (random.normal, random.key, relay.tanh):
        assert pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f


# Refusals.


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda key: random.key(1.5), TypeError_, "takes an int for a seed, and this is float"),
        (lambda key: random.key(True), TypeError_, "takes an int for a seed, and this is bool"),
        (
            lambda key: random.normal(3, (2,)),
            TypeError_,
            "takes a key, made by relay.random.key(seed), and this is an int",
        ),
        (lambda key: random.normal((2,), key), TypeError_, "takes a key"),
        (
            lambda key: random.normal(random.split(key), (2,)),
            ShapeError,
            "takes one key, and this is an array of shape (2,)",
        ),
        (lambda key: random.split(key, -1), ShapeError, "negative dimensions are not allowed"),
        (lambda key: random.normal(key, (2, -1)), ShapeError, "negative dimensions are not allowed"),
        (lambda key: random.normal(key, 2.5), TypeError_, "a size must be an int known at compile time"),
        (lambda key: random.normal(key, (2,), np.int32), TypeError_, "draws floats, and dtype is int32"),
        (lambda key: random.bits(key, (2,), np.int32), TypeError_, "draws unsigned integers, and dtype is int32"),
        (lambda key: random.fold_in(key, 0.5), TypeError_, "fold_in takes an int"),
        (lambda key: random.uniform(key, (3,), np.zeros(4)), ShapeError, "uniform: low"),
        (lambda key: random.uniform(key, (), np.zeros(4)), ShapeError, "low has shape (4,), and the draw has shape ()"),
        (lambda key: random.categorical(key, np.zeros((3, 0))), ShapeError, "at least one class, and these are empty"),
        (lambda key: random.categorical(key, 0.5), ShapeError, "takes an array of logits"),
        (lambda key: random.categorical(key, np.zeros((3, 2)), shape=(4,)), ShapeError, "categorical"),
        (lambda key: random.randint(key, (2,), 0.0, 3), TypeError_, "low is an int, and this is float"),
        (lambda key: random.randint(key, (2,), 0, 3, np.float32), TypeError_, "draws integers"),
        (lambda key: random.randint(key, (2,), 5, 5), ValueError, "low >= high"),
        (lambda key: random.randint(key, (2,), 0, 300, np.uint8), ValueError, "out of range for uint8"),
    ],
)
def test_wrong_arguments_are_refused_at_their_line(call, error, text):
    with pytest.raises(error) as caught:
        relay(call)(KEY)
    assert text in str(caught.value)
    if isinstance(caught.value, CompileError):
        assert f"line {call.__code__.co_firstlineno}" in str(caught.value)


@pytest.mark.parametrize(
    "draw",
    [
        lambda key, n: random.normal(key, (n, 2)),
        lambda key, n: random.uniform(key, (n,), np.zeros(n), 2.0, np.float32),
        lambda key, n: random.split(key, n),
        lambda key, n: random.permutation(key, n),
        lambda key, n: random.choice(key, 7, (n,)),
        lambda key, n: random.gamma(key, 0.6, (n,)),
        lambda key, n: random.categorical(key, np.zeros(4), shape=(n,)),
        lambda key, n: random.normal(key, (n,))[random.bernoulli(key, 0.5, (n,))],
        lambda key, n: vmap(lambda one: random.normal(one))(random.split(key, n)),
    ],
)
@pytest.mark.sampled(9)
def test_sizes_of_run_time(draw):
    known = relay(draw, static="n")
    for executor in EXECUTORS:
        f = relay(draw, executor=executor)
        for n in (3, 20, 0):
            assert same_bits(f(KEY, n), known(KEY, n))
        assert f.cache_info().misses == 1
        with pytest.raises(ValueError, match="negative dimensions"):
            f(KEY, -1)
