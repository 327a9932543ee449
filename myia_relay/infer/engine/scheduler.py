"""The coroutine scheduler: tasks, futures, and deadlocks.

Each specialisation of a function, and each arm of a branch, is a task. A recursive call waits for the result type of a
specialisation that is still being inferred; the arm with the base case does not wait. When no task can run, the engine
lets branches with one finished arm continue with that arm's type (`Loop.on_deadlock`). The other arm is checked when it
is finished. This is Myia's idea (van Merriënboer et al., NeurIPS 2018, section 4.2: inference by coroutines). The
futures are our own, so that the user's event loop is not touched, and every task is driven from one loop, so that the
Python stack stays flat.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any


class Future:
    """A value that is not known yet; tasks wait for it with `await`."""

    __slots__ = ("done", "error", "value", "waiting")

    def __init__(self):
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.waiting: list[Task] = []

    def __await__(self):
        while not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class Task(Future):
    """A coroutine in progress; as a future it holds the coroutine's result."""

    __slots__ = ("coroutine",)

    def __init__(self, coroutine: Coroutine):
        super().__init__()
        self.coroutine = coroutine


class Join:
    """A branch whose arms are being inferred; it may continue with one arm's result when all tasks wait."""

    def __init__(self, arms: tuple[Task, ...]):
        self.arms = arms
        self.forced = Future()


class Loop:
    """Runs tasks until the wanted one is done.

    Attributes:
        on_deadlock: called when no task can run; returns whether it resolved something.
    """

    def __init__(self, on_deadlock: Callable[[], bool]):
        self.ready: deque[Task] = deque()
        self.on_deadlock = on_deadlock

    def spawn(self, coroutine: Coroutine) -> Task:
        """Start a task."""
        task = Task(coroutine)
        self.ready.append(task)
        return task

    def resolve(self, future: Future, value: Any = None, error: BaseException | None = None) -> None:
        """Complete a future and wake its waiters; a second completion is ignored."""
        if future.done:
            return
        future.done, future.value, future.error = True, value, error
        self.ready.extend(future.waiting)
        future.waiting.clear()

    def run(self, coroutine: Coroutine) -> Any:
        """Run a coroutine and all it starts, to its result.

        Raises:
            RecursionError: every task waits for another one: a recursion without a base case.
        """
        main = self.spawn(coroutine)
        # Tasks that wait when the result is known run too: the second arm of a branch that continued with its first.
        while True:
            if not self.ready:
                if self.on_deadlock():
                    continue
                if main.done:
                    break
                raise RecursionError("every task waits for another")
            task = self.ready.popleft()
            if task.done:
                continue
            try:
                awaited = task.coroutine.send(None)
            except StopIteration as stop:
                self.resolve(task, stop.value)
            except Exception as error:
                self.resolve(task, error=error)
            else:
                if awaited.done:
                    self.ready.append(task)
                else:
                    awaited.waiting.append(task)
        if main.error is not None:
            raise main.error
        return main.value


class Any_(Future):
    """Completes when any of the given futures does."""

    def __init__(self, loop: Loop, *futures: Future):
        super().__init__()

        async def wait(future):
            try:
                await future
            except BaseException:
                pass
            loop.resolve(self)

        for future in futures:
            if future.done:
                loop.resolve(self)
            else:
                loop.spawn(wait(future))
