"""Texts of refusals that a beginner meets: in the words of the program, at its line, with what to write."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import json
import random
import re
import textwrap
import time

import numpy as np
import pytest

from myia_relay import CompileError, relay, vmap


def refusal(program, *args) -> CompileError:
    with pytest.raises(CompileError) as info:
        relay(program)(*args)
    assert info.value.loc is not None
    return info.value


def sorts(nums):
    nums.sort()
    return nums


def reverses(nums):
    nums.reverse()
    return nums


def sorts_an_entry(rows):
    first = rows[0]
    first.sort()
    return first


def test_a_parameter_that_is_changed():
    for program, advice in ((sorts, "nums = sorted(nums)"), (reverses, "nums = nums[::-1]")):
        message = refusal(lambda nums, of=program: sorted([nums], key=of), [3.0, 1.0]).message
        assert message == (
            f"'nums' cannot be changed in place: 'nums' is the parameter 'nums', which belongs to the caller; write {advice}"
        )
    assert "parameter 'rows', which belongs to the caller" in refusal(sorts_an_entry, [[2.0], [1.0]]).message


counter = 0


def counts(n):
    global counter
    counter += 1
    return n


def test_global_shows_both_lines():
    error = refusal(counts, 1)
    assert error.loc.text().strip() == "counter += 1"
    assert "note: 'counter' is declared global here" in str(error) and "    global counter" in str(error)


def ping(n):
    return pong(n + 1)


def pong(n):
    return ping(n) * 2


def test_an_endless_recursion_shows_every_call():
    text = str(refusal(ping, 1))
    assert "has no base case" in text
    assert "note: pong calls ping here" in text and "    return ping(n) * 2" in text
    assert "note: ping calls pong here" in text and "    return pong(n + 1)" in text


@pytest.mark.parametrize(
    ("program", "argument", "text"),
    [
        (
            lambda x: "loss: " + x,
            1.5,
            r"unsupported operand type\(s\) for \+: str and float; make a string of the number first",
        ),
        (lambda x: x + "!", 2, r"for \+: int and str; make a string"),
        (lambda n: (1, 2, 3) * n, 2, r"a tuple has a length known at compile time.*repeat a list: \[\.\.\.\] \* n"),
        (lambda n: (1, 2)[0:1.0], 2, "slice indices must be integers or None"),
        (lambda n: np.zeros(n + 0.5), 2, "this is a float computed at run time"),
    ],
)
def test_single_expressions(program, argument, text):
    assert re.search(text, refusal(program, argument).message)


def accumulates(n):
    text = ""
    while n > 0:
        text = str(n % 2) + text
        n = n // 2
    return text


def test_a_string_that_grows():
    message = refusal(accumulates, 10).message
    assert "it is '' | str before an iteration and str after it" in message
    assert "a string that grows from step to step cannot be made in compiled code: return the numbers" in message
    message = refusal(lambda n: ", ".join([str(i) for i in range(n)]), 3).message
    assert "strings cannot be in a list whose length is known at run time only: return the numbers" in message


def grows(n):
    found = []
    for i in range(n):
        found.append(i)
        found.append(0.5)
    return found


def fills(n):
    found = [None] * n
    for i in range(n):
        found[i] = i
    return found


def counts_by_number(n):
    found = {}
    for i in range(n):
        found[i] = i
    return found


def adds_a_key(d):
    d["b"] = 2.0
    return d


def renames(f):
    f.a = 3.0
    return f


ROWS = np.ones((2, 3))


@pytest.mark.parametrize(
    ("program", "argument", "text"),
    [
        (grows, 3, "entries of one type, and these are int and float"),
        (fills, 3, r"this one has None, and is given int; begin with entries of the type"),
        (
            counts_by_number,
            3,
            "the keys of a dict are strings that are known at compile time, and this one is int; use a list",
        ),
        (lambda d: sorted([d], key=adds_a_key), {"a": 1.0}, r"write d = \{\*\*d, 'b': value\}"),
        (lambda x: x + np.random.rand(2, 3), ROWS, "numpy.random.rand cannot be compiled: .*draw the numbers outside"),
        (lambda x: x * random.random(), ROWS, r"random.random cannot be compiled: .*draw the numbers outside"),
        (lambda x: time.time(), ROWS, "time.time cannot be compiled: a program has no clock"),
        (lambda n: open("f").read(), 3, "open cannot be compiled: read the file outside"),
        (lambda n: set(range(n)), 3, "set cannot be compiled: write a list or a tuple"),
        (lambda n: collections.Counter([n]), 3, "collections.Counter cannot be compiled: write a list"),
        (lambda n: list(itertools.product([1], [n])), 3, "itertools.product cannot be compiled: write loops"),
        (lambda n: json.dumps(n), 3, "json.dumps cannot be compiled: call it outside"),
        (lambda n: hasattr(n, "x"), 3, "hasattr cannot be compiled: .*isinstance"),
        (lambda x: np.fft.hfft(x), ROWS, "numpy.fft.hfft cannot be compiled: .*register it with relay.register_op"),
        (lambda x: np.vectorize(abs)(x), ROWS, r"numpy.vectorize cannot be compiled: write relay.vmap\(f\)\(x\)"),
        (lambda x: np.load("x.npy"), ROWS, "numpy.load cannot be compiled: call it outside"),
        (
            lambda n: functools.lru_cache(lambda k: k)(n),
            3,
            "functools.lru_cache cannot be compiled: .*at the top level",
        ),
        (
            lambda n: textwrap.dedent("a"),
            3,
            "textwrap.dedent cannot be compiled: its source is not part of the language",
        ),
        (renames, 2.0, r"'.a' cannot be assigned to: .*write f = dataclasses.replace\(f, a=value\)"),
        (lambda x: x.detach(), ROWS, r"has no attribute 'detach' in the language; write relay.stop_gradient\(x\)"),
        (lambda x: x.view(-1), ROWS, r"no attribute 'view' in the language; write x.reshape"),
        (lambda x: x.sort(), ROWS, r"write x = np.sort\(x\)"),
        (lambda x: 1 if x.sum else 0, ROWS, r"a method has no truth value; call it, with \(\) behind its name"),
        (lambda x: [1.0, 2.0, 3.0] * x, ROWS, r"make an array of it first: np.array"),
        (lambda x: np.zeros(2, 3), ROWS, r"3 is no dtype; a shape of several sizes is a tuple"),
    ],
)
def test_the_first_hour(program, argument, text):
    error = refusal(program, argument)
    assert re.search(text, error.message), error.message
    assert error.loc.file == __file__


def repeated_text(n):
    return "ab" * n


def first_of(xs):
    return next(iter(xs))


def test_what_a_run_makes_of_strings_and_iterators():
    assert refusal(repeated_text, 3).message == (
        "how often this string is repeated is known at run time only, and a string of such a length cannot be made in "
        "compiled code: return the number, and repeat the string outside"
    )
    assert refusal(first_of, [1, 2]).message == (
        "next cannot be compiled: write a `for` loop, or take the entry of a list: xs[0]"
    )


@dataclasses.dataclass(frozen=True)
class Leaf:
    value: float


@dataclasses.dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def total(t: Tree, x):
    match t:
        case Leaf(value):
            return value * x
        case Node(left, right):
            return total(left, x) + total(right, x)


def test_a_batch_of_trees():
    tree = Node(Leaf(1.0), Leaf(2.0))
    with pytest.raises(CompileError) as info:
        relay(vmap(total))(tree, np.ones(3))
    assert info.value.message == (
        "vmap: argument 0 holds a value of type Leaf | Node, which has no axis to batch along: pass it unbatched, with None "
        "for it in in_axes, or put the values into a list and write a loop over it"
    )
    np.testing.assert_array_equal(relay(vmap(total, in_axes=(None, 0)))(tree, np.ones(3)), 3.0)
