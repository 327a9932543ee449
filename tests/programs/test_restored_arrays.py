"""Gradients through loops that change arrays in place: what was overwritten is put back on the way back."""

import numpy as np
import pytest

from myia_relay import grad, relay, vmap
from myia_relay.abstract.types import Array, Tape
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs
from tests.slopes import slopes

N = 5
A = np.cos(np.arange(N * N)).reshape(N, N) * 0.3 + 2.0 * np.eye(N)
EXECUTORS = ("interpreter", "python", "native")


def solved(a):
    x = np.zeros(N)
    for i in range(N):
        x[i] = (a[0, i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def factorised(a):
    m = a @ a.T
    m[0, 0] = np.sqrt(m[0, 0])
    for i in range(1, N):
        for j in range(i):
            m[i, j] -= np.dot(m[i, :j], m[j, :j])
            m[i, j] /= m[j, j]
        m[i, i] -= np.dot(m[i, :i], m[i, :i])
        m[i, i] = np.sqrt(m[i, i])
    return m


def eliminated(a):
    m = a.copy()
    for k in range(N - 1):
        m[k + 1 :, k] /= m[k, k]
        for i in range(k + 1, N):
            m[i, k + 1 :] -= m[i, k] * m[k, k + 1 :]
    return m


def by_blocks(a):
    m = a.copy()
    for k in range(N - 1):
        m[k + 1 :, k] = m[k + 1 :, k] / m[k, k]
        m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])
    return m


def relaxed(a):
    u, t = a.copy(), 0
    while t < 3:
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                u[i, j] = 0.3 * (u[i - 1, j] * u[i + 1, j] + np.sin(u[i, j - 1]) + u[i, j + 1] * u[i, j])
            u[i] = u[i] * u[i - 1]
        t += 1
    return u


def shortest(a):
    d = np.abs(a)
    for k in range(N):
        for i in range(N):
            for j in range(N):
                if d[i, k] * d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] * d[k, j]
                    d[i] = d[i] * d[k]
                elif i == j:
                    d[:, j] = np.sin(d[:, j])
    return d


def pivoted(a):
    m = a.copy()
    for k in range(N):
        best = k
        for i in range(k + 1, N):
            if abs(m[i, k]) > abs(m[best, k]):
                best = i
        if best != k:
            row = m[k].copy()
            m[k] = m[best]
            m[best] = row
        for i in range(k + 1, N):
            m[i] = m[i] - m[k] * (m[i, k] / m[k, k])
    return m


def reads_the_old(a):
    u = a.copy()
    for t in range(3):
        old = u * 1.0
        first = u[0] * u[1]
        for i in range(N):
            u[i] = u[i] * u[(i + 1) % N] + 0.1
        u[t] = u[t] * first
        u[1, 1:3] = u[1, 1:3] * old[2, 2:4]
        u = u * old
    return u


def indices_that_change(a):
    u, place = a.copy(), np.arange(N)
    for t in range(4):
        i = place[t]
        place[t] = place[(t + 2) % N]
        place[(t + 2) % N] = i
        u[place[0]] = u[place[1]] * u[i]
        u[place[2], i] += u[i, 0] * u[i, 1]
    return u


PROGRAMS = [solved, factorised, eliminated, by_blocks, relaxed, shortest, pivoted, reads_the_old, indices_that_change]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.sampled(3)
def test_gradients_are_those_of_numpy(program):
    def loss(a):
        return np.sum(program(a) ** 2 * 0.1)

    expected = slopes(loss, A)
    first = [grad(relay(loss, executor=e))(A) for e in EXECUTORS]
    for found in first:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, first[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("program", [solved, factorised, relaxed, shortest, indices_that_change])
@pytest.mark.sampled(3)
def test_second_order_and_batches(program):
    def loss(a):
        return np.sum(program(a) ** 2 * 0.1)

    def along(a):
        return np.sum(grad(loss)(a) * np.cos(a))

    gradient, second = grad(loss), grad(along)
    expected = slopes(lambda a: float(np.sum(gradient(a) * np.cos(a))), A)
    np.testing.assert_allclose(second(A), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(grad(relay(along, executor="interpreter"))(A), second(A), rtol=1e-9, atol=1e-10)
    batch = np.stack([A, A * 1.1, A + 0.05])
    np.testing.assert_allclose(vmap(gradient)(batch), np.stack([gradient(a) for a in batch]), rtol=1e-9, atol=1e-12)

    def all_of_them(b):
        return np.sum(vmap(loss)(b))

    np.testing.assert_allclose(grad(all_of_them)(batch), np.stack([gradient(a) for a in batch]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program, most", [(solved, 1), (factorised, 1), (relaxed, N)])
def test_no_iteration_keeps_an_array(program, most):
    def loss(a):
        return np.sum(program(a) ** 2)

    graphs = all_graphs(grad(loss).ir(A).graph)
    tapes = [n.type.elem for g in graphs for n in g.nodes if applied(n) == "tape_new"]
    assert tapes
    for kept in tapes:
        while isinstance(kept, Tape):
            kept = kept.elem
        assert not isinstance(kept, Array) or kept.size <= most
