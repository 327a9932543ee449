"""Threads that compile at the same time: what compilations share is made once, and calls wait for nothing."""

from __future__ import annotations

import importlib.util
import sys
import threading

import numpy as np
import pytest

import myia_relay as relay
from myia_relay import api
from myia_relay.abstract.families import family_of
from myia_relay.utils.compiling import compiling, once

TEXT = """
type List[A] { Cons(A, List[A]), Nil, }
type Tree%d { Leaf(float32), Node(Tree%d, float32, Tree%d), }
def @upto(%%n: int32) -> List[int32] { if (%%n == 0) { Nil } else { Cons(%%n, @upto(%%n - 1)) } }
def @total(%%l: List[int32]) -> int32 { match (%%l) { Cons(%%h, %%t) => %%h + @total(%%t), Nil => 0, } }
def @full(%%n: int32) -> Tree%d { if (%%n == 0) { Leaf(1f) } else { Node(@full(%%n - 1), 2f, @full(%%n - 1)) } }
def @sum(%%t: Tree%d) -> float32 {
  match (%%t) { Leaf(%%x) => %%x * %%x, Node(%%l, %%x, %%r) => @sum(%%l) + %%x + @sum(%%r), }
}
def @both(%%n: int32) -> int32 { @total(@upto(%%n)) }
"""
PYTHON = """
from __future__ import annotations

from dataclasses import dataclass

from myia_relay import grad, relay


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Leaf | Node
    right: Leaf | Node


def squares(tree):
    if isinstance(tree, Leaf):
        return tree.value * tree.value
    return squares(tree.left) + squares(tree.right)


def grown(x, n):
    while n > 0:
        x = x * 1.5 + n
        n = n - 1
    return x


@relay
def total(tree):
    return squares(tree)


@relay
def slopes(tree):
    return grad(squares)(tree)


@relay
def grows(x):
    return grown(x, 3)


@relay
def slope(x):
    return grad(grown)(x, 3)
"""


def at_once(*work):
    """The results of functions that threads call at the same time; errors raised there are among them."""
    results, barrier = [None] * len(work), threading.Barrier(len(work))

    def run(k):
        barrier.wait()
        try:
            results[k] = work[k]()
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def eager():
    """Threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Imports `PYTHON` as a module of a name."""

    def fresh(name):
        path = tmp_path / f"{name}.py"
        path.write_text(PYTHON)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return fresh


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attempt", range(3))
def test_first_calls_at_the_same_time(attempt, eager, imported, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "0")
    text, python = relay.parse_text(TEXT % ((attempt,) * 5)), imported(f"at_once_{attempt}")
    tree = python.Node(python.Leaf(1.0), python.Node(python.Leaf(2.0), python.Leaf(3.0)))
    results = at_once(
        lambda: int(text["total"](text["upto"](4))),
        lambda: int(text["both"](5)),
        lambda: float(text["sum"](text["full"](2))),
        lambda: str(text["upto"](2)),
        lambda: python.total(tree),
        lambda: python.slopes(tree),
        lambda: python.grows(1.0),
        lambda: python.slope(1.0),
    )
    slopes = python.Node(python.Leaf(2.0), python.Node(python.Leaf(4.0), python.Leaf(6.0)))
    numbers = "Cons(np.int32(2), Cons(np.int32(1), Nil()))"
    assert results == [10, 15, 10.0, numbers, 14.0, slopes, ((1.5 + 3) * 1.5 + 2) * 1.5 + 1, 1.5**3]


def test_a_family_is_found_once(eager, imported):
    for attempt in range(20):
        module = imported(f"families_{attempt}")
        families = at_once(*[lambda c=c: family_of(c) for c in (module.Leaf, module.Node) * 3])
        assert families[0] is not None and all(f is families[0] for f in families)


def test_once_makes_one_object(eager):
    calls = []

    @once
    def made(key):
        calls.append(key)
        return [key]

    results = at_once(*[lambda k=k: made(k % 2) for k in range(12)])
    assert sorted(calls) == [0, 1] and all(r is made(k % 2) for k, r in enumerate(results))
    with pytest.raises(TypeError, match="unhashable"):
        made([])


def test_a_call_waits_for_no_compilation():
    """Neither one of a program that is there, nor of another set of arguments of it."""
    double = relay.relay(lambda x: x * 2)
    assert double(1.0) == 2.0 and np.array_equal(double(np.ones(3)), [2, 2, 2])
    held, free = threading.Event(), threading.Event()

    def compile_long():
        with compiling():
            held.set()
            free.wait(60)

    thread = threading.Thread(target=compile_long)
    thread.start()
    held.wait()
    try:
        assert at_once(lambda: double(4.0), lambda: double(np.ones(3))[0]) == [8.0, 2.0]
    finally:
        free.set()
        thread.join()


def test_deep_programs_compile_beside_others(tmp_path, monkeypatch):
    """A deeply nested function is compiled on a thread of its own, for the thread that waits for it."""
    tests = [f"    {'el' if k else ''}if x == {k}:\n        x = x + {k}" for k in range(500)]
    path = tmp_path / "deep.py"
    path.write_text("\n".join(["def deep(x):", *tests, "    return x", ""]))
    made: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), made)
    asked = []
    deeply = api.deeply
    monkeypatch.setattr(api, "deeply", lambda function: asked.append(function) or deeply(function))
    deep, other = relay.relay(made["deep"], executor="python"), relay.relay(lambda x: x - 1.0, executor="python")
    assert at_once(lambda: deep(7), lambda: other(3.0)) == [14, 2.0]
    assert len(asked) == 1
