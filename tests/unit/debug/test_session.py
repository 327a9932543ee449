"""Debugging sessions as objects: stepping, breakpoints, variables, the backward pass, exceptions."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time

import numpy as np
import pytest

from myia_relay import Float, Tensor, grad, jacobian, relay, relay_model, value_and_grad, vmap


def line_of(function, text: str) -> int:
    """The number of the line of a function that has a text."""
    lines, start = inspect.getsourcelines(getattr(function, "__wrapped__", function))
    return start + next(i for i, line in enumerate(lines) if text in line)


def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@relay
def series(x, steps):
    total = 0.0
    k = 1
    while k <= steps:
        term = power(x, k)
        total = total + term
        k = k + 1
    return total


def visited(session):
    """The lines that a session comes to, with the function and whether it goes backward."""
    seen = []
    while not session.finished:
        if session.event == "line":
            seen.append((session.function, session.line, session.backward))
        session.step()
    return seen


def test_lines_are_those_that_python_runs():
    seen = visited(series.debug(2.0, 2))
    wanted = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            wanted.append((frame.f_code.co_name, frame.f_lineno, False))
        return trace

    import sys

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        series.__wrapped__(2.0, 2)
    finally:
        sys.settrace(before)
    assert seen == wanted


def test_the_backward_pass_has_the_lines_in_reverse():
    seen = visited(grad(series).debug(2.0, 2))
    term, total = line_of(series, "term ="), line_of(series, "total = total")
    step, back = line_of(power, "return x"), line_of(series, "return total")
    backward = [(f, line) for f, line, b in seen if b]
    once = [("series", total), ("power", step), ("series", term)]
    assert backward == [("series", back), *once[:1], ("power", step), *once[1:], *once]


def test_the_interpreter_runs_a_transform_and_not_its_function():
    assert grad(series).interpret(2.0, 2) == grad(series)(2.0, 2) == 5.0


def test_values_are_those_of_the_compiled_program():
    for f in (series, grad(series), value_and_grad(series)):
        session = f.debug(1.3, 4)
        session.cont()
        assert session.finished and session.event == "end"
        assert session.value == pytest.approx(f(1.3, 4), rel=1e-14)
        assert session.value == f.interpret(1.3, 4)


def test_variables_have_the_values_of_now():
    session = series.debug(2.0, 3)
    assert session.locals == {"x": 2.0, "steps": 3}
    session.run_to(line_of(series, "total = total"))
    assert (session.locals["k"], session.locals["term"], session.locals["total"]) == (1, 2.0, 0.0)
    session.run_to(line_of(series, "total = total"))
    assert (session.locals["k"], session.locals["term"], session.locals["total"]) == (2, 4.0, 2.0)
    assert session.evaluate("term + np.sqrt(total + 2)") == 6.0


def test_next_goes_over_calls_and_step_into_them():
    session = series.debug(2.0, 1).run_to(line_of(series, "term ="))
    session.next()
    assert session.function == "series" and session.locals["term"] == 2.0
    session.restart().run_to(line_of(series, "term ="))
    session.step()
    assert (session.function, session.event, session.locals) == ("power", "call", {"x": 2.0, "n": 1})
    session.finish()
    assert session.event == "return" and session.frame.returned == 2.0
    assert [frame.function for frame in session.stack] == ["series", "power"]
    assert session.up().locals["k"] == 1 and session.line == line_of(series, "term =")
    assert session.down().function == "power"


def test_until_leaves_a_loop():
    session = series.debug(2.0, 3).run_to(line_of(series, "k = k"))
    session.until()
    assert session.source == "return total" and session.locals["total"] == 14.0


def test_breakpoints():
    session = grad(series).debug(2.0, 3)
    place = session.break_at(line_of(series, "total = total"), "k == 2")
    session.cont()
    assert session.locals["k"] == 2 and not session.backward and place.hits == 1
    session.cont()
    assert session.locals["k"] == 2 and session.backward and session.arrived == {"total": 1.0}
    session.cont()
    assert session.finished
    session.clear(place)
    session.restart()
    session.break_at(power, "d_return > 1.5")
    session.break_at("power", temporary=True)
    assert session.cont().locals["n"] == 1
    assert session.cont().backward and session.arrived["return"] == 2.0
    with pytest.raises(ValueError, match="no breakpoint"):
        session.clear(17)
    with pytest.raises(ValueError, match="no expression"):
        session.break_at(power, "n ==")
    with pytest.raises(ValueError, match="no line"):
        session.break_at(100_000)
    with pytest.raises(ValueError, match="3.5 is no place"):
        session.break_at(3.5)


def test_cotangents_arrive_and_leave():
    session = grad(series).debug(2.0, 2)
    term = session.break_at(line_of(series, "term ="), "d_term > 0")
    session.cont()
    assert session.backward and session.arrived == {"term": 1.0}
    assert session.left == {"x": 4.0}  # d(x ** 2) / dx
    assert session.locals["d_term"] == 1.0 and session.locals["k"] == 2 and session.cotangents["x"] == 4.0
    session.cont()
    assert session.left == {"x": 1.0} and term.hits == 2


def test_an_exception_leaves_the_session_where_it_happened():
    @relay
    def f(x):
        y = x + 1
        if y > 2:
            raise ValueError(f"{y} is too much")
        return y

    session = f.debug(5)
    session.cont()
    assert session.event == "exception" and session.finished and session.value is None
    assert isinstance(session.exception, ValueError) and str(session.exception) == "6 is too much"
    assert session.locals == {"x": 5, "y": 6} and session.source.startswith("raise ValueError")
    session.step().next().cont()
    assert session.event == "exception"


def test_exceptions_of_operations():
    session = relay(lambda a, n: a // n).debug(3, 0)
    session.cont()
    assert isinstance(session.exception, ZeroDivisionError)


def test_a_function_that_does_not_compile():
    @relay
    def f(x):
        import os  # noqa: F401

        return x

    with pytest.raises(SyntaxError, match="import"):
        f.debug(1.0)


def test_what_inner_functions_see_and_change():
    @relay
    def f(x):
        count = 0

        def add(y):
            nonlocal count
            count += 1
            return x + y

        a = add(1.0)
        b = add(a)
        return b * count

    session = f.debug(2.0)
    while session.function != "add":
        session.step()
    assert session.locals["x"] == 2.0 and session.locals["y"] == 1.0
    session.finish()
    assert session.locals["count"] == 1 and session.frame.returned == 3.0
    session.cont()
    assert session.value == 10.0


def test_structures_and_functions():
    @relay
    def f(x, options):
        pair = (x, [1, 2])
        text = f"{x}"  # noqa: F841
        g = lambda y: y * options["scale"]  # noqa: E731
        table = {"a": g(x), "b": pair}
        return table["a"]

    session = f.debug(2.0, {"scale": 3.0})
    session.run_to(line_of(f, "return table"))
    shown = session.locals
    assert shown["pair"] == (2.0, [1, 2]) and shown["text"] == "2.0" and shown["options"] == {"scale": 3.0}
    assert repr(shown["g"]) == "<function <lambda>>" and shown["table"]["a"] == 6.0


def test_arrays_cannot_be_changed_from_outside():
    session = relay(lambda x: np.sum(x * 2)).debug(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        session.locals["x"][0] = 5.0


def test_models_and_arguments_stay_as_they_are():
    @relay
    def double(xs):
        xs[0] = 7.0
        return xs[0] * 2

    xs = np.ones(3)
    session = double.debug(xs)
    session.cont()
    assert session.value == 14.0 and xs.tolist() == [1.0, 1.0, 1.0]


def test_a_batch_is_shown_as_a_whole():
    @relay
    def f(x):
        y = x * x
        return y + 1.0

    session = vmap(f).debug(np.arange(3.0))
    session.next()
    assert session.locals["y"].tolist() == [0.0, 1.0, 4.0]
    session.cont()
    assert session.value.tolist() == [1.0, 2.0, 5.0]


def test_jacobians_and_second_derivatives():
    def f(x):
        y = np.sin(x)
        return y * x

    for g, x in ((grad(grad(f)), 0.7), (jacobian(f), np.array([0.7, 0.8])), (vmap(grad(f)), np.array([0.7, 0.8]))):
        session = g.debug(x)
        session.cont()
        np.testing.assert_allclose(session.value, g(x), rtol=1e-14)


def test_slices_beyond_an_axis_are_cut_off():
    @relay
    def f(x, n):
        y = x * 2
        return np.sum(y[:n])

    session = f.debug(np.ones(3), 7)
    session.cont()
    assert session.value == 6.0 == f(np.ones(3), 7)


def test_gradients_by_name():
    @relay
    def loss(w: Tensor[Float, (2, 2)], x: Tensor[Float, 2]) -> Float:
        hidden = np.tanh(w @ x)
        scale = 2.0
        return scale * np.sum(hidden * hidden)

    w, x = np.array([[0.1, 0.2], [0.3, -0.4]], np.float32), np.array([1.0, 2.0], np.float32)
    session = grad(loss).debug(w, x)
    session.cont()
    np.testing.assert_allclose(session.gradients["hidden"], 4 * np.tanh(w @ x), rtol=1e-6)
    np.testing.assert_allclose(session.gradients["loss.w"], session.value)
    assert sorted(session.gradients) == ["hidden", "w"] and len(session.gradients) == 2
    with pytest.raises(TypeError, match="no derivative goes through 'scale'.*does not depend"):
        session.gradients["scale"]
    with pytest.raises(ValueError, match="'hiden'.*hidden"):
        session.gradients["hiden"]


def test_gradients_in_loops_are_a_list_with_one_for_each_visit():
    @relay
    def f(x, n):
        h = x + 0.0
        for _ in range(n):
            h = h * x
        return h

    session = grad(f).debug(2.0, 3)
    session.cont()
    assert session.gradients["h"] == [8.0, 4.0, 2.0, 1.0]
    assert session.gradients.visits("x") == [32.0]


def test_gradients_of_values_that_are_not_used_are_zero():
    @relay
    def f(x):
        unused = x * 3  # noqa: F841
        return x * 2

    session = grad(f).debug(1.0)
    session.cont()
    assert session.gradients["unused"] == 0.0


def test_functions_with_variables_of_one_name():
    def g(y):
        a = y * 2
        return a

    @relay
    def f(x):
        a = x * 3
        return g(a)

    session = grad(f).debug(1.0)
    session.cont()
    with pytest.raises(ValueError, match=r"say 'f\.a' or 'g\.a'"):
        session.gradients["a"]
    assert session.gradients["f.a"] == 2.0 and session.gradients["g.a"] == 1.0


def test_ctrl_c_stops_at_the_next_line(interruptible):
    @relay
    def f(n):
        k = 0
        while k < n:
            k = k + 1
        return k

    session = f.debug(10**12)

    def interrupt():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        session.cont()
    assert not session.finished and session.event == "line" and session.locals["k"] > 1
    k = session.locals["k"]
    session.next(4)
    assert session.locals["k"] > k


def test_the_repr_says_where_it_stands():
    session = series.debug(2.0, 1)
    assert repr(session).startswith("<debugging series: line ") and repr(session).endswith("series(): total = 0.0>")
    assert repr(session.cont()) == "<debugging series: ended>"


def test_models_of_layers_and_other_models():
    @relay_model
    def block(x):
        return x + relay.dropout(relay.linear(relay.layer_norm(x), 4), 0.1)

    @relay_model
    def net(x: Tensor[Float, (3, 4)]):
        for _ in range(2):
            x = relay.layer_norm(x, unshared=True)
            x = block(x, unshared=False)
        return np.sum(x)

    def loss(x):
        return net(x) ** 2

    @relay(executor="interpreter")
    def step(model, x):
        value, gradients = relay.value_and_grad(model, loss, (x,))
        relay.update_model_params(model, gradients)
        return value, gradients

    model, x = relay.create_model(net, seed=0), np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)
    before = {name: value.copy() for name, value in model.params.items()}
    session = step.debug(model, x).cont()
    assert all(np.array_equal(model.params[name], before[name]) for name in before)
    value, gradients = step(model, x)
    assert session.value[0] == pytest.approx(value, rel=1e-4)
    for name, g in gradients.items():
        np.testing.assert_allclose(session.value[1][name], g, rtol=1e-3, atol=1e-3)
    assert [g.shape for g in session.gradients.visits("net.x")[1:]] == [(3, 4)] * 4


def test_into_functions_of_the_package():
    @relay
    def f(x):
        y = np.sort(x) * 2.0
        return np.sum(np.gradient(y))

    x = np.array([3.0, 1.0, 2.0])
    for program in (f, grad(f)):
        session = program.debug(x)
        seen = set()
        while not session.finished:
            seen.add(session.function)
            session.step()
        assert seen == {"f"}
        session.restart(library=True)
        lines = []
        while not session.finished:
            lines.append((session.function, session.source))
            session.step()
        assert {"f", "sort", "gradient"} < {name for name, _ in lines}
        assert ("sort", "a = np.asarray(a)") in lines
        assert np.array_equal(session.value, program(x))
        session.restart()
        assert session.library and not session.restart(library=False).step().step().stack[1:]


def test_into_layers():
    model = relay.create_model(small_net, seed=1)

    @relay
    def run(model, x):
        return model(x)

    x = np.linspace(0, 1, 4).astype(np.float32)
    session = run.debug(model, x).restart(library=True).cont()
    assert np.allclose(session.value, run(model, x))


@relay_model
def small_net(x: Tensor[Float, 4]):
    return relay.layer_norm(relay.gelu(relay.linear(x, num_hidden=3)))
