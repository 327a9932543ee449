"""What the front end refuses: the kind of error, where it points, and what it says to write instead.

`# <-- N` marks the line; the text after it is the source range that the carets must cover.
"""

# ruff: noqa: C416, F821

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from myia_relay.frontend import parse
from myia_relay.utils.errors import CompileError, NameError_, ParseError

CASES = []
GLOBAL = [1]


def refused(error, *message):
    def register(fn):
        CASES.append((fn, error, message))
        return fn

    return register


@dataclass(frozen=True)
class Leaf:
    value: int


@refused(ParseError, "'yield'", "list")
def generator(x):
    yield x  # <-- yield x


@refused(ParseError, "'yield from'")
def dead_generator(x):
    return x
    yield from x  # <-- yield from x


@refused(ParseError, "'async def'")
async def coroutine(x):  # <-- async def
    return x


@refused(ParseError, "'del'")
def deletion(x):
    y = x
    del y  # <-- del y
    return x


@refused(ParseError, "'try'", "around the call")
def handler(x):
    try:  # <-- try
        return 1 / x
    except ZeroDivisionError:
        return 0


@refused(ParseError, "'with'")
def resource(x):
    with x:  # <-- with
        return 1


@refused(ParseError, "'class'", "top level")
def inner_class(x):
    class Box:  # <-- class
        content = 1

    return x


@refused(ParseError, "'import'")
def inner_import(x):
    import math  # <-- import math

    return math.sin(x)


@refused(ParseError, "'from ... import'")
def inner_from(x):
    from math import sin  # <-- from math import sin

    return sin(x)


@refused(ParseError, "'global COUNT'")
def global_assignment(x):
    global COUNT
    COUNT = x  # <-- COUNT
    return x


def around():
    count = 0

    @refused(ParseError, "'nonlocal count'", "not compiled with this one", "return")
    def nonlocal_of_python(x):
        nonlocal count
        count += x  # <-- count

    return count, nonlocal_of_python


around()


@refused(ParseError, "set")
def set_display(x):
    return {x, 1}  # <-- {x, 1}


@refused(ParseError, "set comprehension")
def set_comprehension(x):
    return {i for i in x}  # <-- {i for i in x}


@refused(ParseError, "generator", "brackets")
def generator_expression(x):
    y = (i for i in x)  # <-- (i for i in x)
    return y


@refused(ParseError, "bytes")
def bytes_literal(x):
    return b"abc"  # <-- b"abc"


@refused(ParseError, "dataclasses.replace", "'.value'")
def attribute_assignment(x):
    x.value = 1  # <-- x.value
    return x


@refused(ParseError, "bare 'raise'")
def bare_raise(x):
    raise  # <-- raise


@refused(ParseError, "'raise ... from'")
def raise_from(x):
    raise ValueError(x) from None  # <-- raise ValueError(x) from None


@refused(ParseError, "'super()'")
def uses_super(self):
    return super().method()  # <-- super()


@refused(ParseError, "alternatives", "case for each")
def captures_in_alternatives(x):
    match x:
        case Leaf(v) | (v, 1):  # <-- Leaf(v) | (v, 1)
            return v


@refused(ParseError, "mapping pattern")
def mapping_pattern(x):
    match x:
        case {"a": v}:  # <-- {"a": v}
            return v


@refused(ParseError, "format specification")
def dynamic_format(x, n):
    return f"{x:.{n}f}"  # <-- f"{x:.{n}f}"


# Assignment in place -------------------------------------------------------------------------------------------------


@refused(ParseError, "parameter 'x'")
def item_of_view_of_parameter(x):
    y = x.T
    y[0] = 1.0  # <-- y[0]
    return y


@refused(ParseError, "'y' may be, or hold, the same object as 'x'")
def item_of_alias(n):
    x = np.zeros(n)
    y = x if n > 1 else np.ones(n)
    x[0] = 1.0  # <-- x[0]
    return x, y


@refused(ParseError, "'y'")
def item_of_viewed(n):
    x = np.zeros(n)
    y = np.reshape(x, (1, n))
    x[0] += 1.0  # <-- x[0]
    return x, y


@refused(ParseError, "'t'")
def item_of_held(n):
    x = np.zeros(n)
    t = (x, 1)
    x[0] = 1.0  # <-- x[0]
    return t


@refused(ParseError, "captures 'x'")
def item_of_captured(n):
    x = np.zeros(n)

    def first():
        return x[0]

    x[0] = 1.0  # <-- x[0]
    return first()


@refused(ParseError, "'old'")
def item_aliased_in_the_next_turn(n):
    x = np.zeros(n)
    old = np.ones(n)
    for i in range(n):
        x[i] = old[i]  # <-- x[i]
        old = x
    return x


@refused(ParseError, "'GLOBAL' is not a local")
def item_of_global(x):
    GLOBAL[0] = x  # <-- GLOBAL[0]
    return x


@refused(ParseError, "'ys'")
def append_to_alias(n):
    xs = [n]
    ys = xs if n > 1 else [1]
    xs.append(1)  # <-- xs.append(1)
    return xs, ys


# Names ---------------------------------------------------------------------------------------------------------------


@refused(NameError_, "'y' is read before it is bound")
def never_bound(x):
    z = y + x  # <-- y
    y = 1
    return y + z


@refused(NameError_, "'helper' is used here", "'scale'")
def used_too_early(x):
    def helper():
        return x * scale

    y = helper()  # <-- helper
    scale = 2
    return y + scale


@refused(ParseError, "uses the local variable 'n'")
def local_annotation(n):
    y: n = 1  # <-- n
    return y


@refused(NameError_, "'Undefined'")
def undefined_annotation(x: "Undefined"):  # <-- "Undefined"
    return x


@refused(NameError_, "'Flaot'", "did you mean 'Float'")
def misspelt_inner_annotation(x):
    def inner(y: Flaot):  # <-- Flaot
        return y

    return inner(x)


Float = float


@pytest.mark.parametrize("fn, error, message", CASES, ids=[fn.__name__ for fn, _, _ in CASES])
def test_refused(fn, error, message):
    with pytest.raises(error) as caught:
        parse(fn)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = fn.__code__.co_firstlineno
    number, line = next((k, text) for k, text in enumerate(lines, 1) if k >= first and "# <-- " in text)
    code, words = line.split("# <-- ")[0], line.split("# <-- ")[1]
    loc = caught.value.loc
    assert (loc.file, loc.line, loc.col) == (__file__, number, code.index(words))
    if loc.end_line == loc.line:
        assert loc.end_col == loc.col + len(words)
    text = str(caught.value)
    assert all(part in caught.value.message for part in message), text
    assert "^" * min(len(words), 3) in text and line.split("#")[0].strip() in text


def test_errors_of_one_function_are_reported_together():
    def several(x):
        del x
        with x:
            pass
        y = {1, 2}
        return y

    with pytest.raises(ParseError) as caught:
        parse(several)
    assert "'del'" in caught.value.message
    assert len(caught.value.notes) == 2
    assert all(word in str(caught.value) for word in ("'with'", "set display"))


def test_no_follow_up_errors():
    def follows(x):
        y = {1, 2}
        z = y
        return z + undefined_local if x else z

    with pytest.raises(ParseError) as caught:
        parse(follows)
    assert caught.value.notes == []


def test_parse_error_is_a_syntax_error_and_a_compile_error():
    with pytest.raises(SyntaxError):
        parse(generator)
    with pytest.raises(CompileError):
        parse(generator)


def test_deep_expression():
    import linecache

    text = "def deep(x):\n    return " + "not " * 900 + "x\n"
    linecache.cache["<deep>"] = (len(text), None, text.splitlines(True), "<deep>")
    scope = {}
    try:
        exec(compile(text, "<deep>", "exec"), scope)
    except RecursionError:
        pytest.skip("this Python does not compile it either")
    with pytest.raises(ParseError, match="nested too deeply") as caught:
        parse(scope["deep"])
    assert caught.value.loc.line in (1, 2)
