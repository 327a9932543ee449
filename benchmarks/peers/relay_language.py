"""Worker of `benchmarks language`: the programs compiled by this package, in a process whose memory is theirs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from myia_relay import relay

from ..language.programs import CASES
from ..workers import peak_memory, serve


def decorated(name: str, executor: str) -> Callable[..., Any]:
    """A program, to be compiled at its first call."""
    return relay(executor=executor)(CASES[name].function)


def main() -> None:
    """Answer requests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--executor", default="native")
    executor = parser.parse_args().executor

    def memory(program: str, size: int) -> dict[str, int]:
        # What any compilation needs is in memory before: the compiler's libraries are not the program's.
        relay(executor=executor)(lambda x: -x)(np.ones(3))
        before = peak_memory()
        decorated(program, executor)(*CASES[program].arguments(size))
        peak = peak_memory()
        return {"peak": peak, "growth": peak - before}

    serve({"memory": memory})


if __name__ == "__main__":
    main()
