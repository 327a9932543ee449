"""Finding the pass after which an answer changes: broken rules, passes and native code are named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import Float, Tensor, cli, grad, relay, relay_model
from myia_relay.bisect import Finding, bisect, unlike
from myia_relay.cli.arguments import RandomArrays, examples
from myia_relay.ir.node import applied
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.rewrite import Rewriter, all_graphs
from myia_relay.opt import pipeline as opt_pipeline
from myia_relay.opt.rewrite import simplify
from myia_relay.opt.rewrite.rules import Op, Rule, Table, X, Y


def search(f, *args, **options) -> tuple[Finding, str]:
    lines: list[str] = []
    return bisect(f, args, tell=lines.append, **options), "\n".join(lines)


class Swap(Rewriter):
    """Makes every application of one primitive one of another."""

    def __init__(self, what: str, by: str):
        super().__init__()
        self.what, self.by = what, by

    def node(self, builder, node, args, attrs):
        if applied(node) == self.what:
            self.changed = True
            return builder.emit(REGISTRY[self.by], args, {}, node.type)
        return super().node(builder, node, args, attrs)


@dataclass(frozen=True)
class Broken:
    """A pass that makes sums of differences."""

    name: str
    what: str = "sub"

    def __call__(self, graph):
        return Swap(self.what, "add").rewrite(graph)


@relay
def distance(x, y):
    total = 0.0
    for i in range(10):
        total += (x - y) * (x - y) / (i + 1.0)
    return total


def test_a_right_program_has_no_culprit():
    found, text = search(distance, 3.0, 1.5)
    assert found.culprit is None
    assert "Python: the same" in text and "native: the same" in text and "Nothing differs" in text
    assert "simplified" in text and "differentiated" in text and "optimized" in text


def test_a_broken_rule_is_named(monkeypatch):
    wrong = Rule("forget_subtrahend", Op("sub", X, Y), X)
    monkeypatch.setattr(simplify, "FINAL", Table(*simplify.FINAL.rules, wrong))
    found, text = search(distance, 3.0, 1.5)
    assert found.culprit == "simplify" and found.rules == ["forget_subtrahend"]
    assert "the pass 'simplify'" in text and "'forget_subtrahend'" in text
    assert any(line.strip().startswith("-") and "sub" in line for line in text.splitlines()), text


@pytest.mark.parametrize("name, stage", [("HoistInvariants", "inferred"), ("EliminateDeadFills", "differentiated")])
def test_a_broken_pass_is_named(monkeypatch, name, stage):
    monkeypatch.setattr(opt_pipeline, name, lambda: Broken("broken_pass"))
    found, text = search(distance, 3.0, 1.5)
    assert found.culprit == "broken_pass" and "the pass 'broken_pass'" in text
    assert f"broken_pass, after {stage}" in text
    before, after = ({applied(n) for g in all_graphs(graph) for n in g.nodes} for graph in (found.before, found.after))
    assert "sub" in before and "sub" not in after


def test_a_pass_that_breaks_derived_code_is_named(monkeypatch):
    @relay
    def f(x):
        return np.sum(np.cos(x) * x)

    monkeypatch.setattr(opt_pipeline, "EliminateRedundantLoops", lambda: Broken("broken_late", "mul"))
    found, text = search(grad(f), np.array([0.5, 2.0, -1.0]))
    assert found.culprit == "broken_late"
    assert "simplified" in text and "differentiated" in text, "both come before, and are right"


def test_a_broken_stage_is_named(monkeypatch):
    from myia_relay.ad import expand as module

    @relay
    def f(x):
        return x * x - x

    right = module.expand
    calls = []

    def wrong(graph):
        calls.append(graph)
        return Swap("sub", "add").rewrite(right(graph)) if len(calls) == 1 else right(graph)

    monkeypatch.setattr(module, "expand", wrong)
    found, text = search(f, 3.0)
    assert found.culprit == "differentiated" and "the stage 'differentiated'" in text


def test_wrong_native_code_is_blamed_on_a_switch(monkeypatch):
    from myia_relay.backend.tvm import program as native
    from myia_relay.utils.switches import is_left_out

    right = native._Main

    def wrong(graph, options):
        return right(graph if is_left_out("blas") else Swap("sub", "add").rewrite(graph), options)

    monkeypatch.setattr(native, "_Main", wrong)

    @relay
    def f(x, y):
        return x - 2 * y

    found, text = search(f, 3.0, 1.5)
    assert found.culprit == "native" and found.switches == ["blas"]
    assert "MYIA_RELAY_WITHOUT=blas" in text


def test_functions_are_answers_by_what_they_captured():
    @relay
    def f(n):
        def inner(x):
            return x + n * 2.0

        return inner

    found, text = search(f, 3.0)
    assert found.culprit is None, text
    one, same, other = f(3.0), f(3.0), f(4.0)
    assert unlike(one, same, (None, False), "it") is None
    assert "captured" in unlike(one, other, (None, False), "it")


def test_models_are_answers():
    @relay_model
    def line(x: Tensor[Float, 3]) -> Tensor[Float, 2]:
        return relay.linear(x, num_hidden=2)

    @relay
    def loss(x):
        return np.sum(line(x) ** 2)

    @relay
    def step(model, x):
        value, gradient = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, gradient)
        return model, value

    model = relay.create_model(line)
    before = [a.copy() for a in model.arrays]
    found, text = search(step, model, np.ones(3, np.float32))
    assert found.culprit is None and "native: the same" in text, text
    assert all(np.array_equal(a, b) for a, b in zip(before, model.arrays, strict=True)), (
        "it ran on the user's own model"
    )


def test_errors_and_prints_are_answers():
    @relay
    def f(x):
        print("x is", x)
        if x > 2:
            raise ValueError(f"{x} is too much")
        return x

    for x in (1.0, 3.0):
        found, text = search(f, x)
        assert found.culprit is None, text
    assert "ValueError: 3.0 is too much" in text


@pytest.mark.parametrize(
    "a, b, loose, same",
    [
        (0.0, -0.0, False, False),
        (np.nan, np.nan, False, True),
        (1.0, 1.0 + 1e-12, False, False),
        (1.0, 1.0 + 1e-12, True, True),
        (1.0, 1.0 + 1e-6, True, False),
        (np.float32(1), np.float32(1 + 1e-6), True, True),
        (1, 2, True, False),
        (1, 1.0, True, False),
        ((1.0, [2.0]), (1.0, [3.0]), True, False),
        ({"a": np.ones(2)}, {"a": np.ones(3)}, True, False),
        (np.array([1e9, 1e-3]), np.array([1e9, 1.1e-3]), True, True),  # relative to the largest
        (np.inf, -np.inf, True, False),
        ("a", "b", True, False),
    ],
)
def test_what_counts_as_a_difference(a, b, loose, same):
    assert (unlike(a, b, (None, loose), "it") is None) == same


def test_a_tolerance_of_ones_own():
    assert unlike(1.0, 1.1, (0.2, True), "it") is None
    assert unlike(1.0, 1.0 + 1e-12, (0.0, True), "it") is not None


def turned(axis, x):
    angle = np.sqrt(np.sum(axis * axis))
    unit = axis / angle
    across = np.array(
        [unit[1] * x[2] - unit[2] * x[1], unit[2] * x[0] - unit[0] * x[2], unit[0] * x[1] - unit[1] * x[0]]
    )
    return x * np.cos(angle) + across * np.sin(angle) + unit * (np.dot(unit, x) * (1.0 - np.cos(angle)))


def test_a_broken_kernel_pass_is_named(monkeypatch):
    @relay
    def f(axes, points):
        return relay.vmap(turned)(axes, points)

    right = opt_pipeline.SoaKernels
    args = np.random.default_rng(0).normal(size=(2, 40, 3))
    found, text = search(f, *args)
    assert found.culprit is None and "after optimized (1 passes): the same" in text

    @dataclass(frozen=True)
    class Wrong:
        name: str = "soa_kernels"

        def __call__(self, graph):
            return Swap("cos", "sin").rewrite(right()(graph))

    monkeypatch.setattr(opt_pipeline, "SoaKernels", Wrong)
    found, text = search(f, *args)
    assert found.culprit == "soa_kernels" and "MYIA_RELAY_WITHOUT=soa_kernels" in text


MODULE = """
def cube(x):
    return x * x * x

notes = "no function"
"""


def test_the_command(tmp_path, capsys, monkeypatch):
    (tmp_path / "bisected.py").write_text(MODULE)
    function = f"{tmp_path}/bisected.py:cube"
    assert cli.main(["bisect", function, "--args", "float32[8]"]) == 0
    assert "Nothing differs" in capsys.readouterr().out
    wrong = Rule("forget_factor", Op("mul", X, Y), X)
    monkeypatch.setattr(simplify, "FINAL", Table(wrong, *simplify.FINAL.rules))
    assert cli.main(["bisect", function, "--args", "3.0", "--dump", str(tmp_path / "graphs")]) == 1
    out = capsys.readouterr().out
    assert "'forget_factor'" in out
    before, after = ((tmp_path / "graphs" / f"{name}.txt").read_text() for name in ("before", "after"))
    assert "mul" in before and "mul" not in after


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["cube"], 1, "does not name a function"),
        (["{module}:cubes"], 1, "has no 'cubes'"),
        (["{module}:notes"], 1, "no function"),
        (["{module}:cube"], 1, "x"),
        (["{module}:cube", "--args", "'text'"], 1, "multiply"),
        (["{module}:cube", "--args", "2.0", "--tolerance=-1"], 1, "0 or more"),
        (["{module}:cube", "--args", "flaot32[3]"], 2, "neither a Python literal nor a type"),
    ],
)
def test_bad_arguments(tmp_path, capsys, words, status, message):
    (tmp_path / "bisected.py").write_text(MODULE)
    words = ["bisect", *(w.replace("{module}", f"{tmp_path}/bisected.py") for w in words)]
    try:
        found = cli.main(words)
    except SystemExit as stop:
        found = stop.code
    assert found == status
    assert message in capsys.readouterr().err


def test_random_arguments_are_the_same_each_time():
    def made() -> tuple:
        return examples(["float64[3]", "float64[3]", "int32[4]", "bool[5]"], RandomArrays())

    first, second = made(), made()
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert [a.dtype.name for a in first] == ["float64", "float64", "int32", "bool"]
