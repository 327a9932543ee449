"""Inference does not repeat its work for each level of a nest of loops, each entry of a list, or each call of a recursion.

No clock is read: what counts is how many applications of the parsed program are evaluated.
"""

from __future__ import annotations

import importlib.util
import textwrap

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.infer.engine.engine import Engine

EXECUTORS = ["interpreter", "python", "native"]


def evaluated(monkeypatch, f, *args) -> int:
    """How many applications inference evaluates for a call."""
    count, apply = 0, Engine.apply

    async def counted(self, frame, node):
        nonlocal count
        count += 1
        return await apply(self, frame, node)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "apply", counted)
        relay(f).ir(*args, stage="inferred")
    return count


def load(path, source: str, name: str):
    """A function of a module with this source."""
    path.write_text(f"import numpy as np\n{textwrap.dedent(source)}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def nest(path, depth: int, start: str, loop: str, innermost: list[str]):
    """Loops in each other, with a sum that becomes a NumPy number in the innermost one."""
    lines = ["def f(x):", f"    s, t = {start}, {start}", "    n = len(x)"]
    for level in range(depth):
        i, space = f"i{level}", "    " * (level + 1)
        lines += [space + line for line in loop.replace("INDEX", i).splitlines()]
    space = "    " * (depth + 1)
    lines += [space + line for line in innermost]
    for level in reversed(range(depth)) if "while" in loop else ():
        lines.append("    " * (level + 2) + f"i{level} += 1")
    lines.append("    return s, t")
    return load(path, "\n".join(lines), "f")


LOOPS = {
    "range": "for INDEX in range(n):",
    "known": "for INDEX in range(2):",
    "while": "INDEX = 0\nwhile INDEX < n:",
    "array": "for INDEX in x:",
    "tuple": "for INDEX in (0.5, 1.5):",
}
INNERMOST = {
    "sum": ["s += x[0]"],
    "condition": ["if x[1] > s:", "    s += x[1]"],
    "two": ["if x[1] > 2.0:", "    s += x[1]", "t = t + s * x[0]"],
    "largest": ["s = max(s, x[2])", "t = t * 0.5 + s"],
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("innermost", INNERMOST)
@pytest.mark.sampled(8)
def test_sums_in_nested_loops(tmp_path, monkeypatch, loop, innermost):
    x = np.array([0.5, 1.5, 3.0])
    depths = (2, 4) if loop == "tuple" else (3, 6)
    few, many = (
        evaluated(monkeypatch, nest(tmp_path / f"nest{d}.py", d, "0.0", LOOPS[loop], INNERMOST[innermost]), x)
        for d in depths
    )
    assert many <= 6 * few  # they would be 16 times as many, or more, if they doubled with each level


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("innermost", INNERMOST)
@pytest.mark.sampled(12)
def test_their_values(tmp_path, executor, loop, innermost):
    f = nest(tmp_path / "nest3.py", 3, "0.0", LOOPS[loop], INNERMOST[innermost])
    compiled = relay(executor=executor)(f)
    for x in (np.array([0.5, 1.5, 3.0]), np.array([0.5, -1.5, -3.0])):
        got, want = compiled(x), f(x)
        np.testing.assert_allclose(got, want, rtol=1e-13)
        if innermost != "largest":  # where `max` has made one type of both
            assert list(map(type, got)) == list(map(type, want))
    slope = grad(relay(executor=executor)(lambda x: compiled(x)[0] + compiled(x)[1]))(np.array([0.5, 1.5, 3.0]))
    step = 1e-6 * np.eye(3)
    at = np.array([0.5, 1.5, 3.0])
    np.testing.assert_allclose(slope, [(sum(f(at + h)) - sum(f(at - h))) / 2e-6 for h in step], rtol=1e-5, atol=1e-6)


STENCIL = """
def f(x, n):
    s = 0.0
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            for dz in (-1, 0, 1):
                for i in range(n):
                    j = (i + dx + 3 * dy + 9 * dz) % n
                    while j > 0:
                        d = x[i] - x[j]
                        if d * d < 2.0:
                            s += d * x[j]
                        j = j // 2
    return s
"""
TABLE = """
PAIRS = [(k, k * 0.5) for k in range(1000)]

def f(x, n):
    s = 0.0
    for place, (k, v) in enumerate(PAIRS):
        s += x[k % n] * v + place
        if s > 1e5:
            break
    return s
"""
DISPLAY = f"""
def f(x, n):
    s = 0.0
    for v in [{", ".join(f"x[{k % 3}] * {k}" for k in range(400))}]:
        s = s * 0.5 + v
    return s
"""


@pytest.mark.parametrize(
    ("source", "most"), [(STENCIL, 1000), (TABLE, 100), (DISPLAY, 1000)], ids=["stencil", "table", "display"]
)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(3)
def test_loops_over_many_numbers_stay_loops(tmp_path, monkeypatch, executor, source, most):
    f = load(tmp_path / "long.py", source, "f")
    x = np.array([0.5, 1.5, 3.0])
    assert evaluated(monkeypatch, f, x, 3) <= most
    compiled = relay(executor=executor)(f)
    got, want = compiled(x, 3), f(x, 3)
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    np.testing.assert_allclose(grad(compiled)(x, 3) @ np.ones(3), (f(x + 1e-6, 3) - f(x - 1e-6, 3)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_loops_that_need_their_numbers_are_unrolled(tmp_path, executor):
    f = load(
        tmp_path / "needs.py",
        """
        def f(x):
            s = 0.0
            for k in (1, 2, 3):
                for m in (1, 2, 3):
                    for l in range(5):
                        a = x[:k] * m
                        b = x[:m] * k
                        for q in a:
                            s += q * l
                        for q in b:
                            s -= q * l
                        while s > 100.0:
                            s = s * 0.5
            return s
        """,
        "f",
    )
    x = np.array([0.5, 1.5, 3.0])
    np.testing.assert_allclose(relay(executor=executor)(f)(x), f(x), rtol=1e-13)
