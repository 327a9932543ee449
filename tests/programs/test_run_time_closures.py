"""Functions of which only a run knows how many there are: made in recursions and loops, in lists, as continuations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import AttributeError_, Float64, Tensor, TypeError_, grad, jvp, relay, vmap
from myia_relay.backend.tvm.host import lower
from tests.slopes import slopes

from .test_functions_as_values import chain

Vector = Tensor[Float64, ("n",)]


def composed(x, n):
    def compose(h, k):
        return h if k == 0 else compose(lambda y: h(h(y)), k - 1)

    return compose(lambda y: y * 0.5 + 1.0, n)(x)


def tower(x, n):
    """Each function captures a number and the one before."""

    def make(k):
        if k == 0:
            return lambda y: y
        g, v = make(k - 1), x * k
        return lambda y: math.sin(g(y)) * v + v

    return make(n)(0.3)


def taking_turns(x, n):
    def even(k):
        if k == 0:
            return lambda y: y * x
        g = odd(k - 1)
        return lambda y: g(y) + k

    def odd(k):
        if k == 0:
            return lambda y: y + x
        g = even(k - 1)
        return lambda y: g(y) * k

    return even(n)(3.0)


def wrapped_in_a_loop(x, n):
    f = lambda y: y  # noqa: E731
    for i in range(n):
        f = (lambda y, f=f, i=i: f(y) * x + i) if i % 2 == 0 else (lambda y, f=f: f(y) - x)
    return f(1.5)


def listed(x, n):
    fs = []
    for i in range(n):
        if i % 3 == 0:
            fs.append(lambda y, i=i: y * x + i)
        elif i % 3 == 1:
            fs.append(math.sin)
        else:
            fs.append(abs)
    total = 0.0
    for f in fs:
        total = total * 0.5 + f(x)
    return total


def with_continuations(x, n):
    """The continuations of Fibonacci's numbers capture continuations."""

    def go(k, then):
        if k < 2:
            return then(x + k)
        return go(k - 1, lambda a: go(k - 2, lambda b: then(a + b * x)))

    return go(n, lambda r: r * r)


def stream(x, n):
    def powers(p):
        return lambda: (p, powers(p * x))

    s = powers(1.0)
    total = 0.0
    for _ in range(n):
        value, s = s()
        total += value
    return total


def numeral(x, n):
    """A Church numeral."""
    c = lambda f: lambda y: y  # noqa: E731
    for _ in range(n):
        c = (lambda m: lambda f: lambda y: f(m(f)(y)))(c)
    return c(lambda y: y * x)(1.0)


@pytest.mark.parametrize(
    "f", [composed, tower, taking_turns, wrapped_in_a_loop, listed, with_continuations, stream, numeral]
)
@pytest.mark.sampled(8)
def test_values_and_slopes(f, executor):
    compiled = relay(executor=executor)(f)
    for n in (0, 1, 5):
        got, want = compiled(0.7, n), f(0.7, n)
        assert type(got) is type(want) and got == pytest.approx(want, rel=1e-14)
    want = slopes(lambda v: f(float(v[0]), 5), np.array([0.7]), 1e-6)[0]
    assert grad(compiled)(0.7, 5) == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.sampled(3)
def test_other_derivatives_and_batches(executor):
    @relay(executor=executor)
    def everything(x, n, xs):
        def f(y):
            return wrapped_in_a_loop(y, n)

        return grad(grad(f))(x), jvp(f, (x,), (1.0,)), vmap(f)(xs), vmap(grad(f))(xs)

    def exact(x):  # the polynomial that three functions make
        return (1.5 * x - x) * x + 2, 3 * x - 2 * x, 1.0

    second, (value, slope), values, slopes_of = everything(0.7, 3, np.array([0.7, 0.2]))
    assert (value, slope, second) == pytest.approx(exact(0.7))
    assert values == pytest.approx([exact(0.7)[0], exact(0.2)[0]])
    assert slopes_of == pytest.approx([exact(0.7)[1], exact(0.2)[1]])


def transformed(x, n):
    fs = [lambda y, i=i: y * y * i * x for i in range(n)]
    total = 0.0
    for f in fs:
        total += grad(f)(3.0) + jvp(f, (3.0,), (1.0,))[1]
    return total + np.sum(vmap(fs[1])(np.array([1.0, 2.0])))


def test_transforms_of_one_of_them(executor):
    f = relay(executor=executor)(transformed)
    assert f(0.5, 3) == pytest.approx(2 * 9.0 + 2.5) and grad(f)(0.5, 3) == pytest.approx(2 * 18.0 + 5.0)


def captured_arrays(w, n):
    def make(k):
        if k == 0:
            return lambda y: y
        g, v = make(k - 1), w * k
        return lambda y: g(y) * v + v

    return np.sum(make(n)(np.ones(2)))


@pytest.mark.sampled(3)
def test_captured_arrays(executor):
    f, w = relay(executor=executor)(captured_arrays), np.array([0.7, 0.2])
    assert f(w, 3) == pytest.approx(captured_arrays(w, 3))
    assert grad(f)(w, 3) == pytest.approx(slopes(lambda v: captured_arrays(v, 3), w, 1e-6), rel=1e-6)


def captured_arrays_of_any_size(x: Vector, k):
    def make(m):
        if m == 0:
            return lambda y: y
        g = make(m - 1)
        return lambda y: g(y) * x + y

    return np.sum(make(k)(x))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_captured_arrays_of_any_size(executor):
    f = relay(executor=executor)(captured_arrays_of_any_size)
    for n in (2, 3):
        x = np.arange(n) + 0.5
        assert f(x, 3) == pytest.approx(captured_arrays_of_any_size(x, 3))
        assert grad(f)(x, 3) == pytest.approx(slopes(lambda v: captured_arrays_of_any_size(v, 3), x, 1e-6), rel=1e-6)


def backtracking(n, want):
    """How many of the numbers below n make a sum: what to do next, on success and on failure, are functions."""

    def search(k, total, found, failed):
        if total == want:
            return found(k)
        if k == n or total > want:
            return failed()
        return search(k + 1, total + k, found, lambda: search(k + 1, total, found, failed))

    return search(0, 0, lambda k: k, lambda: -1)


def states(n):
    def even(k):
        return True, odd

    def odd(k):
        return k > 3, even

    state, seen = even, False
    for k in range(n):
        seen, state = state(k)
    return seen


def arguments(n):
    fs = [lambda y, i=i, s=2: y * s + i for i in range(n)]
    return fs[1](3, s=5) + fs[2](s=1, y=4) + fs[0](2)


def perhaps_none(n):
    f = None
    for _ in range(n):
        f = (lambda y: y + 1) if f is None else (lambda y, f=f: f(y) * 2)
    return f(1) if f is not None else 0


def handled_lists(n):
    pairs = sorted([(3 - i, lambda y, i=i: y + i) for i in range(n)], key=lambda p: p[0])
    fs, total = [f for _, f in pairs], 0
    while fs:
        total = total * 10 + fs.pop()(1)
    return total


@pytest.mark.parametrize("f, inputs", [
    (backtracking, [(6, 7), (6, 100)]), (states, [(0,), (4,), (5,)]), (arguments, [(3,)]), (perhaps_none, [(0,), (1,), (4,)]),
    (handled_lists, [(3,)]),
])  # fmt: skip
@pytest.mark.sampled(2)
def test_control(f, inputs, executor):
    compiled = relay(executor=executor)(f)
    for args in inputs:
        assert compiled(*args) == f(*args)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("links", [6, 12, 20])
def test_the_code_of_a_chain_grows_with_its_length(links, monkeypatch):
    """A call of a function that is made at run time is emitted once for its family, not for each way to get there."""
    emitted = []
    rule = lower.RULES["cond"]
    monkeypatch.setitem(lower.RULES, "cond", lambda walk, node: (emitted.append(node), rule(walk, node)))
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")
    f = chain(links)
    compiled = relay(f)
    for x in (-1.0, 2.5, 30.0):
        assert compiled(x) == f(x)
    assert 0 < len(emitted) <= 130


# What is refused: never another answer than CPython's.


def list_of_functions(n):
    return [lambda y, i=i: y + i for i in range(n)]


def returned(n):
    return list_of_functions(n)[0]


def the_same(n):
    fs = list_of_functions(n)
    return fs[0] is fs[1]


def equal(n):
    fs = list_of_functions(n)
    return fs[0] == fs[0]


def contained(n):
    fs = list_of_functions(n)
    return fs[0] in fs


def named(n):
    return list_of_functions(n)[0].__name__


def shown(n):
    print(list_of_functions(n)[0])


def of_which_class(n):
    return isinstance(list_of_functions(n)[0], int)


def bound_late(n):
    fs = []
    for i in range(n):
        fs.append(lambda y: y + i)  # noqa: B023
    return fs[0](1)


def bound_again(n):
    y, fs = 1, []
    for _ in range(n):
        fs.append(lambda x: x + y)
    y = 2
    return fs[0](1)


def counting(n):
    total = 0

    def make(k):
        def count():
            nonlocal total
            total += k

        return count

    for f in [make(i) for i in range(n)]:
        f()
    return total


def changed_behind_it(n):
    def make(a, k):
        if k == 0:
            return lambda: a[0]
        g = make(a, k - 1)
        return lambda: g()

    a = np.zeros(3)
    f = make(a, n)
    a += 1.0
    return f()


def changed_result(n):
    fs = []
    for i in range(n):
        a = np.zeros(3) + i
        fs.append(lambda a=a: a)
    b = fs[1]()
    b[0] = 100.0
    return fs[1]()[0]


def with_an_array_of_a_computed_size(n):
    y = np.arange(n) * 0.5
    fs = [lambda v, i=i: v + np.sum(y) * i for i in range(n)]
    return fs[1](1.0)


def with_a_list(n):
    fs = []
    for _ in range(n):
        fs.append(lambda xs=[1, 2]: xs[0])
    return fs[0]()


def arrays_of_two_sizes(n):
    def make(f, a):
        return lambda: f() + np.sum(a)

    f = make(lambda: 0.0, np.ones(2))
    for _ in range(n):
        f = make(f, np.ones(3))
    return f()


def at_two_types(n):
    c = lambda f: lambda y: y  # noqa: E731
    for _ in range(n):
        c = (lambda m: lambda f: lambda y: f(m(f)(y)))(c)
    return c(lambda k: k + 1)(0) + len(c(lambda k: (*k, 1))(()))


@pytest.mark.parametrize("f, error, message", [
    (returned, TypeError_, "cannot be returned to Python"), (the_same, TypeError_, "are one object"),
    (equal, TypeError_, "are one object"), (contained, TypeError_, "are one object"),
    (named, AttributeError_, "has no attribute '__name__'"), (shown, TypeError_, "has no text"),
    (of_which_class, TypeError_, "the class of a function"), (bound_late, TypeError_, "'i', which it uses, is assigned again"),
    (bound_again, TypeError_, "'y', which it uses, is assigned again"),
    (counting, TypeError_, "'total', which it uses, is assigned again"),
    (changed_behind_it, TypeError_, "'f' may be, or hold, the same object as 'a'"),
    (changed_result, TypeError_, "would change that too"), (with_a_list, TypeError_, "which is a list"),
    (with_an_array_of_a_computed_size, TypeError_, "captures 'y', which is an array"),
    (arrays_of_two_sizes, TypeError_, "what it captures has one type: 'a' is"), (at_two_types, TypeError_, "have one type"),
])  # fmt: skip
def test_refused(f, error, message):
    with pytest.raises(error, match=message) as caught:
        relay(executor="interpreter")(f)(3)
    assert caught.value.loc is not None


LISTS = "type List[A] { Cons(A, List[A]), Nil }\n"
IN_A_LIST = (
    LISTS
    + """
def @adders(%n: int32) -> List[fn (int32) -> int32] {
  if (%n == 0) { Nil } else { Cons(fn (%x: int32) -> int32 { %x + %n }, @adders(%n - 1)) }
}
def @apply(%l: List[fn (int32) -> int32], %x: int32) -> int32 { match (%l) { Nil => %x, Cons(%f, %r) => @apply(%r, %f(%x) * 2) } }
def @main(%n: int32) -> int32 { @apply(@adders(%n), 1) }"""
)
IN_A_FIELD = """type Box { Box(fn (int32) -> int32) }
def @go(%n: int32, %b: Box) -> Box {
  if (%n == 0) { %b } else { match (%b) { Box(%f) => @go(%n - 1, Box(fn (%x: int32) -> int32 { %f(%x) * 2 + %n })) } }
}
def @main(%n: int32) -> int32 { match (@go(%n, Box(fn (%x: int32) -> int32 { %x }))) { Box(%f) => %f(1) } }"""
STREAM = """type Stream { Step(int32, fn () -> Stream) }
def @from(%n: int32) -> Stream { Step(%n, fn () -> Stream { @from(%n + 1) }) }
def @sum(%s: Stream, %k: int32) -> int32 {
  match (%s) { Step(%v, %next) => if (%k == 0) { %v } else { %v + @sum(%next(), %k - 1) } }
}
def @main(%n: int32) -> int32 { @sum(@from(3), %n) }"""
IN_REFERENCES = (
    LISTS
    + """
def @refs(%n: int32) -> List[ref(fn (int32) -> int32)] {
  if (%n == 0) { Nil } else { Cons(ref(fn (%x: int32) -> int32 { %x + %n }), @refs(%n - 1)) }
}
def @twice(%l: List[ref(fn (int32) -> int32)]) -> () {
  match (%l) { Nil => (), Cons(%r, %t) => { let %f = !%r; %r := fn (%x: int32) -> int32 { %f(%f(%x)) }; @twice(%t) } }
}
def @apply(%l: List[ref(fn (int32) -> int32)], %x: int32) -> int32 {
  match (%l) { Nil => %x, Cons(%r, %t) => @apply(%t, (!%r)(%x)) }
}
def @main(%n: int32) -> int32 { let %l = @refs(%n); @twice(%l); @twice(%l); @apply(%l, 100) }"""
)
CAPTURED_REFERENCE = (
    LISTS
    + """
def @counters(%n: int32, %r: ref(int32)) -> List[fn () -> int32] {
  if (%n == 0) { Nil } else { Cons(fn () -> int32 { %r := !%r + %n; !%r }, @counters(%n - 1, %r)) }
}
def @main(%n: int32) -> int32 { match (@counters(%n, ref(0))) { Nil => 0, Cons(%f, %t) => %f() } }"""
)


@pytest.mark.parametrize("text, want", [(IN_A_LIST, 42), (IN_A_FIELD, 25), (STREAM, 18), (IN_REFERENCES, 124)])
def test_text(text, want, executor):
    assert relay.parse_text(text).with_executor(executor)["main"](3) == want


def test_a_captured_reference_is_refused():
    with pytest.raises(TypeError_, match="captures a reference"):
        relay.parse_text(CAPTURED_REFERENCE).with_executor("interpreter")["main"](3)
