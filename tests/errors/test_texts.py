"""Texts of refusals that a beginner meets: in the words of the program, at its line, with what to write."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import heapq
import itertools
import json
import math
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


def test_a_parameter_that_is_changed():
    for program, advice in ((sorts, "nums = sorted(nums)"), (reverses, "nums = nums[::-1]")):
        message = refusal(lambda nums, of=program: sorted([nums], key=of), [3.0, 1.0]).message
        assert message == (
            f"'nums' cannot be changed in place: 'nums' is the parameter 'nums', which belongs to the caller; write {advice}"
        )


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
        (lambda n: heapq.heappush([n], n), 3, r"^heapq.heappush cannot be compiled: .*xs.insert\(place, v\)"),
        (lambda n: bisect.bisect_left([n], n), 3, r"^bisect.bisect_left cannot be compiled: write np.searchsorted"),
        (lambda n: chr(n), 97, "^chr cannot be compiled: .*call chr outside"),
        (lambda n: ord(str(n)), 9, "^ord cannot be compiled: the characters of strings are known at compile time only"),
        (
            lambda x: np.zeros((int(x[0, 0]) + 1, 3)) @ np.ones((2, 2)),
            ROWS,
            r"\(\?, 3\) and .*\(\?: a size that only a run tells\)",
        ),
        (
            lambda x: relay.softmax_cross_entropy(x, np.ones(2)),
            ROWS,
            r"labels of shape \(2,\) .* are class numbers, which are integers, and these are float64",
        ),
        (
            lambda x: relay.softmax_cross_entropy(x, np.ones((1, 3))),
            ROWS,
            r"a class number for each row of logits \(integers of shape \(2,\)\)",
        ),
        (lambda n: int([n]), 1, r"unsupported operand type\(s\) for int: \[int\]$"),
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
        (lambda x: 1 if x.sum else 0, ROWS, r"a method has no truth value; call it, with \(\) behind its name"),
        (lambda x: np.zeros(2, 3), ROWS, r"3 is no dtype; a shape of several sizes is a tuple"),
    ],
)
def test_the_first_hour(program, argument, text):
    error = refusal(program, argument)
    assert re.search(text, error.message), error.message
    assert error.loc.file == __file__


def repeated_text(n):
    return "ab" * n


def test_a_string_that_a_run_repeats():
    assert refusal(repeated_text, 3).message == (
        "how often this string is repeated is known at run time only, and a string of such a length cannot be made in "
        "compiled code: return the number, and repeat the string outside"
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


def nests(n, found):
    return found if n == 0 else nests(n - 1, [n, found])


def test_types_that_grow_are_not_shown_to_their_ends():
    message = refusal(lambda n: nests(n, 0), 50).message
    assert re.search(r"grow without bound: a call has the types int, \[int, \[int, \[\.\.\.\]\]\];", message)


def test_what_a_run_refuses_has_a_place(executor):
    """What CPython computes, and compiled code does not, is refused where it stands, also where only a run tells."""
    for function, argument, words in (
        (lambda n: n**-n, 2, "-2 is a negative exponent"),
        (lambda n: n ** (1 / 3), -8, "is complex, which compiled code has not"),
        (lambda n: (-8) ** (n / 3), 1, "is complex"),
        (lambda n: np.flatnonzero([1] * n), 0, "an empty list makes an array of floats"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            relay(function, executor=executor)(argument)
        assert isinstance(caught.value, CompileError) and caught.value.loc.file == __file__


def test_characters_that_are_known(executor):
    def code(n):
        total = 0
        for c in "abc":
            total += ord(c) - ord("a")
        return total + n, chr(65) + chr(ord("A") + 1), hex(255)

    assert relay(code, executor=executor)(2) == code(2)


def test_copies_of_texts(executor, capsys):
    def shows(n):
        print(str(n) * 3 + "-" * 2, f"{n}!" * 0, 2 * f"{n / 2},")

    relay(shows, executor=executor)(12)
    assert capsys.readouterr().out == "121212--  6.0,6.0,\n"


@pytest.mark.parametrize(
    "program", [lambda n: (1,) * 2.0, lambda n: [n] * 1.5, lambda n: "a" * 2.0, lambda n: (n,) * (n / 2)]
)
def test_sequences_times_floats(program):
    with pytest.raises(TypeError) as want:
        program(3)
    assert refusal(program, 3).message == str(want.value)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x: np.stack(x[0, 0]), "np.stack takes a list or a tuple of arrays"),
        (lambda x: np.concatenate(2.0), "np.concatenate takes a list or a tuple of arrays"),
        (lambda x: np.arange((x,)), "np.arange takes ints and floats"),
        (lambda x: math.prod(x), r"write np.prod\(x\)"),
        (lambda x: np.pad(x[0, 0], [x, 3]), "pad_width is made of ints"),
        (lambda x: np.einsum("ab"), "np.einsum needs an operand for each term"),
        (lambda x: x[{"a": 0}], "is no index"),
        (lambda x: not np.zeros(0), "the truth value of an empty array is ambiguous"),
        (lambda x: np.zeros(0) or x, "the truth value of an empty array is ambiguous"),
    ],
)
def test_mistakes_that_were_taken_for_ours(program, words):
    assert re.search(words, refusal(program, ROWS).message)


def test_rows_of_an_array_are_a_sequence_of_arrays(executor):
    def joins(x):
        return np.concatenate(x), np.stack(x, 1), np.vstack(x), np.roll(x, (), ())

    for got, want in zip(relay(joins, executor=executor)(ROWS), joins(ROWS), strict=True):
        np.testing.assert_array_equal(got, want)
    assert np.isnan(relay(lambda x: np.cov(x), executor=executor)(2.5))
