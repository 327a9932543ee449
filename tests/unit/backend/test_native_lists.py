"""Run-time lists in native code: their memory, by the books of an allocator that forgives nothing.

After each call the blocks that are left are those of the result, each with the references that the result has to it; and it is
stated how many blocks a program asks for: a reference too many is a copy too many.
"""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.structures import Items
from myia_relay.abstract.types import FLOAT, INT, Array, List, leaves, tuple_of
from myia_relay.backend.interpreter import run
from myia_relay.backend.native import blocks, entry, lists
from myia_relay.backend.tvm.program import compile_program
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from tests.typed_graphs import apply, build, call, cond, for_, staged, while_
from tests.unit.backend import ledger as books

ROW, ROWS = List(INT), List(List(INT))
RECORD = tuple_of(INT, ROW, FLOAT)
RECORDS = List(RECORD)
EMPTY = 1 << 40  # references that the block of all empty lists has from the start


def expected_references(slots, signature) -> dict[int, int]:
    """Block -> references that a result has to it."""
    found: dict[int, int] = {}
    roots = [
        (slots[place[1]], t)
        for place, t in zip(signature.results, leaves(signature.output), strict=True)
        if place[0] == "list"
    ]
    stack = list(roots)
    while stack:
        address, t = stack.pop()
        found[address] = found.get(address, 0) + 1
        if found[address] > 1:
            continue
        types, offsets, record = blocks.entry_layout(t.elem)
        for k in range(lists.word(address, blocks.LENGTH)):
            for at, leaf in zip(offsets, types, strict=True):
                if isinstance(leaf, List):
                    word = (blocks.HEADER + k * record + at) // 8
                    stack.append((lists.word(address, word), leaf))
    return found


class Program:
    """A native program whose lists are watched."""

    def __init__(self, graph, ledger: books.Ledger, patch: pytest.MonkeyPatch):
        self.ledger, self.graph = ledger, graph
        patch.setattr(entry.Entry, "release_lists", self.release)
        self.program = compile_program(graph)

    def release(self, state) -> None:
        """What is done with the lists of a call, when its results have been read."""
        slots, signature = state[2], self.signature
        chain = books.blocks(slots, signature.list_head)
        references = expected_references(slots, signature)
        counts = {a: lists.word(a, blocks.COUNT) for a in chain}
        empty = [a for a in references if a not in counts]
        assert len(empty) <= 1 and all(lists.word(a, blocks.LENGTH) == 0 for a in empty)
        assert all(lists.word(a, blocks.COUNT) == EMPTY + references.pop(a) for a in empty)
        assert counts == references, "references of blocks: what they are, and what the result has"
        lists.release(slots, signature.list_head, self.ledger.functions["free"])
        self.released = True

    def __call__(self, *args):
        self.signature = self.program.entry.signature
        self.released = False
        before = self.ledger.calls["malloc"], self.ledger.calls["realloc"]
        result = self.program(*args)
        assert self.released or not self.ledger.live  # with no list left there is nothing to give back
        self.ledger.check()
        assert not self.ledger.live
        self.made = self.ledger.calls["malloc"] - before[0]
        self.grown = self.ledger.calls["realloc"] - before[1]
        return result


@pytest.fixture
def watched():
    """Makes native programs that are watched."""
    gc.collect()  # what earlier tests left is given back to where it came from
    with books.kept() as ledger, pytest.MonkeyPatch.context() as patch:
        programs: list[Program] = []

        def make(graph) -> Program:
            programs.append(Program(graph, ledger, patch))
            return programs[-1]

        yield make
        for program in programs:
            del program.program


def plain(value):
    """A result of the interpreter with lists for what stands for lists."""
    if isinstance(value, Items | list):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def assert_runs(program: Program, *args) -> None:
    for _ in range(2):
        assert_equal(program(*args), plain(run(program.graph, args)))


def assert_equal(a, b) -> None:
    assert type(a) is type(b), (a, b)
    if isinstance(a, tuple | list):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b, (a, b)


def new(b, elem, *entries):
    """A list of these entries."""
    return Var(b, b.emit(REGISTRY["list_new"], tuple(staged(b, e).node for e in entries), {"elem": elem}))


# --- random programs -----------------------------------------------------------------------------------------------------


class Random:
    """A random program on lists of numbers, of lists, and of records with lists.

    Any value that there is may be used again, so lists are shared in all ways: old versions beside new ones, entries that were read
    beside their lists, the same list in several entries, arguments of branches, loops and functions beside their results.
    """

    KINDS = (ROW, ROWS, RECORDS)

    def __init__(self, seed: int):
        self.draw = random.Random(seed)

    def graph(self):
        return build(self.main, INT)

    def main(self, n):
        pool = {INT: [n], ROW: [], ROWS: [], RECORDS: []}
        for _ in range(14):
            self.statement(pool, 2)
        for kind in self.KINDS:
            self.value(pool, kind)
        return tuple(self.value(pool, self.draw.choice(self.KINDS)) for _ in range(4)) + (self.value(pool, INT),)

    def value(self, pool, kind):
        """Some value of a type; the latest ones are the most likely."""
        found = pool[kind]
        if not found:
            found.append(self.new(pool, kind))
        return self.draw.choice(found[-4:])

    def entry(self, pool, kind):
        if kind == ROW:
            return self.value(pool, INT)
        if kind == ROWS:
            return self.value(pool, ROW)
        number = self.value(pool, INT)
        return staged(number.builder, (number, self.value(pool, ROW), 0.5))

    def new(self, pool, kind):
        entries = [self.entry(pool, kind) for _ in range(self.draw.choice((0, 1, 2)))]
        return new(pool[INT][0].builder, kind.elem, *entries)

    def place(self, pool, xs):
        """A position in a list, which is made longer for it."""
        xs = apply("list_push", xs, self.entry(pool, xs.type))
        count = apply("list_len", xs)
        return xs, apply("mod", apply("add", self.value(pool, INT), self.draw.randint(0, 5)), count)

    def change(self, pool, xs):
        """A list made of another one."""
        name = self.draw.choice(("push", "set", "insert", "delete", "truncate", "concat", "slice", "repeat", "new"))
        if name == "new":
            return self.new(pool, xs.type)
        if name == "push":
            return apply("list_push", xs, self.entry(pool, xs.type))
        if name == "concat":
            return apply("list_concat", xs, self.value(pool, xs.type))
        if name == "repeat":
            return apply("list_repeat", apply("list_truncate", xs, 3), self.draw.randint(0, 2))
        if name == "truncate":
            return apply("list_truncate", xs, self.draw.randint(0, 4))
        if name == "slice":
            count = apply("list_len", xs)
            if self.draw.random() < 0.5:
                return apply("list_slice", xs, count - 1, count, -1)
            return apply("list_slice", xs, 1, count - 1, 1)
        xs, k = self.place(pool, xs)
        if name == "delete":
            return apply("list_delete", xs, k)
        return apply(f"list_{name}", xs, k, self.entry(pool, xs.type))

    def statement(self, pool, depth):
        draw = self.draw
        choice = draw.random()
        kind = draw.choice(self.KINDS)
        if choice < 0.15:
            xs, k = self.place(pool, self.value(pool, kind))
            entry = apply("list_get", xs, k)
            pool[kind].append(xs)
            if kind == RECORDS:
                entry = entry[1]
            pool[entry.type].append(entry)
        elif choice < 0.2:
            pool[INT].append(apply("list_len", self.value(pool, kind)))
        elif choice < 0.7 or not depth:
            pool[kind].append(self.change(pool, self.value(pool, kind)))
        else:
            self.control(pool, depth - 1)

    def control(self, pool, depth):
        kinds = [self.draw.choice(self.KINDS) for _ in range(self.draw.choice((1, 2, 2)))]
        given = [self.value(pool, k) for k in kinds]
        more = [self.value(pool, INT), self.value(pool, ROW), self.value(pool, self.draw.choice(self.KINDS))]

        def body(*args):
            inner = {INT: [], ROW: [], ROWS: [], RECORDS: []}
            for a in args:
                inner[a.type].append(a)
            for _ in range(2):
                self.statement(inner, depth)
            return tuple(self.value(inner, k) for k in kinds)

        way = self.draw.choice(("cond", "for", "while", "call"))
        if way == "cond":
            out = cond(self.value(pool, INT) > 3, body, body, *given, *more)
        elif way == "for":
            out = for_((0, apply("minimum", self.value(pool, INT), 2), 1), body, given, more)
        elif way == "while":
            test = lambda k, *rest: k < 2  # noqa: E731
            out = while_(test, lambda k, *rest: (k + 1, *body(*rest)), (pool[INT][0] * 0, *given), more)
            out = [out[j + 1] for j in range(len(kinds))]
        else:
            out = call(build(body, *[v.type for v in (*given, *more)], name="sub"), *given, *more)
        for j, k in enumerate(kinds):
            pool[k].append(out[j])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(3)
def test_random_programs(seed, watched):
    program = watched(Random(seed).graph())
    for n in (0, 1, 4):
        assert_runs(program, n)


# --- whose last use it is ------------------------------------------------------------------------------------------------


def push(xs, entry):
    return apply("list_push", xs, entry)


def get(xs, k):
    return apply("list_get", xs, k)


def length(xs):
    return apply("list_len", xs)


def counted(n):
    """A list of two numbers, in a block of its own."""
    return new(n.builder, INT, n, n + 1)


def pushed_and_forgotten(n):
    return push(push(counted(n), 1), 2)


def empty(n):
    xs = new(n.builder, INT)
    return xs, new(n.builder, ROW, xs), xs


def pushed_and_kept(n):
    xs = counted(n)
    return push(xs, 1), xs


def pushed_twice(n):
    xs = counted(n)
    return push(xs, 1), push(xs, 2)


def looked_at_before(n):
    xs = counted(n)
    k = length(xs)
    return push(xs, k)


def looked_at_behind(n):
    xs = counted(n)
    return push(xs, 1), length(xs)


def joined_with_itself(n):
    xs = counted(n)
    return apply("list_concat", xs, xs)


def never_looked_at(n):
    counted(n)
    return push(counted(n), 3)


def in_a_pair(n):
    pair = staged(n.builder, (counted(n), counted(n + 1)))
    return push(pair[0], 1), pair[1]


def in_a_pair_that_is_kept(n):
    pair = staged(n.builder, (counted(n), n))
    return push(pair[0], 1), pair


def in_a_pair_of_pairs(n):
    pair = staged(n.builder, ((counted(n), n), counted(n)))
    return push(pair[0][0], 1), push(pair[1], 2)


def entry_of_two(n):
    xs = counted(n)
    return new(n.builder, ROW, xs, xs)


def entry_and_kept(n):
    xs = counted(n)
    return new(n.builder, ROW, xs), xs


def entry_read_and_changed(n):
    rows = new(n.builder, ROW, counted(n), counted(n))
    return push(get(rows, 0), 1), rows


def entry_read_last(n):
    rows = new(n.builder, ROW, counted(n), counted(n))
    return push(get(rows, 0), 1)


def entry_replaced(n):
    rows = new(n.builder, ROW, counted(n), counted(n))
    return apply("list_set", rows, 1, push(get(rows, 0), 7))


def loop(n):
    return for_((0, n, 1), lambda i, xs: (push(xs, i),), (counted(n),))[0]


def loop_that_keeps_the_old_one(n):
    xs = counted(n)
    return for_((0, n, 1), lambda i, xs: (push(xs, i),), (xs,))[0], xs


def loop_beside_itself(n):
    xs = counted(n)
    return for_((0, n, 1), lambda i, xs, c: (push(xs, length(c)),), (xs,), (xs,))[0]


def loop_over_two(n):
    return for_((0, n, 1), lambda i, a, b: (push(b, i), a), (counted(n), counted(n)))


def loop_with_one_twice(n):
    xs = counted(n)
    return for_((0, n, 1), lambda i, a, b: (push(a, i), b), (xs, xs))


def loop_that_forgets(n):
    return for_((0, n, 1), lambda i, a, b: (counted(i), push(b, length(a))), (counted(n), counted(n)))[1]


def loop_of_pairs(n):
    pair = staged(n.builder, (counted(n), n))
    return for_((0, n, 1), lambda i, p: ((push(p[0], i), p[1] + i),), (pair,))[0]


def loop_for_nothing(n):
    xs = counted(n)
    for_((0, n, 1), lambda i, k, c: (k + length(push(c, i)),), (n,), (xs,))
    return push(xs, 1)


def whiles(n):
    return while_(lambda k, xs: k > 0, lambda k, xs: (k - 1, push(xs, k)), (n, counted(n)))[1]


def branch(n):
    return cond(n > 2, lambda xs: push(xs, 1), lambda xs: xs, counted(n))


def branch_that_keeps_the_old_one(n):
    xs = counted(n)
    return cond(n > 2, lambda xs: push(xs, 1), lambda xs: xs, xs), xs


def branch_beside_itself(n):
    xs = counted(n)
    return cond(n > 2, lambda a, b: push(a, length(b)), lambda a, b: push(b, length(a)), xs, xs)


def branch_beside_its_pair(n):
    xs = counted(n)
    pair = staged(n.builder, (xs, n))
    return cond(n > 2, lambda a, p: push(a, length(p[0])), lambda a, p: push(p[0], length(a)), xs, pair)


def branch_that_forgets(n):
    return cond(n > 2, lambda xs, n: push(xs, 1), lambda xs, n: counted(n), counted(n), n)


def branch_looks_only(n):
    xs = counted(n)
    k = cond(n > 2, lambda a: length(a), lambda a: get(a, 0), xs)
    return push(xs, k)


def called(n):
    inner = build(lambda xs, n: push(xs, n), ROW, INT, name="inner")
    return call(inner, call(inner, counted(n), n), n)


def called_and_kept(n):
    inner = build(lambda xs, n: push(xs, n), ROW, INT, name="inner")
    xs = counted(n)
    return call(inner, xs, n), xs


def called_with_one_twice(n):
    inner = build(lambda a, b: push(a, length(b)), ROW, ROW, name="inner")
    xs = counted(n)
    return call(inner, xs, xs)


def branch_of_a_pair_in_a_pair(n):
    def nested(k):
        return lambda n: staged(n.builder, ((n + k, push(counted(n), n)), counted(n)))

    (number, xs), ys = (found := cond(n > 1, nested(1), nested(2), n))[0], found[1]
    xs, ys = push(xs, length(ys)), push(ys, n)
    return length(xs) + number, length(ys) + number


def called_with_a_pair(n):
    inner = build(lambda p, n: push(p[0], n), tuple_of(ROW, ROW), INT, name="inner")
    return call(inner, staged(n.builder, (counted(n), counted(n))), n)


OWNED = {
    pushed_and_forgotten: (1, 1),
    empty: (1, 1),
    pushed_and_kept: (2, 2),
    pushed_twice: (2, 2),
    looked_at_before: (1, 1),
    looked_at_behind: (2, 2),
    joined_with_itself: (2, 2),
    never_looked_at: (2, 2),
    in_a_pair: (2, 2),
    in_a_pair_that_is_kept: (2, 2),
    in_a_pair_of_pairs: (2, 2),
    entry_of_two: (2, 2),
    entry_and_kept: (2, 2),
    entry_read_and_changed: (4, 4),
    entry_read_last: (3, 3),
    entry_replaced: (4, 4),
    loop: (1, 1),
    loop_that_keeps_the_old_one: (1, 2),
    loop_beside_itself: (1, 2),
    loop_over_two: (2, 2),
    loop_with_one_twice: (1, 2),
    loop_that_forgets: (2, 5),
    loop_of_pairs: (1, 1),
    loop_for_nothing: (1, 4),
    whiles: (1, 1),
    branch: (1, 1),
    branch_that_keeps_the_old_one: (1, 2),
    branch_beside_itself: (2, 2),
    branch_beside_its_pair: (2, 2),
    branch_that_forgets: (2, 1),
    branch_looks_only: (1, 1),
    branch_of_a_pair_in_a_pair: (2, 2),
    called: (1, 1),
    called_and_kept: (2, 2),
    called_with_one_twice: (2, 2),
    called_with_a_pair: (3, 3),
}
"""Program -> blocks that it asks for, where n is 0 and 3."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("f", OWNED, ids=lambda f: f.__name__)
def test_owners(f, watched):
    program = watched(build(f, INT))
    for n, count in zip((0, 3), OWNED[f], strict=True):
        assert_runs(program, n)
        assert program.made == count


def countdown():
    """A function that runs itself again, and makes lists."""
    graph = Graph("countdown")
    b = Builder(graph)
    n = b.var(graph.add_parameter("n", INT))
    graph.output = n.node  # its type, until there is an output

    def again(n):
        xs = push(counted(n), call(graph, n - 1))
        return apply("add", get(xs, 2), length(push(xs, n)))

    graph.output = cond(n > 0, again, lambda n: length(new(n.builder, INT)), n).node
    return graph


def test_lists_of_a_function_that_runs_itself_again(watched):
    """They are in the chain of the program, which has no others."""
    graph = countdown()
    program = watched(build(lambda n: call(graph, n), INT))
    for n, count in ((0, 0), (3, 3)):
        assert_runs(program, n)
        assert program.made == count


# --- operations ----------------------------------------------------------------------------------------------------------


def entries_of(n, kind):
    """Makes entries of a type, different for different numbers."""

    def entry(k):
        i = apply("add", n, k)
        x = apply("cast", i, dtype="float64", weak=True)
        if kind == "numbers":
            return i
        if kind == "bytes":
            return apply("cast", i, dtype="uint8", weak=False)
        if kind == "truths":
            return i > 2
        if kind == "arrays":
            return staged(n.builder, np.array([1.0, 2.0, 4.0])) * x
        if kind == "lists":
            return new(n.builder, INT, i, k)
        parts = (i > 2, i, new(n.builder, INT, i), staged(n.builder, np.array([1.0, 3.0])) * x, x, new(n.builder, INT))
        return staged(n.builder, parts)

    return entry


KINDS = ["numbers", "bytes", "truths", "arrays", "lists", "records"]


@pytest.mark.parametrize("kind", KINDS)
def test_changes(kind, watched):
    def f(n):
        entry = entries_of(n, kind)
        elem = entry(0).type
        xs = new(n.builder, elem, *(entry(k) for k in range(3)))
        xs = apply("list_insert", xs, 0, entry(3))
        xs = apply("list_insert", xs, 2, entry(4))
        xs = apply("list_insert", xs, 5, entry(5))
        xs = push(push(xs, entry(6)), entry(7))
        gone = get(xs, n)
        xs = apply("list_delete", xs, n)
        xs = apply("list_set", xs, apply("add", n, 1), entry(8))
        old, xs = xs, apply("list_set", xs, 0, entry(9))
        cut = apply("list_truncate", xs, apply("sub", length(xs), 2))
        all_ = apply("list_truncate", apply("list_truncate", old, 100), 100)
        none = apply("list_truncate", new(n.builder, elem, entry(1)), apply("sub", n, 5))
        return xs, cut, all_, gone, none, push(none, entry(1)), new(n.builder, elem)

    program = watched(build(f, INT))
    for n in (0, 3):
        assert_runs(program, n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(2)
def test_lists_of_lists_together(kind, watched):
    def f(n):
        entry = entries_of(n, kind)
        elem = entry(0).type
        xs = new(n.builder, elem, *(entry(k) for k in range(5)))
        few = apply("list_truncate", xs, n)
        both = apply("list_concat", few, xs)
        parts = [apply("list_slice", xs, *bounds) for bounds in ((0, 2, 2), (4, 3, -1), (1, 3, 1), (2, n - 3, 1))]
        again = apply("list_repeat", few, 2), apply("list_repeat", few, n - 1), apply("list_repeat", few, -1)
        return both, *parts, *again, apply("list_concat", new(n.builder, elem), few), length(both)

    program = watched(build(f, INT))
    for n in (0, 1, 3):
        assert_runs(program, n)


def test_arrays_and_lists(watched):
    def f(x, k):
        xs = apply("list_from_array", x)
        ys = apply("list_from_array", k)
        y = apply("list_to_array", xs, size=2)
        z = apply("list_to_array", push(xs, 7.0), size=6)
        return xs, ys, y, z, apply("list_to_array", apply("list_truncate", xs, 0), size=2)

    program = watched(build(f, Array("float64", (symbol("n"),)), Array("int32", (3,))))
    for x in ([], [1.5], [1.0, 2.0, 3.0, 4.0]):
        assert_runs(program, np.array(x), np.array([1, -2, 3], "int32"))


def test_an_array_beside_a_list_is_changed_in_place(watched):
    def body(i, xs, a):
        return push(xs, i), apply("dynamic_update", a, apply("cast", i, dtype="float64", weak=False), i, axis=0)

    graph = build(lambda x, n: for_((0, n, 1), body, (counted(n), x * 2.0)), Array("float64", (40,)), INT)
    assert "memmove" not in str(compile_program(graph).tir["main"])
    program = watched(graph)
    for n in (0, 1, 5):
        assert_runs(program, np.ones(40), n)


def test_a_branch_beside_a_list_changes_an_array_in_place(watched):
    def body(i, xs, a):
        pair = cond(
            i > 1,
            lambda xs, a, i: staged(i.builder, (push(xs, i), apply("dynamic_update", a, 1.0, i, axis=0))),
            lambda xs, a, i: staged(i.builder, (xs, apply("dynamic_update", a, 2.0, i, axis=0))),
            xs, a, i,
        )  # fmt: skip
        return pair[0], pair[1]

    graph = build(lambda x, n: for_((0, n, 1), body, (counted(n), x * 2.0)), Array("float64", (40,)), INT)
    assert "memmove" not in str(compile_program(graph).tir["main"])
    program = watched(graph)
    for n in (0, 1, 5):
        assert_runs(program, np.ones(40), n)


def test_a_program_without_lists():
    program = compile_program(build(lambda x: x * 2.0, Array("float64", (4,))))
    np.testing.assert_array_equal(program(np.arange(4.0)), np.arange(4.0) * 2.0)


def test_lists_of_derivatives(watched):
    """What a list lacks is zero."""
    pair = tuple_of(FLOAT, Array("float64", (3,)))

    def f(n, v):
        x = apply("cast", n, dtype="float64", weak=True)
        xs = new(n.builder, FLOAT, x, x + 1.0)
        ps = new(n.builder, pair, staged(n.builder, (x, v)), staged(n.builder, (x, v * 2.0)))
        far = apply("list_accumulate", xs, n, x * 3.0, elem=FLOAT)
        further = apply("list_accumulate", ps, n, staged(n.builder, (x, v + 1.0)), elem=pair)
        at = [apply("list_at", xs, k, elem=FLOAT) for k in (0, 1, n)]
        parts = [apply("list_at", ps, k, elem=pair) for k in (1, n)]
        sizes = [apply("list_resize", xs, k, elem=FLOAT) for k in (0, 1, n, n - 4)]
        more = apply("list_resize", ps, n, elem=pair)
        return far, further, *at, *parts, *sizes, more, xs, ps

    program = watched(build(f, INT, Array("float64", (3,))))
    for n in (0, 1, 2, 6):
        assert_runs(program, n, np.array([0.5, 1.0, 2.0]))


# --- no memory -----------------------------------------------------------------------------------------------------------


def all_that_makes_blocks(n, x):
    xs = apply("list_from_array", x)
    rows = new(n.builder, ROW, xs, xs)
    kept = push(rows, xs)
    rows = push(push(push(rows, xs), xs), xs)
    ys = apply("list_slice", xs, 0, 2, 1)
    zs = apply("list_repeat", ys, n)
    for_((0, n, 1), lambda i, a: (new(i.builder, INT, i),), (xs,))
    return rows, apply("list_set", kept, 0, zs), apply("list_set", ys, 0, 5), zs


def test_where_memory_ends_each_block_of_the_call_is_given_back(watched):
    program = watched(build(all_that_makes_blocks, INT, Array("int64", (4,))))
    args = 2, np.arange(4)
    assert_runs(program, *args)
    total = program.made + program.grown
    assert total == 8
    ledger = program.ledger
    for k in range(total):
        ledger.left = k
        with pytest.raises(MemoryError):
            program.program(*args)
        assert ledger.left == -1, "it went on"
        gc.collect()
        assert not ledger.live
        ledger.left = None
        if k % 3 == 0:
            assert_runs(program, *args)
    assert_runs(program, *args)
    assert program.made + program.grown == total


def test_sizes_that_cannot_be_meant(watched):
    def f(n):
        return length(apply("list_repeat", new(n.builder, INT, n, n), n)), length(apply("list_repeat", counted(n), 0))

    program = watched(build(f, INT))
    assert_runs(program, 3)
    asked = program.ledger.calls["malloc"]
    for n in (1 << 39, (1 << 39) + 1, 1 << 41, 1 << 62, (1 << 63) - 1):
        with pytest.raises(MemoryError):
            program.program(n)
    assert program.ledger.calls["malloc"] == asked + 5, "the lists that are repeated, and no more"
    program.ledger.left = 2
    with pytest.raises(MemoryError):
        program.program((1 << 39) - 1)
    assert program.ledger.left == 0, "this much can be meant"
    program.ledger.left = None
    assert_runs(program, 3)


def test_growing_takes_time_for_what_is_there_once(watched):
    """Blocks grow by doubling."""

    def f(n):
        return for_((0, n, 1), lambda i, xs: (push(xs, i),), (new(n.builder, INT),))[0]

    program = watched(build(f, INT))
    assert_runs(program, 1000)
    assert program.made == 1 and 6 <= program.grown <= 10
