"""`python -m benchmarks lists`: Python's containers as arguments, of 10 to 100,000 entries, beside CPython and Numba's typed lists.

For each kind of container a process compiles two functions for each length, cold: one runs over the entries with `for`, one reads
them by index in a scattered order. Shown are the processor time of the first call of `for`; what a call that reads one entry costs
for each entry (the conversion); and how many times as long CPython, and Numba's function on a typed list, take for a call.
Ours includes the conversion of Python's objects in each call. Numba's is shown without the conversion, which was done before, and
what that took for an entry. Results are compared with CPython's before anything is timed.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import common

LENGTHS = (10, 100, 1000, 10_000, 100_000)
Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Point:
    """A record."""

    a: float
    b: float


class Kind(NamedTuple):
    """A kind of container.

    Attributes:
        name: what it is called in the table.
        entry: makes entry number k.
        item, over: of `for item in over` in the first function.
        value: what is added up of an item.
        at: the same of `xs[i]`.
        numba: makes Numba's entry of Python's; None where there is no such typed list.
    """

    name: str
    entry: Callable[[int], Any]
    item: str
    value: str
    at: str
    numba: Callable[[Any], Any] | None
    inner: str = ""


def same(entry: Any) -> Any:
    """Numba's entry, where it is Python's."""
    return entry


def typed(entry: Any) -> Any:
    """Numba's list of a list."""
    from numba.typed import List  # pyright: ignore[reportMissingImports]

    out = List.empty_list(_numba_float())
    for x in entry:
        out.append(x)
    return out


def typed_dict(entry: Any) -> Any:
    """Numba's dict of a dict."""
    from numba import types  # pyright: ignore[reportMissingImports]
    from numba.typed import Dict  # pyright: ignore[reportMissingImports]

    out = Dict.empty(types.unicode_type, types.float64)
    for k, v in entry.items():
        out[k] = v
    return out


def _numba_float() -> Any:
    from numba import types  # pyright: ignore[reportMissingImports]

    return types.float64


KINDS = {
    "floats": Kind("floats", lambda k: 0.5 * k, "x", "x", "xs[i]", same),
    "ints": Kind("ints", lambda k: 7 * k % 13, "x", "x", "xs[i]", same),
    "numbers": Kind("ints and floats", lambda k: k if k % 3 else 0.5 * k, "x", "x", "xs[i]", None),
    "optional": Kind(
        "floats and None", lambda k: None if k % 7 == 3 else 0.5 * k,
        "x", "0.0 if x is None else x", "0.0 if xs[i] is None else 1.0", None,
    ),
    "strings": Kind(
        "strings", lambda k: ("red", "green", "blue")[k % 3],
        "x", "1.0 if x == 'red' else 0.5", "1.0 if xs[i] == 'red' else 0.5", same,
    ),
    "pairs": Kind("pairs", lambda k: (k, 0.5 * k), "(a, b)", "a * b", "xs[i][0] * xs[i][1]", same),
    "named": Kind("NamedTuples", lambda k: Pair(k, 0.5 * k), "x", "x.a * x.b", "xs[i].a * xs[i].b", same),
    "records": Kind("dataclasses", lambda k: Point(1.0 * k, 0.5), "x", "x.a * x.b", "xs[i].a * xs[i].b", None),
    "dicts": Kind("dicts", lambda k: {"a": 1.0 * k, "b": 0.5}, "x", "x['a'] * x['b']", "xs[i]['a'] * xs[i]['b']", typed_dict),
    "rows": Kind("lists of four", lambda k: [0.5 * k, 1.0, 2.0, 3.0], "x", "x[0] * x[3]", "xs[i][1] + xs[i][2]", typed),
    "ragged": Kind("ragged lists", lambda k: [0.5 * k] * (k % 9), "x", "y", "xs[i][0] if len(xs[i]) > 0 else 0.0", typed, "y"),
    "nested": Kind(
        "lists of pairs", lambda k: [(j, 0.5 * k) for j in range(k % 5)],
        "x", "y[0] * y[1]", "xs[i][0][1] if len(xs[i]) > 0 else 0.0", None, "y",
    ),
    "arrays": Kind("arrays of eight", lambda k: np.full(8, 0.5 * k), "x", "x[0] * x[7]", "xs[i][3]", same),
}  # fmt: skip
"""The kinds of containers; entries of the first and the last length are of the same types."""


def source(kind: Kind) -> str:
    """A module with `loop`, `indexed` and `one`."""
    lines = [f"        s += {kind.value}"]
    if kind.inner:
        lines = [f"        for {kind.inner} in {kind.item}:", f"            s += {kind.value}"]
    return "\n".join(
        [
            "def loop(xs):",
            "    s = 0.0",
            f"    for {kind.item} in xs:",
            *lines,
            "    return s",
            "",
            "def indexed(xs):",
            "    s, i, n = 0.0, 0, len(xs)",
            "    for _ in range(n):",
            "        i = (i + 7919) % n",
            f"        s += {kind.at}",
            "    return s",
            "",
            "def one(xs):",
            "    i = len(xs) - 1",
            f"    return {kind.at}",
            "",
        ]
    )


def child(name: str, lengths: Sequence[int], rounds: int, with_numba: bool) -> None:
    """Measure a kind, and print a line of JSON for each length."""
    os.environ["MYIA_RELAY_CACHE_SIZE"] = "0"
    os.environ["MYIA_RELAY_PATIENCE"] = "0"
    from myia_relay import relay

    kind = KINDS[name]
    relay(lambda x: x + 1.0)(1.0)
    print(json.dumps("ready"), flush=True)
    with tempfile.TemporaryDirectory(prefix="myia_relay_bench.") as folder:
        for n in lengths:
            path = Path(folder) / f"{name}_{n}.py"
            path.write_text(source(kind), "utf-8")
            module = common.module_of(path)
            print(json.dumps([n, figures(relay, module, kind, n, rounds, with_numba)]), flush=True)


def figures(relay: Callable, module: Any, kind: Kind, n: int, rounds: int, with_numba: bool) -> dict[str, Any]:
    """The figures of a kind at one length."""
    order = list(range(n))
    random.Random(n).shuffle(order)
    xs = [kind.entry(k) for k in order]
    found: dict[str, Any] = {}
    functions = {}
    for name in ("loop", "indexed", "one"):
        python = getattr(module, name)
        ours = functions[name] = relay(python)
        begun = time.process_time()
        try:
            got = ours(xs)
        except Exception as error:  # a refusal is a result too
            return {"failed": f"{type(error).__name__}: {str(error).splitlines()[-1]}"}
        found[f"compile {name}"] = time.process_time() - begun
        want = python(xs)
        if not math.isclose(got, want, rel_tol=1e-9) or type(got) is not type(want):
            return {"failed": f"{got!r} is not {want!r}"}
    numbas = of_numba(module, kind, xs, found) if with_numba and kind.numba else None
    for name in ("loop", "indexed"):
        systems = {"ours": repeated(functions[name], xs), "cpython": repeated(getattr(module, name), xs)}
        if numbas is not None:
            systems["numba"] = repeated(numbas[0][name], numbas[1])
        times = common.interleave(systems, rounds, rest=0.0)
        found[name] = sorted(times["ours"])[rounds // 2] / n
        for peer in systems:
            if peer != "ours":
                found[f"{name}/{peer}"] = common.ratio(times[peer], times["ours"])
    one = repeated(functions["one"], xs)
    found["conversion"] = sorted(one() for _ in range(rounds))[rounds // 2] / n
    return found


def of_numba(module: Any, kind: Kind, xs: list, found: dict[str, Any]) -> tuple[dict[str, Callable], Any] | None:
    """Numba's functions and its list, or None where it takes none."""
    import numba  # pyright: ignore[reportMissingImports]
    from numba.typed import List  # pyright: ignore[reportMissingImports]

    assert kind.numba is not None
    try:
        begun = time.perf_counter()
        held: Any = List()  # pyright: ignore[reportCallIssue]
        for x in xs:
            held.append(kind.numba(x))
        found["numba's conversion"] = (time.perf_counter() - begun) / len(xs)
        functions: dict[str, Any] = {name: numba.njit(getattr(module, name)) for name in ("loop", "indexed")}
        for name, function in functions.items():
            if not math.isclose(function(held), getattr(module, name)(xs), rel_tol=1e-9):
                found["numba failed"] = "another result"
                return None
    except Exception as error:
        found["numba failed"] = str(error).strip().partition("\n")[0]
        return None
    return functions, held


def repeated(function: Callable, xs: Any) -> Callable[[], float]:
    """Measures seconds of one call: the mean of as many as take a few milliseconds."""
    function(xs)
    begun = time.perf_counter()
    function(xs)
    count = max(1, min(1000, int(2e-3 / (time.perf_counter() - begun + 1e-9))))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(count):
            function(xs)
        return (time.perf_counter() - start) / count

    return measure


def measure(name: str, lengths: Sequence[int], options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """The figures of a kind for each length."""
    words = [sys.executable, "-m", "benchmarks.lists", "--child", name, "--lengths", ",".join(map(str, lengths))]
    words += ["--rounds", str(options.rounds), *(["--no-numba"] if options.no_numba else [])]
    lines = common.lines_of_child(words, lengths)
    return {n: {"failed": "the process ended"} if line is None else line[1] for n, line in lines}


def row(name: str, n: int, found: dict[str, Any]) -> list[str]:
    """A line of the table."""
    if "failed" in found:
        return [name, f"{n:,}", found["failed"]]
    ratios = [
        f"{found[k]:.2f}" if k in found else "-"
        for k in ("loop/cpython", "loop/numba", "indexed/cpython", "indexed/numba")
    ]
    numbas = f"{1e9 * found[key]:.0f}" if (key := "numba's conversion") in found else "-"
    return [name, f"{n:,}", f"{found['compile loop']:.2f}", f"{1e9 * found['conversion']:.1f}", *ratios, numbas]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a program was refused or its result is not CPython's.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks lists", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), metavar="N,...", help="default: %(default)s")
    parser.add_argument(
        "--only", type=lambda text: common.choose(text, tuple(KINDS)), metavar="NAMES", help="commas between them"
    )
    parser.add_argument("--rounds", type=common.positive, default=5)
    parser.add_argument("--no-numba", action="store_true", help="leave Numba out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.no_numba |= importlib.util.find_spec("numba") is None
    lengths = [int(n) for n in options.lengths.split(",")]
    if options.child:
        child(options.child, lengths, options.rounds, not options.no_numba)
        return 0
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "lists", "environment": info, "kinds": {}}
    head = [
        "entries",
        "length",
        "first call s",
        "conversion ns",
        "for: cpython",
        "numba",
        "[i]: cpython",
        "numba",
        "numba's conversion ns",
    ]
    rows, failed = [head], False
    for name in options.only or KINDS:
        found = results["kinds"][name] = measure(name, lengths, options)
        for n, one in found.items():
            failed |= "failed" in one
            rows.append(row(KINDS[name].name, n, one))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print(common.table(rows))
    for key in ("loop/cpython", "indexed/cpython", "loop/numba", "indexed/numba"):
        known = [f[key] for kind in results["kinds"].values() for n, f in kind.items() if key in f and n >= 100]
        if known:
            mean = math.exp(sum(map(math.log, known)) / len(known))
            print(f"{key} from 100 entries on: geometric mean {mean:.1f}, least {min(known):.2f}")
    common.write_json(options.json, results)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
