"""The interpreter and the python executor: kinds of values, effects, exceptions, symbolic sizes."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import myia_relay
from myia_relay.abstract.bind import bind_symbols
from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import BOOL, FLOAT, INT, NONE, Array, Ref, Scalar, Struct, tuple_of
from myia_relay.backend.interpreter import run
from myia_relay.backend.python import compile_python, to_source
from myia_relay.ir.verify import verify
from myia_relay.opt.pipeline import optimize
from myia_relay.utils.errors import ShapeError
from myia_relay.utils.raising import format_parts, raise_at, without_our_frames
from myia_relay.utils.source import Loc, Origin
from tests.typed_graphs import P, apply, assert_same, build, call, cond, expanded, for_, grad, staged, vec, while_


def interpreter(g):
    return lambda *args: run(g, args)


def with_regions(g):
    return compile_python(g, lambda region: lambda *args: run(verify(region, "outline"), args))


WAYS = [
    pytest.param(interpreter, id="interpreter"),
    pytest.param(compile_python, id="python"),
    pytest.param(with_regions, id="regions"),
    pytest.param(lambda g: interpreter(optimize(g)), id="optimized"),
    pytest.param(lambda g: compile_python(optimize(g)), id="optimized-python"),
]


@pytest.fixture(params=WAYS)
def executor(request):
    """How a graph becomes a function."""
    return request.param


def test_kinds_are_exact(executor):
    def f(x, n, s, a, z):
        return staged(
            x.builder,
            (x + x, n + n, s + s, a + a, z + z, x < x, s < s, P["sin"](x), P["sin"](z), P["cast"](n, dtype="float32")),
        )

    g = build(f, FLOAT, INT, Scalar("float32"), Array("float32", (2,)), Array("float64", ()))
    got = executor(g)(0.5, 2**62, np.float32(1.5), np.ones(2, "float32"), np.array(0.25))
    kinds = [float, int, np.float32, np.ndarray, np.ndarray, bool, np.bool_, float, np.ndarray, np.float32]
    assert [type(v) for v in got] == kinds
    assert got[1] == -(2**63)  # integers wrap; what must not is checked before
    assert got[3].dtype == np.float32 and got[4].shape == () and got[8].shape == ()


def test_floats_are_ieee(executor):
    g = build(lambda x, y: staged(x.builder, (x / y, x * y, -x, P["pow"](x, y), P["floordiv"](x, y))), FLOAT, FLOAT)
    f = executor(g)
    inf, nan = float("inf"), float("nan")
    for x in (0.0, -0.0, 1.0, -2.5, inf, nan, 1e300):
        for y in (0.0, -0.0, 3.0, -inf, nan, 1e300):
            assert_same(f(x, y), run(g, [x, y]))
    assert f(1.0, 0.0)[0] == inf and str(f(1.0, -0.0)[0]) == "-inf"


def test_integers_are_int64(executor):
    g = build(lambda a, b: staged(a.builder, (a + b, a - b, a * b, -a, P["floordiv"](a, b), P["mod"](a, b))), INT, INT)
    f = executor(g)
    edges = (0, 1, -1, 7, -7, 2**63 - 1, -(2**63))
    for a in edges:
        for b in edges:
            assert_same(f(a, b), run(g, [a, b]))
    assert f(-7, 2)[4:] == (-4, 1)


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Point:
    x: float
    y: float

    def __post_init__(self):
        raise AssertionError("a record that was taken apart is put together without its __init__")


def test_structures(executor):
    pair = Struct("record", (FLOAT, FLOAT), ("a", "b"), Pair)
    point = Struct("record", (FLOAT, FLOAT), ("x", "y"), Point)
    d = Struct("dict", (FLOAT, tuple_of(INT)), ("p", "q"))

    def f(s, t, u):
        make = lambda t, *parts: apply("make_struct", *parts, type=t)  # noqa: E731
        return staged(s.builder, (
            make(pair, s[1], s[0]), make(point, t[1], t[0]), make(d, s[0], u[1]),
            make(Struct("list", (FLOAT, INT)), t[0], u[1][0]), u[0],
        ))  # fmt: skip

    p = object.__new__(Point)
    object.__setattr__(p, "x", 3.0)
    object.__setattr__(p, "y", 4.0)
    a, b, c, e, z = executor(build(f, pair, point, d))(Pair(1.0, 2.0), p, {"p": 5.0, "q": (6,)})
    assert a == Pair(2.0, 1.0) and isinstance(a, Pair)
    assert isinstance(b, Point) and (b.x, b.y) == (4.0, 3.0)
    assert c == {"p": 1.0, "q": (6,)} and e == [3.0, 6] and z == 5.0


def test_long_loops_need_no_stack(executor):
    g = build(lambda x, n: for_((0, n, 1), lambda i, a: staged(a.builder, (a + 1.0,)), (x,))[0], FLOAT, INT)
    assert executor(g)(0.0, 20_000) == 20_000.0
    g = build(lambda x: while_(lambda a: a < 20_000.0, lambda a: staged(a.builder, (a + 1.0,)), (x,))[0], FLOAT)
    assert executor(g)(0.0) == 20_000.0


def test_gradients_of_long_loops_need_no_stack(executor):
    def f(x, n):
        return for_((0, n, 1), lambda i, a, x: staged(a.builder, (P["sin"](a) * x,)), (x,), (x,))[0]

    assert isinstance(executor(expanded(build(grad(f), FLOAT, INT)))(0.5, 20_000), float)


def test_swapped_and_nested_carries(executor):
    def f(n):
        def body(i, a, b, s):
            return staged(a.builder, (b, a + b, (s[1], s[0] + a)))

        return for_((0, n, 1), body, (staged(n.builder, 0), staged(n.builder, 1), staged(n.builder, (1, 2))))

    assert executor(build(f, INT))(10)[0] == 55
    assert executor(build(f, INT))(3) == (2, 3, (3, 2))


def test_loop_in_a_loop_shadows_nothing(executor):
    def f(x, n):
        def outer(i, a):
            inner = for_((0, n_of(a), 1), lambda i, a: staged(a.builder, (a * 0.5 + weak(i),)), (a,))[0]
            return staged(a.builder, (inner + a + weak(i),))

        return for_((0, n, 1), outer, (x,))[0]

    weak = lambda i: P["cast"](i, dtype="float64", weak=True)  # noqa: E731
    n_of = lambda a: staged(a.builder, 3)  # noqa: E731
    g = build(f, FLOAT, INT)

    x = 1.0
    for i in range(4):
        a = x
        for j in range(3):
            a = a * 0.5 + j
        x = a + x + i
    assert executor(g)(1.0, 4) == x


# Effects.


def test_references(executor):
    class Model:
        def __init__(self):
            self.arrays = [np.zeros(2), np.ones(2)]

    ref = Ref("model", ("a", "b"), (vec(2), vec(2)))

    def f(m):
        a = apply("ref_read", m, index=0)
        b = apply("ref_read", m, index=1)
        apply("ref_write", m, a + b, index=0)
        c = apply("ref_read", m, index=0)
        return staged(m.builder, (a, c))

    model = Model()
    held = model.arrays[0]
    a, c = executor(build(f, ref))(model)
    np.testing.assert_array_equal(a, [0, 0])  # read before the update, and not changed by it
    np.testing.assert_array_equal(c, [1, 1])
    assert model.arrays[0] is held and held[0] == 1


def test_printing(executor, capsys):
    def f(x, n):
        apply("print", x, n, parts=("x = ", (0, "r", ""), " {", (1, -1, ">4"), "}"), end="!\n")
        return x

    assert executor(build(f, FLOAT, INT))(0.5, 7) == 0.5
    assert capsys.readouterr().out == "x = 0.5 {   7}!\n"


SOURCE = "def outer(x):\n    return inner(x) + 1\n\ndef inner(x):\n    assert x > 0, f'bad {x!r}'\n    return x\n"


@pytest.fixture
def user_file():
    linecache.cache["<user file>"] = (len(SOURCE), None, SOURCE.splitlines(True), "<user file>")
    yield "<user file>"
    del linecache.cache["<user file>"]


def test_exceptions_show_the_user_s_lines(executor, user_file):
    def inner(x):
        ok = x > 0.0
        x.builder.origin = Origin(Loc(user_file, 5, 4, 5, 30, "inner"))
        apply("check", ok, x, exception=AssertionError, parts=("bad ", (0, "r", "")))
        return x

    callee = build(inner, FLOAT, name="inner")
    g = build(lambda x: call(callee, x) + 1.0, FLOAT, name="outer")
    g.nodes[0].origin = Origin(Loc(user_file, 2, 11, 2, 19, "outer"))
    assert executor(g)(1.0) == 2.0
    with pytest.raises(AssertionError) as info:
        executor(g)(-1.0)
    assert str(info.value) == "bad -1.0"
    frames = [f for f in traceback.extract_tb(without_our_frames(info.value).__traceback__) if f.filename == user_file]
    assert frames[-1].lineno == 5 and frames[-1].name == "inner" and "assert x > 0" in frames[-1].line
    with pytest.raises(AssertionError) as info:  # inlined, the call is in the traceback as well
        executor(optimize(g))(-1.0)
    frames = [f for f in traceback.extract_tb(info.value.__traceback__) if f.filename == user_file]
    assert [(f.lineno, f.name) for f in frames] == [(2, "outer"), (5, "inner")]


def test_raise_as_an_expression(executor):
    def f(x):
        def wrong(x):
            return apply("raise", x, exception=KeyError, parts=("no ", (0, "", "")), type=FLOAT)

        return cond(x > 0.0, lambda x: x * 2.0, wrong, x)

    assert executor(build(f, FLOAT))(2.0) == 4.0
    with pytest.raises(KeyError, match="no -1.0"):
        executor(build(f, FLOAT))(-1.0)


def test_raising_helpers():
    parts = ("{", (0, "r", ">5"), (1, 115, ""), (2, None, ".2f"), "}")
    assert format_parts(parts, ["a", 1, 0.5]) == "{  'a'10.50}"
    with pytest.raises(ZeroDivisionError, match="^$"):
        raise_at(ZeroDivisionError, "", None)
    try:
        raise_at(
            ValueError, "m", Origin(Loc("a.py", 300, 2, 300, 4, "g"), "inline", Origin(Loc("b.py", 7, 0, 7, 1, "h")))
        )
    except ValueError as error:
        frames = traceback.extract_tb(without_our_frames(error).__traceback__)[1:]
        assert [(f.filename, f.lineno, f.name) for f in frames] == [("b.py", 7, "h"), ("a.py", 300, "g")]


# Symbolic sizes.


def test_symbolic_sizes(executor):
    n, m = symbol("n"), symbol("m")

    def f(x, y):
        total = P["reshape"](P["broadcast_to"](x, shape=(m, n)), shape=(m * n,))
        size = x.builder.emit(P["dim_size"], (), {"dim": m * n + 1})
        return staged(x.builder, (total, type(x)(x.builder, size), y + y))

    g = build(f, Array("float64", (n,)), Array("float64", (m, 2)))
    out, size, _ = executor(g)(np.arange(3.0), np.ones((2, 2)))
    np.testing.assert_array_equal(out, [0, 1, 2, 0, 1, 2])
    assert size == 7 and type(size) is int


def test_binding_symbols():
    n = symbol("n")
    t = Array("float64", (n,))
    d = Struct("dict", (t, Array("float32", (n, 2 * n + 1))), ("a", "b"))
    assert bind_symbols([d], [{"a": np.ones(3), "b": np.ones((3, 7))}]) == {"n": 3}
    with pytest.raises(
        ShapeError, match=r"'n' is 3 in axis 0 of argument 0\['a'\], but 4 in axis 0 of argument 0\['b'\]"
    ):
        bind_symbols([d], [{"a": np.ones(3), "b": np.ones((4, 7))}])
    with pytest.raises(ShapeError, match=r"size 8, but 2\*n \+ 1 is 7 with n = 3"):
        bind_symbols([d], [{"a": np.ones(3), "b": np.ones((3, 8))}])
    with pytest.raises(ShapeError, match="does not tell what 'n' is"):
        bind_symbols([Array("float64", (n * 2,))], [np.ones(4)])


# The source.


def test_source_is_readable():
    def f(x, limit):
        y = while_(lambda y, limit: y < limit, lambda y, limit: staged(y.builder, (y * 2.0 + 1.0,)), (x,), (limit,))[0]
        y.node.name = "grown"
        return cond(y > 10.0, lambda y: P["sin"](y), lambda y: -y, y)

    assert to_source(optimize(build(f, FLOAT, FLOAT, name="grow"))) == (
        "import numpy as np\n\n\n"
        "def grow(x, limit):\n"
        "    y = x\n"
        "    while y < limit:\n"
        "        y = y * 2.0 + 1.0\n"
        "    if y > 10.0:\n"
        "        t1 = float(np.sin(y))\n"
        "    else:\n"
        "        t1 = -y\n"
        "    return t1\n"
    )


def test_source_runs_on_its_own(tmp_path):
    def f(x, n, w):
        apply("check", x > 0.0, x, exception=ValueError, parts=("bad ", (0, "r", "")))
        y = P["reduce_sum"](w * staged(x.builder, np.linspace(0, 1, 40)), axes=(0,))
        return staged(x.builder, (for_((0, n, 1), lambda i, a, x: staged(a.builder, (a * x,)), (x,), (x,))[0], y))

    g = build(f, FLOAT, INT, vec(40), name="lambda")
    path = tmp_path / "generated.py"
    path.write_text(to_source(g) + "\nprint(lambda_(2.0, 3, np.ones(40)))\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(myia_relay.__file__).parents[1])}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == str(run(g, [2.0, 3, np.ones(40)]))


def test_regions_are_arrays_between_control():
    def f(x, n):
        y = P["sin"](x) * x
        z = for_((0, n, 1), lambda i, a: staged(a.builder, (P["exp"](-a) * a,)), (y,))[0]
        return P["reduce_sum"](z + y, axes=(0,))

    seen = []

    def compile_region(region):
        seen.append([n.fn.name for n in region.nodes])
        return lambda *args: run(region, args)

    g = build(f, vec(3), INT)
    fn = compile_python(g, compile_region)
    x = np.array([0.1, 0.2, 0.3])
    assert_same(fn(x, 2), run(g, [x, 2]))
    assert sorted(seen) == [["add", "reduce_sum"], ["neg", "exp", "mul"], ["sin", "mul"]]
    assert "region_0" in fn.source


def test_none_and_booleans(executor):
    def f(x, b):
        none = type(x)(x.builder, x.builder.constant(None, NONE))
        return staged(x.builder, (none, P["logical_and"](b, x > 0.0), P["logical_not"](b), P["where"](b, x, -x)))

    assert executor(build(f, FLOAT, BOOL))(1.0, True) == (None, True, False, 1.0)
