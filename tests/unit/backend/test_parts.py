"""Programs whose code LLVM has compiled in two parts."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.backend.native import library

parts = pytest.importorskip("myia_relay.backend.tvm.tir.parts")

pytestmark = pytest.mark.skipif(not library.supported(), reason="code is not linked here")


def mean_square(x, w):
    y = np.tanh(x @ w)
    z = np.cumsum(np.exp(-y), axis=1)
    if np.max(z) > 130.0:
        raise ValueError("too large")
    return np.mean((np.sort(z, axis=0) - np.max(x)) ** 2)


@pytest.fixture
def halves(unchecked, monkeypatch, tmp_path):
    """Every program is divided; how many functions the second part had."""
    counts = []
    divide = parts.divide

    def counted(sizes, rest):
        found = divide(sizes, rest)
        counts.append(len(found))
        return found

    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path))
    monkeypatch.setattr(parts, "WORTH", 0)
    monkeypatch.setattr(parts, "_processors", lambda: 2)
    monkeypatch.setattr(parts, "divide", counted)
    return counts


def arguments():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 30)), rng.standard_normal((30, 50))


def test_a_divided_program_computes_the_same(halves):
    x, w = arguments()
    program = relay(grad(mean_square, wrt=(0, 1)))
    found = program(x, w)
    assert halves[-1] >= 2
    for ours, theirs in zip(found, relay(executor="interpreter")(grad(mean_square, wrt=(0, 1)))(x, w)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    again = relay(grad(mean_square, wrt=(0, 1)))(x, w)  # from the file
    assert all(np.array_equal(a, b) for a, b in zip(found, again))
    assert "main" in program.asm(x, w)


def test_a_divided_program_raises(halves):
    x, w = arguments()
    with pytest.raises(ValueError, match="too large"):
        relay(mean_square)(x - 100.0, np.abs(w))
    assert halves[-1] >= 1


def test_a_divided_program_can_be_exported(halves, tmp_path):
    x, w = arguments()
    program = relay(mean_square)
    program.save(tmp_path / "f.so", x, w)
    assert halves[-1] >= 1
    assert relay.load_compiled(tmp_path / "f.so")(x, w) == program(x, w)


def test_an_error_of_either_part_is_raised(monkeypatch):
    def broken(module, **_):
        raise RuntimeError(f"{len(module.functions)} functions")

    monkeypatch.setattr(parts.pipeline, "build", broken)
    module = parts.tvm.IRModule({})
    with pytest.raises(RuntimeError, match="0 functions"):
        parts.build(module, set(), None)


@pytest.mark.parametrize(
    "sizes, rest, size",
    [({"a": 100, "b": 100, "c": 100, "d": 100}, 0, 200), ({"a": 300, "b": 50, "c": 60}, 250, 350), ({"a": 299}, 0, 0)],
)
def test_halves_are_about_equal(sizes, rest, size, monkeypatch):
    monkeypatch.setattr(parts, "_processors", lambda: 2)
    assert sum(sizes[name] for name in parts.divide(sizes, rest)) == size


def test_one_processor_does_everything_at_once(monkeypatch):
    monkeypatch.setattr(parts, "_processors", lambda: 1)
    assert not parts.divide({"a": 1000, "b": 1000}, 0)
