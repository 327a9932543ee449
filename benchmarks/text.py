"""`python -m benchmarks text`: programs of Relay text beside the same in decorated Python.

Both become the same parsed graphs, so their native code should cost the same. Ackermann's function, a TreeLSTM (K. S. Tai et al.,
2015) over complete binary trees, and quicksort of a list run in one process, in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from myia_relay import Float32, Int32, Tensor, relay

from . import common

TEXT = """
type List { Cons(int32, List), Nil, }
type Tree { Leaf(Tensor[(1, 64), float32]), Node(Tree, Tree), }

def @ackermann(%m: int32, %n: int32) -> int32 {
  if (%m == 0) { %n + 1 } else if (%n == 0) { @ackermann(%m - 1, 1) } else { @ackermann(%m - 1, @ackermann(%m, %n - 1)) }
}

def @append(%a: List, %b: List) -> List {
  match (%a) { Cons(%head, %tail) => Cons(%head, @append(%tail, %b)), Nil => %b, }
}
def @below(%pivot: int32, %l: List) -> List {
  match (%l) {
    Cons(%head, %tail) => if (%head < %pivot) { Cons(%head, @below(%pivot, %tail)) } else { @below(%pivot, %tail) },
    Nil => Nil,
  }
}
def @others(%pivot: int32, %l: List) -> List {
  match (%l) {
    Cons(%head, %tail) => if (%head < %pivot) { @others(%pivot, %tail) } else { Cons(%head, @others(%pivot, %tail)) },
    Nil => Nil,
  }
}
def @quicksort(%l: List) -> List {
  match (%l) {
    Cons(%head, %tail) => @append(@quicksort(@below(%head, %tail)), Cons(%head, @quicksort(@others(%head, %tail)))),
    Nil => Nil,
  }
}

def @tree_lstm(%t: Tree, %v: Tensor[(128, 64), float32], %w: Tensor[(320, 128), float32]) {
  match (%t) {
    Leaf(%x) => {
      let %g = nn.dense(%x, %v);
      let %c = tanh(strided_slice(%g, begin=[0, 0], end=[1, 64]));
      (tanh(%c) * sigmoid(strided_slice(%g, begin=[0, 64], end=[1, 128])), %c)
    },
    Node(%l, %r) => {
      let %a = @tree_lstm(%l, %v, %w);
      let %b = @tree_lstm(%r, %v, %w);
      let %g = nn.dense(concatenate((%a.0, %b.0), axis=1), %w);
      let %u = tanh(strided_slice(%g, begin=[0, 0], end=[1, 64])) * sigmoid(strided_slice(%g, begin=[0, 64], end=[1, 128]));
      let %kept = sigmoid(strided_slice(%g, begin=[0, 128], end=[1, 192])) * %a.1
        + sigmoid(strided_slice(%g, begin=[0, 192], end=[1, 256])) * %b.1;
      let %c = %u + %kept;
      (tanh(%c) * sigmoid(strided_slice(%g, begin=[0, 256], end=[1, 320])), %c)
    },
  }
}
"""


@dataclass(frozen=True)
class Nil:
    """The end of a list."""


@dataclass(frozen=True)
class Cons:
    """A list."""

    head: Int32
    tail: Cons | Nil


@dataclass(frozen=True)
class Leaf:
    """A word."""

    x: Tensor[Float32, (1, 64)]  # pyright: ignore[reportGeneralTypeIssues]


@dataclass(frozen=True)
class Node:
    """Two subtrees."""

    left: Leaf | Node
    right: Leaf | Node


def ackermann(m, n):
    """Ackermann's function."""
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, np.int32(1))
    return ackermann(m - 1, ackermann(m, n - 1))


def append(a: Cons | Nil, b: Cons | Nil) -> Cons | Nil:
    """Two lists as one."""
    if isinstance(a, Cons):
        return Cons(a.head, append(a.tail, b))
    return b


def below(pivot, values: Cons | Nil) -> Cons | Nil:
    """What is smaller."""
    if isinstance(values, Cons):
        if values.head < pivot:
            return Cons(values.head, below(pivot, values.tail))
        return below(pivot, values.tail)
    return Nil()


def others(pivot, values: Cons | Nil) -> Cons | Nil:
    """What is not smaller."""
    if isinstance(values, Cons):
        if values.head < pivot:
            return others(pivot, values.tail)
        return Cons(values.head, others(pivot, values.tail))
    return Nil()


def quicksort(values: Cons | Nil) -> Cons | Nil:
    """A sorted list."""
    if isinstance(values, Cons):
        head, tail = values.head, values.tail
        return append(quicksort(below(head, tail)), Cons(head, quicksort(others(head, tail))))
    return Nil()


def sigmoid(x):
    """The logistic function."""
    return relay.sigmoid(x)


def tree_lstm(t: Leaf | Node, v, w):
    """Output and state of the cell at the root."""
    if isinstance(t, Leaf):
        g = t.x @ v.T
        c = np.tanh(g[:, :64])
        return np.tanh(c) * sigmoid(g[:, 64:]), c
    h1, c1 = tree_lstm(t.left, v, w)
    h2, c2 = tree_lstm(t.right, v, w)
    g = np.concatenate((h1, h2), axis=1) @ w.T
    u = np.tanh(g[:, :64]) * sigmoid(g[:, 64:128])
    c = u + (sigmoid(g[:, 128:192]) * c1 + sigmoid(g[:, 192:256]) * c2)
    return np.tanh(c) * sigmoid(g[:, 256:]), c


def a_list(values: Any, cons: Callable[..., Any], nil: Callable[..., Any]) -> Any:
    """A list with these entries."""
    out = nil()
    for x in reversed(values):
        out = cons(x, out)
    return out


def a_tree(leaves: Sequence[Any], node: Callable[..., Any]) -> Any:
    """A complete tree over leaves, whose number is a power of two."""
    level = list(leaves)
    while len(level) > 1:
        level = [node(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def entries(values: Any) -> list[int]:
    """The entries of a list of either kind."""
    out = []
    while type(values).__name__ == "Cons":
        head, values = values.fields if hasattr(values, "fields") else (values.head, values.tail)
        out.append(int(head))
    return out


def pairs(
    n: int, length: int, depth: int
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]]:
    """The programs: name -> (from text, from Python, what of a result is compared).

    Args:
        n: of ackermann(3, n).
        length: of the list.
        depth: of the tree.
    """
    module = relay.parse_text(TEXT)
    rng = np.random.default_rng(0)
    numbers = [np.int32(x) for x in rng.integers(0, 1 << 30, length)]
    words = [rng.standard_normal((1, 64)).astype(np.float32) for _ in range(2**depth)]
    weights = [(0.1 * rng.standard_normal(s)).astype(np.float32) for s in ((128, 64), (320, 128))]
    arguments = (np.int32(3), np.int32(n))
    their_list, our_list = a_list(numbers, module["Cons"], module["Nil"]), a_list(numbers, Cons, Nil)
    their_tree = a_tree([module["Leaf"](x) for x in words], module["Node"])
    our_tree = a_tree([Leaf(x) for x in words], Node)
    native = {f.__name__: relay(f) for f in (ackermann, quicksort, tree_lstm)}
    return {
        f"ackermann(3, {n})": (
            lambda: module["ackermann"](*arguments),
            lambda: native["ackermann"](*arguments),
            int,
        ),
        f"quicksort of {length}": (
            lambda: module["quicksort"](their_list),
            lambda: native["quicksort"](our_list),
            entries,
        ),
        f"TreeLSTM of {2**depth} words": (
            lambda: module["tree_lstm"](their_tree, *weights),
            lambda: native["tree_lstm"](our_tree, *weights),
            lambda result: np.stack(result).round(4).tolist(),
        ),
    }


def seconds(function: Callable[[], Any], times: int) -> float:
    """The time of a call."""
    start = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - start) / times


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all programs, and print a table.

    Raises:
        AssertionError: text and Python differ.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks text", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=common.positive, default=15, help="(default: %(default)s)")
    parser.add_argument("--n", type=int, default=8, help="of ackermann(3, n) (default: %(default)s)")
    parser.add_argument("--length", type=common.positive, default=1000, help="of the list (default: %(default)s)")
    parser.add_argument("--depth", type=common.positive, default=6, help="of the tree (default: %(default)s)")
    options = parser.parse_args(argv)
    common.print_environment(common.begin())
    rows: list[tuple[str, ...]] = [("program", "text, ms", "Python, ms", "text / Python")]
    for name, (text, python, value) in pairs(options.n, options.length, options.depth).items():
        if value(text()) != value(python()):
            raise AssertionError(f"{name}: the text computes something else")
        times = max(1, round(0.02 / max(seconds(text, 1), seconds(python, 1))))
        systems = {"text": lambda f=text, k=times: seconds(f, k), "python": lambda f=python, k=times: seconds(f, k)}
        figures = common.interleave(systems, options.rounds, 0.0)
        shown = [f"{1e3 * statistics.median(figures[system]):.3f}" for system in systems]
        rows.append((name, *shown, f"{common.ratio(figures['text'], figures['python']):.2f}"))
    print(common.table(rows))
    return 0
