"""Unions: variables and results that are of one type or another, by what happens at run time, in all executors.

Numbers of different types, arrays and scalars, tuples of different lengths, records of different classes; carried by loops, made
by branches, returned by recursion. A result is what CPython's is, its kind included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import CompileError, GradError, grad, relay, value_and_grad, vmap
from tests.programs.compare import differences

EXECUTORS = ["interpreter", "python", "native"]


def merge(c):
    x = 1 if c else 2.0
    return x


def merge2(c, y):
    x = 1 if c else 2.0
    z = x + y
    return z * 2, x


def merge3(c, y):
    x = 1 if c else 2.0
    return x / y


def loop0(n):
    t = 0
    for _i in range(n):
        t = t / 2
    return t


def loop1(n):
    t = 1
    for i in range(n):
        if i % 2:
            t = t / 2
    return t + 1


def wh(n):
    t = 100
    k = 0
    while k < n:
        t = t / 3
        k += 1
    return t


def tup(c):
    t = (1, 2) if c else (1.5, 2, 3)
    return len(t), t[0], t


def tupsum(c):
    t = (1, 2) if c else (1.5, 2, 3)
    s = 0
    for v in t:
        s += v
    return s


def unpk(c):
    t = (1, 2) if c else (1, 2, 3)
    a, b = t
    return a + b


def arr(c):
    x = np.ones(3) if c else 2.0
    return x * 2


def arr2(c):
    x = np.ones(3) if c else np.ones((2, 3), np.float32)
    y = x + 1
    return y.sum(), y


def ret(c):
    if c > 0:
        return 1
    if c < 0:
        return "neg"
    return None


def isin(c):
    x = 1 if c else 2.5
    if isinstance(x, int):
        return x // 2
    return int(x * 10)


def rec(n):
    if n == 0:
        return 0
    return rec(n - 1) / 2


def rec2(n):
    if n <= 0:
        return None
    r = rec2(n - 1)
    if r is None:
        return 1
    return r * 2.0


def drift(n):
    t = 0

    def add(v):
        nonlocal t
        t = t + v

    for _i in range(n):
        add(0.5)
    return t


def mx(x):
    return max(0.0, x), max(x, 0.0), min(1.5, x)


def mx2(x, n):
    s = 0.0
    for i in range(n):
        s += max(0.0, x - i)
    return s


@dataclass(frozen=True)
class A:
    x: float

    def area(self):
        return self.x * 2


@dataclass(frozen=True)
class B:
    y: int
    z: float

    def area(self):
        return self.y + self.z


def recs(c, v):
    s = A(v) if c else B(3, v)
    return s.area(), s


def recmatch(c, v):
    s = A(v) if c else B(3, v)
    match s:
        case A(x):
            return x
        case B(y, z):
            return y * z


def fstr(c):
    x = 1 if c else 2.5
    raise ValueError(f"x is {x}")


def prt(c):
    x = 1 if c else 2.5
    print("x", x, (x, 1), f"{x!r}")
    return x


def setit(c):
    a = np.zeros(3)
    v = 1 if c else 2.5
    a[1] = v
    a[0] += v
    return a


def ann(c) -> int | float:
    return 1 if c else 2.0


def eqs(c):
    x = 1 if c else 2.0
    return x == 1, (x, 2) == (1, 2), x != 2, x in (1, 5), x < 1.5


def boolop(c, d):
    return c or d, c and d


def cmp(c):
    x = 3 if c else 2.5
    return abs(x), -x, round(x), int(x), float(x), x**2, x % 2, x // 2, bool(x), not x


def npc(c):
    x = 1 if c else 2.5
    return np.sqrt(x), np.array([x, 1.0]), np.maximum(x, 2), np.stack([np.ones(2) * x, np.zeros(2)])


def nested(n):
    s = 0
    for i in range(n):
        t = 0
        for _j in range(i):
            t = t + 0.5
        s = s + t
    return s


def nested2(n, m):
    a = np.zeros(4)
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += a[j] + 1
        a[i] = s
    return a


def swap(n):
    a, b = 1, 2.0
    for _i in range(n):
        a, b = b, a
    return a, b


def cycle3(n):
    a, b, c = 1, 2.0, None
    for _i in range(n):
        a, b, c = b, c, a
    return a, b, c


def idx(i):
    t = (1, 2.5, None)
    return t[i]


def brk(n):
    best = None
    for i in range(n):
        if i > 3:
            best = i * 1.5
            break
        best = i
    return best


def early(n):
    for i in range(n):
        if i == 3:
            return i
        if i == 1 and n > 10:
            return i * 0.5
    return None


def opt(x: float | None, y: float | None = None):
    return 0.0 if x is None else x if y is None else x + y


def pw(n):
    x = 2 if n > 0 else 2.5
    return x**3, x << 1 if isinstance(x, int) else 0


def shift(c):
    x = 1 if c else 2.5
    return x << 1


def comp(c):
    x = 1 if c else 2.5
    return [x * i for i in range(3)], {"a": x}, sum([x, 1, 2]), sum(i * x for i in range(3))


def closure(c, v):
    x = 1 if c else 2.5
    return (lambda y: y + x)(v)


def zero(c, d):
    x = 1.0 if c else np.float64(1.0)
    return x / d


def recloop(n):
    best = -1

    def go(k):
        nonlocal best
        for i in range(k):
            if i > best:
                best = i
            go(i)

    go(n)
    return best


def raise_only(n):
    if n == 0:
        raise ValueError("end")
    return raise_only(n - 1)


def raise_then(n):
    if n < 0:
        raise ValueError("neg")
    for i in range(n):
        raise_then(i)
    return n


def forbase(n):
    for _i in range(n):
        return forbase(n - 1) + 1
    return 0


def forsum(n):
    s = 1
    for i in range(n):
        s += forsum(i)
    return s


def whilebase(n):
    s = 0
    while n > 0:
        n -= 1
        s += whilebase(n) + 1
    return s


def asserts(n):
    assert n > 0, "gone"
    return asserts(n - 1)


def mutual_a(n):
    if n == 0:
        return 0
    return mutual_b(n - 1) * 0.5


def mutual_b(n):
    if n == 0:
        return 1
    return mutual_a(n - 1) + 1


def ack(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ack(m - 1, 1)
    return ack(m - 1, ack(m, n - 1))


def hang(n):
    if n == 0:
        return None
    r = hang(n - 1)
    return 1 if r is None else (2.5 if isinstance(r, int) else "s")


def depth(n):
    return 0 if n == 0 else 1 + max([depth(i) for i in (n - 1, n // 2)])


def compr(n):
    return sum([compr(n - 1) for _ in range(2)]) if n > 0 else 1


def optret(n):
    if n > 3:
        return optret(n - 1)
    if n == 3:
        return 3
    if n == 2:
        return 2.5
    return None


CASES = [
    (merge, (True,)),
    (merge, (False,)),
    (merge2, (True, 3)),
    (merge2, (False, 3)),
    (merge3, (True, 3)),
    (merge3, (False, 0)),
    (loop0, (0,)),
    (loop0, (3,)),
    (loop1, (0,)),
    (loop1, (1,)),
    (loop1, (4,)),
    (wh, (0,)),
    (wh, (4,)),
    (tup, (True,)),
    (tup, (False,)),
    (tupsum, (True,)),
    (tupsum, (False,)),
    (unpk, (True,)),
    (unpk, (False,)),
    (arr, (True,)),
    (arr, (False,)),
    (arr2, (True,)),
    (arr2, (False,)),
    (ret, (1,)),
    (ret, (-1,)),
    (ret, (0,)),
    (isin, (True,)),
    (isin, (False,)),
    (rec, (0,)),
    (rec, (3,)),
    (rec2, (0,)),
    (rec2, (1,)),
    (rec2, (4,)),
    (drift, (0,)),
    (drift, (3,)),
    (mx, (np.float64(2.0),)),
    (mx, (np.float64(-2.0),)),
    (mx2, (np.float64(2.0), 3)),
    (recs, (True, 1.5)),
    (recs, (False, 1.5)),
    (recmatch, (True, 1.5)),
    (recmatch, (False, 1.5)),
    (fstr, (True,)),
    (fstr, (False,)),
    (prt, (True,)),
    (prt, (False,)),
    (setit, (True,)),
    (setit, (False,)),
    (ann, (True,)),
    (ann, (False,)),
    (eqs, (True,)),
    (eqs, (False,)),
    (boolop, (0, 2.5)),
    (boolop, (3, 2.5)),
    (cmp, (True,)),
    (cmp, (False,)),
    (npc, (True,)),
    (npc, (False,)),
    (nested, (0,)),
    (nested, (1,)),
    (nested, (4,)),
    (nested2, (3, 3)),
    (nested2, (3, 0)),
    (swap, (0,)),
    (swap, (1,)),
    (swap, (2,)),
    (cycle3, (0,)),
    (cycle3, (1,)),
    (cycle3, (2,)),
    (idx, (0,)),
    (idx, (1,)),
    (idx, (2,)),
    (idx, (-1,)),
    (brk, (0,)),
    (brk, (2,)),
    (brk, (7,)),
    (early, (0,)),
    (early, (5,)),
    (early, (12,)),
    (opt, (None,)),
    (opt, (1.0,)),
    (opt, (1.0, 2.0)),
    (pw, (1,)),
    (pw, (-1,)),
    (shift, (True,)),
    (shift, (False,)),
    (comp, (True,)),
    (comp, (False,)),
    (closure, (True, 2)),
    (closure, (False, 2)),
    (zero, (True, 0)),
    (zero, (False, 0)),
    (zero, (True, 2)),
    (recloop, (4,)),
    (raise_only, (3,)),
    (raise_then, (3,)),
    (raise_then, (-3,)),
    (forbase, (3,)),
    (forsum, (4,)),
    (whilebase, (4,)),
    (asserts, (3,)),
    (mutual_a, (3,)),
    (mutual_a, (4,)),
    (mutual_b, (4,)),
    (mutual_a, (0,)),
    (ack, (2, 3)),
    (hang, (0,)),
    (hang, (1,)),
    (hang, (2,)),
    (hang, (3,)),
    (depth, (5,)),
    (compr, (4,)),
    (optret, (6,)),
    (optret, (2,)),
    (optret, (1,)),
]


@pytest.mark.sampled(14)
@np.errstate(all="ignore")
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_as_python(function, args, executor, capsys):
    compiled = relay(executor=executor)(function)
    try:
        want = function(*args)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            compiled(*args)
        assert not isinstance(caught.value, CompileError)
        assert isinstance(error, TypeError | AssertionError) or str(error) in str(caught.value)
        return
    printed = capsys.readouterr().out
    assert differences(compiled(*args), want) == []
    assert capsys.readouterr().out == printed


def relu(x):
    return max(0.0, x)


def square_or_zero(x):
    return 0 if x < 0 else x * x


def lengths(x):
    t = (x,) if x < 0 else (x, x * 3)
    s = 0.0
    for v in t:
        s += v * v
    return s


def some_iterations(x, n):
    s = 0.0
    for i in range(n):
        s += x ** (i + 1)
    return s


GRADIENTS = [
    (relu, (2.0,), 1.0),
    (relu, (np.float64(2.0),), 1.0),
    (relu, (np.float64(-2.0),), 0.0),
    (square_or_zero, (3.0,), 6.0),
    (square_or_zero, (-3.0,), 0.0),
    (square_or_zero, (np.float32(3.0),), 6.0),
    (lengths, (-2.0,), -4.0),
    (lengths, (2.0,), 40.0),
    (some_iterations, (np.float64(2.0), 0), 0.0),
    (some_iterations, (np.float64(2.0), 3), 1.0 + 4.0 + 12.0),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "args", "want"), GRADIENTS, ids=lambda v: getattr(v, "__name__", None))
def test_derivatives_go_through_unions(function, args, want, executor):
    value, gradient = relay(executor=executor)(lambda *args: value_and_grad(function)(*args))(*args)
    assert gradient == pytest.approx(want) and type(gradient) is type(args[0])
    assert value == pytest.approx(float(function(*args)))


def test_a_batch_is_of_one_type():
    xs = np.array([2.0, -2.0])
    assert np.array_equal(relay(lambda xs: vmap(square_or_zero)(xs))(xs), [4.0, 0.0])
    with pytest.raises(GradError, match="make the results alike"):
        relay(lambda xs: vmap(lambda x: (x,) if x > 0 else (x, x))(xs))(xs)


def test_the_largest_is_the_operand_itself():
    for executor in EXECUTORS:
        largest = relay(executor=executor)(lambda a, b: max(a, b))
        for a, b in (
            (1.0, np.float64(2.0)),
            (3.0, np.float64(2.0)),
            (2, 2.0),
            (2.0, 2),
            (np.float32(1), 1.0),
            (True, 1),
        ):
            assert differences(largest(a, b), max(a, b)) == []


def grow_result(n):
    if n == 0:
        return ()
    return (n, grow_result(n - 1))


def grow_argument(n, t):
    if n == 0:
        return n
    return grow_argument(n - 1, (t, t))


def grow_in_a_loop(n):
    t = ()
    while n > 0:
        t = (t, n)
        n -= 1
    return t


def never_returns(n):
    return never_returns(n - 1) + 1


def many_types(k):
    t = (1, 2.0, None, "a", (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 5))
    return t[k]


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (grow_result, (3,), "grow_result grow without bound"),
        (grow_argument, (3, 1), "grow_argument grow without bound"),
        (grow_in_a_loop, (3,), "'t' changes its type in the loop"),
        (never_returns, (3,), "no base case"),
        (many_types, (3,), "one type"),
    ],
)
def test_types_without_bound_are_told_soon(function, args, message):
    with pytest.raises(CompileError, match=message) as caught:
        relay(executor="interpreter")(function)(*args)
    assert caught.value.loc is not None
    assert len(str(caught.value)) < 2000


def of_the_caller(a, c):
    x = a if c else 0.0
    x += 1.0
    return a.sum()


def of_a_local(a, c):
    b = np.ones(3)
    x = b if c else 0.0
    x += 1.0
    return b, a


def returned_to_us(a, c):
    b = np.ones(3)
    x = (lambda z: z)(b if c else 1.0)
    x += 1.0
    return b, a


def list_returned_to_us(a, c):
    b = [1.0]
    x = (lambda z: z)(b) if c else (2.0,)
    x[0] = 3.0
    return b, a


def list_in_a_branch(a, c):
    b = [1.0]
    x = (lambda z: z)(b) if c else None
    if x is not None:
        x.append(3.0)
    return b, a


@pytest.mark.parametrize("function", [of_the_caller, of_a_local, returned_to_us, list_returned_to_us, list_in_a_branch])
def test_an_array_that_others_see_is_not_changed_as_an_option(function):
    with pytest.raises(CompileError, match="in place"):
        relay(executor="interpreter")(function)(np.ones(3), True)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_array_of_its_own_is_changed_as_an_option(executor):
    def own(a, c):
        x = a.copy() if c else 2.0
        x += 1.0
        return x

    for c in (True, False):
        assert differences(relay(executor=executor)(own)(np.ones(3), c), own(np.ones(3), c)) == []


def product_of_larger(x):
    s = 1.0
    for i in range(len(x)):
        s *= max(x[i], 0.5)
    return s


def hinge(x):
    s = 0.0
    for i in range(len(x)):
        s += max(0.0, 1.0 - x[i])
    return s


def squares_of_positives(x):
    s = 0.0
    for i in range(len(x)):
        d = x[i] if x[i] > 0 else 0.0
        s += d * d
    return s


def larger_pair(x):
    s = 0.0
    t = 0.0
    for i in range(len(x)):
        s = max(s, x[i])
        if s > t:
            t = s + t
        if t == s:
            t -= 0.25
    return s, t


def operators_of_two(x):
    a, b = max(x[0], 0.5), min(0.25, x[1])
    return (
        -a,
        +a,
        abs(b),
        a + b,
        a - b,
        a * b,
        a < b,
        a >= b,
        a == a,
        a + 1,
        2 * a,
        a > 0,
        a / b if b else b,
        not b,
        b and 5,
    )


def quotient_of_two(x):
    return max(x[0], 0.5) / max(x[1], 0.0)


def known_on_one_side(x):
    a, b, c = x[0], 1.0, True
    for i in range(len(x)):
        c -= min(c, a) * (c if i else b)
        a = c
    return a, c


WHOSE = [
    known_on_one_side,
    product_of_larger,
    hinge,
    squares_of_positives,
    larger_pair,
    operators_of_two,
    quotient_of_two,
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", WHOSE)
def test_arithmetic_on_what_may_be_pythons_or_numpys(function, executor):
    """Whose number the result is depends on whose the operands are at run time."""
    compiled = relay(executor=executor)(function)
    for x in ([-1.0, -3.0, 0.0], [1.0, 3.0, 2.0], [-0.5, 0.5, 0.25]):
        x = np.array(x)
        try:
            want = function(x)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                compiled(x)
            continue
        assert not differences(compiled(x), want)


def test_such_arithmetic_computes_its_number_once():
    """A loop carries one number and one bit, and its body has no branch."""
    for function in (hinge, squares_of_positives):
        (_, text) = relay(function).source(np.ones(3000)).split("    for ")
        assert "        if " not in text and "s_0, s_1 = " in text, text
    np.testing.assert_array_equal(relay(grad(squares_of_positives))(np.array([-1.0, 2.0, 0.5])), [0.0, 4.0, 1.0])
    np.testing.assert_array_equal(vmap(hinge)(np.array([[2.0, 2.0], [0.0, 3.0]])), [0.0, 1.0])
