"""Memory of large results: used again where nobody has it, and never where anybody has."""

from __future__ import annotations

import os
import threading
import weakref

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.backend.native import results
from myia_relay.backend.native.results import ALONE, LEAST, Results

pytestmark = pytest.mark.skipif(ALONE < 0, reason="references are not counted here")
F32 = np.dtype(np.float32)
SHAPE = (300, 400)


@relay
def tripled(x):
    return x * 3.0, x[0] + 1.0


@relay
def doubled(x):
    return x * 2.0


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing is remembered from other tests, and memory is not short."""
    monkeypatch.setattr(Results, "_is_short", lambda self: False)
    results.RESULTS.forget()
    yield
    results.RESULTS.forget()


def x(value: float) -> np.ndarray:
    return np.full(SHAPE, value)


def test_what_is_dropped_is_used_again():
    first = doubled(x(1.0))
    assert first.nbytes >= LEAST and first.flags.owndata and first.base is None
    where = first.ctypes.data
    second = doubled(x(2.0))
    assert second.ctypes.data != where and np.all(first == 2.0)
    del first
    third = doubled(x(3.0))
    assert third.ctypes.data == where and np.all(third == 6.0) and np.all(second == 4.0)
    assert tripled(x(1.0))[0].ctypes.data not in (where, second.ctypes.data)  # of any program


def holders():
    """What keeps the memory of an array alive, or looks whether it is."""
    yield "view", lambda a: a[5:10, ::2]
    yield "view of a view", lambda a: a[5:10][1:].T
    yield "reshaped", lambda a: a.reshape(-1).view(np.int64)
    yield "buffer", memoryview
    yield "DLPack", lambda a: np.from_dlpack(a)
    yield "capsule", lambda a: a.__dlpack__()
    yield "iterator", iter
    yield "flat", lambda a: a.flat
    yield "pointer", lambda a: a.ctypes.data_as(__import__("ctypes").c_void_p)
    yield "closure", lambda a: lambda: a
    yield "cycle", lambda a: (lambda c: c.append(c) or c)([a])
    yield "weak", weakref.ref
    yield "thread", lambda a: threading.local().__dict__.setdefault("a", a)


@pytest.mark.parametrize("hold", [h for _, h in holders()], ids=[n for n, _ in holders()])
def test_what_anything_holds_is_left_alone(hold):
    found = doubled(x(1.0))
    where, held = found.ctypes.data, hold(found)
    del found
    others = [doubled(x(float(k))) for k in range(4)]
    assert where not in [other.ctypes.data for other in others]
    assert all(np.all(other == 2.0 * k) for k, other in enumerate(others)) and held is not None


def changes():
    """What a caller may do to an array of its own."""

    def shape(a):
        a.shape = (400, 300)

    def flags(a):
        a.flags.writeable = False

    def dtype(a):
        a.dtype = np.int64

    yield from (shape, flags, dtype)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", list(changes()), ids=lambda f: f.__name__)
def test_what_was_changed_in_place_is_given_up(change):
    found = doubled(x(1.0))
    change(found)
    del found
    again = doubled(x(2.0))
    assert again.shape == SHAPE and again.dtype == np.float64 and again.flags.writeable and np.all(again == 4.0)


def test_a_result_that_is_the_next_argument():
    a = x(1.0)
    for _ in range(6):
        a = doubled(a)
    assert np.all(a == 64.0)
    assert np.all(doubled(doubled(doubled(x(1.0)))) == 8.0)


def test_a_call_that_raises_gives_its_memory_back():
    @relay
    def checked(x):
        if x[0, 0] > 5.0:
            raise ValueError("large")
        return x * 2.0

    kept = checked(x(1.0))
    for _ in range(3):
        with pytest.raises(ValueError, match="large"):
            checked(x(9.0))
    assert np.all(kept == 2.0) and np.all(checked(x(2.0)) == 4.0)


def test_threads_get_memory_of_their_own():
    wrong = []

    def work(number):
        for k in range(60):
            value = float(number * 1000 + k)
            one, other = doubled(x(value)), doubled(x(value + 0.5))
            if not (np.all(one == 2 * value) and np.all(other == 2 * value + 1)):
                wrong.append((number, k))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_the_memory_is_bounded_and_the_oldest_is_forgotten():
    own = Results(10 * 4 * 1000)
    arrays = [own.take((1000,), F32) for _ in range(25)]
    assert own.total == 10 * 4000 and len({id(a) for a in arrays}) == 25
    own.take((2000,), F32)
    assert own.total == 10 * 4000
    assert own.take((100_000,), F32).shape == (100_000,) and own.total == 10 * 4000  # more than all
    own.forget()
    assert own.total == 0 and not any(own.queues.values())
    for size in range(1, 300):
        own.take((size,), F32)
    assert len(own.queues) <= 2 * len(own.order) + 65


def test_memory_that_is_short_is_given_back(monkeypatch):
    own = Results(1 << 20)
    own.take((1000,), F32)
    monkeypatch.setattr(Results, "_is_short", lambda self: True)
    own.take((2000,), F32)
    assert own.total == 0

    tries = []

    def empty(shape, dtype):
        tries.append(shape)
        if len(tries) == 1:
            raise MemoryError
        return np.zeros(shape, dtype)

    monkeypatch.setattr(results.np, "empty", empty)
    assert own.take((10,), F32).shape == (10,) and len(tries) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork():
    kept = doubled(x(1.0))
    with results.RESULTS.lock:  # by a thread that is not in the child
        child = os.fork()
        if child == 0:
            found = [doubled(x(float(k))) for k in range(3)]
            os._exit(0 if all(np.all(a == 2.0 * k) for k, a in enumerate(found)) and np.all(kept == 2.0) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_sizes_that_a_run_decides():
    @relay
    def positive(x):
        y = x.reshape(-1)
        return y[y > 0.0]

    one = positive(x(1.0))
    where = one.ctypes.data
    del one
    two = positive(x(2.0))
    assert two.ctypes.data == where and np.all(two == 2.0) and positive(x(2.0)).ctypes.data != where
