"""Checks of what lies in blocks of lists, tapes, records and frames (`MYIA_RELAY_CHECKED=1`): faults made by hand are found."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from tvm import tirx

from myia_relay import InternalError, grad, relay
from myia_relay.backend.native import guards, library
from myia_relay.backend.tvm.host import data, list_blocks, lists, lower, recursion, references, tapes
from myia_relay.backend.tvm.tir.block import Block, idx


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    if not library.supported():
        pytest.skip("code has the C library's allocator here")
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "1")
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")


def grown(n):
    xs = []
    for i in range(n):
        xs.append(i * i)
    return xs


def changed(n):
    xs = list(range(n))
    ys = xs + [5]
    zs = ys[1:]
    zs.insert(0, 7)
    del ys[0]
    return xs, ys, zs * 2


def rows(n):
    out = [[0]]
    for i in range(n):
        out.append([i + k for k in range(i)])
    return out


def kept(n):
    xs = list(range(n))
    ys = xs
    xs = xs + [1]
    return ys[0] + xs[n]


def powers(x, n):
    s = x
    for _ in range(n):
        s = s * x + np.sin(s) if s < 2.0 else s / 3.0
    return s


def sines(x, n):
    i = 0
    while i < n:
        x = np.sin(x) * x
        i += 1
    return x.sum()


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Fork:
    left: Leaf | Fork
    right: Leaf | Fork
    weight: float


def tree(n: int) -> Leaf | Fork:
    return Leaf(1.0 * n) if n == 0 else Fork(tree(n - 1), Leaf(n * 2.0), n * 1.0)


def total(t: Leaf | Fork) -> float:
    return t.value if isinstance(t, Leaf) else t.weight * (total(t.left) + total(t.right))


def trees(n):
    s = 0.0
    for i in range(n):
        s += total(tree(i))
    return s


def depth(x, n):
    return x if n == 0 else depth(np.sin(x) + x, n - 1) * 2.0


def count(n):
    return n if n < 2 else count(n - 1) + count(n - 2)


def test_right_programs_run():
    for _ in range(2):
        assert relay(grown)(9) == grown(9)
        assert relay(changed)(5) == changed(5)
        assert relay(rows)(5) == rows(5)
        assert relay(kept)(5) == kept(5)
        assert relay(total)(tree(4)) == total(tree(4))
        assert relay(tree)(4) == tree(4)
        assert relay(trees)(5) == trees(5)
        assert relay(count)(12) == 144
    x = np.linspace(0.5, 1.0, 7)
    np.testing.assert_allclose(relay(depth)(x, 3), depth(x, 3))
    assert relay(grad(powers))(1.3, 7) == pytest.approx(
        (powers(1.3 + 1e-6, 7) - powers(1.3 - 1e-6, 7)) / 2e-6, rel=1e-5
    )
    np.testing.assert_allclose(relay(grad(sines))(x, 3), relay(grad(sines), executor="interpreter")(x, 3))


# --- lists ------------------------------------------------------------------------------------------------------------


def test_a_block_that_is_too_small(monkeypatch):
    true = list_blocks.bytes_of
    monkeypatch.setattr(list_blocks, "bytes_of", lambda count, record: list_blocks.plus(true(count, record), idx(-8)))
    with pytest.raises(
        InternalError, match=r"main writes list at (\d+), and the first .* 0 and \d+, at .*test_block_checks"
    ):
        relay(grown)(9)


def test_a_copy_beyond_a_block(monkeypatch):
    true = lists._move
    more = lambda lowering, xs, to, source, n: true(lowering, xs, to, source, list_blocks.plus(n, idx(20)))  # noqa: E731
    monkeypatch.setattr(lists, "_move", more)
    with pytest.raises(InternalError, match=r"(reads|writes) by memmove, in bytes at \d+, and the first and the last"):
        relay(changed)(5)


def test_an_entry_one_too_far(monkeypatch):
    true = list_blocks.Handle.entry
    monkeypatch.setattr(list_blocks.Handle, "entry", lambda self, i: true(self, list_blocks.plus(i, idx(1))))
    with pytest.raises(InternalError, match=r"main writes list at (\d+), and the first .* 0 and \d+, at "):
        relay(grown)(9)


@pytest.mark.parametrize("function", [kept, rows])
def test_a_block_that_is_used_after_it_was_given_back(monkeypatch, function):
    assert relay(function)(4) == function(4)
    for module in (references, lists, list_blocks):
        monkeypatch.setattr(module, "dup", lambda *_: None)
    monkeypatch.setattr(references, "given", lambda lowering, address, at: address)
    monkeypatch.setattr(lists, "given", lambda lowering, address, at: address)
    with pytest.raises(InternalError, match=r"(reads|writes) list at \d+, where it has no memory, or has it no more"):
        relay(function)(4)


def test_a_block_that_is_given_back_twice(monkeypatch):
    true = Block.emit

    def emit(self, stmt):
        true(self, stmt)
        if isinstance(stmt, tirx.Evaluate) and "free" in [getattr(a, "value", None) for a in stmt.value.args][:1]:
            true(self, stmt)

    monkeypatch.setattr(Block, "emit", emit)
    with pytest.raises(InternalError, match=r"list_free\d calls free at 0, where it has no memory, or has it no more"):
        relay(changed)(5)


def test_an_entry_that_was_never_written(monkeypatch):
    monkeypatch.setattr(lists, "_store", lambda *_: None)
    assert relay(grown)(3) == 3 * [guards.POISON]


# --- tapes ------------------------------------------------------------------------------------------------------------


def test_a_record_of_a_tape_that_is_too_small(monkeypatch):
    true = tapes.region

    def region(lowering, tape):
        found = true(lowering, tape)
        if found.record == found.offsets[-1] + 8:
            found.record -= 8
        return found

    monkeypatch.setattr(tapes, "region", region)
    with pytest.raises(InternalError, match=r"main writes rec at 0, and the first and the last .* -\d and -1, at "):
        relay(grad(powers))(1.3, 7)


def test_a_tape_that_has_no_memory(monkeypatch):
    monkeypatch.setattr(tapes, "expect", lambda condition, value: tapes.idx(0) != tapes.idx(0))
    with pytest.raises(InternalError, match=r"main begins to use memory, in bytes at \d+, where it has no memory"):
        relay(grad(powers))(1.3, 7)


def test_a_record_that_is_popped_again(monkeypatch):
    true = tapes._pop

    def pop(lowering, node):
        true(lowering, node)
        lowering.scope.tape_runs.clear()
        true(lowering, node)

    monkeypatch.setitem(lower.RULES, "tape_pop", pop)
    with pytest.raises(InternalError, match=r"main looks at a tape at \d, and the first and the last"):
        relay(grad(powers))(1.3, 7)


# --- records of algebraic data types -----------------------------------------------------------------------------------


def test_a_field_beyond_its_record(monkeypatch):
    assert relay(total)(tree(2)) == total(tree(2))
    true = data.layout

    def layout(family, number):
        offsets, size = true(family, number)
        return (*offsets[:-1], size), size

    monkeypatch.setattr(data, "layout", layout)
    with pytest.raises(InternalError, match=r"reads record at 0, and the first and the last .* -\d and -1, at "):
        relay(total)(tree(2))


def test_a_field_of_another_variant(monkeypatch):
    true = data._is

    def anything(lowering, node):
        true(lowering, node)
        value = lowering.scalar(node.args[0])
        lowering.scope.env[node] = lowering.named(tirx.EQ(value, value))

    monkeypatch.setitem(lower.RULES, "data_is", anything)
    with pytest.raises(InternalError, match=r"looks at a variant's field, of variant at 2, .* 1 and 1, at "):
        relay(lambda t: t.value if isinstance(t, Leaf) else 0.0)(tree(1))


def test_records_that_are_thrown_away_too_early(monkeypatch):
    monkeypatch.setattr(data, "holds_data", lambda t: False)
    with pytest.raises(InternalError, match=r"has an array or a record at .*where it has no memory|variant"):
        relay(lambda n: total(tree(n)))(3)


# --- frames -----------------------------------------------------------------------------------------------------------


def test_a_result_beyond_a_frame(monkeypatch):
    true = recursion.NativeFunction.__post_init__

    def beyond(self):
        true(self)
        self.places = dict.fromkeys(self.places, self.header)

    monkeypatch.setattr(recursion.NativeFunction, "__post_init__", beyond)
    with pytest.raises(InternalError, match=r"writes frame at 0, and the first and the last .* -\d and -1, at "):
        relay(count)(5)


def test_frames_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(recursion.FunctionLowering, "guard", lambda *_: None)
    monkeypatch.setattr(recursion.Calls, "bytes", lambda self: 512)
    with pytest.raises(
        InternalError, match=r"f0_depth (has an array|begins to use memory).* at \d+, .* 0 and 511, at "
    ):
        relay(depth)(np.ones(5), 30)


def test_a_result_that_was_never_written(monkeypatch):
    monkeypatch.setattr(recursion.FunctionLowering, "finish", lambda *_: None)
    assert relay(lambda n: count(n) + 0)(1) == guards.POISON


# --- the state area ---------------------------------------------------------------------------------------------------


def test_a_slot_that_is_not_there(monkeypatch):
    from myia_relay.backend.tvm.host import watch

    true = watch.Watch.finish

    def finish(self):
        memory = true(self)
        memory.slots -= 6
        return memory

    monkeypatch.setattr(watch.Watch, "finish", finish)
    with pytest.raises(InternalError, match=r"main writes slots_i at \d+, and the first and the last"):
        relay(lambda n: (n + 1, n * 2))(4)


# --- the allocator ----------------------------------------------------------------------------------------------------


def test_what_the_allocator_knows():
    own = guards.Guards()
    sizes = [1, 7, 48, 100, 5000]
    blocks = [own.malloc(n) for n in sizes]
    assert [own.nbytes(b) for b in blocks] == sizes
    assert all(b % guards.GRANULE == 0 for b in blocks)
    for b, n in zip(blocks, sizes):
        assert ctypes.string_at(b, n) == (guards.POISON.to_bytes(8, "little") * n)[:n]
        ctypes.memset(b, 17, n)
    assert [ctypes.string_at(b, n) for b, n in zip(blocks, sizes)] == [b"\x11" * n for n in sizes]
    moved = own.realloc(blocks[3], 200)
    assert ctypes.string_at(moved, 100) == b"\x11" * 100 and ctypes.string_at(moved + 100, 2) == b"\xfb\x7f"
    for gone in (blocks[3], blocks[0] + 16, 0x1000):
        for function in (own.nbytes, own.free, lambda b: own.realloc(b, 8)):
            with pytest.raises(InternalError, match="is no block, or a block that has been given back"):
                function(gone)
    own.free(blocks[2])
    assert ctypes.string_at(blocks[2], 2) == b"\xfb\x7f"
    own.free(None)
    assert own.malloc(own.size) == 0


def test_places_are_used_again_after_a_while(monkeypatch):
    monkeypatch.setattr(guards, "WAITING", 1 << 12)
    own = guards.Guards()
    seen, last = set(), []
    for _ in range(200):
        block = own.malloc(100)
        assert block not in last[-10:]
        own.free(block)
        last.append(block)
        seen.add(block)
    assert 10 < len(seen) < 40


def test_threads_get_blocks_of_their_own():
    own, out = guards.Guards(), []

    def work():
        mine = [own.malloc(64) for _ in range(2000)]
        out.extend(mine)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(set(out)) == 8000


def test_an_interrupt_in_the_allocator_comes_later():
    calls = []

    def malloc(n):
        calls.append(n)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return 5

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        function = guards._undisturbed(malloc)
        with pytest.raises(KeyboardInterrupt):
            assert function(8) == 5
            for _ in range(100_000_000):
                calls.append(1)
                calls.pop()
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls[:2] == [8, 8]


def test_a_failed_call_leaves_nothing_behind_that_others_trip_over(monkeypatch):
    f = relay(rows)
    with monkeypatch.context() as patch:
        patch.setattr(references, "given", lambda lowering, address, at: address)
        patch.setattr(lists, "given", lambda lowering, address, at: address)
        with pytest.raises(InternalError):
            f(4)
        with pytest.raises(InternalError):
            f(4)
    assert relay(rows)(4) == rows(4)


def test_the_code_is_the_same_without(monkeypatch):
    x = np.linspace(0.5, 1.0, 7)
    calls = [(changed, (5,)), (trees, (5,)), (grad(powers), (1.3, 7)), (grad(sines), (x, 3)), (depth, (x, 3))]
    for function, args in calls:
        assert "memory_look" in str(relay(function).tir(*args))
    monkeypatch.setenv("MYIA_RELAY_CHECKED", "0")
    for function, args in calls:
        plain = str(relay(function).tir(*args))
        assert "memory_" not in plain and "myia_relay_" not in plain.replace("myia_relay_serve", "")


def test_a_process_ends_well_with_blocks_in_use():
    text = (
        "import os\nos.environ.update(MYIA_RELAY_CHECKED='1', MYIA_RELAY_CACHE='0')\n"
        "from tests.unit.backend.test_block_checks import *\n"
        "print(relay(grown)(3), relay(grad(powers))(1.3, 4) > 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1, 4] True\n", "")
