"""What builtins, methods, slices, formats, iterators and patterns do: as in CPython, or refused in pinned words."""

from __future__ import annotations

import contextlib
import copy
import io

import numpy as np
import pytest

from myia_relay import CompileError, InternalError, relay
from tests.programs.cases import EXECUTORS
from tests.programs.compare import differences
from tests.programs.python_calls import PROGRAMS
from tests.programs.snippets import P, Q, outcome
from tests.property.oracle import function_of

pytestmark = pytest.mark.filterwarnings("ignore")


class W:
    """A class that compiled code knows nothing of."""


class Anything:
    """An object that answers every attribute, as mocks do."""

    def __getattr__(self, name):
        return self


NAMES = {"P": P, "Q": Q, "W": W, "w": W(), "anything": Anything()}
ARGS = (3, 2.5, [1.0, 2.0, 3.0], (1, 2.5), {"a": 1.0, "b": 2.0}, "abc", np.array([1.0, 2.0, 3.0]))
LINES = [tuple(line.split("  ## ")) for line in PROGRAMS.strip("\n").split("\n")]
SAME = [text for text, refusal in LINES if refusal == "same"]
REFUSED = [(text, refusal) for text, refusal in LINES if refusal != "same"]


def program_of(text: str):
    body = text.replace("\\n", "\n")
    return function_of(f"def program(n, x, l, t, d, s, a):\n    {body}\n", f"<{text}>", NAMES)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("text", SAME)
@pytest.mark.sampled(33)
def test_as_python(text, executor):
    function = program_of(text)
    (want, printed), (got, shown) = outcome(function, ARGS), outcome(relay(executor=executor)(function), ARGS)
    assert shown == printed
    if isinstance(want, Exception):
        assert type(got) is type(want), repr(got)
    elif callable(want):
        assert callable(got), repr(got)
    else:
        assert not isinstance(got, Exception), repr(got)
        assert differences(got, want) == []


@pytest.mark.parametrize(("text", "refusal"), REFUSED)
@pytest.mark.sampled(6)
def test_refused(text, refusal):
    """With a place, and nothing of the compiler's own. Where the text is CPython's, that of this version counts as well."""
    kind, phrase = refusal.split(": ", 1)
    function = program_of(text)
    with pytest.raises(CompileError) as caught:
        relay(executor="interpreter")(function)(*copy.deepcopy(ARGS))
    assert not isinstance(caught.value, InternalError)
    assert type(caught.value).__name__ == kind
    if not caught.value.message.startswith(phrase):
        error, _ = outcome(function, ARGS)
        assert isinstance(error, Exception) and caught.value.message.startswith(str(error))
    assert caught.value.origin is not None


@pytest.mark.parametrize("text", ["anything + x", "anything.foo + 1", "anything[0]", "anything(x)", "abs(anything)"])
def test_an_object_that_answers_every_attribute_is_refused(text):
    with pytest.raises(CompileError) as caught:
        relay(program_of(f"return {text}"))(*ARGS)
    assert not isinstance(caught.value, InternalError)


def test_an_object_that_answers_every_attribute_is_no_model():
    assert relay(program_of("return anything.foo is anything, n"))(*ARGS) == (True, 3)


def test_iterators_handed_to_functions_and_made_in_loops(executor):
    def total(pairs):
        out = 0.0
        for a, b in pairs:
            out += a * b
        return out

    def program(xs, ys):
        out = []
        for k in range(3):
            pairs = zip(xs, ys)
            out.append(total(pairs) + k)
        return out, total(zip(ys, ys)), [f(2.0) for f in (lambda v: v, abs)], sum(map(abs, xs))

    args = ([1.0, -2.0], [3.0, 4.0])
    assert relay(executor=executor)(program)(*args) == program(*args)


def test_map_calls_its_function_when_it_is_reached(executor, capfd):
    def program(xs):
        def shown(x):
            print("seen", x)
            return x + 1

        for y in map(shown, xs):
            print("used", y)
            if y > 2:
                break
        unused = map(shown, xs)  # noqa: F841
        return list(map(lambda a, b: a - b, xs, xs))

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        want = program([1.0, 2.0, 3.0])
    again = io.StringIO()
    with contextlib.redirect_stdout(again):
        assert relay(executor=executor)(program)([1.0, 2.0, 3.0]) == want
    assert again.getvalue() == out.getvalue()


SECOND_USES = {
    "in a loop": "z = zip(l, l)\n    for k in range(2):\n        for p in z: x += p[0]\n    return x",
    "in a comprehension": "z = zip(l, l)\n    return [sum(p[0] for p in z) for k in range(2)]",
    "in an inner function": "z = zip(l, l)\n    def f(): return list(z)\n    return f(), f()",
    "twice in one call": "z = map(abs, l)\n    return list(zip(z, z))",
    "through another name": "z = reversed(l)\n    y = z\n    return list(z), list(y)",
    "after a function": "def f(z): return list(z)\n    z = enumerate(l)\n    return f(z), f(z)",
    "of one of two": "z = zip(l, l) if n > 2 else reversed([(x, x)])\n    return list(z), list(z)",
    "in a while": "z = zip(l, l)\n    while x < 9:\n        x += len(list(z)) + 1\n    return x",
}


@pytest.mark.parametrize("name", SECOND_USES)
def test_a_second_use_of_an_iterator_is_refused(name):
    with pytest.raises(TypeError, match=r"only once|iterator of the function around"):
        relay(executor="interpreter")(program_of(SECOND_USES[name]))(*copy.deepcopy(ARGS))
