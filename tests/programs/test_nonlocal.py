"""`nonlocal`: inner functions that assign to variables of the function around them, in all executors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay
from tests.programs.compare import differences

EXECUTORS = ["interpreter", "python", "native"]


class P(NamedTuple):
    get: object
    inc: object


def count_three(start):
    count = start

    def bump():
        nonlocal count
        count += 1

    bump()
    bump()
    bump()
    return count


def in_loop(n):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    for i in range(n):
        add(i)
        if i % 2 == 0:
            add(10)
    return total


def in_while(n):
    c = 0

    def nxt():
        nonlocal c
        c += 1
        return c

    s = 0.0
    while nxt() < n:
        s += c * 0.5
    return s, c


def recursive(n):
    total = 0

    def visit(k):
        nonlocal total
        total += k
        if k > 0:
            visit(k - 1)
            visit(k - 2)

    visit(n)
    return total


def higher(n):
    total = 0.5

    def add(k):
        nonlocal total
        total = total + k * 2

    def each(f, m):
        for i in range(m):
            f(i)

    each(add, n)
    each(lambda k: add(k + 1), n)
    return total


def counter(n):
    def make():
        count = 0

        def bump():
            nonlocal count
            count += 1
            return count

        return bump

    a, b = make(), make()
    a()
    a()
    for _ in range(n):
        b()
    return a(), b()


def pair(n):
    def make(x):
        def get():
            return x

        def set_(v):
            nonlocal x
            x = v

        return get, set_

    get, set_ = make(n)
    set_(get() + 5)
    return get()


def conditional(x, c):
    v = x

    def setv(y):
        nonlocal v
        v = y

    if c > 0:
        setv(x * 2)
    elif c < 0:
        setv(x * 3)
        return v
    return v + 1


def chosen(x, c):
    a = b = 0.0

    def fa(k):
        nonlocal a
        a += k

    def fb(k):
        nonlocal b
        b -= k

    f = fa if c else fb
    f(x)
    f(x)
    return a, b


def deep(x):
    y = x

    def f():
        def g():
            nonlocal y
            y = y * 2

        g()
        g()

    f()
    return y


def evenodd(n):
    calls = 0

    def even(k):
        nonlocal calls
        calls += 1
        return True if k == 0 else odd(k - 1)

    def odd(k):
        nonlocal calls
        calls += 1
        return False if k == 0 else even(k - 1)

    r = even(n)
    return r, calls


def param(n):
    def dec():
        nonlocal n
        n -= 1

    while n > 3:
        dec()
    return n


def lateread(n):
    x = n

    def show():
        return x * 10

    def up():
        nonlocal x
        x += 1

    up()
    return show()


def unbound2(n):
    def getx():
        return x

    def setx():
        nonlocal x
        x = n

    if n > 0:
        return getx()
    x = 3
    return x


def arr(n):
    acc = np.zeros(3)

    def add(v):
        nonlocal acc
        acc = acc + v

    for i in range(n):
        add(np.ones(3) * i)
    return acc


def fact(n):
    r = 1

    def go(k):
        nonlocal r
        if k == 0:
            return
        r *= k
        go(k - 1)

    go(n)
    return r


def unrolled(n):
    t = 0

    def add(v):
        nonlocal t
        t = t + v

    for v in (1, 2.5, n):
        add(v)
    return t


def boolcall(n):
    t = 0

    def hit():
        nonlocal t
        t += 1
        return t > 2

    a = hit() or hit() or hit() or hit()
    b = [hit() for _ in range(2)]
    return a, b, t


def selfref(n):
    t = 0

    def f(k):
        nonlocal t

        def g(j):
            nonlocal t
            t += j
            return t

        if k == 0:
            return 0
        return g(k) + f(k - 1)

    return f(n), t


def in_record(n):
    c = 0

    def get():
        return c

    def inc():
        nonlocal c
        c += n

    p = P(get, inc)
    p.inc()
    p.inc()
    return p.get()


def gradf(x):
    def inner(y):
        t = 0.0

        def add(v):
            nonlocal t
            t = t + v * v

        for i in range(3):
            add(y * i)
        return t

    return grad(inner)(x)


def cell_function(n):
    def f(x):
        return x + 1

    def change():
        nonlocal f

        def f(x):
            return x * 10

    if n > 2:
        change()
    return f(n)


def nested_loop(n):
    t = 0
    s = 0.0

    def add():
        nonlocal t, s
        t += 1
        s = s + t

    for i in range(n):
        for _ in range(i):
            add()
            if t > 5:
                break
        else:
            add()
        while t % 3:
            add()
    return t, s


def rec_own(n):
    c = 0

    def inc():
        nonlocal c
        c += 1

    inc()
    if n > 0:
        c += rec_own(n - 1)
    inc()
    return c


def rec_pass(n):
    c = 0

    def inc(k):
        nonlocal c
        c += k

    def go(k, f):
        if k == 0:
            return
        f(k)
        go(k - 1, f)

    go(n, inc)
    return c


def early(n):
    c = 0

    def step():
        nonlocal c
        c += 1
        if c > 3:
            return True
        return False

    for i in range(n):
        if step():
            return c, i
    return c, -1


def branch_made(n):
    def make(k):
        c = k

        def inc():
            nonlocal c
            c += 1
            return c

        return inc

    if n > 2:
        f = make(10)
    else:
        f = make(20)
    f()
    return f()


def dec_twice(n):
    c = 0

    def count(f):
        def g(x):
            nonlocal c
            c += 1
            return f(x)

        return g

    @count
    def sq(x):
        return x * x

    return sq(n) + sq(n + 1), c


def for_target(n):
    i = -1

    def show():
        return i

    def bump():
        nonlocal i
        i += 100

    out = 0
    for i in range(n):  # noqa: B007
        out += show()
        bump()
        out += show()
    return out, i


def walrus(n):
    y = 0

    def clear():
        nonlocal y
        y = 0

    if (y := n * 2) > 4:
        clear()
    return y


def matchcap(n):
    a = 0

    def up():
        nonlocal a
        a += 1

    match (n, 2):
        case (a, 2):
            up()
    return a


def raising(n):
    c = 0

    def inc():
        nonlocal c
        c += 1
        if c > n:
            raise ValueError(f"too many {c}")

    inc()
    inc()
    inc()
    return c


def ternary(n):
    c = 0

    def inc():
        nonlocal c
        c += 1
        return c

    a = inc() if n > 1 else -inc()
    b = n > 5 and inc() > 1
    return a, b, c


def strs(n):
    mode = "a"

    def sw():
        nonlocal mode
        mode = "b"

    r = 1 if mode == "a" else 2
    sw()
    return r, 1 if mode == "a" else 2


def none_then(n):
    best = None

    def see(x):
        nonlocal best
        if best is None or x > best:
            best = x

    for i in range(n):
        see((i * 7) % 5)
    return best


def two_depth(n):
    x = 1

    def outer():
        def inner():
            nonlocal x
            x = x * 2 + 1

        for _ in range(n):
            inner()

    outer()
    return x


def shadow(n):
    x = 1

    def f():
        x = 5

        def g():
            nonlocal x
            x += 1

        g()
        return x

    return f(), x


CASES = [
    (count_three, (0,)),
    (in_loop, (7,)),
    (in_loop, (0,)),
    (in_while, (5,)),
    (recursive, (6,)),
    (higher, (4,)),
    (counter, (3,)),
    (pair, (2,)),
    (conditional, (2.0, 1)),
    (conditional, (2.0, -1)),
    (conditional, (2.0, 0)),
    (chosen, (2.5, True)),
    (chosen, (2.5, False)),
    (deep, (1.5,)),
    (evenodd, (5,)),
    (param, (9,)),
    (lateread, (3,)),
    (unbound2, (3,)),
    (unbound2, (-3,)),
    (arr, (3,)),
    (fact, (6,)),
    (unrolled, (3,)),
    (boolcall, (3,)),
    (selfref, (4,)),
    (in_record, (2,)),
    (gradf, (2.0,)),
    (cell_function, (3,)),
    (cell_function, (1,)),
    (nested_loop, (4,)),
    (rec_own, (3,)),
    (rec_pass, (4,)),
    (early, (9,)),
    (early, (2,)),
    (branch_made, (3,)),
    (branch_made, (1,)),
    (dec_twice, (3,)),
    (for_target, (3,)),
    (walrus, (3,)),
    (walrus, (1,)),
    (matchcap, (1,)),
    (raising, (2,)),
    (raising, (5,)),
    (ternary, (3,)),
    (ternary, (0,)),
    (ternary, (9,)),
    (strs, (1,)),
    (none_then, (6,)),
    (none_then, (0,)),
    (two_depth, (4,)),
    (shadow, (1,)),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda v: getattr(v, "__name__", None))
@pytest.mark.sampled(5)
def test_as_python(function, args, executor):
    compiled = relay(executor=executor)(function)
    try:
        want = function(*args)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            compiled(*args)
        assert not isinstance(caught.value, CompileError)
        assert isinstance(error, NameError) or str(error) in str(
            caught.value
        )  # Python 3.10 has other words for the former
        return
    assert differences(compiled(*args), want) == []
