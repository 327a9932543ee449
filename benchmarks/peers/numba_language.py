"""Worker of `benchmarks language`: the programs compiled by Numba's njit, whose integers wrap."""

from __future__ import annotations

import time
from typing import Any

import numba

from ..language.programs import CASES, equal
from ..workers import serve


def main() -> None:
    """Answer requests."""
    compiled: dict[str, Any] = {}
    arguments: dict[str, tuple] = {}

    def run(program: str) -> tuple[Any, float]:
        started = time.process_time()
        result = compiled[program](*arguments[program])
        return result, time.process_time() - started

    def warm(program: str, size: int, result: Any) -> dict[str, Any]:
        compiled[program] = _njit(program)
        arguments[program] = CASES[program].arguments(size)
        found, first = run(program)
        return {"same": equal(found, result), "compile": max(0.0, first - run(program)[1])}

    def measure(program: str, size: int) -> float:
        return run(program)[1]

    serve({"warm": warm, "measure": measure})


def _njit(program: str) -> Any:
    """A program compiled; one that calls itself must find its compiled self under its name."""
    from ..language import programs

    function = numba.njit(CASES[program].function)
    setattr(programs, program, function)
    return function


if __name__ == "__main__":
    main()
