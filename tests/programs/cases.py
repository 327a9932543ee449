"""Tables of programs: each is run under CPython and in every executor on the same arguments, and must do the same.

case = Cases()

@case((3,), (0,))
def f(n): ...

@case.each
def test(function, args, executor):
    agree(function, args, executor)
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from myia_relay import CompileError, relay
from tests.programs.compare import differences

EXECUTORS = ("interpreter", "python", "native")


class Cases(list):
    """Pairs of a function and a tuple of arguments."""

    def __call__(self, *inputs: tuple):
        """Put the decorated function into the table, with each of the inputs."""

        def put(function):
            self.extend((function, args) for args in inputs)
            return function

        return put

    def each(self, test):
        """Run a test `(function, args, executor)` for each entry and executor."""
        test = pytest.mark.parametrize("executor", EXECUTORS)(test)
        ids = [f"{f.__name__}-{k}" for k, (f, _) in enumerate(self)]
        return pytest.mark.parametrize(("function", "args"), self, ids=ids)(test)


def agree(function: Any, args: tuple, executor: str) -> None:
    """Check that a compiled function returns, or raises, what it does under CPython."""
    compiled = relay(executor=executor)(function)
    try:
        want = function(*copy.deepcopy(args))
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            compiled(*copy.deepcopy(args))
        assert not isinstance(caught.value, CompileError), caught.value
        # Python 3.10 has other words for an unbound name.
        assert isinstance(error, NameError) or str(caught.value) == str(error)
        return
    assert differences(compiled(*copy.deepcopy(args)), want) == []
