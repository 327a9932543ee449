"""What random programs were reduced to: each was answered differently from CPython, crashed, or was refused needlessly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import CompileError, Float64, Tensor, relay
from tests.property.execute import check
from tests.property.generator.records import End, Leaf, Link, Node, Pair, Tree
from tests.property.oracle import call
from tests.property.verdicts import difference


def leaving_an_unrolled_loop_in_the_second_turn(x):
    total = 0
    for _, j in [(1, x), (2, x + 1)]:
        total += j
        if j > 3:
            break
    print("total", total)
    return total


def truth_of_operands_of_different_types(n, x):
    if n and x > 1.0:
        return 1
    while n or x < 0.0:
        n = 0
        x = abs(x)
        if not (n and x):
            return 2
    return 3 if n or x else 4


def number_as_the_condition_of_a_loop_with_return(n, x):
    while n:
        n -= 1
        if x == n:
            return n
    return -1


def down(n, s):
    return back(n - 1, n)


def back(n, s):
    if n <= 0:
        return s
    t = down(n, n)
    u = down(n, 1) if s else n
    return t + u - s


def functions_inlined_into_branches_of_each_other(n, x):
    for k in range(back(1, n), 0, -1):
        n = down((x > 2) + 0, k) + n
    return n


def printed_numpy_scalars(x):
    print(np.float32(x), f"{np.float32(x)}", str(np.float32(x)))
    if x < 0:
        raise ValueError(np.float32(x))
    return np.float32(x)


def arguments_of_exceptions(x, k):
    if k == 0:
        raise KeyError("")
    if k == 1:
        raise KeyError(x)
    if k == 2:
        raise KeyError(f"{x}")
    if k == 3:
        raise KeyError
    if k == 4:
        raise ValueError((x, 1))
    return x


def first_turn_of_a_loop_reads_what_only_turns_bind(n):
    total = 0.0
    for i in range(n):
        if i > 0:
            total = total + float(row.sum())  # noqa: F821
        else:
            total = 1.0
        row = np.full(2, total)  # noqa: F841
    return total


def calls(n, s):
    if n < 1:
        return n
    t = 7
    for q in range(1):
        t = t - calls_back(n - 1 - q, s)
    return t


def calls_back(n, s):
    if n <= 0:
        return n
    t = 2
    for q in range(2):
        t = t + calls(n - 1 - q, s)
    return n + t


def loops_that_lead_back_to_themselves(n, x):
    for i in range(2):
        n = calls_back(calls(n, x) % 6, x) + i
    return n


def unbound_in_a_comprehension(n):
    for i in range(n):
        last = i
    return [c + last for c in (1, 2)]


def unbound_in_an_inner_function(n):
    for i in range(n):
        last = i

    def read(c):
        return c + last

    return read(n), last


def no_rows(x):
    return np.ones((0, 0)), np.zeros((0, 2), np.int32), x


def t1(n, x):
    return x if n <= 0 else t1(n - 1, x * 2) + a0(n - 1, x)


def a0(n, x):
    y = x if n <= 0 else a0(n - 1, x + 1) - t1(n - 2, x)
    return y


def functions_named_as_temporaries(n, x):
    y = t1(n, x) * x
    x1 = a0(n, y)
    return x1 + y, t1(n, x1)


def steps_from_zero(n):
    total = 0
    for i in range(0, n, 2):
        total = total * 3 + i
    for i in range(0, -n, -3):
        total = total * 3 + i
    return total


def builtin_sum(x):
    return sum(x), sum(x, 1)


def compensated_sum(a, b, c):
    return sum([a, b, c]), sum((a, 1, b, c)), sum([a, b], c), sum([a, np.float64(b), c]), sum(v * 2 for v in (a, b, c))


def true_division(a, b):
    return a / b


def containment(x, y):
    return x in (y, 1), (x,) == (y,), (x, y) != (y, x), x not in (y, y), x in (x,)


def ordering(a, b, c, d):
    x, y = (a, b), (c, d)
    return x < y, x <= y, x > y, x >= y, (a,) < (c, d), (a, b, 1) > (a, b), [a, b] <= [c, d], () < (a,)


def equal_tuples(a, b):
    pair = Pair(a, b)
    return pair == (a, b), (a, b) == pair, pair == [a, b], pair < (b, a), [a] == (a,), (pair, 1) == ((a, b), 1)


def numpy_functions_of_bools(x):
    return np.fabs(x), np.log1p(x), np.cbrt(x), np.arctan2(x, x), np.heaviside(x, x), np.heaviside(3, 2)


def integers_of_math(a, b):
    return math.gcd(a, b), math.lcm(a, b), math.isqrt(abs(a)), math.comb(abs(a), 2)


def absolute_of_unsigned(x):
    return abs(x), abs(x[0]), x - x


def summed_in_foreign_order(x):
    return np.sum(x), x.sum(axis=0), np.cumsum(x), np.prod(x)


def shifts(x, n):
    return x << n, x >> n


def shifts_of_an_int(x, n):
    return x << n, x >> n, np.int32(5) >> x


def comparisons_of_unsigned(x, y):
    a, b = x[1], y[0]
    low = np.clip(np.full((4,), a, x.dtype), 0, 5) - np.zeros((4, 4), x.dtype)
    return (
        low,
        a // low[3, 1],
        a % low[0, 0],
        max(a, b),
        min(b, low[0, 1]),
        x < y,
        np.maximum(x, y),
        a >= 0,
        a == b,
        x == 5,
    )


PROGRAMS = [
    (leaving_an_unrolled_loop_in_the_second_turn, [(1,), (3,), (5,)]),
    (truth_of_operands_of_different_types, [(0, 2.0), (1, 2.0), (1, 0.5), (0, -1.0), (0, 0.0), (0, math.nan)]),
    (number_as_the_condition_of_a_loop_with_return, [(3, 1), (3, 5), (0, 0)]),
    (functions_inlined_into_branches_of_each_other, [(3, 1.0), (2, 3.0), (0, 3.0)]),
    (printed_numpy_scalars, [(1e16,), (-0.1,), (1e-7,)]),
    *[(arguments_of_exceptions, [(2.5, k)]) for k in range(6)],
    (arguments_of_exceptions, [(np.int32(3), 1), (np.float32(1e16), 4)]),
    (unbound_in_a_comprehension, [(2,), (0,)]),
    (unbound_in_an_inner_function, [(2,), (0,)]),
    (no_rows, [(1.0,)]),
    (functions_named_as_temporaries, [(3, 1.5), (0, 2.0)]),
    (steps_from_zero, [(7,), (0,), (-3,)]),
    (first_turn_of_a_loop_reads_what_only_turns_bind, [(0,), (1,), (4,)]),
    (loops_that_lead_back_to_themselves, [(0, 1.0), (4, 2.0), (5, -1.0)]),
    *[
        (builtin_sum, [(np.array(v, t),)])
        for v in ([], [100, 100], [1] * 20)
        for t in (bool, np.int8, np.int32, np.float32)
    ],
    (builtin_sum, [(np.array([0.1] * 20),), (np.array([-0.0]),), (np.array([[0.1, 1e16], [1.0, -1e16]]),)]),
    (compensated_sum, [(0.1, 0.2, 0.3), (1e16, 1.0, -1e16), (math.inf, 1.0, -math.inf), (-0.0, -0.0, -0.0)]),
    (compensated_sum, [(1e308, 1e308, -1e308), (math.nan, 1.0, 2.0)]),
    (
        true_division,
        [(10, 2**53 + 1), (2**63 - 1, 3), (-(2**63), 2**63 - 1), (1, -(2**63)), (2**54 + 2, 4), (0, 2**60)],
    ),
    (true_division, [(2**53 + 1, 1), (2**54 + 3, 1), (2**62 + 1, 2**61 - 1), (True, 2**53 + 1)]),
    *[
        (containment, [a])
        for a in ((1, 1.0), (np.float64(math.nan), 1), (np.int64(3), 3), (np.float32(1), 2), (np.True_, 1))
    ],
    (numpy_functions_of_bools, [(True,), (False,)]),
    *[(ordering, [a]) for a in ((1.0, 2.0, 1.0, 3.0), (1.0, math.nan, 1.0, 2.0), (2, 2, 2, 2), (3.0, 0, 2, 5.0))],
    (equal_tuples, [(1.0, 2.0), (2.0, 1.0)]),
    *[(integers_of_math, [a]) for a in ((12, -18), (np.int32(12), np.int32(-18)), (np.uint8(12), np.uint8(200)))],
    *[(absolute_of_unsigned, [(np.array([0, 5, 255], t),)]) for t in (np.uint8, np.uint16, np.uint32, np.uint64)],
    *[
        (comparisons_of_unsigned, [(np.array([0, n, np.iinfo(t).max], t), np.array([5, 1, 2], t))])
        for t in (np.uint8, np.uint16, np.uint32, np.uint64)
        for n in (0, 3, np.iinfo(t).max, np.iinfo(t).max // 2 + 1)
    ],
    (summed_in_foreign_order, [(np.arange(4.0).astype(">f8"),), (np.arange(4).astype(">i4"),)]),
    (shifts_of_an_int, [(-3, np.int32(-3)), (7, np.int32(40)), (2, np.int32(1))]),
    *[
        (shifts, [(np.array([0, 1, 5, np.iinfo(t).max, np.iinfo(t).min], t), np.full(5, n, t))])
        for t in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64)
        for n in (0, 7, 8, 33, 64, -1, -8)
        if n >= np.iinfo(t).min
    ],
]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("function, inputs", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_cpython(function, inputs, executor):
    compiled = relay(executor=executor)(function)
    for args in inputs:
        wrong = difference(call(compiled, args, __file__), call(function, args, __file__))
        assert not wrong, f"{args}: {wrong}"


def condition_captured_without_its_operands(a, b):
    differ = (a, b) != (a, a + b)

    def inner(z):
        if differ:
            return z
        return -z

    return inner(a)


def identity_of_bools(a, b):
    match (a, b):
        case (True, False):
            return 1
        case (False, c):
            return a is c, a is not (b is True), True is (a or b)
    return a is b, (a and b) is False


def sizes_in_what_is_shown(x, xs):
    print(f"{np.ones(1)[len(xs) - 2]}|", x, xs)
    return np.ones(3)[len(xs) - 2]


def method_of_a_narrowed_value(n, x):
    chain = Link(1, Link(n, End()))
    other = n if x > 1 else x
    while isinstance(chain, Link):
        if chain.head > 0:
            return chain.second(other)
        chain = chain.tail
    return other


def sizes_beyond_64_bits(xs, k):
    n = len(xs)
    if k == 0:
        return n * 4611686018427387904
    if k == 1:
        return n + 9223372036854775807
    return n * n, 2 * n - 1, np.ones(n * n).size, n * 4611686018427387904 if n < 2 else 0


def numbers_or_nothing(t: Tree, s):
    match t:
        case Node(left, right):
            return numbers_or_nothing(left, s) + numbers_or_nothing(right, s)
        case Leaf(v) if v > 0.0:
            return 1
    return None


def nothing_added(x):
    return numbers_or_nothing(Leaf(x), x)


@pytest.mark.parametrize("k", [0, 1])
def test_sizes_beyond_64_bits(k, executor):
    with pytest.raises(OverflowError):
        relay(executor=executor)(sizes_beyond_64_bits)([1.0, 2.0, 3.0], k)


@pytest.mark.parametrize(
    "function, message", [(lambda n: None + n, "NoneType"), (lambda n: (None if n else 1) + None, "NoneType")]
)
def test_none_is_no_text(function, message):
    with pytest.raises(TypeError, match=message):
        relay(executor="interpreter")(function)(3)


@pytest.mark.parametrize("function, inputs", [
    (sizes_beyond_64_bits, [([1.0, 2.0], 2), ([1.0] * 7, 3)]),
    (nothing_added, [(1.5,), (-1.5,)]),
    (condition_captured_without_its_operands, [(1.5, 2.0), (1, 0)]),
    (identity_of_bools, [(a, b) for a in (True, False) for b in (True, False)]),
    (sizes_in_what_is_shown, [(1.5, [0.5, 7.25]), (1, [1, 2, 3])]),
    (method_of_a_narrowed_value, [(3, 0.5), (4, 2.5)]),
])  # fmt: skip
def test_as_cpython_too(function, inputs, executor):
    test_as_cpython(function, inputs, executor)


def chosen_beside_what_is_not_bound(n, xs, x):
    f = (lambda z: xs, lambda z: z)
    chosen = f[n % 2](x)
    print(f"{chosen} of {n}")
    return n


def extremes_of_nothing(n):
    if n > 3:
        return int("x") + n
    if n > 2:
        return max([])
    nothing = ()
    return n + (min(nothing) if n > 1 else 5)


def test_extremes_of_nothing(executor):
    test_as_cpython(extremes_of_nothing, [(0,), (2,), (3,), (4,)], executor)


@pytest.mark.parametrize("n", [6, 7])
def test_chosen_beside_what_is_not_bound(n, executor):
    test_as_cpython(chosen_beside_what_is_not_bound, [(n, [3.0, 0.5], 2.5)], executor)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_array_beside_a_recursion_that_ends_in_a_branch(executor):
    def f(p):
        if x := 1:

            def g(n, s):
                if x:
                    return n
                return g(n, s)

            y = g(x, p)
        return np.full(1, x + y, np.float64)

    np.testing.assert_array_equal(relay(executor=executor)(f)(np.int64(-1)), f(np.int64(-1)))


def itself(a):
    return a


def either(a, b, c):
    r = itself(b) if c else np.zeros(3)
    return itself(r) if a[0] > 0 else itself(a.copy())


def test_what_may_be_the_callers_is_not_changed_in_place():
    def f(p, q, c):
        v = either(p, q, c)
        v[0] = 5.0
        return v, q

    with pytest.raises(CompileError, match="caller|copy"):
        relay(f)(np.ones(3), np.zeros(3), True)


FUNCTION_OR_LIST = """
def h(a):
    return a + 1

def program(n, xs):
    f = (h, xs)[n % 2]
    return f(n) if n % 2 == 0 else f[n]
"""


def test_function_or_list_chosen_at_run_time():
    verdict = check(FUNCTION_OR_LIST, [(2, [64, 7]), (1, [64, 7]), (3, [64, 7, 1, 5]), (3, [1])], "<function or list>")
    assert verdict.kind == "same", verdict.detail


@pytest.mark.parametrize("size", [3, 40])
def test_an_array_that_is_read_backwards_and_forwards(size):
    """As itself and through a view of it; the result must not take its place."""

    def f(n):
        a = np.zeros((size, 1))
        a[n % 3, -1] += 2.0
        a[::-1] = np.full((size, 2), n, np.float64)[:, ::-2] - a
        return a

    for n in (100, 1, 2):
        np.testing.assert_array_equal(relay(f)(n), f(n))


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_a_sum_in_a_loop_whose_first_turn_always_raises(executor):
    def f(x):
        total = 0.0
        for i in range(2, 9, 2):
            assert i < 2, "late"
            for j in range(i + 1):
                total += x[j - i - 1]
        return total

    with pytest.raises(AssertionError, match="late"):
        relay(f, executor=executor)(np.arange(9.0))


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_an_element_of_an_array_without_elements(executor):
    def f(x, n):
        y = np.zeros(0)
        for i in range(n):
            y[i - 1] = y[0] * x[i]
        return y

    compiled = relay(f, executor=executor)
    assert compiled(np.ones(3), 0).shape == (0,)
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        compiled(np.ones(3), 2)


IN_TURN = """
def r1(n, s):
    if n <= 0:
        return max([(n ^ n) for c in range(2)])
    t = 0
    for q in range(1):
        t = t + r2(n - 1 - q, (np.float32(0.1) + list(np.full((3,), -1, np.float32))[0]).astype(np.float64))
    return n if t > t else -2

def r2(n, s):
    if n <= 0:
        return n
    t = r1(n - 1, np.uint8(200).astype(np.float64) ** 1)
    return (t and ((n ** 3) and n)) * n

def program(x):
    big, three = (x > 3), 3
    def down(n, s):
        if n <= 0 or big:
            return three
        return down(n - 1, s) - (r1(n % 6, np.float64(x)) << (int(big) % 8))
    return down(three % 5, three)
"""


def test_branches_between_functions_that_call_each_other():
    verdict = check(IN_TURN, [(0.1,), (3.0,), (4.0,)], "<in turn>")
    assert verdict.kind == "same", verdict.detail


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int8, np.int64, np.float64])
def test_absolute_values_of_negated_numbers(dtype):
    f, x = (
        relay(lambda x: (abs(np.negative(x)), np.abs(-np.abs(x)))),
        np.array([[0, 1, 7], [100, 127, 3]]).astype(dtype),
    )
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])  # of uint32 NumPy has two answers itself
def test_floats_beyond_32_bits_as_small_integers(dtype):
    def f(x):
        return x.astype(dtype), np.float64(x[0]).astype(dtype), x.astype(np.float32).astype(dtype)

    for x in ([3037000499.97, 1e19, -5.5, 300.0], [5e9, 2.0**31 - 1, 65535.9, 4294967295.0]):
        with np.errstate(invalid="ignore"):
            wanted = f(np.array(x))
        for got, want in zip(relay(f)(np.array(x)), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_what_no_format_takes_is_refused():
    def none_in_a_loop(n):
        for x in [float(k) for k in range(0)]:
            print(f"{x:.3f}")
        return n

    def none(n):
        x = None
        return f"{x:.3f}", n

    def text(n):
        return f"{'a':d}", n

    try:
        assert relay(none_in_a_loop)(3) == 3
    except CompileError as error:
        assert error.loc and "NoneType" in str(error)
    with pytest.raises(TypeError, match="unsupported format string passed to NoneType") as caught:
        relay(none)(3)
    assert "none" in str(caught.value)
    with pytest.raises(ValueError, match="format code 'd'"):
        relay(text)(3)


def test_a_captured_variable_bound_in_a_branch_of_a_branch():
    def f(n, c):
        if c:
            pass
        elif n > 2:
            x = 2.5

            def more():
                nonlocal x
                x = x + 1
                return x

            more()
        return x

    def unbound(n, c):
        if c:
            x = 1.0
        elif n > 2:
            return 0.0
        else:

            def more():
                nonlocal x
                x = x + 1
                return x

            return more()
        return more() if n > 7 else x

    with pytest.raises(CompileError, match="'x' may not be bound here"):  # known to nobody when compiling
        relay(f)(3, False)
    for args in ((3, True), (3, False)):
        assert relay(unbound)(*args) == unbound(*args)
    for args in ((1, False), (9, True)):
        with pytest.raises(NameError) as wanted:
            unbound(*args)
        with pytest.raises(type(wanted.value)) as caught:
            relay(unbound)(*args)
        assert str(caught.value).splitlines()[0] == str(wanted.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("executor", ["native", "python"])
def test_products_are_taken_in_order(executor, dtype):
    """In another order these have an inf * 0 that NumPy's has not."""

    def f(a):
        return (
            np.prod(a),
            np.prod(a, axis=0),
            np.prod(a, axis=1),
            np.prod(a * a.dtype.type(1), axis=(0, 1)),
            a.T.prod(axis=0),
        )

    large = {"float64": 1e300, "float32": 1e30}[dtype]
    small = 1 / large
    for row, times in (
        ([large, small], 40),
        ([0.0, large], 3),
        ([large] * 7 + [small] * 7, 6),
        ([large, 0.1, small, 3.3], 50),
    ):
        for a in (np.array([row] * times, dtype), np.array([row * times], dtype), np.array([row * times] * 3, dtype)):
            with np.errstate(over="ignore", invalid="ignore"):
                want = f(a)
            for x, y in zip(relay(f, executor=executor)(a), want, strict=True):
                assert type(x) is type(y) and np.array_equal(np.isnan(x), np.isnan(y))
                np.testing.assert_allclose(x, y, rtol=1e-5)


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_the_sum_of_a_list_that_has_become_empty(executor):
    """The first entry, asked for its type, was added to the start and its overflow checked, also where there was none."""

    def f(n, start):
        xs = [5]
        for j in range(n):
            xs.append(j)
        for _ in range(n + 1):
            xs.pop()
        return sum(xs, start), sum(xs)

    assert relay(f, executor=executor)(3, 2**63 - 1) == (2**63 - 1, 0)
    assert relay(f, executor=executor)(3, 0.5) == (0.5, 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_arrays_that_turn_out_to_be_empty(executor):
    """The size of an array becomes known to be 0 after its elements were asked for; np.diff and np.take of none."""

    def beyond(a: np.uint8):
        n = int(a) // 256
        s = np.ones(n, np.float64)
        for j in range(n - 1):
            s[j] += 1.0
        return float(s[s.shape[0]])

    def known(n):
        count = 0 * n
        s = np.ones(count)
        return s[0] if n > 5 else 1.0

    def differences(n):
        return np.diff(np.ones(n)), np.diff(np.ones((2, n)) * np.arange(n)), np.diff(np.arange(n) ** 3, n=2)

    def taken(n, count):
        return np.take(np.arange(n), np.arange(count))

    def broadcast(n):
        return np.broadcast_to(np.ones(3), (n, 3))

    def spaced(n):
        return np.linspace(0.0, 1.0, n)

    def repeated(n, count):
        return (
            np.repeat(np.ones(n), count),
            np.repeat(np.ones((n, 2)), count, axis=0),
            np.repeat(np.ones((0, 2)), count, 0),
        )

    cases = [
        (beyond, (np.uint8(1),)),
        *((known, (n,)) for n in (1, 7)),
        *((differences, (n,)) for n in (0, 1, 2, 5)),
        *((taken, sizes) for sizes in ((0, 0), (0, 2), (3, 2), (3, 4))),
        *((broadcast, (n,)) for n in (0, 2, -1)),
        *((spaced, (n,)) for n in (0, 3, -1)),
        *((repeated, sizes) for sizes in ((0, -1), (0, 2), (3, 2), (3, -1))),
    ]
    for f, args in cases:
        try:
            want = f(*args)
        except Exception as error:
            with pytest.raises(type(error)) as found:
                relay(f, executor=executor)(*args)
            assert str(error) in str(found.value)
        else:
            got = relay(f, executor=executor)(*args)
            for x, y in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
                np.testing.assert_array_equal(x, y)
                assert np.asarray(x).dtype == np.asarray(y).dtype


def test_elements_of_an_array_that_turns_out_to_be_empty_have_types():
    """An index into an axis of one element can only be 0, so a size is; each pass must leave a graph that types."""
    text = """
def program(a, x):
    first = np.full((1, 2), x).T[1, int(a)]
    n = int(a) % 4
    s = np.ones(n, np.float64)
    for j in range(n - 1):
        s[j] += x
    if x > 1.0:
        return first, float(s[s.shape[0] - 1])
    return first, float(s[s.shape[0]])
"""
    verdict = check(text, [(np.uint8(1), 2.0), (np.uint8(0), 2.0), (np.uint8(0), 0.5)], "<empty>", thorough=True)
    assert verdict.kind == "same", verdict


def test_what_is_beyond_an_array_of_a_size_that_becomes_known_has_types():
    """The size becomes known, and an element, a part or another shape is not there: each pass must leave a graph that types."""
    for size in (0, 1):
        text = f"""
def program(k, x):
    n = (k & 0) + {size}
    s, pair = np.full(n, x), np.array([x, x])
    if np.array_equal(s, pair) or x > 9.0:
        return s[1], s[1:2] + pair, pair
    if x > 3.0:
        return s[1], s.reshape(2, 1)[0] + s[1], s[:n + 1]
    s = np.append(s, x)
    return s[{size}], np.append(s, 1.0)[1:] - s, s
"""
        verdict = check(text, [(1, 1.5), (0, 4.0), (0, 10.0)], f"<beyond {size}>", thorough=True)
        assert verdict.kind == "same", verdict


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_numpy_functions_of_nothing(executor):
    """NumPy looks for an element's place only where there are elements, and at the sample points first."""
    calls = (
        lambda n: np.partition(np.zeros(n), 1),
        lambda n: np.argpartition(np.zeros((n, 2)), 3, axis=0),
        lambda n: np.interp(0.5, np.zeros(n), np.zeros(2)),
        lambda n: np.cross(np.zeros(n), np.zeros(2)),
    )
    for f in calls:
        want, got = (call(g, (0,), __file__) for g in (f, relay(f, executor=executor)))
        assert difference(got, want) == "", (got, want)


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_printing_an_object_without_fields(executor, capsys):
    """Nothing of the program was in the heap, which shows objects."""

    def f(n):
        end = End()
        if n > 100:
            end = Link(n, end)
        print(n, End() if n > 5 else Link(n, End()), end)
        return n

    for n in (1, 101):
        relay(f, executor=executor)(n)
        got = capsys.readouterr().out
        f(n)
        assert got == capsys.readouterr().out

    def g(n):
        print(n, End())
        return n

    relay(g, executor=executor)(3)
    assert capsys.readouterr().out == "3 End()\n"


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_a_division_by_a_size_that_may_be_0(executor):
    """It was taken for arithmetic of sizes, without a check: the process died."""

    def computed(n):
        s = np.ones(n)
        return (-7) // s.size, 7 % len(s), (2 * s.size) // s.size

    def shapes(x: Tensor[Float64, ("n",)], y: Tensor[Float64, ("m",)]):  # noqa: F821, UP037
        return np.zeros(len(x) // len(y)), (3 * len(x)) // len(x), x.reshape(len(x) // len(y), -1)

    cases = [(computed, (n,)) for n in (0, 2)]
    cases += [(shapes, (np.ones(n), np.ones(m))) for n, m in ((6, 3), (6, 0), (0, 2))]
    for f, args in cases:
        try:
            want = f(*args)
        except ZeroDivisionError as error:
            with pytest.raises(ZeroDivisionError, match=str(error)):
                relay(f, executor=executor)(*args)
        else:
            for x, y in zip(relay(f, executor=executor)(*args), want, strict=True):
                np.testing.assert_array_equal(x, y)
