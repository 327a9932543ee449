"""The number of threads that native code uses.

Idea: by default TVM's pool takes half the hardware threads it sees and may pin the process to cores. Here the number
comes from the caller, TVM_NUM_THREADS, OMP_NUM_THREADS or the CPU affinity mask, in that order. Pinning is off unless
TVM_BIND_THREADS asks for it, and BLAS runs in the calling thread, since we parallelise around it.

Input: environment and affinity. Output: `configure()` sets up TVM's pool; `count()` returns the number.

Measured (2 cores, apache-tvm 0.27): a parallel loop costs 1.0 us when workers are awake (they spin for a while after a
launch), and several microseconds more when they sleep or share their core. It pays from about 10 us of work on.

Two threads within one small sample (LeNet's training step, batch of one: 5,700 steps/s with one thread, 9,700 with two,
on an idle machine): each owns the same channels or rows from layer to layer, makes its own columns of patches, and
partial results are added afterwards. Split matrices by rows: a pass over w split by columns took 24 us with two threads
and 21 with one. Align buffers to 64 bytes. While other processes occupy the second core, two threads are slower than
one.

TVM makes one pool for every Python thread that launches; its size is read from TVM_NUM_THREADS, which `configure` sets.
Compiling makes none, so a process that runs no parallel loop has no idle workers to wait for when it ends. After a fork
the child has no workers: its loops then run in the thread that forked (`native.library`).
"""

from __future__ import annotations

import tvm

from ...native.library import prepare_threads, wanted_threads
from .pipeline import standalone

_MODE_BIG = 1
_number: int | None = None  # set by `configure`


def configure(n: int | None = None) -> int:
    """Sets the number of threads that parallel loops use, from now on, in every thread.

    Args:
        n: how many; None takes what the environment wants (an earlier explicit choice is in it).

    Returns:
        The number in force: `n`, unless TVM's pool of this thread was made smaller before, which can shrink and grow
        back but not beyond its first size.

    Raises:
        ValueError: n is not positive.
    """
    global _number
    if n is not None and n < 1:
        raise ValueError(f"the number of threads must be positive, not {n}")
    number = n or wanted_threads()
    prepare_threads(number)  # pools that do not exist yet read this
    if _number is None:
        _number = number
    elif number != _number:  # this thread's pool may exist; otherwise it is made
        tvm.get_global_func("runtime.config_threadpool")(_MODE_BIG, number)
        _number = int(tvm.get_global_func("runtime.NumThreads")())
    return _number


def count() -> int:
    """How many threads a parallel loop uses; one where there is no Python."""
    if standalone() is not None:
        return 1
    return configure() if _number is None else _number
