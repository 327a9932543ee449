"""Random chains of array operations, as they are fused into kernels: native code computes what NumPy computes.

Every operation that moves, repeats or joins elements is free inside a kernel: it only changes which element is read. The
programs here mix them with arithmetic and reductions in all orders, with axes of size one and empty arrays among them.
"""

from __future__ import annotations

import math
import random
import types

import numpy as np
import pytest

from myia_relay import relay

SUITE = 20
SIZES = (1, 1, 2, 3, 4, 5, 8, 17)


class Writer:
    """A function's text, written operation by operation, with the values so far (by NumPy) to know their shapes."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        rng = np.random.default_rng(seed)
        self.inputs = [self._array(rng) for _ in range(self.random.randint(1, 3))]
        self.values = {f"a{i}": x for i, x in enumerate(self.inputs)}
        self.lines: list[str] = []

    def _array(self, rng: np.random.Generator) -> np.ndarray:
        shape = tuple(self.random.choice(SIZES) for _ in range(self.random.randint(1, 3)))
        if self.random.random() < 0.03:
            shape = (0, *shape[1:])
        if self.random.random() < 0.2:
            return rng.integers(-9, 9, shape)
        return np.round(rng.uniform(-3, 3, shape), 2).astype(self.random.choice(("float64", "float64", "float32")))

    def write(self, expression: str) -> None:
        """Add a line, unless NumPy refuses it or the result grows too large."""
        with np.errstate(all="ignore"):
            try:
                value = eval(expression, {"np": np, **self.values})
            except ValueError:
                return
        if np.size(value) > 20_000:
            return
        name = f"v{len(self.lines)}"
        self.lines.append(f"    {name} = {expression}")
        self.values[name] = value

    def pick(self, rank: int | None = None) -> tuple[str, np.ndarray]:
        """A value, late ones rather than early ones."""
        names = [n for n, v in self.values.items() if isinstance(v, np.ndarray) and (rank is None or v.ndim >= rank)]
        name = names[max(self.random.randrange(len(names)), self.random.randrange(len(names)))]
        return name, self.values[name]

    def operation(self) -> None:
        """One random operation."""
        r, (x, value) = self.random, self.pick()
        rank = value.ndim
        kind = r.randrange(12)
        if kind <= 2:
            y, _ = self.pick()
            self.write(f"{x} {r.choice('+-*')} {y}")
        elif kind == 3:
            self.write(
                r.choice(
                    (f"np.tanh({x})", f"{x} * 2 + 1", f"-{x}", f"np.where({x} > 0, {x}, {x} * {x})", f"np.abs({x})")
                )
            )
        elif kind == 4:
            self.write(f"np.reshape({x}, {self.new_shape(value.size)})")
        elif kind == 5:
            axes = list(range(rank))
            r.shuffle(axes)
            self.write(f"np.transpose({x}, {tuple(axes)})")
        elif kind == 6:
            self.write(
                f"np.broadcast_to({x}, {(r.choice(SIZES), *(r.choice((d, 3)) if d == 1 else d for d in value.shape))})"
            )
        elif kind == 7 and rank:
            subscripts = [r.choice((":", "1:", ":-1", "::2", "::-1", "None, :")) for _ in range(rank)]
            self.write(f"{x}[{', '.join(subscripts)}]")
        elif kind == 8 and rank:
            self.write(f"np.flip({x}, {r.randrange(rank)})")
        elif kind == 9 and rank:
            y, _ = self.pick()
            self.write(f"np.concatenate(({x}, {y}), {r.randrange(rank)})")
        elif kind == 10 and rank:
            axis = r.choice((None, r.randrange(rank)))
            self.write(f"np.{r.choice(('sum', 'max', 'mean'))}({x}, axis={axis}, keepdims={r.random() < 0.5})")
        elif kind == 11 and rank:
            self.write(f"np.expand_dims({x}, {r.randrange(rank + 1)})")

    def new_shape(self, size: int) -> tuple[int, ...]:
        """A shape of that many elements."""
        shape = []
        for _ in range(self.random.randint(0, 2)):
            factor = self.random.choice([d for d in (1, 2, 3, 4, 5, 6, 8) if size and size % d == 0] or [1])
            shape.append(factor)
            size //= factor
        shape.append(size)
        self.random.shuffle(shape)
        return tuple(shape)

    def text(self) -> str:
        """The function, which returns its last three values."""
        last = [n for n in self.values if n.startswith("v")][-3:] or ["a0"]
        head = f"import numpy as np\n\ndef f({', '.join(n for n in self.values if n.startswith('a'))}):\n"
        return head + "\n".join(self.lines) + f"\n    return {', '.join(last)},\n"


def program(seed: int) -> Writer:
    """A random program of some ten operations."""
    writer = Writer(seed)
    for _ in range(writer.random.randint(4, 14)):
        writer.operation()
    return writer


def check(seed: int, folder) -> None:
    """Native code and the interpreter against NumPy: dtypes and shapes exactly, values up to the order of sums."""
    writer = program(seed)
    file = folder / f"fusion_{seed}.py"
    file.write_text(writer.text())
    module = types.ModuleType(file.stem)
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    with np.errstate(all="ignore"):
        try:
            want = module.f(*writer.inputs)
        except ValueError:
            return
        size = max(1.0, *(float(np.max(np.abs(v), initial=0.0)) for v in writer.values.values()))
        if not math.isfinite(size):
            return
        for executor in ("interpreter", "native"):
            got = relay(module.f, executor=executor)(*writer.inputs)
            for x, y in zip(got, want, strict=True):
                assert type(x) is type(y) and x.dtype == y.dtype and x.shape == y.shape, (seed, executor, writer.text())
                limit = 1e-13 if all(v.dtype != np.float32 for v in writer.values.values()) else 1e-5
                np.testing.assert_allclose(
                    x, y, rtol=limit, atol=limit * size, err_msg=f"{seed} {executor}\n{writer.text()}"
                )


@pytest.mark.parametrize("part", range(4))
@pytest.mark.sampled(2)
def test_fused_kernels_compute_what_numpy_computes(part, tmp_path):
    for seed in range(part, SUITE, 4):
        check(seed, tmp_path)


def test_broadcast_below_a_reshape(tmp_path):
    @relay
    def f(x, y):
        flat = np.ravel(np.outer(x, y))
        return np.sum(flat), flat * flat

    x, y = np.array([1.5, -2.0, 0.25, 4.0]), np.array([0.5, 3.0, -1.0])
    total, squares = f(x, y)
    np.testing.assert_array_equal(squares, np.ravel(np.outer(x, y)) ** 2)
    assert total == pytest.approx(np.sum(np.outer(x, y)))
