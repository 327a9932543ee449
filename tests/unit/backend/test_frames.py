"""Recursive programs share the region of their frames: one for each call in progress, not one for each program."""

from __future__ import annotations

import threading

import numpy as np

from myia_relay import grad, relay
from myia_relay.backend.native import area


def halves(p, d):
    if d <= 0:
        return np.sum(p)
    return halves(p * 0.5, d - 1) + np.dot(p, p)


def wide(p, d):
    if d <= 0:
        return np.sum(p)
    q = np.concatenate([p, p * 0.5, p * 0.25])
    return wide(np.tanh(p), d - 1) + np.dot(q, q)


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1) * (n % 3)


def test_one_region_for_all_programs():
    programs = [(relay(grad(halves)), (np.ones(3), 4)), (relay(grad(wide)), (np.ones(40), 4)), (relay(depth), (50,))]
    want = [relay(grad(halves), executor="interpreter")(*programs[0][1])]
    want += [relay(grad(wide), executor="interpreter")(*programs[1][1]), depth(50)]
    area.idle_frames.clear()
    for _ in range(2):
        for (program, args), expected in zip(programs, want, strict=True):
            np.testing.assert_allclose(program(*args), expected)
    assert len(area.idle_frames) <= 1


def test_calls_in_progress_have_their_own():
    program, x = relay(grad(wide)), np.ones(40)
    want, wrong = program(x, 30), []

    def run():
        for _ in range(50):
            if not np.array_equal(program(x, 30), want):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
