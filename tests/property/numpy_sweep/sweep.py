"""A sweep over all functions: `python -m tests.property.numpy_sweep.sweep --calls 100 [--only np.sum] [--executor native]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from .compare import CALLS, Verdict, compare

FINE = ("same", "refused")


def seed_of(name: str, number: int) -> int:
    """The seed of one call of a function."""
    return sum(ord(c) * 257**i for i, c in enumerate(name)) % (1 << 31) * 1000 + number


def sweep(names, calls: int, executor: str, first: int = 0):
    """Verdicts on so many calls of each function."""
    for name in names:
        for number in range(first, first + calls):
            yield name, compare(name, seed_of(name, number), executor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--executor", default="interpreter")
    parser.add_argument("--show", type=int, default=3, help="how many defects of a kind to show for each function")
    parser.add_argument("--refused", action="store_true", help="show refusals too")
    options = parser.parse_args()
    total: Counter = Counter()
    shown: Counter = Counter()
    for name, verdict in sweep(options.only or list(CALLS), options.calls, options.executor, options.first):
        total[verdict.kind] += 1
        bad = verdict.kind not in FINE or (options.refused and verdict.kind == "refused")
        if bad and shown[name, verdict.kind] < options.show:
            shown[name, verdict.kind] += 1
            print(f"{name} {verdict}", flush=True)
    print(dict(total))
    sys.exit(any(kind not in FINE for kind in total))


if __name__ == "__main__":
    main()

__all__ = ["FINE", "Verdict", "seed_of", "sweep"]
