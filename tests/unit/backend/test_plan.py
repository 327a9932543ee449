"""The memory plan: nothing is overwritten that is looked at, by simulated runs; and no more memory than needed."""

from __future__ import annotations

import random

import pytest

from myia_relay.abstract.dims import evaluate, symbol
from myia_relay.backend.tvm.plan import ALIGN, ITEM, MemoryPlan, Storage, View

N, M = symbol("n"), symbol("m")


def storage(plan: MemoryPlan, nbytes, kind="arena") -> Storage:
    made = Storage(kind, nbytes, None)
    plan.storages.append(made)
    return made


class Program:
    """A plan, and the kernels that are to be run with it: each reads storages, then writes others."""

    def __init__(self):
        self.plan = MemoryPlan()
        self.steps: list = []  # kernels (reads, writes, shares), and lists of steps that are loops

    def kernel(self, reads=(), writes=(), shares=()):
        """Emit a kernel; `shares` are pairs of a result and an operand whose place it may take."""
        self.plan.tick()
        for s in (*reads, *writes):
            self.plan.touch(s)
        for output, source in shares:
            self.plan.may_share(output, source)
        self.steps.append((tuple(reads), tuple(writes), tuple(shares)))

    def loop(self, body):
        """Emit a loop around what `body` emits."""
        outer, self.steps = self.steps, []
        begin = self.plan.clock + 1
        body()
        self.plan.tick()
        self.plan.loops.append((begin, self.plan.clock))
        outer.append(self.steps)
        self.steps = outer

    def run(self, sizes=None, iterations=2):
        """Run it in an arena of tags, and see that each storage read holds what was last written to it."""
        sizes = sizes or {}

        def number(x):
            return int(evaluate(x, sizes.__getitem__))

        arena = [None] * number(self.plan.size)
        span = {
            s: range(number(s.offset), number(s.offset) + number(s.nbytes))
            for s in self.plan.storages
            if s.offset is not None
        }
        written: dict[Storage, int] = {}
        time = 0

        def check(s):
            if s.kind == "arena":
                assert all(arena[k] == (s, written[s]) for k in span[s]), "overwritten"

        def kernel(reads, writes, shares):
            nonlocal time
            time += 1
            for s in reads:
                check(s)
            for s in writes:
                written[s] = time
                if s.kind == "arena":
                    for k in span[s]:
                        arena[k] = s, time
            for s in reads:  # while a kernel runs, it still reads what no result may replace
                if not any(source is s and out.place is s for out, source in shares) and s not in writes:
                    check(s)

        def steps(items):
            for item in items:
                if isinstance(item, list):
                    for _ in range(iterations):
                        steps(item)
                else:
                    kernel(*item)

        steps(self.steps)


class Random(Program):
    """A random program: straight lines and loops; what is made in a loop is read behind the loop too."""

    def __init__(self, seed: int, symbolic: bool):
        super().__init__()
        self.draw, self.symbolic = random.Random(seed), symbolic
        self.alive = [self.make() for _ in range(3)]
        self.alive.append(storage(self.plan, 100, "input"))
        self.kernel(writes=self.alive[:3])
        self.block(8, 2)
        self.kernel(reads=self.draw.sample(self.alive, min(3, len(self.alive))))
        self.plan.finish()

    def make(self):
        sizes = (1, 8, 63, 64, 65, 128, 200, 0, 1000)
        if self.symbolic and self.draw.random() < 0.7:
            return storage(self.plan, self.draw.choice((N * 8, M * 8, N * 8, N * M * 4)))
        return storage(self.plan, self.draw.choice(sizes))

    def block(self, size, depth):
        for _ in range(size):
            if depth and self.draw.random() < 0.3:
                before = list(self.alive)
                self.loop(lambda: self.block(self.draw.randint(1, 4), depth - 1))
                # What the body has made is read behind the loop, if at all, in the way that its last iteration left it.
                self.alive = before + [s for s in self.alive if s not in before]
            else:
                self.statement()

    def statement(self):
        draw = self.draw
        reads = draw.sample(self.alive, min(len(self.alive), draw.choice((0, 1, 2, 2))))
        out = self.make()
        arena = [r for r in reads if r.kind == "arena"]
        if arena and draw.random() < 0.6:
            out.nbytes = arena[0].nbytes
        shares = [(out, r) for r in arena if draw.random() < 0.8]
        self.kernel(reads, [out], shares)
        self.alive.append(out)
        if len(self.alive) > 4:
            self.alive.pop(draw.randrange(len(self.alive)))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("part", range(4))
@pytest.mark.sampled(2)
def test_nothing_is_overwritten_that_is_looked_at(part, symbolic):
    taken = 0
    for seed in range(60 * part, 60 * part + 60):
        program = Random(seed, symbolic)
        for sizes in ({"n": 3, "m": 20}, {"n": 40, "m": 1}, {"n": 0, "m": 9}) if symbolic else ({},):
            program.run(sizes)
            for s in program.plan.storages:
                if s.offset is not None:
                    assert int(evaluate(s.offset, sizes.__getitem__)) % ALIGN == 0
        taken += sum(s.place is not None for s in program.plan.storages)
    assert taken > 20  # results in the places of operands


def planned(*kernels, sizes=None) -> Program:
    """A program of kernels over numbered storages: (reads, writes, pairs that may share)."""
    program = Program()
    made: dict[int, Storage] = {}

    def of(k):
        if k not in made:
            made[k] = storage(program.plan, (sizes or {}).get(k, 64))
        return made[k]

    for item in kernels:
        if isinstance(item, list):
            program.loop(lambda item=item: [program.kernel(*[[of(k) for k in part] for part in k]) for k in item])
        else:
            reads, writes, *shares = item
            program.kernel([of(k) for k in reads], [of(k) for k in writes], [(of(a), of(b)) for a, b in shares])
    program.plan.finish()
    program.run({"n": 7})
    program.made = made
    return program


def test_a_chain_needs_two_places_or_one():
    chain = [([], [0]), ([0], [1]), ([1], [2]), ([2], [3])]
    program = planned(*chain)
    assert program.plan.size == 128
    assert [program.made[k].offset for k in range(4)] == [0, 64, 0, 64]
    sharing = planned(([], [0]), ([0], [1], (1, 0)), ([1], [2], (2, 1)))
    assert sharing.plan.size == 64
    assert sharing.made[2].place is sharing.made[1] and sharing.made[1].place is sharing.made[0]


def test_a_place_is_taken_over_once_and_only_where_the_operand_dies():
    twice = planned(([], [0]), ([0], [1, 2], (1, 0), (2, 0)))
    assert twice.plan.size == 128 and twice.made[1].place is twice.made[0] and twice.made[2].place is None
    needed = planned(([], [0]), ([0], [1], (1, 0)), ([0, 1], []))
    assert needed.plan.size == 128 and needed.made[1].place is None
    other_size = planned(([], [0]), ([0], [1], (1, 0)), sizes={0: 64, 1: 65})
    assert other_size.made[1].place is None and other_size.plan.size == 64 + 128
    made_before = planned(([], [0, 1]), ([0], [1], (1, 0)))
    assert made_before.made[1].place is None
    born_here = planned(([], [0, 1], (1, 0)))  # the operand is made by the same kernel
    assert born_here.made[1].place is None
    second = planned(([], [0, 1]), ([0, 1], [2], (2, 0), (2, 1)), ([0], []))  # the first cannot, the second can
    assert second.made[2].place is second.made[1] and second.plan.size == 128


def test_gaps_are_filled_first():
    sizes = {0: 128, 1: 64, 2: 64, 3: 128, 4: 1, 5: 65}
    program = planned(
        ([], [0, 1]), ([0, 1], []), ([1], [2]), ([1, 2], [4]), ([1, 2, 4], [5]), ([1, 5], []), sizes=sizes
    )
    assert program.made[0].offset == 0 and program.made[1].offset == 128
    assert program.made[2].offset == 0 and program.made[4].offset == 64  # both in the place of the first
    assert program.made[5].offset == 192 and program.plan.size == 320
    exact = planned(([], [0, 1]), ([1], [3]), ([1, 3], []), sizes=sizes)
    assert exact.made[3].offset == 0 and exact.plan.size == 192
    too_small = planned(([], [1, 0]), ([0], [3]), ([0, 3], []), sizes=sizes)
    assert too_small.made[3].offset == 192


def test_sizes_are_rounded_up():
    assert [planned(([], [0]), sizes={0: n}).plan.size for n in (0, 1, 63, 64, 65, 128, 129)] == [
        64, 64, 64, 64, 128, 128, 192,
    ]  # fmt: skip


def test_what_a_loop_reads_lives_to_its_end():
    # 0 is read at the beginning of each iteration: 1, made later in it, may not lie there.
    read_first = planned(([], [0]), [([0], []), ([], [1]), ([1], [])])
    assert read_first.made[0].last == read_first.plan.loops[0][1] and read_first.plan.size == 128
    # What is made and read within an iteration lives only there.
    inside = planned([([], [0]), ([0], [1]), ([1], [2])], ([], [3]))
    assert inside.plan.size == 128 and inside.made[0].last == 2
    # What is last used before a loop, or made before and used behind it only, is as it was.
    before = planned(([], [0]), ([0], []), [([], [1]), ([1], [])])
    assert before.made[0].last == 2 and before.plan.size == 64
    behind = planned(([], [0]), [([], [1]), ([1], [])], ([0], []))
    assert behind.made[0].last == behind.plan.clock


def test_loops_in_loops_carry_lives_outwards():
    program = Program()
    a, b = storage(program.plan, 64), storage(program.plan, 64)
    c = storage(program.plan, 64)
    program.kernel(writes=[a])

    def outer():
        program.loop(lambda: program.kernel(reads=[a]))
        program.kernel(writes=[b])
        program.kernel(reads=[b])

    program.loop(outer)
    program.kernel(writes=[c])
    program.plan.finish()
    (_, inner_end), (_, outer_end) = program.plan.loops
    assert inner_end < outer_end == a.last and b.offset != a.offset and c.offset == 0
    program.run(iterations=3)


def test_what_is_not_in_the_arena_or_never_used_has_no_place():
    plan = MemoryPlan()
    made = {kind: storage(plan, 64, kind) for kind in ("input", "ref", "out", "tape", "arena")}
    unused = storage(plan, 640)
    plan.tick()
    for s in made.values():
        plan.touch(s)
    plan.finish()
    assert plan.size == 64 and made["arena"].offset == 0 and unused.offset is None
    assert all(s.offset is None for kind, s in made.items() if kind != "arena")
    plan, apart = MemoryPlan(), Storage("arena", N * 8, None, own=True)  # what has memory of its own
    plan.storages.append(apart)
    plan.tick()
    plan.touch(apart)
    plan.finish()
    assert plan.size == 0 and apart.offset is None
    shares = MemoryPlan()  # the place of an argument is not in the arena, and nobody takes it over
    argument, result = storage(shares, 64, "input"), storage(shares, 64)
    shares.tick()
    shares.touch(argument)
    shares.tick()
    shares.touch(argument)
    shares.touch(result)
    shares.may_share(result, argument)
    shares.finish()
    assert result.place is None and result.offset == 0
    assert View(argument, "float64", (8,)).offset == 0 and MemoryPlan().size == 0
    empty = MemoryPlan()
    empty.finish()
    assert empty.size == 0


def test_touching_keeps_the_first_and_the_last_time():
    plan = MemoryPlan()
    s = storage(plan, 8)
    assert (s.first, s.last, plan.tick()) == (-1, -1, 1)
    plan.touch(s)
    assert plan.tick() == 2 and plan.tick() == 3
    plan.touch(s)
    assert (s.first, s.last) == (1, 3)
    plan.clock = 2
    plan.touch(s)
    assert (s.first, s.last) == (1, 3)
    early, late = MemoryPlan(), storage(MemoryPlan(), 8)
    early.touch(late)
    early.tick()
    early.touch(late)
    assert (late.first, late.last) == (0, 1)


class Expression:
    """An offset that is known at run time only: it has no truth value."""

    def __bool__(self):
        raise ValueError


def test_whole_views():
    s = Storage("arena", 64, None)
    assert View(s, "float64", (2, 4)).whole and View(s, "float32", (16,)).whole
    assert not View(s, "float64", (7,)).whole and not View(s, "float64", (8,), 8).whole
    assert not View(s, "float64", (8,), Expression()).whole and not View(s, "float64", (8,), 0, "a pointer").whole
    assert View(Storage("arena", N * 8, None), "float64", (N,)).whole


def test_symbolic_sizes_have_slots():
    sizes = {0: N * 8, 1: N * 8, 2: N * 8, 3: M, 4: 64}
    chain = planned(([], [0]), ([0], [1]), ([1], [2]), ([2], [4]), sizes=sizes)
    at = [chain.made[k].offset for k in range(3)]
    assert at[0] == at[2] == 64 and at[1] != at[0] and chain.made[4].offset == 0
    assert evaluate(at[1], {"n": 8}.__getitem__) == 128 and evaluate(at[1], {"n": 9}.__getitem__) == 64 + 128
    assert evaluate(chain.plan.size, {"n": 8}.__getitem__) == 192
    assert evaluate(chain.plan.size, {"n": 9}.__getitem__) == 64 + 2 * 128
    pair = planned(([], [0, 1]), ([0, 1], []), sizes={0: N, 1: N})
    for n, size in ((0, 0), (1, 128), (64, 128), (65, 256)):
        assert evaluate(pair.plan.size, {"n": n}.__getitem__) == size
    shared = planned(([], [0]), ([0], [1], (1, 0)), ([1], [2]), ([2], []), sizes=sizes)
    assert shared.made[1].place is shared.made[0] and shared.made[2].offset != shared.made[0].offset
    heirs = planned(([], [0]), ([0], [1], (1, 0)), ([1], [2], (2, 1)), ([2], [3], (3, 2)), sizes={**sizes, 3: N * 8})
    assert evaluate(heirs.plan.size, {"n": 8}.__getitem__) == 64  # one place is handed on
    apart = planned(
        ([], [0]), ([0], [1]), ([1], [2], (2, 1)), ([2], [3]), ([2, 3], []), sizes=dict.fromkeys(range(4), N * 8)
    )
    assert apart.made[3].offset == apart.made[0].offset == 0  # free, though another place was handed on
    later = planned(([], [0]), ([0], [1], (1, 0)), ([], [2]), ([1, 2], []), sizes=sizes)
    assert later.made[2].offset != later.made[1].offset  # whoever has taken over the place is still there


def test_sizes_of_elements():
    import numpy as np

    for name, size in ITEM.items():
        assert size == (2 if name == "bfloat16" else np.dtype(name).itemsize)
    integers = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert set(ITEM) == {"bool", "float16", "bfloat16", "float32", "float64", *integers}


def test_what_is_used_before_the_first_kernel_has_a_place():
    plan = MemoryPlan()
    early, late = storage(plan, 64), storage(plan, 64)
    plan.touch(early)
    plan.tick()
    plan.touch(early)
    plan.touch(late)
    plan.finish()
    assert {early.offset, late.offset} == {0, 64} and plan.size == 128


def test_who_watches_hears_of_each_kernel():
    heard: list[int] = []
    plan = MemoryPlan(watch=heard.append)
    assert [plan.tick(), plan.tick()] == heard == [1, 2]
