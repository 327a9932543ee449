"""Inner loops that run together: the same results to the last bit, and loops that must stay alone."""

from __future__ import annotations

import _thread
import importlib.util
import math
import random
import threading

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.backend.interpreter import run
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.loops.unroll_and_jam import LANES, UnrollAndJam


def jammed(function, *args) -> bool:
    """Whether loops of the optimised program are jammed."""
    graph = UnrollAndJam()(relay(function).ir(*args, stage="optimized").graph)
    return any(getattr(n.fn, "name", "") == "vector_while" for g in all_graphs(graph) for n in g.nodes)


def escape(image, limit):
    image = image.copy()
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            x, y, n = 0.0, 0.0, 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + 0.05 * j - 1.5, 2.0 * x * y + 0.1 * i - 1.0
                n += 1
            image[i, j] = n
    return image


def reduced(n, start):
    """What is carried is added up in order, whatever the order of the inner loops."""
    total = 1e16
    last = start
    for i in range(n):
        x = start + i * 0.37
        while x > 1.0:
            x = x * 0.5 - 0.01
        total = total - x * 3.3
        last = x
    return total, last


def special(n, a):
    """Infinities, NaN and zeros with their signs, in loops that end at different iterations."""
    out = seen = 0.0
    for i in range(n):
        x, k = a * i, 0
        while k < i and not x != x:
            x = -(x * x) if x < 1e300 else x - x
            k += 1
        seen = seen * 0.7 + k
        out = x
    return out, seen


def branches(n):
    total = 0.0
    for i in range(n):
        x = i * 1.5
        while x > 0.25:
            x = x * 0.5 if x > 4.0 else x - 0.75
        total = total + x
    return total


def after_another(n):
    """Each inner loop starts from what the one before has left."""
    x = 10.0
    for i in range(n):
        while x > 1.0 + i:
            x = x * 0.5
        x = x + i * 2.0
    return x


def raising(n):
    x = 0.0
    for i in range(n):
        x = 1.0 * i
        while x > 1.0:
            x = x * 0.5
        assert i < 20, "large"
    return x


def whole(n):
    total = 0
    for i in range(n):
        k = i
        while k > 3:
            k = k - 3
        total += k
    return total


def same(got, want) -> bool:
    """Equality to the last bit."""
    if isinstance(want, tuple):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return type(got) is float and (got.hex() == want.hex() or (math.isnan(got) and math.isnan(want)))
    return type(got) is type(want) and got == want


def test_which_loops_are_jammed():
    assert jammed(escape, np.zeros((20, 20), np.int64), 50)
    assert jammed(reduced, 40, 3.0) and jammed(special, 40, 1.5) and jammed(branches, 40)
    assert not jammed(after_another, 40)
    assert not jammed(raising, 40)
    assert not jammed(whole, 40)


@pytest.mark.parametrize("shape", [(0, 5), (3, 1), (2, LANES - 1), (2, LANES), (3, 2 * LANES + 3)])
def test_images(shape):
    image = np.full(shape, -1)
    assert np.array_equal(relay(escape)(image.copy(), 30), escape(image.copy(), 30))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [-(2**63), -3, 0, 1, LANES - 1, LANES, LANES + 1, 5 * LANES + 3])
def test_results_are_the_same_to_the_last_bit(n):
    for function, *args in ((reduced, 7.7), (reduced, -1.0), (special, 1.5), (special, -3.0), (branches,)):
        assert same(relay(function)(n, *args), function(n, *args))
    assert same(relay(after_another)(n), after_another(n)) and relay(whole)(n) == whole(n)


@pytest.mark.parametrize("n", [0, LANES - 1, 2 * LANES + 3])
def test_the_interpreter_runs_loops_that_run_together(n):
    for function, *args in ((reduced, 7.7), (special, 1.5), (branches,)):
        graph = UnrollAndJam()(relay(function).ir(n, *args, stage="optimized").graph)
        assert same(run(graph, (n, *args)), function(n, *args))


def test_an_effect_comes_when_it_came():
    f = relay(raising)
    assert f(20) == raising(20)
    with pytest.raises(AssertionError, match="large"):
        f(21)


def for_ever(n):
    x = 0.0
    for i in range(n):
        x = 1.0 + i
        while x > 0.0:
            x = x + 1.0 if x < 5.0 else x - 1.0
    return x


def test_an_interrupt_is_heard(interruptible):
    compiled = relay(for_ever)
    assert compiled(0) == 0.0
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        compiled(3 * LANES)


def source(seed: int) -> str:
    """A random function of two nested loops."""
    r = random.Random(seed)
    names = ["x", "y", "a", "b"]

    def value(depth: int = 2) -> str:
        if depth == 0 or r.random() < 0.25:
            return r.choice([*names, "0.5", "-1.25", "3.0", "1e200"])
        if r.random() < 0.15:
            return f"({value(depth - 1)} if {r.choice(names)} < {value(depth - 1)} else {value(depth - 1)})"
        return f"({value(depth - 1)} {r.choice('+-*')} {value(depth - 1)})"

    lines = ["def f(n, limit, a, b):", "    total = last = 0.1", "    for i in range(n):"]
    lines += [f"        x, y, k = i * {r.choice(('0.1', '-0.7', '2.0'))} + a, b, 0"]
    lines += [f"        while k < limit and {r.choice(names)} {r.choice('<>')} {value(1)}:"]
    lines += [f"            x, y = {value()}, {value()}", "            k += 1"]
    lines += ["        total = total * 0.75 + x", "        last = last * 0.7 + k"]
    return "\n".join([*lines, "    return total, last", ""])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed, tmp_path):
    path = tmp_path / f"loops{seed}.py"
    path.write_text(source(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    f = relay(module.f)
    assert jammed(module.f, 3, 4, 0.5, 0.5)
    for n in (0, 3, LANES, 2 * LANES + 5):
        for limit in (0, 1, 7, 40):
            for a, b in ((0.3, -0.4), (2.0, 1.0), (-0.0, math.inf), (math.nan, 0.0)):
                got, want = f(n, limit, a, b), module.f(n, limit, a, b)
                assert same(got, want), f"f({n}, {limit}, {a}, {b}) is {got}, not {want}:\n{path.read_text()}"


def test_numbers_of_lanes_that_are_written_out_are_compared_by_value():
    from tvm import tirx

    from myia_relay.backend.tvm.host.vector_while import together
    from myia_relay.backend.tvm.tir.block import Block, dtype_of

    lowering = type("Lowering", (), {"block": Block()})
    one, again, two = (tirx.IntImm("int64", value) for value in (1, 1, 2))
    assert together(lowering, [one, again], vector=False) is one
    assert dtype_of(together(lowering, [one, two], vector=False)) == "int64x2"
