"""Native code that checks its accesses to memory (`MYIA_RELAY_CHECKED=1`): right programs run, faults are found."""

from __future__ import annotations

import re

import numpy as np
import pytest

from myia_relay import InternalError, grad, relay
from myia_relay.abstract.types import Array
from myia_relay.backend.tvm import plan, program
from myia_relay.backend.tvm.host import lower, watch
from myia_relay.backend.tvm.kernels import blas, depthwise_conv, direct_conv, nests, winograd
from myia_relay.backend.tvm.tir import bounds
from myia_relay.opt.analysis import ranges

from .native_util import P, graph


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")


def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


def up_to(x, n):
    s = 0.0
    i = 0
    while i <= n:
        if 0 <= i <= 5:
            s += x[i]
        i += 1
    return s


def chain(x, y):
    a = np.sin(x) @ y
    b = np.cos(a) @ y
    c = np.tanh(b) @ y
    return a @ c + b


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [1, 3, 4, 5, 17])
def test_right_programs_run(size):
    x = np.linspace(0.0, 1.0, size)
    assert relay(total)(x) == pytest.approx(x @ x)
    np.testing.assert_allclose(relay(grad(total))(x), 2 * x)
    m = np.outer(x, x)
    np.testing.assert_allclose(relay(chain)(m, m), chain(m, m))


def test_a_check_that_range_analysis_drops_wrongly(monkeypatch):
    x = np.arange(5.0)
    assert relay(up_to)(x, 4) == 10.0
    with pytest.raises(IndexError):
        relay(up_to)(x, 7)
    true = ranges.compared

    def compared(name, a, b):
        return true("lt" if name == "le" else name, a, b)

    monkeypatch.setattr(ranges, "compared", compared)
    with pytest.raises(
        InternalError, match=r"reads a at 5, and the first and the last .* 0 and 4, at .*test_memory_checks"
    ):
        relay(up_to)(x, 7)


def removed():
    m = [3, 1, 2]
    m.remove(9)
    return m


def test_a_constant_index_below_the_first():
    """Of an access that no run reaches."""
    with pytest.raises(ValueError, match="x not in list"):
        relay(removed)()


def read(n, k):
    return [i * 2 for i in range(n)][k]


def changed(n, k):
    xs = [i * 2 for i in range(n)]
    xs[k] = 7
    return xs[0]


def deleted(n, k):
    xs = [i * 2 for i in range(n)]
    del xs[k]
    return xs[0]


@pytest.mark.parametrize("function", [read, changed, deleted])
def test_an_index_of_a_list_that_is_not_checked(monkeypatch, function):
    assert relay(function)(6, 5) == function(6, 5)
    monkeypatch.setitem(lower.RULES, "check", lambda lowering, node: lowering.scope.env.__setitem__(node, None))
    with pytest.raises(InternalError, match="main looks at a list at 6, and the first and the last .* 0 and 5, at "):
        relay(function)(6, 6)


def test_a_plan_that_places_live_arrays_over_each_other(monkeypatch):
    m = np.eye(6) * 0.5

    def placed(storages, shares):
        for s in storages:
            s.offset = 0
        return max(s.nbytes for s in storages)

    monkeypatch.setattr(plan, "_place_static", placed)
    with pytest.raises(InternalError, match="the memory plan: m.* lies where m.* still lives"):
        relay(chain)(m, m)
    # The poison shows it too, by itself.
    monkeypatch.setattr(watch, "verify", lambda *_: None)
    with np.errstate(all="ignore"):
        assert not np.allclose(relay(chain)(m, m), chain(m, m), equal_nan=False)


def test_an_arena_that_is_too_small(monkeypatch):
    m = np.eye(6) * 0.5
    true = plan._place_static
    monkeypatch.setattr(plan, "_place_static", lambda *given: true(*given) - 64)
    with pytest.raises(InternalError, match="the memory plan: m.* reaches beyond the arena"):
        relay(chain)(m, m)


def test_an_array_that_is_read_after_its_life(monkeypatch):
    def touch(self, storage):
        if storage.first < 0:
            storage.first = storage.last = self.clock

    m = np.eye(6) * 0.5
    monkeypatch.setattr(plan.MemoryPlan, "touch", touch)
    monkeypatch.setattr(watch, "verify", lambda *_: None)
    assert np.isnan(relay(chain)(m, m)).any()


def test_a_loop_that_is_one_too_long(monkeypatch):
    true = nests.Nest.loops

    def loops(self, extents, body, parallel):
        true(self, [e + 1 if isinstance(e, int) and e == 7 else e for e in extents], body, parallel)

    monkeypatch.setattr(nests.Nest, "loops", loops)
    x = np.ones((7, 5))
    with pytest.raises(
        InternalError, match=r"k0_\w+ (reads|writes) a\d at 3\d, and the first and the last .* 0 and 34, at "
    ):
        relay(transposed)(x, x)


def transposed(x, y):
    return x.T * 2.0 + y.sum(axis=0)[:, None]


@pytest.mark.parametrize("size", [33, 41])
def test_a_store_through_a_tail_of_a_vector(monkeypatch, size):
    true = nests.Nest.vectors

    def vectors(self, extent, lanes, body, parallel, ahead=None):
        true(self, extent, lanes, lambda i, w: body(i, lanes if w < lanes else w), parallel, ahead)

    x = np.ones(size)
    np.testing.assert_allclose(relay(lambda x: x * 2.0 + 1.0)(x), 3.0)
    monkeypatch.setattr(nests.Nest, "vectors", vectors)
    with pytest.raises(InternalError, match=f"(reads|writes) a.* 0 and {size - 1}, at "):
        relay(lambda x: x * 2.0 + 1.0)(x)


def test_a_copy_that_is_too_long(monkeypatch):
    def reordered(x):
        y = x.copy()
        y[0] = 5.0
        return y, x[::-1]

    true = lower.product
    monkeypatch.setattr(lower, "product", lambda shape: true(shape) + 1)
    with pytest.raises(InternalError, match=r"main (writes|reads) by memmove, in bytes at 47, .* 0 and 39, at "):
        relay(reordered)(np.arange(5.0))


def test_a_product_of_wrong_sizes(monkeypatch):
    true = blas._gemm
    monkeypatch.setattr(blas, "_gemm", lambda b, sizes, *rest: true(b, (sizes[0] + 1, *sizes[1:]), *rest))
    a = np.ones((40, 50))
    with pytest.raises(InternalError, match=r"reads the left matrix of a product, in bytes at 163\d\d, .* 0 and 15999"):
        relay(lambda a, b: a @ b)(a, a.T.copy())


@pytest.fixture
def small_convolutions(monkeypatch):
    """Small convolutions go the way of large ones, block by block."""
    for module, name, size in (
        (direct_conv, "LEAST", 0), (direct_conv, "NEAR", 1 << 13), (direct_conv, "CACHE", 1 << 13),
        (depthwise_conv, "LEAST", 0), (depthwise_conv, "CACHE", 1 << 10),
        (winograd, "LEAST", 0), (winograd, "FILTERS", 32), (winograd, "CHANNELS", 32), (winograd, "TILES", 18),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, size)


# (channels, height, width), (filters, kernel), strides, groups
CONVOLUTIONS = {
    "sums": ((9, 7, 7), (19, (3, 3)), (1, 1), 1),
    "dots": ((4, 28, 28), (10, (8, 8)), (4, 4), 1),
    "depthwise": ((5, 21, 40), (15, (3, 5)), (2, 2), 5),
    "winograd": ((32, 9, 9), (32, (3, 3)), (1, 1), 1),
}


def convolution(strides, groups):
    padding = ((0, 0), (0, 0)) if strides == (4, 4) else ((1, 1), (1, 1))

    @relay
    def f(x, w):
        return relay.relu(relay.conv2d(x, w, strides=strides, padding=padding, groups=groups)) + 1

    return f


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions(case, small_convolutions):
    image, (count, kernel), strides, groups = case
    draw = np.random.default_rng(3).standard_normal
    x, w = draw((2, *image)).astype("f4"), draw((count, image[0] // groups, *kernel)).astype("f4")
    f = convolution(strides, groups)
    np.testing.assert_allclose(f(x, w), f.interpret(x, w), rtol=0, atol=2e-3)


def test_accesses_that_are_one_too_far(monkeypatch, small_convolutions):
    true = bounds._ends
    monkeypatch.setattr(bounds, "_ends", lambda index: [e + 1 for e in true(index)])
    draw = np.random.default_rng(3).standard_normal
    x, w = draw((2, 32, 9, 9)).astype("f4"), draw((32, 32, 3, 3)).astype("f4")
    with pytest.raises(InternalError, match="and the first and the last .* 0 and "):
        convolution((1, 1), 1)(x, w)


def test_a_check_is_one_comparison(small_convolutions):
    """With two for each end, LLVM takes a minute for a kernel of a hundred accesses."""
    x, w = np.ones((1, 4, 28, 28), "f4"), np.ones((10, 4, 8, 8), "f4")
    functions = convolution((4, 4), 1).tir(x, w).functions.items()
    kernel = next((str(f) for v, f in functions if "tile_of_dots" in v.name_hint), None)
    if kernel is None:
        pytest.skip("this kernel is for processors with wider vectors")
    checks = [line for line in kernel.splitlines() if "llvm.expect" in line]
    assert len(checks) > 30
    assert all(len(re.findall("[<>]=? ", line)) <= 1 for line in checks)


def test_an_array_of_another_size_than_is_passed(monkeypatch):
    monkeypatch.setattr(program.layout, "check", lambda *_: None)
    native = program.compile_program(graph([Array("float64", (8,))], lambda x: P.mul(x, x)))
    np.testing.assert_array_equal(native(np.arange(8.0)), np.arange(8.0) ** 2)
    with pytest.raises(InternalError, match="does not lie in its memory"):
        native(np.arange(5.0))


def test_arrays_that_are_shown_stay_until_they_are(capsys):
    """A later operand was computed after the last use of an earlier one, and took its place."""

    def shown(x, y, fails):
        a = np.sin(x)
        b = np.cos(y) * 2.0
        print(a, b)
        c = np.sin(x) - 1.0
        d = np.cos(y) - 2.0
        if fails:
            raise ValueError(f"{c} {d}")
        return 1

    f = relay(shown)
    for _ in range(2):
        assert f(np.zeros(5), np.zeros(6), False) == 1
        assert capsys.readouterr().out == "[0. 0. 0. 0. 0.] [2. 2. 2. 2. 2. 2.]\n"
        with pytest.raises(ValueError, match=r"^\[-1. -1. -1. -1. -1.\] \[-1. -1. -1. -1. -1. -1.\]$"):
            f(np.zeros(5), np.zeros(6), True)
        capsys.readouterr()


def test_the_code_is_the_same_without(monkeypatch):
    assert "memory_violated" in str(relay(total).tir(np.ones(5)))
    monkeypatch.delenv("MYIA_RELAY_CHECKED")
    plain = str(relay(total).tir(np.ones(5)))
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "0")
    assert str(relay(total).tir(np.ones(5))) == plain
    assert "memory_" not in plain and "myia_relay_place" not in plain and "checked" not in plain
