"""What a call sees: free names at call time, methods, wrappers, threads, and which calls compile."""

from __future__ import annotations

import functools
import threading
import traceback
import types
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import Float, Tensor, grad, relay, relay_model, vmap

FACTOR = 2.0
WEIGHTS = np.ones(3)
PAIR = (1.0, (2.0, np.ones(2)))
LISTED, NAMED = [1.0, 2.0], {"a": 1.0}
MODULE = types.ModuleType("settings")


class Config:
    rate = 1.0


CONFIG = Config()


@relay_model
def net(x: Tensor[Float, (4,)]) -> Tensor[Float, (2,)]:
    return relay.linear(x, num_hidden=2)


MODEL = relay.create_model(net)


def helper(x):
    return x + 1


def outer_helper(x):
    return inner_helper(x)


def inner_helper(x):
    return x * FACTOR


@pytest.fixture
def set_global(monkeypatch):
    """Assign a global of this module, undone after the test."""
    return lambda name, value: monkeypatch.setitem(globals(), name, value)


def test_numbers(set_global, executor):
    @relay(executor=executor)
    def f(x):
        return x * FACTOR

    for value, want in ((2.0, 6.0), (5.0, 15.0), (2, 6.0), (-0.0, -0.0), (0.0, 0.0), (2.0, 6.0)):
        set_global("FACTOR", value)
        for _ in range(2):  # the second call takes the fast path
            assert str(f(3.0)) == str(want)
    assert f(3) == 6.0


def test_an_equal_number_compiles_nothing(set_global):
    f = relay(lambda x: x * FACTOR)
    set_global("FACTOR", 2.5)
    f(1.0)
    set_global("FACTOR", float("2.5"))
    assert f(2.0) == 5.0 and f.cache_info().misses == 1


def test_helpers(set_global):
    f = relay(lambda x: helper(x) * 2)
    g = relay(lambda x: outer_helper(x))
    assert f(1.0) == 4.0 and f(1.0) == 4.0 and g(2.0) == 4.0
    set_global("helper", lambda x: x + 10)
    set_global("inner_helper", lambda x: -x)
    assert f(1.0) == 22.0 and g(2.0) == -2.0


def test_helpers_whose_code_is_replaced():
    """As IPython's autoreload does it."""

    def local(x, y=1.0):
        return x + y

    f = relay(lambda x: local(x))
    assert f(1.0) == 2.0
    local.__defaults__ = (5.0,)
    assert f(1.0) == 6.0
    local.__code__ = helper.__code__
    assert f(1.0) == 2.0


def test_closure_cells():
    k = 1.0

    def assign(value):
        nonlocal k
        k = value

    f = relay(lambda x: x * k)
    assert f(2.0) == 2.0
    assign(7.0)
    assert f(2.0) == 14.0


def test_attributes_of_modules_and_objects(monkeypatch):
    monkeypatch.setattr(MODULE, "c", 2.0, raising=False)
    f, g = relay(lambda x: x * MODULE.c), relay(lambda x: x * CONFIG.rate)
    assert f(2.0) == 4.0 and g(2.0) == 2.0
    monkeypatch.setattr(MODULE, "c", 3.0)
    monkeypatch.setattr(CONFIG, "rate", 3.0, raising=False)
    assert f(2.0) == 6.0 and g(2.0) == 6.0
    monkeypatch.setattr(Config, "rate", 9.0)
    monkeypatch.delattr(CONFIG, "rate")
    assert g(2.0) == 18.0


def test_containers(set_global):
    set_global("LISTED", [1.0, 2.0])
    set_global("NAMED", {"a": 1.0})
    f = relay(lambda x: x * LISTED[0] + NAMED["a"])
    assert f(2.0) == 3.0
    LISTED[0] = 5.0
    assert f(2.0) == 11.0
    NAMED["a"] = 3.0
    assert f(2.0) == 13.0
    g = relay(lambda x: x * PAIR[0] + PAIR[1][1])
    np.testing.assert_array_equal(g(2.0), [3, 3])
    set_global("PAIR", (2.0, (2.0, np.ones(2) * 2)))
    np.testing.assert_array_equal(g(2.0), [6, 6])
    PAIR[1][1][0] = 7
    np.testing.assert_array_equal(g(2.0), [11, 6])
    # Arrays that print alike are not the same.
    big = np.zeros(5000)
    set_global("PAIR", (2.0, (2.0, big)))
    assert np.sum(g(0.0)) == 0.0
    other = big.copy()
    other[2500] = 1.0
    set_global("PAIR", (2.0, (2.0, other)))
    assert np.sum(g(0.0)) == 1.0


def test_arrays_are_hidden_arguments(set_global, executor):
    @relay(executor=executor)
    def f(x):
        return x * WEIGHTS

    set_global("WEIGHTS", np.ones(3))
    np.testing.assert_array_equal(f(2.0), [2, 2, 2])
    WEIGHTS[0] = 5
    np.testing.assert_array_equal(f(2.0), [10, 2, 2])
    set_global("WEIGHTS", np.arange(3.0))
    np.testing.assert_array_equal(f(2.0), [0, 2, 4])
    assert f.cache_info().misses == 1, "an array of the same type is passed in, not compiled for"
    set_global("WEIGHTS", np.arange(4))
    got = f(2.0)
    np.testing.assert_array_equal(got, [0.0, 2, 4, 6])
    set_global("WEIGHTS", 3.0)
    assert f(2.0) == 6.0


def test_models_are_hidden_arguments(set_global):
    x = np.ones(4, np.float32)
    f = relay(lambda x: np.sum(MODEL(x)))
    before = f(x)
    MODEL.params["linear_0.bias"] += np.float32(1)
    assert f(x) == pytest.approx(before + 2, rel=1e-5)
    set_global("MODEL", relay.create_model(net, seed=5))
    assert f(x) == pytest.approx(float(np.sum(MODEL(x))), rel=1e-6) and f.cache_info().misses == 1


def test_static_arguments():
    @relay(static="n")
    def power(x, n):
        for _ in range(n):
            x = x * 2
        return x

    assert [power(1.0, 3), power(1.0, 4), power(1.0, n=4), power(1.0, 3)] == [8.0, 16.0, 16.0, 8.0]
    assert power.cache_info() == (1, 3, 3)
    choose = relay(static=("axis", "name"))(
        lambda x, axis, name: np.sum(x, axis=axis) if name == "sum" else np.max(x, axis=axis)
    )
    np.testing.assert_array_equal(choose(np.ones((2, 3)), 0, "sum"), [2, 2, 2])
    assert choose(np.ones((2, 3)), (0, 1), "sum") == 6.0 and choose(np.ones((2, 3)), None, "max") == 1.0
    applied = relay(static="f")(lambda x, f: f(x))
    assert applied(2.0, lambda v: v + 1) == 3.0 and applied(2.0, lambda v: v + 2) == 4.0
    options = relay(static="d")(lambda x, d: x * d["a"])
    assert options(2.0, {"a": 3.0}) == 6.0 and options(2.0, {"a": 4.0}) == 8.0


def test_derived_functions_keep_the_executor(executor):
    f = relay(executor=executor)(lambda x: x**3)
    assert grad(f).options["executor"] == executor and vmap(grad(f)).options["executor"] == executor
    assert grad(f)(2.0) == 12.0 and grad(grad(f))(2.0) == 12.0
    np.testing.assert_array_equal(vmap(grad(f))(np.arange(3.0)), [0, 3, 12])


class Layer:
    gain = 3.0

    def __init__(self, scale):
        self.scale, self.weights = scale, np.ones(2)

    @relay
    def number(self, x, y=1.0):
        return x * x * self.scale * self.gain * y

    @relay
    def array(self, x):
        return self.weights * x

    @staticmethod
    @relay
    def plus(x):
        return x + 1

    @classmethod
    @relay
    def of_class(cls, x):
        return x * cls.gain

    def plain(self, x):
        return x * self.scale

    def __call__(self, x):
        return x + self.scale


def test_methods():
    a, b = Layer(2.0), Layer(5.0)
    assert a.number(1.0) == 6.0 and b.number(1.0) == 15.0 and a.number(1.0, y=2.0) == 12.0
    a.scale = 4.0
    assert a.number(1.0) == 12.0 and b.number(1.0) == 15.0
    assert Layer.plus(1.0) == a.plus(1.0) == 2.0 and Layer.of_class(2.0) == b.of_class(2.0) == 6.0
    assert grad(b.number)(2.0) == 60.0 and grad(b.number, "x")(2.0) == 60.0 and grad(b.number, "y")(2.0, 1.0) == 60.0
    bound = relay(a.plain)
    assert bound(3.0) == 12.0 and grad(a.plain)(3.0) == 4.0
    a.scale = 1.0
    assert bound(3.0) == 3.0
    assert relay(lambda x: a(x))(3.0) == 4.0 and relay(a)(3.0) == 4.0


def test_methods_and_arrays_of_objects():
    a, b = Layer(1.0), Layer(1.0)
    np.testing.assert_array_equal(a.array(2.0), [2, 2])
    a.weights = np.arange(3.0)
    np.testing.assert_array_equal(a.array(2.0), [0, 2, 4])
    a.weights[0] = 5
    np.testing.assert_array_equal(a.array(2.0), [10, 2, 4])
    np.testing.assert_array_equal(b.array(2.0), [2, 2])


class Vector(NamedTuple):
    x: float
    y: float

    @relay
    def dot(self, other):
        return self.x * other.x + self.y * other.y


def test_methods_of_records_share_their_compilation():
    for k in range(3):
        assert Vector(1.0, float(k)).dot(Vector(2.0, 3.0)) == 2.0 + 3.0 * k
    assert Vector.dot.cache_info().misses == 1


def test_wrapped_functions():
    def decorated(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) + 1

        return inner

    @decorated
    def base(x):
        return x * 2

    @functools.lru_cache
    def cached(x):
        return x * 2

    minus = functools.partial(lambda a, b: a - b, 5.0)
    assert relay(base)(3.0) == 7.0 and relay(lambda x: base(x))(3.0) == 7.0
    assert relay(cached)(3.0) == 6.0 and relay(lambda x: cached(x))(3.0) == 6.0
    assert relay(minus)(3.0) == 2.0 and relay(lambda x: minus(x))(3.0) == 2.0


def test_lambdas_on_one_line():
    a, b = relay(lambda x: x + 1), relay(lambda x: x * 5)
    assert (a(2.0), b(2.0)) == (3.0, 10.0)


def test_the_cache_is_bounded():
    f = relay(executor="interpreter")(lambda x: x)
    for n in range(260):
        f(np.ones(n))
    assert f.cache_info() == (0, 260, 256)


def test_an_int_too_large_does_not_spoil_the_cache():
    f = relay(lambda n: n + 1)
    assert f(1) == 2
    with pytest.raises(OverflowError):
        f(2**63)
    assert f(2) == 3 and f.cache_info().misses == 1


def test_threads_compile_and_call_together():
    @relay
    def f(x, n):
        total = 0.0
        for i in range(n):
            total += x * i
        return total

    g = relay(lambda x: np.tanh(x) @ x)
    outcomes = []

    def work(k):
        try:
            for iteration in range(100):
                assert f(float(k), 10) == 45.0 * k
                assert np.isclose(g(np.ones(4) * k), np.tanh(k) * k * 4)
                if iteration % 40 == 0:
                    g(np.ones(iteration + 1))
            outcomes.append(None)
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert outcomes == [None] * 8
    assert f.cache_info().misses == 1 and g.cache_info().misses == 4


def test_into_writes_into_the_callers_arrays(executor):
    f = relay(executor=executor)(lambda x, y: x @ y + 1.0)
    x, y = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
    out = np.empty((2, 2))
    assert f.into(out)(x, y) is out
    np.testing.assert_allclose(out, x @ y + 1.0)
    several = relay(executor=executor)(lambda x: (np.sum(x), {"twice": x * 2.0}))
    total, twice = np.empty(()), np.empty((2, 3))
    several.into((total, {"twice": twice}))(x)
    assert total == 15.0 and (twice == 2 * x).all()
    for bad in (np.float64(0.0), 0.0, None, np.empty((), np.float32), np.empty(1)):
        with pytest.raises((TypeError, ValueError), match="into"):
            several.into((bad, {"twice": twice}))(x)
    double = relay(executor=executor)(lambda x: x * 2.0)
    z = np.arange(3.0)
    double.into(z)(z)
    assert z.tolist() == [0.0, 2.0, 4.0]
    strided = np.zeros((4, 6))
    double.into(strided[::2, ::2])(x)
    assert (strided[::2, ::2] == 2 * x).all() and strided[1].sum() == 0.0
    frozen = np.empty(3)
    frozen.flags.writeable = False
    for bad in (np.empty(3, np.float32), np.empty((2, 3)), 3, (np.empty(3),), frozen):
        with pytest.raises((TypeError, ValueError)):
            double.into(bad)(np.ones(3))


def test_looking_at_a_program_with_a_model():
    @relay
    def loss(x):
        return np.sum(net(x) ** 2)

    @relay
    def step(model, x):
        relay.update_model_params(model, relay.grad(model, loss, (x,)))
        return np.sum(model(x))

    model, x = relay.create_model(net), np.ones(4, np.float32)
    texts = [
        str(step.ir(model, x, stage=s))
        for s in ("parsed", "inferred", "simplified", "differentiated", "optimized", "lowered")
    ]
    assert "value_and_grad" in texts[1] and "value_and_grad" not in texts[3] and "ref_write" in texts[4]
    assert "def step" in step.source(model, x) and "lowered" in step.explain(model, x)
    assert "main" in str(step.tir(model, x)) and "ret" in step.asm(model, x)


def test_interpret_runs_what_a_call_runs():
    @relay
    def scale(x, *, by=2.0):
        return x * by, len(x)

    x = np.arange(3.0)
    for kwargs in ({}, {"by": 3.0}):
        np.testing.assert_array_equal(scale.interpret(x, **kwargs)[0], scale(x, **kwargs)[0])
    assert scale.interpret([1.0, 2.0] * 2, by=0)[1] == 4
    with pytest.raises(TypeError):
        scale.interpret(x, 1.0)


def test_the_python_executor_calls_compiled_regions():
    f = relay(executor="python")(lambda x: np.tanh(x * 2.0) + x)
    x = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(f(x), np.tanh(x * 2) + x, rtol=1e-14)
    (compiled,) = f._programs.values()
    assert "region_0(" in compiled.run.source


def test_into_arrays_of_every_kind():
    """Plain ones are written directly; what overlaps an argument or is strided gets a copy; what does not fit is refused."""
    f = relay(lambda x, y: (x + y, x - y, np.sum(x)))
    x, y = np.arange(6.0), np.arange(6.0) ** 2
    want = x + y, x - y, x.sum()
    wide, both, total = np.empty(12), np.empty(9), np.empty(())

    class Sub(np.ndarray):
        pass

    for first, second in (
        (np.empty(6), np.empty(6)),
        (wide[::2], wide[1::2]),
        (np.empty(6)[::-1], np.empty(6)),
    ):
        assert f.into((first, second, total))(x, y)[0] is first
        for got, w in zip((first, second, total), want):
            np.testing.assert_array_equal(got, w)
    with pytest.raises(TypeError, match="a Sub calculates by rules of its own"):
        f.into((np.empty(6), np.empty(6).view(Sub), total))(x, y)
    for shared in (
        (both[:6], both[3:], total),
        (both[:6], both[:6], total),
        (both[:6], np.empty(6), both[5:6].reshape(())),
    ):
        with pytest.raises(ValueError, match="share memory"):  # one result would be lost
            f.into(shared)(x, y)
    with pytest.raises(ValueError, match="share memory"):
        f.into((np.lib.stride_tricks.as_strided(both, (6,), (0,)), np.empty(6), total))(x, y)
    a, b = x.copy(), y.copy()
    f.into((b, a, total))(a, b)
    np.testing.assert_array_equal([b, a], want[:2])
    frozen = np.empty(6)
    frozen.flags.writeable = False
    for bad, error in ((np.empty(5), ValueError), (np.empty(6, np.float32), TypeError), (frozen, ValueError)):
        with pytest.raises(error):
            f.into((bad, a, total))(x, y)
    for bad in (np.float64(0.0), 0.0, np.empty((), np.float32)):
        with pytest.raises(TypeError, match="into needs an array"):
            f.into((b, a, bad))(x, y)


@pytest.mark.parametrize("kind", [tuple, dict], ids=["tuple", "dict"])
def test_into_many_arrays(kind):
    """As above, where there are too many to compare one by one in the caller's code."""
    names = [f"a{k}" for k in range(12)]

    @relay
    def f(d):
        doubled = {k: 2.0 * d[k] + d["a0"] for k in d}
        return doubled if kind is dict else (*doubled.values(),)

    def made():
        return {name: np.arange(3.0) + k for k, name in enumerate(names)}

    def given(arrays):
        return dict(zip(names, arrays)) if kind is dict else tuple(arrays)

    want = [2.0 * x + np.arange(3.0) for x in made().values()]
    fresh, whole = [np.empty(3) for _ in names], np.empty(36)
    parts = [whole[3 * k : 3 * k + 3] for k in range(12)]
    for targets in (fresh, parts):
        f.into(given(targets))(made())
        np.testing.assert_array_equal(targets, want)
    d = made()
    turned = [d[name] for name in reversed(names)]  # each is written while others are read
    f.into(given(turned))(d)
    np.testing.assert_array_equal(turned, want)
    same = np.empty(3)
    with pytest.raises(ValueError, match="share memory"):  # one of the results would be lost
        f.into(given([*fresh[:10], same, same]))(made())


def test_tuples_of_many_integers():
    """They are looked at all at once, as long as they are ints of 64 bits and nothing else."""

    def total(numbers, k):
        first = numbers[0]
        return first + numbers[k], len(numbers), numbers[-1] * 2

    f = relay(total)
    many = tuple(range(10, 20))
    for _ in range(3):
        assert f(many, 3) == total(many, 3)
    assert f((7, *many), 1) == total((7, *many), 1)
    assert f((True, *many), 1) == total((True, *many), 1)
    assert f((2.5, *many[1:]), 0) == (5.0, 10, 38)
    assert f((-(2**62), *many[1:]), 1) == total((-(2**62), *many[1:]), 1)
    with pytest.raises(OverflowError, match="64 bits"):
        f((2**63, *many[1:]), 1)
    assert f(many, 3) == total(many, 3) and f(list(many), 2) == total(many, 2)


def test_a_function_typed_at_the_prompt_has_no_source():
    namespace: dict = {}
    exec(compile("def typed(x):\n    return x\n", "<stdin>", "exec"), namespace)
    with pytest.raises(SyntaxError, match="source of 'typed' cannot be found") as caught:
        relay(namespace["typed"])(1)
    assert caught.value.text is None and caught.value.offset is None
    shown = "".join(traceback.format_exception_only(caught.type, caught.value))
    assert "^" not in shown and "put the function into a file or a notebook cell" in shown


def test_one_writer_for_many_calls():
    """What it knows of its arrays it looks at again at every call: whether they may be written, and what they overlap."""
    f = relay(lambda x, y: (x + y, x * y))
    x, y = np.arange(4.0), np.full(4, 2.0)
    out = np.empty(4), np.empty(4)
    write = f.into(out)
    for k in range(3):
        assert write(x + k, y) is out
        np.testing.assert_array_equal(out[1], (x + k) * 2.0)
    out[1].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        write(x, y)
    out[1].flags.writeable = True
    write(out[1], out[0])
    np.testing.assert_array_equal(out[0], (x + 2) * 2.0 + x + 4.0)
    listed = [np.empty(4), np.empty(4)]
    write = f.into(listed)
    write(x, y)
    kept, listed[0] = listed[0], np.zeros(4)
    write(x + 1.0, y)
    np.testing.assert_array_equal(kept, x + 2.0)
    np.testing.assert_array_equal(listed[0], x + 3.0)
    write = f.into((np.empty(2), np.empty(2)))
    with pytest.raises(ValueError, match="shape"):
        write(x, y)
    np.testing.assert_array_equal(write(x[:2], y[:2])[0], [2.0, 3.0])
    np.testing.assert_array_equal(write(x[:2], y[2:])[1], [0.0, 2.0])


def in_order(*args, **named):
    out = 0
    for v in args:
        out = out * 10 + v
    for key in named:
        out = out * 10 + named[key]
    return out


def keywords_in_order(d):
    more = {"e": 5, "b": 6}
    first = in_order(a=1, **d), in_order(**d, a=1), in_order(3, a=1, **d, c=4, **more), in_order(**more, a=1, **d)
    return first, dict(a=1, **d), {**d, "a": 1}, list(dict(d, **more, b2=3).items())


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_keyword_arguments_keep_their_order(executor):
    d = {"z": 7, "y": 8}
    got, want = relay(executor=executor)(keywords_in_order)(d), keywords_in_order(d)
    assert got == want
    assert [list(x) for x in got[1:]] == [list(x) for x in want[1:]]


@pytest.mark.parametrize(
    "function",
    [lambda d: in_order(z=1, **d), lambda d: in_order(**d, **d), lambda d: dict(**d, y=1), lambda d: dict(y=1, **d)],
)
def test_a_keyword_argument_given_twice_is_refused(function):
    d = {"z": 7, "y": 8}
    with pytest.raises(TypeError):
        function(d)
    with pytest.raises(TypeError, match="two values for the keyword argument '[zy]'"):
        relay(function)(d)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_a_wrapper_is_run_and_not_what_it_wraps(executor):
    """`functools.wraps` copies what the wrapped object holds: the wrapper was once taken for it, and left out."""
    decorated, slope = relay(lambda x: x + 1.0), grad(lambda x: x * x)

    @functools.wraps(decorated)
    def wrapper(x):
        return decorated(x) * 100.0

    @functools.wraps(slope)
    def scaled(x):
        return slope(x) * 10.0

    assert relay(lambda x: wrapper(x) + scaled(x), executor=executor)(1.0) == wrapper(1.0) + scaled(1.0) == 220.0
