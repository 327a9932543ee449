"""`f.profile`: its times add up, and belong to the lines, passes and kernels that they come from."""

import json

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model, value_and_grad


@relay_model
def perceptron(x: Tensor[Float, 40]) -> Tensor[Float, 3]:
    hidden = relay.tanh(relay.linear(x, num_hidden=300))
    return relay.linear(hidden, num_hidden=3)


@relay
def loss(x: Tensor[Float, 40], y: Tensor[Float, 3]) -> Float:
    return relay.softmax_cross_entropy(perceptron(x), y)


@relay
def train(model, x, y):
    gradients = relay.grad(model, loss, (x, y))
    relay.update_model_params(model, gradients)


@pytest.fixture(scope="module")
def trained():
    model = relay.create_model(perceptron)
    before = [a.copy() for a in model.arrays]
    found = train.profile(model, np.ones(40, np.float32), np.eye(3, dtype=np.float32)[1])
    return model, before, found


def source(line):
    return line.text.split("=")[0].strip()


def test_the_times_of_lines_are_the_time_of_a_call(trained):
    found = trained[2]
    assert sum(line.seconds for line in found.lines) == pytest.approx(found.seconds, rel=0.05)
    assert all(line.seconds >= sum(line.parts.values()) * 0.999 for line in found.lines)
    assert 0 < found.forward < found.seconds and 0 < found.backward < found.seconds


def test_models_are_left_as_they_were(trained):
    model, before, found = trained
    assert found.calls > 1
    assert all(np.array_equal(a, b) for a, b in zip(model.arrays, before, strict=True))


def test_arguments_are_left_as_they_were():
    def change(x):
        x[0] += 1.0

    x = np.ones(5)
    assert relay(change).profile(x).calls > 1 and x[0] == 1.0
    relay(change)(x)
    assert x[0] == 2.0


def test_passes_are_told_apart(trained):
    lines = {source(line): line for line in trained[2].lines if line.line}
    assert {"forward", "backward"} <= lines["hidden"].parts.keys() and lines["hidden"].function == "perceptron"
    assert lines["relay.update_model_params(model, gradients)"].parts.keys() == {"forward"}


def test_kernels_have_operations_bytes_and_a_share_of_the_peak(trained):
    products = [k for k in trained[2].kernels if "matvec" in k.name]
    large = max(products, key=lambda k: k.flops or 0)
    assert large.flops >= 2 * 300 * 40 and large.nbytes >= 4 * 300 * 40 and large.count == 1
    assert all(k.share is None or k.share.share > 0 for k in trained[2].kernels)


def test_it_prints_draws_and_makes_a_trace(trained, tmp_path):
    found = trained[2]
    text = str(found)
    assert "source lines" in text and "kernels" in text and "hidden = relay.tanh" in text and "GF/s" in text
    assert "<svg" in found.to_svg() and "<title>backward" in found.to_svg() and "<table>" in found._repr_html_()
    found.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in slices)
    assert {k.name for k in found.kernels} <= {e["name"] for e in slices}
    for inner, outer in zip(slices[1:], slices):  # nested, or one after the other
        end = outer["ts"] + outer["dur"]
        assert inner["ts"] + inner["dur"] <= end + 1e-6 or inner["ts"] >= end - 1e-6


def test_kernels_in_loops_are_counted_and_loops_of_numbers_are_one():
    def sums(x, n):
        total, product = 0.0, 1.0
        for row in x:
            total += np.sum(np.tanh(row) * row)
        for i in range(n):
            product = product * 0.999 + i
        return total * product

    found = relay(value_and_grad(sums)).profile(np.ones((7, 500)), 1000)
    assert 7 in {k.count for k in found.kernels if k.kind == "kernel"}
    (loop,) = [k for k in found.kernels if k.kind == "loop"]
    assert {place.line[1] for place in loop.places} >= {sums.__code__.co_firstlineno + 5}


def test_a_row_that_is_written_counts_as_a_row():
    """Each iteration keeps one row of a tape, not the tape."""

    def repeated(x):
        for _ in range(16):
            x = np.sin(x) * 1.1
        return np.sum(x)

    text = relay(value_and_grad(repeated)).explain(np.ones(500))
    kernels = next(rows for title, rows in text.sections if title.startswith("native program"))
    column = kernels[0].index("bytes")
    assert {row[column] for row in kernels if "dynamic_update" in row[0]} == {
        "7.81 KiB"
    }  # 500 numbers read and written


def test_a_program_that_prints_runs_once(capsys):
    def talk(x):
        print("x is", x)
        return x * 2

    found = relay(talk).profile(3.0)
    assert found.calls == 1 and capsys.readouterr().out == "x is 3.0\n"


def test_explain_says_what_passes_kernels_memory_and_lines_cost(trained):
    text = train.explain(trained[0], np.ones(40, np.float32), np.eye(3, dtype=np.float32)[1])
    titles = [title for title, _ in text.sections]
    assert "compiled in" in titles[0] and "memory" in titles[-1] and "in use at once" in titles[-1]
    stages, arguments, passes, kernels, lines, arrays = (rows for _, rows in text.sections)
    assert [row[1] for row in arguments[1:]] == ["data", "data", "data"]
    assert [row[0] for row in stages[1:6]] == ["inferred", "simplified", "differentiated", "optimized", "lowered"]
    assert all(int(row[2]) > 0 for row in stages[1:6]) and any(row[1] == "simplify" for row in passes)
    assert any("matvec" in row[0] and row[2] and row[3] for row in kernels) and len(arrays) > 1
    assert any("hidden" in row[-1] and row[-2] == "forward, backward" for row in lines)
    assert "<table>" in text._repr_html_() and str(text) == repr(text)


def test_what_functions_of_numpy_take_belongs_to_the_line_that_calls_them():
    def smallest(x):
        y = x * 2.0
        return np.sort(y)[:3]

    found = relay(smallest).profile(np.random.default_rng(0).random(2000))
    line = next(line for line in found.lines if line.line)
    assert line.text == "return np.sort(y)[:3]" and line.seconds > 0.5 * found.seconds
