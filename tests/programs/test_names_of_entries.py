"""Changes in place through a variable that is an entry of another one, or another name of it: the entry changes, as in CPython."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.property.oracle import function_of
from tests.property.test_random_aliases import plain

HELPERS = """
def put(r, v):
    r[0] = v
"""

# Programs of what `GIVEN` has: `n` = 3, a list of dicts, of lists, of arrays; a matrix; a dict of arrays, a tuple of arrays.
GIVEN = {
    "n": "3",
    "ds": "[{'x': 1.0, 'v': 2.0}, {'x': 3.0, 'v': 4.0}, {'x': 5.0, 'v': 6.0}]",
    "g": "[[1, 2, 3], [4, 5, 6], [7, 8, 9]]",
    "ws": "[np.ones(2), np.arange(3.0)]",
    "m": "np.arange(9.0).reshape(3, 3) + np.eye(3) * 20",
    "d": "{'a': np.ones(2), 'b': np.arange(3.0)}",
    "t": "(np.ones(2), np.arange(3.0))",
    "book": "[{'q': 3, 'past': [1]}, {'q': 4, 'past': []}]",
    "ps": "[([1], [2]), ([3], [4])]",
    "nodes": "[{'v': 1.0, 'next': 2}, {'v': 2.0, 'next': -1}, {'v': 3.0, 'next': 1}]",
    "hs": "[Held([1], 2), Held([3], 4)]",
    "rs": "[[1.5, 2.0], [], [3.0]]",
}

SAME = """
for e in ds: #    e['x'] += 1
for i in range(n): #    a = ds[i]; #    for j in range(i + 1, n): #        b = ds[j]; #        a['v'] -= b['x']; b['v'] += a['x']
a, b = ds[0], ds[n - 1]; a['x'], b['x'] = b['x'], a['x']; return a
for row in g: #    row[0] = 0
for i, row in enumerate(g): #    row[i] = -1; #    row.append(len(row))
for row in reversed(g): #    row.sort(reverse=True)
for row in g[1:]: #    row[0] += n
for row in list(g): #    put(row, 5)
for x, y in zip(g, ds): #    x[0] = y['x']
row = g[n - 4]; row[0] = 7; row.pop(); return row, len(row)
row = g[-1]; g.append([0]); row[0] = 5; put(row, row[0] + 1)
row = g[0]; #if n > 2: #    row = g[1]; #    row[0] = 9; row[1] = 8
row = g[1]; row[0] = 5; return [v * 2 for v in row]
h = g; h.append([1]); h[0][0] = 5; return len(g)
r = g[n]; r[0] = 1
for r in g: #    r[0] = 7; #    if r[1] > 4: raise ValueError('bad')
for w in ws: #    w *= 0.5
for w, u in zip(ws, t): #    w -= u.sum()
for i, w in enumerate(ws): #    w[0] = i
for row in m: #    row /= row.sum()
for i in range(2): #    p = m[i]; #    for j in range(i + 1, n): #        r = m[j]; #        for k in range(n): r[k] -= p[k]
c = m[:, 0]; c[:] = 0; c += 1; v = m[1]; v[0] = 4; return c
v = m[0]; m[1] = v * 2; v[0] = 5; return v
for v in d.values(): #    v[0] = 1
for k, v in d.items(): #    v *= 2
for k in d: #    d[k] += 1
for w in t: #    w *= 0.9
a, b = t; a[0] = 5; b += 1
for e in book: #    e['q'] -= 1; #    e['past'].append(e['q'])
for a, b in ps: #    a[0] = b[0]
node = nodes[0]; #while node['next'] >= 0: #    node['v'] += 1.0; #    node = nodes[node['next']]; node['v'] = -1.0
for r in rs: #    r.append(0.5)
x = np.zeros(3) + n; y = x[1:]; y[0] = 5; return x
b = np.arange(n) > 1; c = b; c |= np.arange(n) < 1; return b, c
e = {'a': n}; f = e; f |= {'b': 2}; f['a'] = 1; return e
q = [[0] * n for _ in range(n)]; #for i, r in enumerate(q): #    r[i] = 1; return q
q = [np.zeros(2) for _ in range(n)]; x = q[0]; x[0] = 1.0; return q
x = n; x += 1; y = g[0][0]; y += 1; g[0][0] = y + x
"""

REFUSED = """
x = np.zeros(3) + n; y = x[1:]; put(y, 5.0); return x
q = [[0] * n] * 2; #for r in q: #    r[0] += 1; return q
row = g[0]; g[n - 3] = [7]; row[0] = 5; return row
row = g[0]; g.sort(); row[0] = 5; return row
row = g[0] if n > 2 else g[1]; row[0] = 5; return g
for k in d: #    d[k + k] = 1
for row in g: #    g.append([1]); #    row[0] = 5
"""


def program(line: str):
    """The function whose body is a line of the tables: statements with semicolons between, and `#` before lines of loops."""
    body = ""
    depth = 0
    for part in line.split("; "):
        lines = part.replace(": #", ":\n#").split("\n")
        if not part.startswith("#"):
            lines[0] = " " * depth + lines[0]
        for text in lines:
            text = text.removeprefix("#")
            depth = len(text) - len(text.lstrip())
            body += f"    {text}\n"
    used = [name for name in GIVEN if any(f"{before}{name}" in f" {line}" for before in (" ", "(", "[")) or name == "n"]
    given = ", ".join(GIVEN[name] for name in used)
    text = f"{HELPERS}\ndef program({', '.join(used)}):\n{body}\ndef given():\n    return [{given}]\n"
    return function_of(text, f"<names of entries: {line}>", {"np": np})


def outcome(call, function) -> object:
    """What a call gives and leaves of its arguments; or its exception."""
    args = function.__globals__["given"]()
    try:
        result = plain(call(*args))
    except (ValueError, IndexError) as error:
        if isinstance(error, CompileError):
            raise
        result = type(error).__name__, str(error)
    return result, plain(args)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("line", SAME.strip().split("\n"))
@pytest.mark.sampled(8)
def test_the_entry_changes(line, executor):
    function = program(line)
    assert outcome(relay(function, executor=executor), function) == outcome(function, function)


@pytest.mark.parametrize("line", REFUSED.strip().split("\n"))
def test_refused_where_it_is_not_certain_which(line):
    function = program(line)
    with pytest.raises(CompileError):
        relay(function, executor="interpreter")(*function.__globals__["given"]())


def scaled(xs):
    for x in xs:
        x *= 2
    return xs


def test_numbers_and_arrays_in_one_function():
    """A name of a number is bound anew; where arrays have been seen first, that is refused."""
    f = relay(scaled)
    xs = [1.0, 2.0]
    assert f(xs) == [1.0, 2.0]
    ws = [np.ones(2), np.ones(2)]
    f(ws)
    assert [w.tolist() for w in ws] == [[2.0, 2.0]] * 2
    with pytest.raises(CompileError, match="bound anew"):
        f([1, 2])
