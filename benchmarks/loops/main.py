"""The command: cases in interleaved rounds, and a table."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import common
from . import complex_numbers, linear_algebra, networks, others, stencils  # noqa: F401 - they enter their cases
from .case import CASES, SIZES, Case

OURS, PEERS = "myia_relay", ("numpy", "numba")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a case failed, or its results differ.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="python -m benchmarks loops", description=__doc__)
    common.add_common_options(parser)
    parser.add_argument("--sizes", type=lambda text: common.choose(text, SIZES), default=["S"], help="of tiny, S and M")
    parser.add_argument("--cases", type=lambda text: common.choose(text, list(CASES)), default=list(CASES))
    parser.add_argument("--peers", type=lambda text: common.choose(text, PEERS), default=list(PEERS))
    parser.add_argument("--rounds", type=common.positive, default=5)
    options = parser.parse_args(argv)
    if any(os.environ.get(name) != "1" for name in THREADS):  # libraries read them when they are loaded
        one = {**os.environ, **dict.fromkeys(THREADS, "1")}
        return subprocess.run([sys.executable, "-m", "benchmarks", "loops", *argv], env=one, check=False).returncode
    info = common.begin()
    if "numba" in options.peers and importlib.util.find_spec("numba") is None:
        print("numba: not installed here; pip install numba")
        options.peers.remove("numba")
    results: dict[str, Any] = {"benchmark": "loops", "environment": info, "cases": {}}
    rows = [["case", "numpy ms", "numba ms", "ours ms", "numpy/ours", "numba/ours", "compile s", "difference"]]
    print(common.table(rows))
    failed = False
    for size in options.sizes:
        for name in options.cases:
            found = results["cases"][f"{name}/{size}"] = measure(CASES[name], size, options)
            failed |= "failed" in found or found["difference"] > 1e-6
            print(line(f"{name}/{size}", found), flush=True)
        print(f"{size}: {means(results['cases'], size)}", flush=True)
    common.write_json(options.json, results)
    return int(failed)


def measure(case: Case, size: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a case: seconds of each system, ratios to ours, seconds of compiling, the difference from NumPy."""
    from myia_relay import relay

    arguments = case.arguments(size)
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = flat(case.function(*copies(arguments)))
        try:
            ours = relay(executor=options.executor)(case.function)
            begun = time.perf_counter()
            result = flat(ours(*copies(arguments)))
            found["compile"] = time.perf_counter() - begun
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        found["difference"] = common.difference(reference, result)
        systems: dict[str, Callable[[], float]] = {OURS: lambda: seconds(ours, arguments)}
        if "numpy" in options.peers:
            systems["numpy"] = lambda: seconds(case.function, arguments)
        if "numba" in options.peers and case.numba:
            compiled = of_numba(case, arguments, found)
            if compiled is not None:
                systems["numba"] = lambda: seconds(compiled, arguments)
        figures = common.interleave(systems, options.rounds, rest=0.0)
    for name, values in figures.items():
        found[name] = statistics.median(values)
        if name != OURS:
            found[f"{name}/ours"] = common.ratio(values, figures[OURS])
    return found


def of_numba(case: Case, arguments: tuple, found: dict[str, Any]) -> Callable[..., Any] | None:
    """The function as Numba compiles it; None where it does not."""
    import numba  # pyright: ignore[reportMissingImports]

    try:
        compiled = numba.njit(case.function)
        begun = time.perf_counter()
        compiled(*copies(arguments))
        found["compile numba"] = time.perf_counter() - begun
    except Exception as error:
        found["numba failed"] = str(error).partition("\n")[0]
        return None
    return compiled


def seconds(function: Callable[..., Any], arguments: tuple) -> float:
    """Of one call with fresh copies of the arguments: the median of several calls where one is short."""
    out: list[float] = []
    while len(out) < 3 or (sum(out) < 0.02 and len(out) < 100):
        given = copies(arguments)
        begun = time.perf_counter()
        function(*given)
        out.append(time.perf_counter() - begun)
        if out[0] > 0.2:
            break
    return statistics.median(out)


def copies(arguments: tuple) -> list[Any]:
    """Arguments of which the arrays may be changed."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def flat(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in flat(part)]
    return [np.asarray(result)]


def line(name: str, found: dict[str, Any]) -> str:
    """A row of the table."""
    if "failed" in found:
        return f"{name:<24} failed: {found['failed'].strip().partition(chr(10))[0]}"

    def ms(key: str) -> str:
        return f"{found[key] * 1e3:10.3f}" if key in found else f"{'-':>10}"

    def ratio(key: str) -> str:
        return f"{found[key]:9.2f}" if key in found else f"{'-':>9}"

    ratios = f"{ratio('numpy/ours')} {ratio('numba/ours')}"
    return (
        f"{name:<24}{ms('numpy')} {ms('numba')} {ms(OURS)} {ratios} {found['compile']:7.2f}   {found['difference']:.0e}"
    )


def means(cases: dict[str, dict[str, Any]], size: str) -> str:
    """The geometric means of the ratios at a size."""
    out = []
    for peer in PEERS:
        ratios = [f[f"{peer}/ours"] for name, f in cases.items() if name.endswith(f"/{size}") and f"{peer}/ours" in f]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slower = sum(r < 1 for r in ratios)
            out.append(f"{mean:.2f} times as fast as {peer} (geometric mean of {len(ratios)}; slower in {slower})")
    return ", ".join(out)
