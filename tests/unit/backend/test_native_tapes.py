"""Tapes and symbolic dimensions of native programs."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import Array, Scalar, Struct, Tape
from myia_relay.backend import interpreter
from myia_relay.backend.tvm.program import compile_program
from tests.unit.backend.native_util import P, as_node, check, emit, graph, same, sub, type_of

RNG = np.random.default_rng(3)
I64 = type_of(1)
F64 = type_of(1.0)


def arr(*shape):
    return RNG.standard_normal(shape).astype("float32")


def entry(b, *parts):
    return b.var(as_node(b, tuple(parts)))


def test_scalars_and_arrays_come_back_in_reverse():
    n = 11
    row = type_of(arr(n))
    elem = Struct("tuple", (I64, row, Scalar("bool", True)))
    tape = Tape(elem)

    def f(x, iterations):
        def forward(i, a, t):
            a = P.tanh(a * 1.5)
            return a, P.tape_push(t, entry(a.builder, i, a, P.lt(i, i.const(3))))

        t0 = emit(x, "tape_new", elem=elem)
        out = emit(x, "for_loop", 0, iterations, 1, x, t0, body=sub([I64, row, tape], forward), carried=2)

        def backward(i, total, k, t):
            popped = P.tape_pop(t)
            number, a, small = popped[1][0], popped[1][1], popped[1][2]
            weight = P.where(small, P.cast(number, dtype="float32"), P.cast(number * 2, dtype="float32"))
            return total + a * weight, k * 3 + number, popped[0]

        types = [I64, row, I64, tape]
        r = emit(x, "for_loop", 0, iterations, 1, x, 0, out[1], body=sub(types, backward), carried=3)
        return r[0], r[1]

    check(f, arr(n), 7)
    check(f, arr(n), 0)
    check(f, arr(n), 3000 // n)


def test_two_tapes_of_one_type_and_tapes_in_tapes():
    inner_t = Tape(F64)
    outer_t = Tape(Struct("tuple", (inner_t, F64)))

    def f(x, n):
        def fill(i, s, t):
            return s * 1.01 + 1.0, P.tape_push(t, s)

        def forward(i, s, a, b, outer):
            t = emit(s, "tape_new", elem=F64)
            r = emit(s, "for_loop", 0, i, 1, s, t, body=sub([I64, F64, inner_t], fill), carried=2)
            outer = P.tape_push(outer, entry(s.builder, r[1], s))
            return r[0], P.tape_push(a, s), P.tape_push(b, s * 2.0), outer

        a, b = emit(x, "tape_new", elem=F64), emit(x, "tape_new", elem=F64)
        outer = emit(x, "tape_new", elem=outer_t.elem)
        types = [I64, F64, inner_t, inner_t, outer_t]
        r = emit(x, "for_loop", 0, n, 1, x, a, b, outer, body=sub(types, forward), carried=4)

        def drain(i, s, t):
            p = P.tape_pop(t)
            return s * 0.5 + p[1], p[0]

        def backward(i, k, s, a, b, outer):
            pa, pb, po = P.tape_pop(a), P.tape_pop(b), P.tape_pop(outer)
            t, first = po[1][0], po[1][1]
            d = emit(s, "for_loop", 0, k - 1 - i, 1, s, t, body=sub([I64, F64, inner_t], drain), carried=2)
            return k, d[0] + pa[1] - pb[1] + first, pa[0], pb[0], po[0]

        types = [I64, I64, F64, inner_t, inner_t, outer_t]
        back = emit(x, "for_loop", 0, n, 1, n, r[0], r[1], r[2], r[3], body=sub(types, backward), carried=5)
        return back[1]

    check(f, 0.5, 9)


def test_tapes_through_branches():
    elem = type_of(arr(5))
    tape = Tape(elem)

    def f(c, x):
        then = sub([elem, tape], lambda a, t: P.tape_push(P.tape_push(t, a), P.exp(a)))
        orelse = sub([elem, tape], lambda a, t: P.tape_push(t, P.neg(a)))
        t = emit(x, "cond", c, x, emit(x, "tape_new", elem=elem), then=then, orelse=orelse)
        p = P.tape_pop(t)
        return p[1] * 2.0

    check(f, True, arr(5))
    check(f, False, arr(5))


def symbolic(types, body, *args):
    g = graph(types, body)
    program = compile_program(g)
    for values in args:
        expected = interpreter.run(g, values)
        for _ in range(2):
            same(program(*values), expected, 1e-4, 1e-4)
    return program


N, M = symbol("n"), symbol("m")


def test_one_program_for_every_size():
    def f(a, b):
        s = P.reduce_sum(a * P.reshape(b, shape=(1, M)), axes=(1,))
        c = P.reduce_max(P.transpose(a, perm=(1, 0)), axes=(1,))
        return P.tanh(s), P.reshape(a, shape=(N * M,)), c + b, emit(a, "dim_size", dim=N)

    args = [(arr(n, m), arr(m)) for n, m in [(3, 4), (17, 33), (1, 1), (64, 5), (5, 64)]]
    symbolic([Array("float32", (N, M)), Array("float32", (M,))], f, *args)


def test_symbolic_products():
    def f(a, b):
        h = P.tanh(P.dot(a, b))
        return P.dot(h, b, transpose_b=True), P.matvec(h, P.reduce_sum(h, axes=(0,)))

    t = [Array("float32", (N, 7)), Array("float32", (7, M))]
    symbolic(t, f, (arr(3, 7), arr(7, 5)), (arr(200, 7), arr(7, 90)), (arr(1, 7), arr(7, 1)))


def test_wrong_sizes_are_refused():
    program = symbolic([Array("float32", (N, 7)), Array("float32", (N,))], lambda a, b: P.reduce_sum(a, axes=(1,)) + b,
                       (arr(4, 7), arr(4)))  # fmt: skip
    with pytest.raises(ValueError):
        program(arr(4, 7), arr(5))
    with pytest.raises(ValueError):
        program(arr(4, 8), arr(4))
