"""Mistakes as users make them, and the whole of what is printed: place, carets, what is wrong, what to write instead."""

from __future__ import annotations

import ctypes
import inspect
import os
import subprocess
import sys
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import myia_relay
from myia_relay import CompileError, Float, Float32, Int, Tensor, grad, relay, relay_model, vmap
from myia_relay.utils.errors import InternalError

PACKAGE = str(Path(myia_relay.__file__).parent)
A, B = np.ones((3, 4)), np.ones((5, 6))
X, Y = np.ones(4, np.float32), np.array([1, 0, 0], np.float32)


@dataclass
class Mutable:
    value: float


@dataclass(frozen=True)
class Circle:
    radius: float


@relay_model
def net(x: Tensor[Float, (4,)]) -> Tensor[Float, (3,)]:
    return relay.linear(x, num_hidden=3)


def wrong_shape(x, w):
    return x @ w  # here


def no_broadcast(x, w):
    return x + w  # here


def wants_float32(
    x: Tensor[Float32, (3, 4)],  # here
):
    return x + 1


def wants_five(
    x: Tensor[Float, (3, 5)],  # here
):
    return x + 1


def without_model(x, y):
    return relay.softmax_cross_entropy(net(x), y)  # here


def layer_outside(x):
    return relay.linear(x, num_hidden=3)  # here


def misspelt_attribute(x):
    return x.shap  # here


def misspelt_function(x):
    return np.tanhh(x)  # here


def misspelt_method(x):
    xs = [x, x]
    xs.apend(x)  # here
    return xs


def misspelt_of_growing(n):
    xs = []
    while n > 0:
        xs.append(n)
        n -= 1
    xs.apend(n)  # here
    return xs


def misspelt_relay(x):
    return relay.sofmax(x)  # here


def misspelt_keyword(x):
    return np.sum(x, axes=1)  # here


def misspelt_name(value):
    return valeu + 1  # here  # noqa: F821


def misspelt_field(c):
    return c.radios  # here


def unknown_c_function(x):
    return ctypes.sizeof(x)  # here


def square(x):
    return x * x  # here


def to_int(x):
    return int(x)  # here


def branches(x):
    if x > 0:  # here
        y = np.ones(3)
    else:
        y = np.ones(4)
    return y


def drifting(n):
    t = (1,)
    while n > 0:  # here
        t = (t, 1)
        n -= 1
    return t


def growing(x, n):
    for _ in range(n):  # here
        x = x[None]
    return x


def one_argument(
    x,  # here
):
    return x


def scale_it(x, scale):  # here
    return x * scale


def takes_text(x):
    return x * 2.0  # here


def big_constant(x):
    return x + 18446744073709551616  # here


def makes_mutable(x):
    return Mutable(x).value  # here


def wants_int(
    x: Int,  # here
):
    return x


def product(x, y):  # here
    return x * y


def named_only(x, *, k):  # here
    return x * k


def array_condition(x):
    if x > 0:  # here
        return 1
    return 0


def float_range(x):
    for _ in range(x):  # here
        pass
    return 0


def too_many_indices(x):
    return x[0, 0, 0]  # here


def bad_reshape(x):
    return x.reshape(5, 5)  # here


def bad_axis(x):
    return np.sum(x, axis=2)  # here


def factorial(n):  # here
    return 1 if n < 2 else n * factorial(n - 1)


def endless(n):  # here
    return endless(n) + 1


def written_out(x):
    return len(f"{x}")  # here


def creates_in_a_loop(x):
    total = 0.0
    for _ in range(3):
        model = relay.create_model(net)  # here
        total += np.sum(model(x))
    return total


def division(x, y):
    return x / y  # here


# (function, how it is called, kind, words that the message has)
CASES = [
    (
        wrong_shape,
        lambda f: f(A, B),
        myia_relay.ShapeError,
        "shapes (3, 4) and (5, 6) do not fit: the inner sizes are 4 and 5",
    ),
    (no_broadcast, lambda f: f(A, B), myia_relay.ShapeError, "shapes (3, 4) and (5, 6) do not broadcast"),
    (wants_float32, lambda f: f(A), myia_relay.TypeError_, "its elements are float64; convert it: .astype(np.float32)"),
    (
        wants_five,
        lambda f: f(A.astype("f4")),
        myia_relay.ShapeError,
        "annotated Tensor[float32, (3, 5)], but its shape is (3, 4)",
    ),
    (without_model, lambda f: f(X, Y), myia_relay.TypeError_, "net has hidden parameters and needs a model"),
    (without_model, lambda f: f(X, Y), myia_relay.TypeError_, "model = relay.create_model(net), then call model(x)"),
    (layer_outside, lambda f: f(X), myia_relay.TypeError_, "must be called in a function decorated with @relay_model"),
    (misspelt_attribute, lambda f: f(A), AttributeError, "no attribute 'shap' in the language; did you mean 'shape'?"),
    (
        misspelt_function,
        lambda f: f(A),
        AttributeError,
        "module 'numpy' has no attribute 'tanhh'; did you mean 'tanh'?",
    ),
    (misspelt_method, lambda f: f(A), AttributeError, "'list' object has no attribute 'apend'; did you mean 'append'?"),
    (
        misspelt_of_growing,
        lambda f: f(3),
        AttributeError,
        "'list' object has no attribute 'apend'; did you mean 'append'?",
    ),
    (
        misspelt_relay,
        lambda f: f(A),
        AttributeError,
        "module 'relay' has no attribute 'sofmax'; did you mean 'softmax'?",
    ),
    (misspelt_keyword, lambda f: f(A), myia_relay.TypeError_, "did you mean 'axis'?"),
    (misspelt_name, lambda f: f(1.0), myia_relay.NameError_, "name 'valeu' is not defined; did you mean 'value'?"),
    (misspelt_field, lambda f: f(Circle(1.0)), AttributeError, "did you mean 'radius'?"),
    (
        unknown_c_function,
        lambda f: f(1.0),
        myia_relay.TypeError_,
        "sizeof cannot be compiled: it is neither Python source",
    ),
    (square, lambda f: grad(f)(A), myia_relay.GradError, "an array of float64 with shape (3, 4); reduce it (np.sum)"),
    (to_int, lambda f: grad(f)(2.0), myia_relay.GradError, "grad needs a function with a scalar float result"),
    (branches, lambda f: f(1.0), myia_relay.TypeError_, "'y' is float64[3] after one branch and float64[4] after"),
    (
        drifting,
        lambda f: f(3),
        myia_relay.TypeError_,
        "'t' changes its type in the loop: it is (int,) before an iteration",
    ),
    (
        growing,
        lambda f: f(A, 3),
        myia_relay.TypeError_,
        "'x' changes its type in the loop: it is float64[3, 4] before an iteration",
    ),
    (
        one_argument,
        lambda f: f({1, 2}),
        myia_relay.TypeError_,
        "argument 'x': a value of type builtins.set cannot be passed",
    ),
    (one_argument, lambda f: f(np.array(["a"])), myia_relay.TypeError_, "an array of dtype <U1 cannot be passed"),
    (one_argument, lambda f: f({1: 2}), myia_relay.TypeError_, "a dict passed to compiled code must have string keys"),
    (
        one_argument,
        lambda f: f(Mutable(1.0)),
        myia_relay.TypeError_,
        "Mutable is mutable; declare it @dataclass(frozen=True)",
    ),
    (one_argument, lambda f: f(2**64), OverflowError, "18446744073709551616 does not fit into 64 bits"),
    (scale_it, lambda f: f(1.0), myia_relay.TypeError_, "missing 1 required positional argument: 'scale'"),
    (scale_it, lambda f: f(1.0, 2.0, 3.0), myia_relay.TypeError_, "takes 2 positional arguments but 3 were given"),
    (
        scale_it,
        lambda f: f(1.0, scal=2.0),
        myia_relay.TypeError_,
        "unexpected keyword argument 'scal'; did you mean 'scale'?",
    ),
    (takes_text, lambda f: f("abc"), myia_relay.TypeError_, "can't multiply sequence by non-int of type 'float'"),
    (big_constant, lambda f: f(1), myia_relay.TypeError_, "does not fit into 64 bits"),
    (makes_mutable, lambda f: f(1.0), myia_relay.TypeError_, "declare it @dataclass(frozen=True)"),
    (wants_int, lambda f: f(1.0), myia_relay.TypeError_, "argument 'x' of wants_int is annotated Int, but it is float"),
    (product, lambda f: grad(f)(2, 1.0), myia_relay.GradError, "by 'x', which is int; pass a float (1.0 instead of 1)"),
    (product, lambda f: grad(f, "yy")(2.0, 1.0), myia_relay.GradError, "no parameter 'yy'; did you mean 'y'?"),
    (
        product,
        lambda f: grad(f, 2)(2.0, 1.0),
        myia_relay.GradError,
        "wrt=2: the function is called with 2 positional arguments",
    ),
    (
        product,
        lambda f: vmap(f)(np.ones(3), np.ones(4)),
        myia_relay.ShapeError,
        "vmap: the batch sizes differ: 3 and 4",
    ),
    (product, lambda f: vmap(f, (0, 1))(np.ones(3), np.ones(3)), myia_relay.ShapeError, "argument 1 has no axis 1"),
    (
        product,
        lambda f: vmap(f, (0,))(np.ones(3), np.ones(3)),
        myia_relay.TypeError_,
        "in_axes has 1 entries for 2 arguments",
    ),
    (
        product,
        lambda f: vmap(f, "a")(np.ones(3), np.ones(3)),
        myia_relay.TypeError_,
        "in_axes='a': an axis is an int, or None",
    ),
    (named_only, lambda f: grad(f, "k")(2.0, k=3.0), myia_relay.GradError, "'k' is keyword-only"),
    (
        one_argument,
        lambda f: f(np.ma.array([1.0])),
        myia_relay.TypeError_,
        "a MaskedArray calculates by rules of its own",
    ),
    (
        one_argument,
        lambda f: f(np.ones(2, np.longdouble)),
        myia_relay.TypeError_,
        "cannot be passed",
    ),
    (array_condition, lambda f: f(A), myia_relay.TypeError_, "use np.any(x) or np.all(x), or np.where(x, a, b)"),
    (float_range, lambda f: f(2.0), myia_relay.TypeError_, "float cannot be interpreted as an integer"),
    (too_many_indices, lambda f: f(A), myia_relay.TypeError_, "array is 2-dimensional, but 3 were indexed"),
    (bad_reshape, lambda f: f(A), myia_relay.ShapeError, "cannot reshape array of shape (3, 4) into shape (5, 5)"),
    (
        bad_axis,
        lambda f: f(A),
        myia_relay.ShapeError,
        "axis 2 is out of bounds for array of dimension 2; the shape is (3, 4)",
    ),
    (written_out, lambda f: f(1.5), myia_relay.TypeError_, "object of type str made at run time has no len()"),
    (creates_in_a_loop, lambda f: f(X), myia_relay.LoweringError, "create it there, or outside, and pass it in"),
]


def marked_line(function) -> int:
    """The line of a function's source that ends in `# here`."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if "# here" in line)


def shown_frames(error: BaseException) -> list[str]:
    """Files of the frames that a traceback of the error would show, this file's left out."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [f for f in files if f != __file__]


@pytest.mark.parametrize(("function", "call", "kind", "words"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_the_message(function, call, kind, words):
    with pytest.raises(kind) as info:
        call(relay(function))
    error = info.value
    assert isinstance(error, CompileError) and type(error).__name__ in dir(myia_relay.utils.errors)
    text = str(error)
    line = marked_line(function)
    assert f'File "{__file__}", line {line}, column ' in text, text
    assert words in text
    source, carets = next((a, b) for a, b in zip(text.splitlines(), text.splitlines()[1:]) if set(b.strip()) == {"^"})
    under = source[len(carets) - len(carets.lstrip()) :][: carets.count("^")]
    assert under and source.strip() in Path(__file__).read_text(), "carets do not stand under source"


@pytest.mark.parametrize(("function", "call", "kind", "words"), CASES[::5], ids=lambda v: getattr(v, "__name__", ""))
def test_no_frames_of_the_compiler(function, call, kind, words):
    with pytest.raises(kind) as info:
        call(relay(function))
    error = info.value
    assert shown_frames(error) == [os.path.join(PACKAGE, "api.py")], "more than the boundary is shown"
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_the_whole_text():
    with pytest.raises(myia_relay.ShapeError) as info:
        relay(wrong_shape)(A, B)
    line = marked_line(wrong_shape)
    assert str(info.value) == (
        f'\n  File "{__file__}", line {line}, column 12, in wrong_shape\n'
        "    return x @ w  # here\n"
        "           ^^^^^\n"
        "ShapeError: @: shapes (3, 4) and (5, 6) do not fit: the inner sizes are 4 and 5; transpose one of them, or check "
        "which is which"
    )


def test_recursion_without_a_base_case_is_refused(executor):
    with pytest.raises(CompileError, match="has no base case") as info:
        relay(executor=executor)(endless)(5)
    assert info.value.loc.line == marked_line(endless)


def test_recursion_is_right_or_refused(executor):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    for function, want in ((factorial, 120), (lambda n: even(n), False)):
        try:
            assert relay(executor=executor)(function)(5) == want
        except CompileError as error:
            assert error.loc.file == __file__ and "call" in str(error) or "recursi" in str(error)


def test_running_code_raises_at_the_users_line(executor):
    f = relay(executor=executor)(division)
    with pytest.raises(ZeroDivisionError, match="^float division by zero$") as info:
        f(1.0, 0.0)
    frames = traceback.extract_tb(info.value.__traceback__)
    assert (frames[-1].filename, frames[-1].lineno, frames[-1].name) == (__file__, marked_line(division), "division")
    assert shown_frames(info.value) == [os.path.join(PACKAGE, "api.py")]


def test_arrays_raise_index_errors_like_numpy(executor):
    f = relay(executor=executor)(lambda x, i: x[i])
    for index in (3, -4):
        with pytest.raises(IndexError) as info:
            f(A, index)
        with pytest.raises(IndexError) as plain:
            A[index]
        assert str(info.value) == str(plain.value)


def test_a_model_with_a_wrong_argument_shows_only_the_users_files():
    model = relay.create_model(net)
    for bad, words in ((np.ones(4), ".astype(np.float32)"), (np.ones(5, np.float32), "its shape is (5,)")):
        with pytest.raises(CompileError) as info:
            model(bad)
        assert words in str(info.value) and PACKAGE not in str(info.value)
    with pytest.raises(TypeError, match="differ in a, linear_0.bias, linear_0.weight"):
        relay.update_model_params(model, {"a": 1.0})
    with pytest.raises(KeyError, match="did you mean 'linear_0.weight'"):
        model.params["linear_0.weigth"]


def test_options_are_checked():
    with pytest.raises(ValueError, match="executor='fast': choose one of native, python, interpreter"):
        relay(executor="fast")(square)
    with pytest.raises(TypeError, match="static='scal': scale_it has no such parameter; did you mean 'scale'"):
        relay(static="scal")(scale_it)
    for thing in (len, 3, Circle):
        with pytest.raises(TypeError, match="compiles functions that are written in Python"):
            relay(thing)
    with pytest.raises(TypeError, match="write @staticmethod on the line before @relay"):
        relay(staticmethod(square))
    with pytest.raises(CompileError, match="take the name out of static="):
        relay(static="scale")(scale_it)(1.0, np.ones(3))
    with pytest.raises(ValueError, match="stage='first': choose one of parsed, inferred"):
        relay(square).ir(1.0, stage="first")


def test_functions_without_source():
    names: dict = {}
    exec("def f(x):\n    return x + 1", names)
    with pytest.raises(CompileError, match="the source of 'f' cannot be found"):
        relay(names["f"])(1.0)


def test_bugs_of_ours_say_so(monkeypatch):
    from myia_relay.opt import pipeline

    monkeypatch.setattr(pipeline, "optimize", {}.__getitem__)
    with pytest.raises(InternalError) as info:
        relay(lambda x: x + 1.5)(1.0)
    text = str(info.value)
    assert (
        "internal error in pipeline: KeyError" in text
        and "This is a bug in myia_relay" in text
        and "MYIA_RELAY_DEBUG=1" in text
    )
    assert isinstance(info.value.__cause__, KeyError)


def test_exceptions_of_the_users_own_code_pass(monkeypatch):
    class Refusing:
        def write(self, text):
            raise RuntimeError("no output today")

        def flush(self):
            pass

    @relay(executor="interpreter")
    def f(x):
        print(x)
        return x

    monkeypatch.setattr(sys, "stdout", Refusing())
    with pytest.raises(RuntimeError, match="no output today"):
        f(1.0)


def test_debug_mode_shows_everything(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            from myia_relay import relay

            @relay
            def f(x):
                return x.nothing

            f(1.0)
            """
        )
    )
    shown = {}
    for debug in ("", "1"):
        run = subprocess.run(
            [sys.executable, program], env=os.environ | {"MYIA_RELAY_DEBUG": debug}, capture_output=True, text=True
        )
        shown[debug] = run.stderr
        assert "AttributeError_" in run.stderr and "x.nothing" in run.stderr
    assert "engine.py" in shown["1"] and "engine.py" not in shown[""]
    assert shown[""].count(PACKAGE) == 1, "only the boundary is shown"


def test_bugs_in_a_function_that_is_called_say_so_too(monkeypatch):
    from myia_relay.infer.engine import engine

    # A frame of ours raises it, in the task of the inner function.
    monkeypatch.setattr(engine.Frame, "rebuild", {}.__getitem__)
    with pytest.raises(InternalError, match="internal error in infer"):
        relay(lambda x: helper_of(x) + 1.5)(1.0)


def helper_of(x):
    return x * 2.0


def test_an_interrupt_during_compilation(monkeypatch):
    from myia_relay.infer.engine import engine

    def interrupted(*args):
        raise KeyboardInterrupt

    f = relay(lambda x: helper_of(x) + 1.5)
    with monkeypatch.context() as patch:
        patch.setattr(engine.Frame, "rebuild", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(1.0)
    assert f(1.0) == 3.5
