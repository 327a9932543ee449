"""Random programs on arrays of many short rows: row kernels compute what NumPy computes.

Idea: rows are picked apart, put together, transposed, merged with other axes and used again behind sums over all of them, which
ends a kernel: the next one must find the rows where the last one has put them.

`python -m tests.property.test_random_rows FIRST COUNT [PROCESSES]` runs a campaign and prints what differs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.opt.kernels import soa_kernels
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking

SUITE = 25
Shape = tuple[int, ...]


class Writer:
    """A function's text, written operation by operation, with the shapes so far.

    Args:
        seed: of what is random.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.rows = n = self.random.choice((32, 40, 45))
        self.inputs: dict[str, Shape] = {"x": (n, 3), "y": (n, 2), "v": (n,), "m": (3, 3), "s": ()}
        self.shapes = dict(self.inputs)
        self.lines: list[str] = []
        for _ in range(self.random.randint(8, 18)):
            self.random.choices(OPERATIONS, WEIGHTS)[0](self)

    def write(self, expression: str, shape: Shape) -> None:
        """One more value."""
        name = f"a{len(self.lines)}"
        self.lines.append(f"    {name} = {expression}")
        self.shapes[name] = shape

    def pick(self, fits: Callable[[Shape], bool] = lambda s: True) -> str:
        """A value of a shape that fits, late ones rather than early ones; "" if there is none."""
        names = [name for name, shape in self.shapes.items() if fits(shape)]
        late = names[-8:] if self.random.random() < 0.7 else names
        return self.random.choice(late) if names else ""

    def table(self) -> tuple[str, int]:
        """An array with a row in each row, and how many columns it has."""
        name = self.pick(lambda s: len(s) == 2 and s[0] == self.rows)
        return name, self.shapes[name][1]

    def column(self) -> str:
        """A number for each row."""
        return self.pick(lambda s: s == (self.rows,))

    def text(self) -> str:
        """The function, which returns its last two values, and some others."""
        names = list(self.shapes)
        results = dict.fromkeys([*self.random.sample(names, 3), *names[-2:]])
        return (
            f"def program({', '.join(self.inputs)}):\n"
            + "\n".join(self.lines)
            + f"\n    return {', '.join(results)},\n"
        )


def one_by_one(w: Writer) -> None:
    a = w.pick()
    forms = "np.tanh({})", "np.sin({}) * 0.5", "{} * 2.0 - 0.3", "np.exp(-np.abs({}))", "np.where({0} > 0, {0}, -0.5)"
    w.write(w.random.choice(forms).format(a), w.shapes[a])


def two(w: Writer) -> None:
    a = w.pick()
    w.write(f"{a} {w.random.choice('+-*')} {w.pick(lambda s: s in ((), w.shapes[a]))}", w.shapes[a])


def part(w: Writer) -> None:
    a, width = w.table()
    k = w.random.randrange(width)
    forms = (
        (f"{a}[:, {k}]", ()),
        (f"{a}[:, ::-1]", (width,)),
        (f"{a}[:, {k}:]", (width - k,)),
        (f"{a}[:, None, {k}]", (1,)),
    )
    expression, rest = w.random.choice(forms)
    w.write(expression, (w.rows, *rest))


def stacked(w: Writer) -> None:
    a, b = w.column(), w.column()
    if w.random.random() < 0.5:
        w.write(f"np.stack(({a}, {b}, {a} * {b}), axis=1)", (w.rows, 3))
    else:
        w.write(f"np.stack(({a}, {b}), axis=0)", (2, w.rows))


def beside(w: Writer) -> None:
    (a, first), (b, second) = w.table(), w.table()
    if first + second <= 8:
        w.write(f"np.concatenate(({a}, {b}), axis=1)", (w.rows, first + second))


def moved(w: Writer) -> None:
    (a, width), n = w.table(), w.rows
    forms = (
        (f"np.reshape({a}, ({n * width},))", (n * width,)),
        (f"np.reshape(np.transpose({a}), ({n * width},))", (n * width,)),
        (f"np.transpose({a})", (width, n)),
        (f"np.reshape({a}, ({n}, {width}, 1))[:, :, 0]", (n, width)),
        (f"np.sum({a} * {a}, axis=1)", (n,)),
    )
    w.write(*w.random.choice(forms))


def moved_back(w: Writer) -> None:
    n = w.rows
    if flat := w.pick(lambda s: len(s) == 1 and s[0] > n and s[0] % n == 0):
        width = w.shapes[flat][0] // n
        forms = f"np.reshape({flat}, ({n}, {width}))", f"np.transpose(np.reshape({flat}, ({width}, {n})))"
        w.write(w.random.choice(forms), (n, width))
    elif turned := w.pick(lambda s: len(s) == 2 and s[1] == n):
        w.write(f"np.transpose({turned})", (n, w.shapes[turned][0]))


def of_rows(w: Writer) -> None:
    (a, width), n = w.table(), w.rows
    forms = [
        (f"{a} * {w.column()}[:, None]", (n, width)),
        (f"np.pad({a}, ((0, 0), (1, 0)))", (n, width + 1)),
        (f"np.max({a}, axis=1)", (n,)),
    ]
    w.write(*w.random.choice([*forms, (f"{a} @ m", (n, 3))] if width == 3 else forms))


def over_all(w: Writer) -> None:
    a = w.pick(lambda s: s != ())
    whole = w.random.choice((f"np.sum({a}) / {w.rows}.0", f"np.max({a})", f"np.mean({a})"))
    w.write(*((f"{a} * np.tanh({whole})", w.shapes[a]) if w.random.random() < 0.7 else (whole, ())))


OPERATIONS = (one_by_one, two, part, stacked, beside, moved, moved_back, of_rows, over_all)
WEIGHTS = (20, 20, 10, 10, 8, 10, 10, 8, 12)


def check(seed: int) -> None:
    """Compare a program.

    Raises:
        AssertionError: it gives something else.
    """
    writer = Writer(seed)
    text, rng = writer.text(), np.random.default_rng(seed)
    args = [rng.normal(size=shape) * 0.7 for shape in writer.inputs.values()]
    args[-1] = float(args[-1])
    f = function_of(text, f"<rows {seed}>")
    want = f(*args)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soa_kernels, "PAYS", 0)  # all that can be
        patch.setenv("MYIA_RELAY_CACHE", "0")  # which knows nothing of that
        got = relay(f)(*args)
    for x, y in zip(got, want, strict=True):
        assert np.shape(x) == np.shape(y), (seed, text)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, err_msg=f"{seed}\n{text}")


def test_row_kernels_compute_what_numpy_computes(monkeypatch):
    kernels, emit = [], soa_kernels._Rebuild.emit

    def noted(self, kernel):
        kernels.append(kernel)
        return emit(self, kernel)

    monkeypatch.setattr(soa_kernels._Rebuild, "emit", noted)
    for seed in range(SUITE):
        check(seed)
    assert len(kernels) > SUITE / 3


if __name__ == "__main__":
    sys.exit(bool(campaign(checking(check), *map(int, sys.argv[1:]))))
