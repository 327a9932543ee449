"""`python -m benchmarks derivatives`: what gradients, Jacobians and their compilation cost.

The time of a gradient (with its value) over that of the objective, for eight objectives, in interleaved rounds; the objective
beside plain C (`gcc -O3`, where there is a gcc); the memory that the first gradient adds; the Jacobian of a banded function
R^200 -> R^200 beside JAX; and compile times: of a third derivative, and of the gradient of a network of three layers.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from myia_relay import grad, jacobian, relay, value_and_grad

from . import common
from .objectives import Objective, banded, mlp_arguments, mlp_loss, objectives, twenty_lines
from .workers import Worker, find_peer

SOURCE = Path(__file__).parent / "peers" / "objectives.c"
CASES = ((200, False), (2000, False), (2000, True), (100_000, True))
"""Sizes of Jacobians, and whether their entries alone are wanted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks derivatives", description=__doc__.partition("\n")[0])
    common.add_common_options(parser, ("jax", "c"))
    parser.add_argument("--small", action="store_true", help="sizes that show only that it runs")
    parser.add_argument("--seconds", type=float, default=0.1, help="to spend on each figure (default: %(default)s)")
    options = parser.parse_args(argv)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # ours runs in this process
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "derivatives", "environment": info}
    results["compile"] = compile_seconds(options.executor)
    results["objectives"] = gradients(options)
    results["jacobian"] = jacobians(options)
    common.write_json(options.json, results)
    return 0


def gradients(options: argparse.Namespace) -> dict[str, Any]:
    """Gradients beside objectives beside C."""
    results: dict[str, Any] = {}
    rows = [["ms", "objective", "gradient", "gradient / objective", "C", "objective / C", "MiB added"]]
    with tempfile.TemporaryDirectory() as folder:
        library = compiled_c(Path(folder)) if "c" in options.peers else None
        for name, case in objectives(options.small).items():
            objective = relay(case.function, executor=options.executor)
            both = relay(value_and_grad(case.function, case.wrt), executor=options.executor)
            value = objective(*case.args)
            before = peak_mib()
            both(*case.args)
            added = peak_mib() - before
            calls: dict[str, Callable[[], Any]] = {
                "objective": lambda f=objective, case=case: f(*case.args),
                "gradient": lambda f=both, case=case: f(*case.args),
            }
            if library is not None and case.plain is not None:
                calls["c"] = plain_call(library, name, case)
                np.testing.assert_allclose(calls["c"](), value, rtol=1e-9)
            systems = {k: lambda f=f: common.median_seconds(f, options.seconds, 3) for k, f in calls.items()}
            figures = common.interleave(systems, options.rounds)
            result = {k: common.spread(v, higher_is_better=False) for k, v in figures.items()}
            result |= {"ratio": common.ratio(figures["gradient"], figures["objective"]), "added_mib": added}
            shown = [f"{1e3 * result[k]['median']:.3f}" for k in ("objective", "gradient")]
            shown.append(f"{result['ratio']:.2f}")
            if "c" in figures:
                result["over_c"] = common.ratio(figures["objective"], figures["c"])
                shown += [f"{1e3 * result['c']['median']:.3f}", f"{result['over_c']:.2f}"]
            else:
                shown += ["", ""]
            rows.append([case.what, *shown, f"{added:.1f}"])
            results[name] = result
    print(common.table(rows))
    return results


def compiled_c(folder: Path) -> ctypes.CDLL | None:
    """The objectives in C, as a library; None without a compiler."""
    gcc = shutil.which("gcc")
    if gcc is None:
        print("c: no gcc here")
        return None
    out = folder / "objectives.so"
    subprocess.run([gcc, "-O3", "-march=native", "-shared", "-fPIC", "-o", out, SOURCE, "-lm"], check=True)
    return ctypes.CDLL(str(out))


def plain_call(library: ctypes.CDLL, name: str, case: Objective) -> Callable[[], float]:
    """A call of a C objective with the arguments of ours."""
    function = getattr(library, name)
    function.restype = ctypes.c_double
    given: list[Any] = []
    for arg in case.plain or ():
        if isinstance(arg, np.ndarray):
            given.append(ctypes.c_void_p(arg.ctypes.data))
        else:
            given.append(ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_int64(arg))
    return lambda: function(*given)


def peak_mib() -> float:
    """The most memory that this process has had, where the system says."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def jacobians(options: argparse.Namespace) -> dict[str, Any]:
    """Jacobians of the banded function beside JAX's: as an array, and the entries alone, which in JAX are compressed by hand."""
    python = find_peer("jax", options.peer_python) if "jax" in options.peers else None
    worker = Worker("benchmarks.peers.jax_jacobian", [], python, options.threads) if python is not None else None
    results: dict[str, Any] = {}
    rows = [["Jacobian of a banded function, us", "median", "best", "JAX", "best", "JAX / ours"]]
    try:
        for size, entries in CASES:
            x, ours = np.linspace(0.1, 1.0, size), relay(jacobian(banded, sparse=entries), executor=options.executor)
            systems: dict[str, Callable[[], float]] = {
                "myia_relay": functools.partial(common.median_seconds, functools.partial(ours, x), options.seconds, 3)
            }
            if worker is not None:
                values = ours(x)
                sums = np.bincount(values[1][1], values[0], size) if entries else values.sum(axis=0)
                np.testing.assert_allclose(sums, worker("column_sums", size=size, entries=entries), rtol=1e-12)
                measured = functools.partial(worker, "measure", size=size, seconds=options.seconds, entries=entries)
                systems["jax"] = measured
            figures = common.interleave(systems, options.rounds)
            result: dict[str, Any] = {k: common.spread(v, higher_is_better=False) for k, v in figures.items()}
            row = [f"n = {size}, {'entries' if entries else 'array'}"]
            row += [f"{1e6 * v[k]:.1f}" for v in result.values() for k in ("median", "best")]
            if "jax" in figures:
                result["ratio"] = common.ratio(figures["myia_relay"], figures["jax"])
                row.append(f"{result['jax']['median'] / result['myia_relay']['median']:.2f}")
            rows.append([*row, *[""] * (6 - len(row))])
            results[row[0]] = result
    finally:
        if worker is not None:
            worker.close()
    print(common.table(rows))
    return results


def compile_seconds(executor: str) -> dict[str, float]:
    """First calls: processor seconds to compile and run."""
    x = np.ones(4)
    relay(lambda v: v * 2.0, executor=executor)(x)  # what is loaded once
    works = {
        "grad(grad(grad(f))), 20 lines with a loop": (
            relay(grad(grad(grad(twenty_lines))), executor=executor),
            (0.7, 5),
        ),
        "value_and_grad of 3 layers": (relay(value_and_grad(mlp_loss), executor=executor), mlp_arguments()),
    }
    results = {}
    for what, (function, args) in works.items():
        started = time.process_time()
        function(*args)
        results[what] = time.process_time() - started
    print(common.table([["first call", "s"], *([what, f"{seconds:.2f}"] for what, seconds in results.items())]))
    return results
