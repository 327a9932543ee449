"""Variables that are bound anew after an inner function has captured them, comprehensions that bind and capture, and loops of few
iterations that cannot stay loops."""

# ruff: noqa: B023, E731

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from tests.programs.cases import EXECUTORS, Cases, agree

case = Cases()


@case((3,))
def rebind(x):
    def f():
        return x

    x = x + 1
    return f()


@case((3,))
def rebind2(x):
    y = 1
    f = lambda z: z + y
    a = f(x)
    y = 10
    return a, f(x)


@case((3,), (0,))
def late(n):
    fs = []
    for i in range(3):
        fs.append(lambda: i)
    return [f() for f in fs]


@case((3,))
def late_static(n):
    fs = []
    for i in range(3):
        fs.append(lambda k: i * k)
    return fs[0](n), fs[1](n), fs[2](n)


@case((3,))
def late_comp(n):
    fs = [lambda: i for i in range(3)]
    return [f() for f in fs]


@case((3,))
def late_default(n):
    fs = [lambda i=i: i * n for i in range(3)]
    return [f() for f in fs]


@case((5,), (0,))
def rebound_in_loop(n):
    total = 0
    k = 1

    def f(v):
        return v * k

    for i in range(n):
        k = k + 1
        total += f(i)
    return total


@case((5,))
def rebound_in_branch(n):
    k = 1

    def f(v):
        return v * k

    if n > 3:
        k = 2
    return f(n)


@case((5,))
def walrus_captured(n):
    def f():
        return y

    if (y := n * 2) > 3:
        return f() + y
    y = 7
    return f()


@case((3,), (0,), (5,))
def late_dynamic(n):
    f = lambda: -1
    for i in range(n):
        f = lambda: i * 10
    return f()


@case((3,), (0,))
def late_while(n):
    f = lambda: -1
    k = 0
    while k < n:
        f = lambda: k
        k += 1
    return f(), k


@case((3,), (2,))
def swap(n):
    x, y = 1, 2
    get = lambda: (x, y)
    a = get()
    x, y = y, x
    b = get()
    if n > 2:
        x = 10
    return a, b, get()


@case((3,))
def unpack_for(n):
    fs = []
    for a, b in ((1, 2), (3, 4)):
        fs.append(lambda: a + b * n)
    a = 100
    return [f() for f in fs]


@case((3,), (-1,))
def type_change(n):
    x = n
    f = lambda: x
    x = x * 0.5
    a = f()
    x = (x, 1)
    return a, f()


@case((3,), (-1,))
def unbound_yet(n):
    def f():
        return x

    if n > 0:
        x = 3
        return f()
    x = 4
    a = f()
    x = 5
    return a + f()


@case((3,))
def except_param(n):
    def f(k):
        return n * k

    n += 1
    return f(2), n


@case((5,))
def recursive_redefined(n):
    def fact(k):
        return 1 if k <= 1 else k * fact(k - 1)

    g = fact
    a = g(n)

    def fact(k):
        return 0

    return a, g(n), fact(n)


@case((5,))
def lam_self(n):
    f = lambda k: k + 1
    g = lambda k: f(k) * 2
    f = lambda k: k + 10
    return g(n)


@case((5,))
def wrapped(n):
    f = lambda k: k + 1
    for _ in range(3):
        old = f
        f = lambda k, old=old: old(k) * 2
    return f(n)


@case((5.0,))
def gradient(x):
    s = 2.0

    def f(v):
        return v * v * s

    s = 3.0
    return f(x)


@case((4,))
def comp_late_call(n):
    return [(lambda: i * j)() for i in range(n) for j in range(2)]


@case((4,))
def comp_nested(n):
    fs = [[lambda: (i, j) for j in range(2)] for i in range(3)]
    return [[f() for f in row] for row in fs]


@case((4,))
def comp_same(n):
    fs = [[lambda: i for i in range(2)] for i in range(3)]
    return [[f() for f in row] for row in fs]


@case(([1.0, 2.0, 4.0],), ([],))
def comp_walrus(xs):
    t = 0.0
    ys = [t := t + x for x in xs]
    return ys, t


@case((10,), (1,))
def comp_walrus2(n):
    out = [y for x in range(n) if (y := x * x) % 3 == 1]
    return out


@case((10,), (0,))
def comp_walrus3(n):
    last = 0
    s = sum((last := i) * 2 for i in range(n))
    return s, last


@case(
    (10,),
)
def walrus_lambda(n):
    f = lambda: (z := n + 1) * z
    return f()


@case(
    (10,),
)
def dict_comp_walrus(n):
    d = {k: (t := v) for k, v in (("a", n), ("b", n + 1))}
    return d, t


@case(
    (3,),
)
def sizes(n):
    ws = []
    for i in range(3):
        ws.append(np.zeros((i + 1, i + 2)))
    return ws


@case(
    (3,),
)
def mlp(n):
    x = np.ones(4)
    dims = (4, 3, 2, 1)
    for i in range(3):
        x = np.tanh(np.ones((dims[i + 1], dims[i])) @ x)
    return x


@case(
    (3,),
)
def loop_break_static(n):
    x = ()
    for i in range(5):
        if i == 3:
            break
        x = (*x, n)
    else:
        x = (0,)
    return x


@case(
    (10,),
)
def dc2(n):
    d = {f"w{i}": n * i for i in range(3)}
    return d, d["w1"], {k: v * 2 for k, v in d.items() if k != "w0"}


@case(
    ({"x": 1.0, "y": 2.0},),
)
def dc3(d):
    return {k: v * 2 for k, v in d.items()}


@case(
    (3,),
)
def dc4(n):
    return {k: f() for k, f in [(c, lambda: c) for c in "abc"]}


@case(
    (3,),
)
def dc5(n):
    pairs = [("a", n), ("a", n + 1)]
    return dict(pairs), dict(zip(("p", "q"), (n, 2.0)), z=3)


@case.each
@pytest.mark.sampled(5)
def test_as_python(function, args, executor):
    agree(function, args, executor)


# Functions that only read such a variable are differentiated, batched and returned like any other.


def differentiated(x):
    s = 2.0

    def f(v):
        return v * v * s

    s = 3.0
    return grad(f)(x) * s


def set_between(x):
    t = 0.0

    def set_(v):
        nonlocal t
        t = v

    set_(x)
    first = grad(lambda y: y * t)(x)
    set_(2 * x)
    return first + 100 * grad(lambda y: y * y * t)(x)


def through_the_variable(x):
    s = x

    def f(v):
        return v * s

    s = x * x
    return f(x)


def batched(x):
    s = 1.0

    def f(v):
        return v * s

    s = x
    return vmap(f)(np.arange(3.0))


def returned(x):
    f = lambda k: k * x
    x = x + 1
    return f


@pytest.mark.parametrize("executor", EXECUTORS)
def test_transformed(executor):
    compiled = relay(executor=executor)
    assert compiled(differentiated)(2.0) == 36.0
    assert compiled(set_between)(3.0) == 3603.0
    assert grad(compiled(through_the_variable))(3.0) == 27.0
    assert compiled(batched)(3.0).tolist() == [0.0, 3.0, 6.0]
    assert compiled(returned)(3)(10) == 40
    assert [f() for f in compiled(late_list)(4)] == [2, 2, 2]


def late_list(n):
    return [lambda: i for i in range(3)]
