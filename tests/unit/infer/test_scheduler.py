"""The coroutine engine: tasks run in turn, futures wake who waits, and what happens when everyone waits."""

from __future__ import annotations

import pytest

from myia_relay.infer.engine.scheduler import Any_, Future, Join, Loop


def no_way_out():
    return False


def test_a_coroutine_and_what_it_starts():
    loop, order = Loop(no_way_out), []

    async def child(k, before=None):
        order.append(("begin", k))
        got = await before if before else 0
        order.append(("end", k))
        return got + k

    async def main():
        first = loop.spawn(child(1))
        second = loop.spawn(child(2, first))
        return await second, await first

    assert loop.run(main()) == (3, 1)
    assert order == [("begin", 1), ("end", 1), ("begin", 2), ("end", 2)]


def test_what_nobody_waits_for_runs_too():
    loop, ran = Loop(no_way_out), []

    async def late():
        ran.append("late")

    async def main():
        loop.spawn(late())
        return 1

    assert loop.run(main()) == 1 and ran == ["late"]


def test_a_future_is_completed_once():
    loop, future = Loop(no_way_out), Future()
    loop.resolve(future, 1)
    loop.resolve(future, 2, ValueError())
    assert future.done and future.value == 1 and future.error is None

    async def main():
        return await future

    assert loop.run(main()) == 1


def test_all_who_wait_are_woken():
    loop, future = Loop(no_way_out), Future()

    async def waiter(k):
        return k + await future

    async def main():
        tasks = [loop.spawn(waiter(k)) for k in range(3)]

        async def resolver():
            loop.resolve(future, 10)

        loop.spawn(resolver())
        return [await t for t in tasks]

    assert loop.run(main()) == [10, 11, 12] and not future.waiting


def test_errors_go_to_who_waits():
    loop = Loop(no_way_out)

    async def fails():
        raise ValueError("no")

    async def main():
        task = loop.spawn(fails())
        try:
            await task
        except ValueError as error:
            return str(error)

    assert loop.run(main()) == "no"
    with pytest.raises(ValueError, match="no"):
        Loop(no_way_out).run(fails())


def test_a_deadlock_without_a_way_out():
    loop = Loop(no_way_out)

    async def main():
        await Future()

    with pytest.raises(RecursionError, match="every task waits"):
        loop.run(main())


def test_a_deadlock_is_resolved_as_often_as_it_is_met():
    futures, asked = [Future(), Future()], []

    def resolve():
        asked.append(len(asked))
        if len(asked) > 2:
            return False
        loop.resolve(futures[len(asked) - 1], len(asked))
        return True

    loop = Loop(resolve)

    async def main():
        return await futures[0] + await futures[1]

    assert loop.run(main()) == 3
    assert asked == [0, 1, 2]  # once more at the end: what waits when the result is known may go on too


def test_what_waits_when_the_result_is_known_goes_on():
    future, ran = Future(), []

    def resolve():
        if future.done:
            return False
        loop.resolve(future, 5)
        return True

    loop = Loop(resolve)

    async def other_arm():
        ran.append(await future)

    async def main():
        loop.spawn(other_arm())
        return "known"

    assert loop.run(main()) == "known" and ran == [5]


def test_any_of_some():
    loop, never, later = Loop(no_way_out), Future(), Future()

    async def main():
        async def resolver():
            loop.resolve(later, 1)

        loop.spawn(resolver())
        await Any_(loop, never, later)
        assert not never.done and later.done
        await Any_(loop, never, later)  # one of them is done already
        loop.resolve(never)
        return True

    assert loop.run(main())

    async def failing():
        raise KeyError

    async def waits():
        await Any_(failed, failed.spawn(failing()))
        return "done"

    failed = Loop(no_way_out)
    assert failed.run(waits()) == "done"  # an error is an end as well


def test_a_branch_is_not_forced_at_first():
    join = Join(())
    assert join.arms == () and not join.forced.done
