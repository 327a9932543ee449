"""Checks, exceptions, printing, references, interrupts and `into` of native programs."""

from __future__ import annotations

import _thread
import threading
import traceback

import numpy as np
import pytest

from myia_relay.abstract.types import Ref, Str
from myia_relay.backend import interpreter
from myia_relay.backend.tvm.program import compile_program
from myia_relay.ir.node import Constant
from myia_relay.utils.source import Loc, Origin
from tests.unit.backend.native_util import P, array_type, compile_, emit, graph, sub, type_of

RNG = np.random.default_rng(1)


class Model:
    """What programs take for a reference."""

    def __init__(self, *arrays):
        self.arrays = list(arrays)
        self.type = Ref("m", tuple(f"p{i}" for i in range(len(arrays))), tuple(array_type(a) for a in arrays))


def arr(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def check_ref(body, model, *args):
    """Run natively and by the interpreter, compare the arrays of the model afterwards and the results."""
    g = graph([model.type, *map(type_of, args)], body)
    program = compile_program(g)
    other = Model(*[a.copy() for a in model.arrays])
    for _ in range(2):
        expected, result = interpreter.run(g, [other, *args]), program(model, *args)
        np.testing.assert_allclose(np.asarray(result, "f8"), np.asarray(expected, "f8"), rtol=1e-5, atol=1e-6)
        for a, b in zip(model.arrays, other.arrays):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return program


def test_check_raises_with_the_users_line():
    def f(x, y):
        b = x.builder
        b.origin = Origin(Loc("user.py", 7, 4, 7, 9, "divide"))
        emit(
            x,
            "check",
            P.ne(y, y.const(0.0)),
            x,
            exception=ZeroDivisionError,
            parts=("division of ", (0, "r", ".10"), " by zero"),
        )
        return x / y

    program, _ = compile_(f, 1.0, 2.0)
    assert program(1.0, 2.0) == 0.5
    with pytest.raises(ZeroDivisionError, match=r"^division of 1\.5 by zero$") as caught:
        program(1.5, 0.0)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.name) == ("user.py", 7, "divide")
    assert program(3.0, 2.0) == 1.5


def test_check_in_a_loop_shows_arrays():
    def f(x, n):
        i64, t = type_of(1), array_type(np.zeros(3, "float32"))

        def body(i, a):
            emit(
                a,
                "check",
                P.lt(i, i.const(4)),
                i,
                a,
                exception=ValueError,
                parts=("at ", (0, "", ""), ": ", (1, "", "")),
            )
            return (a + a,)

        return emit(x, "for_loop", 0, n, 1, x, body=sub([i64, t], body), carried=1)

    x = np.ones(3, "float32")
    program, _ = compile_(f, x, 3)
    np.testing.assert_array_equal(program(x, 3)[0], 8 * x)
    with pytest.raises(ValueError, match=r"^at 4: \[16. 16. 16.\]$"):
        program(x, 9)


def test_raise_on_a_branch():
    def f(x):
        s = type_of(1.0)

        def bad(a):
            return emit(a, "raise", a, exception=KeyError, parts=("no ", (0, "", "")), type=s)

        return emit(x, "cond", P.lt(x, x.const(0.0)), x, then=sub([s], bad), orelse=sub([s], lambda a: a * a))

    program, _ = compile_(f, 1.0)
    assert program(3.0) == 9.0
    with pytest.raises(KeyError, match="no -1.0"):
        program(-1.0)


def test_print_in_order(capsys):
    def f(x, a):
        emit(x, "print", x, parts=("x = ", (0, "", "")), end="\n")
        i64 = type_of(1)

        def body(i, s):
            name = s.builder.var(Constant("iteration", Str()))
            emit(s, "print", name, i, s, parts=((0, "", ""), " ", (1, "", ""), ": ", (2, "", "")), end=";\n")
            return (s * 2.0,)

        out = emit(x, "for_loop", 0, 2, 1, a, body=sub([i64, type_of(np.zeros(2))], body), carried=1)
        emit(x, "print", parts=("done",), end="!\n")
        return out

    program, _ = compile_(f, 1.0, np.ones(2))
    program(2.5, np.ones(2))
    assert capsys.readouterr().out == "x = 2.5\niteration 0: [1. 1.];\niteration 1: [2. 2.];\ndone!\n"


def test_sgd_in_place():
    m = Model(arr(20, 30), arr(20))

    def f(model, x, dy):
        w, b = emit(model, "ref_read", model, index=0), emit(model, "ref_read", model, index=1)
        dw = P.reshape(dy, shape=(20, 1)) * P.reshape(x, shape=(1, 30))
        emit(model, "ref_write", model, w - dw * 0.1, index=0)
        emit(model, "ref_write", model, b - dy * 0.1, index=1)
        return P.reduce_sum(dy, axes=(0,))

    program = check_ref(f, m, arr(30), arr(20))
    assert program.unplanned <= 64  # no gradient buffer


def test_momentum_and_adam_are_one_kernel():
    m = Model(arr(40), arr(40), np.abs(arr(40)))

    def f(model, g):
        w, v, s = (emit(model, "ref_read", model, index=i) for i in range(3))
        v2 = v * 0.9 + g
        s2 = s * 0.99 + g * g
        emit(model, "ref_write", model, v2, index=1)
        emit(model, "ref_write", model, s2, index=2)
        emit(model, "ref_write", model, w - v2 / (P.sqrt(s2) + 1e-3) * 0.1, index=0)
        return P.reduce_sum(g, axes=(0,))

    program = check_ref(f, m, arr(40))
    assert [k for k in program.kernels if "reduce" not in k].__len__() == 1


def test_reads_after_writes_see_what_python_sees():
    m = Model(arr(9), arr(9))

    def f(model, g):
        old = emit(model, "ref_read", model, index=0)
        emit(model, "ref_write", model, old + g, index=0)
        new = emit(model, "ref_read", model, index=0)
        emit(model, "ref_write", model, P.flip(new, axes=(0,)), index=0)  # reads other elements than it writes
        emit(model, "ref_write", model, old, index=1)
        newest = emit(model, "ref_read", model, index=0)
        return P.reduce_sum(old * 2.0 + newest * 3.0 + new, axes=(0,))

    check_ref(f, m, arr(9))

    def swap(model, g):
        a, b = emit(model, "ref_read", model, index=0), emit(model, "ref_read", model, index=1)
        emit(model, "ref_write", model, b, index=0)
        emit(model, "ref_write", model, a, index=1)
        return P.reduce_sum(g, axes=(0,))

    check_ref(swap, m, arr(9))


def test_training_loop_over_rows():
    m = Model(arr(7))
    data = arr(50, 7)

    def f(model, rows, n):
        i64 = type_of(1)

        def body(i, total, ref, xs):
            w = emit(ref, "ref_read", ref, index=0)
            x = P.dynamic_index(xs, i, axis=0)
            err = P.reduce_sum(w * x, axes=(0,))
            emit(ref, "ref_write", ref, w - x * err * 0.05, index=0)
            return (total + err * err,)

        types = [i64, type_of(np.float32(0)), m.type, type_of(data)]
        args = (0, n, 1, np.float32(0), model, rows)
        return emit(model, "for_loop", *args, body=sub(types, body), carried=1)

    check_ref(f, m, data, 50)


def test_ref_through_branches():
    m = Model(arr(4))

    def f(model, c):
        def then(ref):
            w = emit(ref, "ref_read", ref, index=0)
            emit(ref, "ref_write", ref, w * 2.0, index=0)
            return P.reduce_sum(w, axes=(0,))

        def orelse(ref):
            return P.reduce_sum(emit(ref, "ref_read", ref, index=0), axes=(0,))

        before = emit(model, "ref_read", model, index=0)
        r = emit(model, "cond", c, model, then=sub([m.type], then), orelse=sub([m.type], orelse))
        return r + P.reduce_sum(before, axes=(0,))

    check_ref(f, m, True)
    check_ref(f, m, False)


def test_references_must_be_writable():
    m = Model(arr(4))
    g = graph([m.type], lambda ref: P.reduce_sum(emit(ref, "ref_read", ref, index=0), axes=(0,)))
    program = compile_program(g)
    program(m)
    with pytest.raises(TypeError, match="p0"):
        program(Model(arr(8)[::2]))


def test_interrupt_leaves_whole_steps(interruptible):
    m = Model(np.zeros(1000, "float32"), np.zeros(1000, "float32"))

    def f(model, n):
        i64 = type_of(1)

        def body(i, t, ref):
            a, b = emit(ref, "ref_read", ref, index=0), emit(ref, "ref_read", ref, index=1)
            emit(ref, "ref_write", ref, a + 1.0, index=0)
            s = P.reduce_sum(a, axes=(0,))
            emit(ref, "ref_write", ref, b + 1.0, index=1)
            return (t + s,)

        types = [i64, type_of(np.float32(0)), m.type]
        return emit(model, "for_loop", 0, n, 1, np.float32(0), model, body=sub(types, body), carried=1)

    program = compile_program(graph([m.type, type_of(1)], f))
    program(m, 3)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        program(m, 10**12)
    a, b = m.arrays
    assert (a == a[0]).all() and (b == a[0]).all() and a[0] > 3


def test_threads_may_call_at_once():
    def f(x):
        i64, t = type_of(1), array_type(np.zeros(64, "float32"))
        body = sub([i64, t], lambda i, a: (P.tanh(a + P.reduce_sum(a, axes=(0,))),))
        return emit(x, "for_loop", 0, 300, 1, x, body=body, carried=1)

    program, _ = compile_(f, arr(64))
    inputs = [arr(64) for _ in range(8)]
    expected = [program(x)[0] for x in inputs]
    results = [None] * 8

    def work(k):
        for _ in range(50):
            results[k] = program(inputs[k])[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for r, e in zip(results, expected):
        np.testing.assert_array_equal(r, e)


def test_into():
    def f(x, y):
        return P.flip(x, axes=(0,)) + y, P.reduce_sum(x, axes=(0,))

    x, y = arr(30), arr(30)
    program, _ = compile_(f, x, y)
    out, total = np.empty(30, "float32"), np.empty((), "float32")
    assert program.into((out, total), x, y)[0] is out
    np.testing.assert_allclose(out, x[::-1] + y)
    np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
    expected = x[::-1] + y
    program.into((x, total), x, y)  # overlaps an argument
    np.testing.assert_array_equal(x, expected)
    wide = np.zeros(60, "float32")
    program.into((wide[::2], total), y, y)
    np.testing.assert_array_equal(wide[::2], y[::-1] + y)
    with pytest.raises(ValueError):
        program.into((np.empty(3, "float32"), total), x, y)


def test_steady_state_allocates_nothing():
    import tracemalloc

    def f(x):
        return P.reduce_sum(P.tanh(P.transpose(x, perm=(1, 0))) * P.reduce_sum(x, axes=(1,)), axes=(0, 1))

    x = arr(200, 300)
    program, _ = compile_(f, x)
    program(x)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        program(x)
    assert tracemalloc.get_traced_memory()[0] - before < 2000
    tracemalloc.stop()


def test_update_moves_up_to_the_transposed_product():
    for rows, cols in ((60, 100), (96, 128), (400, 333), (50, 1003)):
        m = Model(arr(rows, cols), arr(rows))

        def f(model, g, x, rows=rows, cols=cols):
            w = emit(model, "ref_read", model, index=0)
            h = P.matvec(w, x, transpose=False)
            dx = P.matvec(w, g * h, transpose=True)
            again = emit(model, "ref_read", model, index=0)
            dw = P.reshape(g * h, shape=(rows, 1)) * P.reshape(x, shape=(1, cols))
            emit(model, "ref_write", model, again - dw * 0.001, index=0)
            emit(model, "ref_write", model, h, index=1)
            return P.reduce_sum(P.tanh(dx), axes=(0,))

        program = check_ref(f, m, arr(rows) * 0.01, arr(cols) * 0.01)
        assert any("matvec_update" in k for k in program.kernels)


def test_update_stays_where_it_could_be_seen():
    m = Model(arr(60, 100))

    def looks(model, g):
        w = emit(model, "ref_read", model, index=0)
        dx = P.matvec(w, g, transpose=True)
        emit(model, "ref_write", model, w * 0.5, index=0)
        return P.reduce_sum(dx, axes=(0,)) + P.reduce_sum(w, axes=(0, 1))

    def depends(model, g):
        w = emit(model, "ref_read", model, index=0)
        dx = P.matvec(w, g, transpose=True)
        emit(model, "ref_write", model, w + P.reshape(dx, shape=(1, 100)), index=0)
        return P.reduce_sum(dx, axes=(0,))

    def fails(model, g):
        w = emit(model, "ref_read", model, index=0)
        dx = P.reduce_sum(P.matvec(w, g, transpose=True), axes=(0,))
        emit(model, "check", P.lt(dx, dx.const(1e9)), exception=ValueError, parts=("large",))
        emit(model, "ref_write", model, w * 0.5, index=0)
        return dx

    for body in (looks, depends, fails):
        program = check_ref(body, m, arr(60) * 0.01)
        assert not any("matvec_update" in k for k in program.kernels)


def test_without_looking_into_objects(monkeypatch):
    from myia_relay.backend.tvm.host import layout

    monkeypatch.setattr(layout, "supported", lambda: False)
    m = Model(arr(6))

    def f(model, x):
        w = emit(model, "ref_read", model, index=0)
        emit(model, "ref_write", model, w + x, index=0)
        return P.reduce_sum(P.flip(x, axes=(0,)) * w, axes=(0,))

    check_ref(f, m, arr(6))
    program, _ = compile_(lambda x: x * 2.0, arr(6))
    big = arr(12)
    np.testing.assert_array_equal(program(big[::2]), big[::2] * 2)
    with pytest.raises(TypeError):
        program(big.astype("float64")[:6])
