"""Reading a part of something and changing the whole, in one statement or under names that do not show it: CPython's answer, or a
refusal that says to copy."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, grad, relay, vmap
from tests.property.oracle import function_of
from tests.property.test_random_aliases import plain

HELPERS = """
def change(z):
    z[0] = 100
    return 1
def change_row(x):
    x[0][1] = x[1][0]
    return 1
def two(a, b):
    return a * b
def early(xs, n):
    if n > 2:
        return xs
    return [n]
def first(xs, n):
    for x in xs:
        if n > 2:
            return x
    return xs[1]
def ident(a, b=1):
    return a
def step(new, old):
    for i in range(1, len(old) - 1):
        new[i] = 0.5 * (old[i - 1] + old[i + 1])
"""

# Programs of `x`, a vector of 6, `m`, a matrix of 3 x 3, and n = 3: what they do after `z = x.copy(); w = m.copy()`.
SAME = """
w[0], w[1] = w[1], w[0]; return w
w[0], w[1], w[2] = w[1], w[2], w[0]; return w
z[:2], z[2:4] = z[2:4], z[:2]; return z
z[1:], z[:-1] = z[:-1], z[1:]; return z
u = 2 * x; u[:], z[:] = z, u; return u, z
w[:, 0], w[:, 2] = w[:, 2], w[:, 0]; return w
w[0, :], w[-1, :] = w[1, :], w[-2, :]; return w
w[n - 3], w[n - 2] = w[n - 2], w[n - 3]; return w
w[[0, 1]], w[2] = w[[1, 0]], w[0]; return w
w[0], w[1] = w[1].copy(), w[0].copy(); return w
w[0, 1], w[1, 0] = w[1, 0], w[0, 1]; return w
z[0], z[1] = z[1], z[0]; return z
w[0][0], w[0] = 9.0, w[0][::-1]; return w
z[0], k = 9.0, z; return z, k
k = [1, 2]; z[0], k[0] = 1.0, z; return k
z[0], (k, j) = 9.0, (z[0], z[1]); return z, k, j
w[0] = w[1]; w[1] = w[2] * 2; w[2] += w[0]; return w
z[1:] = z[:-1]; z[:] = z[::-1]; return z
ys = [1, 2]; ys[0], k = 9, ys; return k
g = [[1], [2], [3]]; g[0], g[2] = g[2], g[0]; return g
g = [[1], [2], [3]]; g[0], g[n - 1] = g[n - 1], g[0]; return g
h = [5, 3, 1]; h[0], h[n - 1] = h[n - 1], h[0]; return h
d = dict(a=z, b=2 * x, c=-x); d['a'], d['b'], d['c'] = d['b'], d['c'], d['a']; return d
ys = [0, 1, 1]; ys[ys.pop()] = 4; return ys
ys = [1, 2]; return f'{ys} {ys.pop()} {ys}'
ys = [1, 2]; return ys and ys.pop(), ys
ys = [1, 2, 3]; #for i in range(2): #    k = [v for v in [ys.pop()]]; return ys, k
ys = [1, 2]; #for i in range(3): #    k = [v for v in [ys.pop()]]; return ys
ys = [1, 2]; #for i in range(2): #    k = [v for v in [change(ys)]]; return ys
ys = [1, 2, 3]; k = 0; #while ys: #    k += sum(v for v in [ys.pop()]); return ys, k
return z[0], change(z)
return z[0] * 2 + change(z), z[:2].sum() + change(z)
return (z[:2] * 1, change(z))
y = [[1], [2]]; y.append(y[0]); return y
d = {'a': [1], 'b': [2]}; r = d.get('a'); d['b'] = [3]; return r, d
nxt = -np.ones(3); nxt[0] = z[n]; z[n] = 4.0; return nxt, z
m = z[z > 2]; z[3] = 9.0; m[0] = 5.0; return m, z
m = x[[0, 1]]; m[0] = 5.0; c = w[[0, 1], 1]; w[0, 1] = 4.0; c[0] = 2.0; return m, c, w
g = [[i for j in range(n)] for i in range(n)]; d = [r[:] for r in g]; #for i in range(n): #    d[i][0] = d[0][i] + 1; return d, g
nxt = z * 2 + 1; nxt[1] = z[0]; z[0] = 4.0; return nxt, z
d = np.diag(z); d[0, 1] = 3.0; return d, z
v = [1, 2]; k = v; r = (k.pop(), v[0], len(v)); return r, k
v = [1, 2]; k = v; r = len(v) if change(k) else 0; return r, k
v = [1, 2]; k = v; t = [0, 0, 0]; t[len(v)] = k.pop(); return t, k
v = [1, 2]; k = v; r = [len(v) for _ in [k.pop()]]; return r, k
y = [[1], [2]]; t = y[1]; #for r in reversed(y): #    r.append(9); return t, y
v = [1, 2]; k = v.copy(); r = (k.pop(), v[0], len(v)); return r, k
v = [1, 2]; v = (v.pop(), v[0], len(v)); return v
v = [1, 2]; k = v; r = v[0] + k.pop(); return r, k
t = [{'a': 1}, {'a': 2}]; t[0]['a'] = 5; t[1]['a'] += 5; return t
"""

REFUSED = """
return z[:2] + change(z)
z[0], (k, j) = 9.0, (z[0], z); return k, j
return (z[:2], change(z))
return [z, change(z)]
return {'a': z[:2], 'b': change(z)}
return two(w[0], change(w))
return np.concatenate((z[:2], np.array([change(z)])))
return (z[:2], 2 * change(z) if n > 2 else 0)
return [z[:2][change(z)]]
ys = [[1, 2], [3]]; return (ys[0], change(ys[0]))
ys = [[1, 2], [3]]; return ys[0] + [change(ys[0])]
ys = [[1, 2], [3]]; return (ys[0], ys[0].pop())
ys = [[1, 2], [3]]; return {'k': ys, 'c': change(ys)}
u = z[:2]; u += change(z); return z
d = dict(a=z, b=2 * x); d['a'][:], d['b'][:] = d['b'], d['a']; return d
la = [z, 2 * x]; la[0][:], la[1][:] = la[1], la[0]; return la
ys = [1, 2]; zs = list(ys for i in range(2)); zs[0].append(5); return zs, ys
ys = [1, 2]; zs = tuple(ys for i in range(2)); zs[0].append(5); return zs, ys
ys = [1, 2]; k = early(ys, n); k.append(3); return ys, k
y = [[1, 2], [3]]; k = [(i, r) for i, r in enumerate(y)]; y[0][0] = 50; return k[0][1]
y = [[1, 2], [3]]; k = [r for r, i in zip(y, [1, 2])]; y[0][0] = 50; return k
y = [[1], [2]]; k = (*y, 5); t = y[0]; v = k[0]; v.append(7); return t
y = {'a': [1], 'b': [2]}; k = [v for i, v in y.items()]; y['a'].append(5); return k
d = {'p': z, 'q': 2 * x}; v = [u for u in d.values()][1]; v[0] = 7.0; return d, v
y = [[1], [2]]; y[0] = y.copy()[1]; y[1] += [6]; return y
y = [[1], [2]]; y[0] = (y + [])[1]; y[1] += [6]; return y
y = [[1, 2], [3, 4]]; y[1] = first(y, n); y[1] += [6]; return y
y = [[1, 2], [3, 4]]; y[n - 2] = y.copy()[n - 2]; r = [v for _, v in zip([1, 2], y)][0]; k = change_row(y); return r
y = {'a': [1], 'b': [2]}; r = y.get('a'); t = y['a']; r.append(5); return t
y = {'a': [1], 'b': [2]}; k = ident(**y); k.append(7); return y
y = [1, 2]; it = iter(y); y.append(3); return list(it)
y = [1, 2]; it = enumerate(y); y.append(3); return list(it)
d = {'a': 1}; t = [d]; u = t[0]; d['a'] = 5; return u
d = {'a': 1}; t = [d, d]; t[0]['a'] = 5; return t
d = {'a': 1}; t = [d]; t[0]['a'] = 5; return d
d = {'a': 1}; t = ident(d); t['a'] = 5; return d
y = [1, 2]; y.append(y); y.append(3); return len(y[2])
g = [[[i] for j in range(n)] for i in range(n)]; d = [r[:] for r in g]; d[0][0].append(5); return d, g
y = [[1]]; y[0] = y; return len(y[0])
y = [[1]]; y[0].append(y); return len(y[0][1])
y = [[1], [2]]; y.insert(0, [y]); y.append([3]); return len(y[0][0])
y = [1]; y += [y]; y.append(3); return len(y[1])
d = {'a': 1}; d['me'] = d; d['a'] = 2; return d['me']['a']
v = [[1, 2], [3, 4]]; k = list(v); r = (k[0].pop(), v[0]); return r, k
v = [1, 2]; k = ident(v); r = (k.pop(), v[0], len(v)); return r, k
v = [1, 2]; k = ident(v); r = [len(v) for _ in [k.pop()]]; return r, k
v = [1, 2]; k = ident(v); r = len(v) if change(k) else 0; return r, k
v = [1, 2]; g = [[1, 2], [3, 4]]; g[n - 2] = v; k = g.copy(); v[0] = 7; return k
v = [1, 2]; g = [[i, 2] for i in range(n)]; g.append(v); k = g.copy(); v[0] = 7; return k
v = [1, 2]; t = [3, 4]; g = [[1], t]; g[n - 2] = v; k = g.copy(); #for _ in range(n): #    v[0] = t[1]; v, t = t, v; return k
d = np.diag(w); w[0, 0] = 50.0; return d
d = np.diag(w); d[0] = 50.0; return w
d = np.lib.stride_tricks.sliding_window_view(z, 2); z[0] = 50.0; return d
d = np.lib.stride_tricks.sliding_window_view(z, 2); d[0, 0] = 50.0; return z
d = np.broadcast_to(z, (2, 6)); d[0, 0] = 50.0; return z
d = w.diagonal(); d[0] = 50.0; return w
"""


def program(line: str):
    """The function whose body is a line of the tables: statements with semicolons between, and `#` before lines of loops."""
    body = "".join(f"    {part.removeprefix('#')}\n" for part in line.replace("; ", "\n").split("\n"))
    body = body.replace(": #    ", ":\n        ")
    text = f"{HELPERS}\ndef program(x, m, n):\n    z, w = x.copy(), m.copy()\n{body}"
    return function_of(text, f"<order of changes: {line}>", {"np": np})


def outcome(function) -> object:
    """What a call gives and leaves of its arguments; or its exception."""
    args = np.arange(1.0, 7.0), np.arange(1.0, 10.0).reshape(3, 3), 3
    try:
        result = plain(function(*args))
    except CompileError:
        raise
    except Exception as error:
        result = type(error).__name__
    return result, plain(args)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("line", SAME.strip().splitlines())
def test_as_in_cpython(line, executor):
    function = program(line)
    assert outcome(relay(function, executor=executor)) == outcome(function)


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_refused_with_advice(line):
    with pytest.raises(CompileError, match=r"copy"):
        outcome(relay(program(line)))


def of_an_argument(z):
    z[0], z[1] = z[1], z[0]
    return z.sum()


def numbers_of_an_argument(out, a):
    for i in range(len(a)):
        out[i] = a[i]
    return 1.0


def rows_of_an_argument(out, a):
    for i in range(len(a)):
        out[i] = a[i]
        a[i] = 0.0
    return 1.0


def heads(out, a):
    nxt, head = -np.ones(3), a[:, 0] * 1
    for i in range(3):
        nxt[i] = head[2 - i]
        head[2 - i] = i
    out[0] = nxt
    out[1] = head
    return head


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", [of_an_argument, numbers_of_an_argument, rows_of_an_argument, heads])
def test_arguments(function, executor):
    args = [np.arange(9.0).reshape(3, 3) + k for k in range(function.__code__.co_argcount)]
    given = [a.copy() for a in args]
    assert plain(relay(function, executor=executor)(*given)) == plain(function(*args))
    assert plain(given) == plain(args)


def test_a_returned_argument_of_one_path():
    def program(xs, n):
        z = xs if n > 2 else [n]
        z.append(3)
        return xs

    with pytest.raises(CompileError, match="copy"):
        relay(program)([1, 2], 3)


# Two or three arrays that a loop exchanges.


def stencil(x, n):
    old, new = x.copy(), x.copy()
    for _ in range(n):
        for i in range(1, len(x) - 1):
            new[i] = 0.5 * (old[i - 1] + old[i + 1])
        old, new = new, old
    return old


def of_slices(x, n):
    old, new = x.copy(), np.zeros_like(x)
    k = 0
    while k < n:
        new[1:-1] = 0.5 * (old[:-2] + old[2:])
        old, new = new, old
        k += 1
    return old, new


def through_a_third_name(x, n):
    old, new = x * 1.0, x * 0.0
    for k in range(n):
        new[k] = old[k + 1] * 3
        if old[k] > 3:
            continue
        tmp = old
        old = new
        new = tmp
    return old, new


def of_three(x, n):
    before, now, after = x.copy(), x * 2, np.zeros_like(x)
    for _ in range(n):
        for i in range(1, len(x) - 1):
            after[i] = 2 * now[i] - before[i] + 0.1 * (now[i - 1] - 2 * now[i] + now[i + 1])
        before, now, after = now, after, before
    return now


def by_a_helper(x, n):
    def step(new, old):
        for i in range(1, len(old) - 1):
            new[i] = 0.5 * (old[i - 1] + old[i + 1])

    old, new = x.copy(), x.copy()
    for _ in range(n):
        step(new, old)
        old, new = new, old
    return old


def in_a_branch(x, n):
    old, new = x.copy(), x.copy() + 1
    for k in range(n):
        if k % 2:
            old, new = new, old
        old[k] = new[k + 1]
    return old, new


def new_rows(x, n):
    row = x.copy()
    for _ in range(n):
        below = np.zeros(len(x))
        for j in range(1, len(x)):
            below[j] = row[j - 1] + below[j - 1]
        row = below
    return row


def nested(x, n):
    a, b = x.copy(), x * 2
    for k in range(n):
        for j in range(k):
            a[j] = b[j] + 1
            a, b = b, a
        b[k] = a[k + 1] * 2
    return a, b


EXCHANGING = [stencil, of_slices, through_a_third_name, of_three, by_a_helper, in_a_branch, new_rows, nested]


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", EXCHANGING, ids=lambda f: f.__name__)
def test_arrays_that_a_loop_exchanges(function, executor):
    x = np.arange(1.0, 9.0)
    compiled = relay(function, executor=executor)
    for n in (0, 1, 2, 5):
        assert plain(compiled(x, n)) == plain(function(x, n))


def lists(n):
    old, new = [1, 2, 3], [0, 0, 0]
    for k in range(n):
        new[0] = old[1] + k
        new.append(k)
        old, new = new, old
    return old, new


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_lists_that_a_loop_exchanges(executor):
    for n in (0, 1, 4):
        assert relay(lists, executor=executor)(n) == lists(n)


@pytest.mark.parametrize("function", [stencil, of_three, in_a_branch], ids=lambda f: f.__name__)
def test_derivatives_of_exchanges(function):
    x = np.linspace(0.5, 2.0, 6)

    def loss(v):
        out = function(v, 3)
        return (out if isinstance(out, np.ndarray) else out[0] * 2 + out[1]) @ np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def total(v):
        out = function(v, 3)
        return float(
            (out if isinstance(out, np.ndarray) else out[0] * 2 + out[1]) @ np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        )

    wanted = [(total(x + 1e-6 * e) - total(x - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    kind = isinstance(function(x, 3), np.ndarray)
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def one(v):
        return function(v, 3) @ weights

    def both(v):
        out = function(v, 3)
        return (out[0] * 2 + out[1]) @ weights

    f = one if kind else both
    np.testing.assert_allclose(grad(f)(x), wanted, rtol=1e-6)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(vmap(f)(batch), [total(x), total(2 * x)])


def same_twice(x, n):
    old, new = x, x
    for _ in range(n):
        new[0] = old[1]
        old, new = new, old
    return old


def one_of_two(x, n):
    a, b = x.copy(), x.copy()
    for k in range(n):
        c = a if k > 0 else b
        c[0] = a[1]
        a, b = b, c
    return a, b


def view_of_the_other(x, n):
    a, b = x.copy(), x.copy()
    for _ in range(n):
        a, b = b, a[::-1]
        b[0] = 5
        a = b
    return a, b


def held_by_the_other(x, n):
    a, b = [[1], [2]], [[3], [4]]
    for _ in range(n):
        a[0] = b[1]
        a[0].append(n)
        a, b = b, a
    return a, b


@pytest.mark.parametrize(
    "function", [same_twice, one_of_two, view_of_the_other, held_by_the_other], ids=lambda f: f.__name__
)
def test_what_a_loop_makes_one_is_refused(function):
    with pytest.raises(CompileError, match="copy"):
        relay(function)(np.arange(1.0, 9.0), 3)
