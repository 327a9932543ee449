"""The coroutine engine: tasks, futures, and what happens when everyone waits.

Each specialisation of a function, and each arm of a branch, is a task. A recursive call waits for the result type of a
specialisation that is under way; the branch that holds the base case does not wait, and once no task can run, the engine
lets the branches that have one finished arm go on with that arm's type (`Loop.on_deadlock`). The other arm is checked when it
arrives. This is Myia's idea (van Merriënboer et al., NeurIPS 2018, section 4.2: inference by coroutines) with futures of our
own, so that no event loop of the user's is touched and the Python stack stays flat: every task is driven from one loop.
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
    """A coroutine under way; as a future it holds the coroutine's result."""

    __slots__ = ("coroutine",)

    def __init__(self, coroutine: Coroutine):
        super().__init__()
        self.coroutine = coroutine


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
        # What waits when the result is known runs too: the second arm of a branch that was let go on with its first.
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


ROUNDS = 8  # of inference, where a recursion turns out to have a wider type than its first branch


def widening(attempt: Callable[[dict[tuple, Any]], Any]) -> Any:
    """The result of an inference, begun anew as often as a recursion turns out to have a wider type than was assumed.

    Args:
        attempt: `(types that are assumed) -> result`; raises `Widened`.
    """
    assumed: dict[tuple, Any] = {}
    for last in range(ROUNDS):
        try:
            return attempt(assumed)
        except Widened as found:
            if last == ROUNDS - 1:
                raise found.problem from None
            assumed = assumed | found.types
    raise AssertionError("not reached")


class Widened(Exception):
    """A recursion went on with the type of one arm of a branch, and the other arm's does not fit it, but both have a common one.

    Inference starts again and assumes that: `None if n == 0 else Cell(n, build(n - 1))`.

    Attributes:
        types: the branches, and the types of their results.
        problem: what to say where that never ends.
    """

    def __init__(self, types: dict[tuple, Any], problem: Exception):
        super().__init__("the types of a recursion")
        self.types, self.problem = types, problem
