"""A module in two parts, which LLVM compiles side by side.

LLVM takes most of the time of a compilation, and uses one thread. Kernels, and functions that kernels share, can be compiled
elsewhere than the main function: they are called by name, and the parts are linked to one library.

Input: an IRModule, and the sizes of its functions. Output: modules that TVM has built, and their object files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tvm

from ....utils.compiling import for_this_thread
from . import machine, pipeline

WORTH = 300  # statements of all functions from which on two threads are quicker
C_FUNCTION = 1  # TVM's calling convention for functions that are called as they are declared


def callable_by_name(function: Any, name: str) -> Any:
    """A function that other modules can call, with `call_extern`."""
    return function.with_attr("global_symbol", name).with_attr("calling_conv", C_FUNCTION)


def divide(sizes: Mapping[Any, int], rest: int) -> set[Any]:
    """The functions of the second part, about half of the whole; none where that does not pay.

    Args:
        sizes: of the functions that may be in any part.
        rest: the size of the main function and what belongs to it.
    """
    if sum(sizes.values()) < WORTH or _processors() < 2:
        return set()
    first, second, chosen = rest, 0, set()
    for var, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if second <= first:
            second += size
            chosen.add(var)
        else:
            first += size
    return chosen


def build(module: Any, apart: set[Any], target: Any) -> tuple[list[Any], tuple[bytes, ...]]:
    """Compile a module.

    Args:
        module: the functions.
        apart: those of the second part, see `divide`.
        target: a `tvm.target.Target`.

    Returns:
        What TVM has built, and the object files.
    """

    def compiled(functions: Mapping[Any, Any]) -> tuple[Any, bytes]:
        built = pipeline.build(tvm.IRModule(functions), target=target)
        return built, machine.object_of(built)

    parts: list[dict[Any, Any]] = [{}, {}]
    for var, function in module.functions.items():
        parts[var in apart][var] = function
    if not parts[1]:
        built, code = compiled(parts[0])
        return [built], (code,)
    with ThreadPoolExecutor(1, "myia_relay.llvm") as thread:
        later = thread.submit(for_this_thread(lambda: compiled(parts[1])))
        first = compiled(parts[0])
        builds, codes = zip(first, later.result())
    return list(builds), codes


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
