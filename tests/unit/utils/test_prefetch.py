"""Iterators that a thread runs ahead: the same items, errors where they belong, and no thread that stays."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import pytest

from myia_relay.utils import prefetch
from myia_relay.utils.prefetch import Prefetched


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "myia_relay prefetch"]


def wait_until(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


@pytest.fixture(autouse=True)
def no_thread_stays():
    yield
    gc.collect()
    assert wait_until(lambda: not threads())


class Source:
    """Numbers; it notes how many it gave, and whether it was closed."""

    def __init__(self, count: int):
        self.count, self.given, self.closed = count, 0, False

    def __call__(self, skip: int = 0):
        try:
            for i in range(skip, self.count):
                self.given += 1
                yield i
        finally:
            self.closed = True


@pytest.mark.parametrize("depth", [1, 2, 10])
def test_the_items_in_order(depth):
    source = Source(25)
    iterator = Prefetched(source(), depth)
    assert list(iterator) == list(range(25)) and source.closed
    assert next(iterator, "end") == "end"  # and stays at the end


def test_it_runs_so_far_ahead_and_no_farther():
    source = Source(100)
    iterator = Prefetched(source(), 3)
    assert wait_until(lambda: source.given == 4)  # three are ready, one waits
    time.sleep(0.05)
    assert source.given == 4 and next(iterator) == 0
    assert wait_until(lambda: source.given == 5)


def test_a_break_ends_the_thread_and_closes_the_source():
    source = Source(10**9)
    for i in Prefetched(source(), 2):
        if i == 5:
            break
    gc.collect()
    assert wait_until(lambda: source.closed) and source.given < 12


def test_an_error_in_the_loop_ends_the_thread():
    source = Source(10**9)
    with pytest.raises(ZeroDivisionError):
        for i in Prefetched(source(), 2):
            1 // (3 - i)
    gc.collect()
    assert wait_until(lambda: source.closed)


def test_an_error_of_the_source_comes_in_its_place_with_its_traceback():
    def broken():
        yield 1
        yield 2
        raise LookupError("no third")

    seen = []
    with pytest.raises(LookupError, match="no third") as caught:
        for i in Prefetched(broken(), 4):
            seen.append(i)
    assert seen == [1, 2]
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_an_error_while_the_source_is_closed_is_raised_at_the_end():
    def broken():
        try:
            yield 1
        finally:
            raise LookupError("closing")

    iterator = Prefetched(broken(), 1)
    assert next(iterator) == 1
    with pytest.raises(LookupError, match="closing"):
        next(iterator)


def test_close_waits_for_the_thread():
    source = Source(10**9)
    iterator = Prefetched(source(), 2)
    next(iterator)
    iterator.close()
    assert source.closed and not threads()
    assert next(iterator, None) is None
    iterator.close()


def test_whoever_leaves_the_loop_does_not_wait_for_a_source_that_waits(monkeypatch):
    """Ctrl-C while a generator blocks: the loop ends at once, and the thread when the generator goes on."""
    monkeypatch.setattr(prefetch, "BUSY_SECONDS", 0.05)
    waits, entered, ended = threading.Event(), threading.Event(), threading.Event()

    def blocking():
        try:
            yield 1
            entered.set()
            waits.wait(60)
            yield 2
        finally:
            ended.set()

    iterator = Prefetched(blocking(), 3)
    assert next(iterator) == 1 and entered.wait(60)
    iterator.close(0.05)
    assert not ended.is_set() and next(iterator, None) is None
    prefetch._close_all()
    waits.set()
    assert ended.wait(60)


def _in_child(connection, iterator) -> None:
    try:
        connection.send(list(iterator))
    except RuntimeError as error:
        connection.send(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("restarts", [True, False])
def test_a_child_goes_on_where_the_parent_was(restarts):
    source = Source(12)
    iterator = Prefetched(source(), 2, source if restarts else None)
    assert [next(iterator) for _ in range(5)] == [0, 1, 2, 3, 4]
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(there, iterator))
    child.start()
    assert here.poll(60), "the child hangs"
    found = here.recv()
    child.join(60)
    assert child.exitcode == 0
    if restarts:
        assert found == list(range(5, 12))
    else:
        assert "can be read once" in found
    assert list(iterator) == list(range(5, 12))  # the parent's


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('mine')", "os.kill(os.getpid(), 2)"])
@pytest.mark.sampled(2)
def test_the_interpreter_ends(end):
    """With a loop that still holds its thread: the source is closed, and nothing hangs or complains."""
    program = f"""
        import os, sys, signal
        from myia_relay.utils.prefetch import Prefetched
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def source():
            try:
                i = 0
                while True:
                    yield i
                    i += 1
            finally:
                print("closed", flush=True)
        loop = Prefetched(source(), 2)
        next(loop)
        {end}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "closed\n"
    assert "prefetch" not in done.stderr
    assert (done.returncode != 0) == bool(end)
