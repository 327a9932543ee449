"""`relay.to_text`: the text of a Python function computes what it does, bit for bit, and is refused where it could not."""

import copy
import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, Float, Tensor, grad, relay, relay_model, vmap
from tests.programs import sources

F = np.float32
CASES = [
    pytest.param(program.function, args, id=f"{program.function.__name__}-{k}")
    for program in sources.PROGRAMS
    for k, args in enumerate(program.inputs)
]
NO_TEXT = ("text", "dict", "Pair", "None", "function")
"""Arguments and results of the programs that are no values of Relay."""


def flat(value: Any) -> list:
    """A result by its numbers, dtypes and shapes, and the names of its constructors."""
    if isinstance(value, tuple | list):
        return [part for v in value for part in flat(v)]
    if hasattr(value, "constructor"):
        return [value.constructor, *flat(value.fields)]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, *flat([getattr(value, f.name) for f in dataclasses.fields(value)])]
    array = np.asarray(value)
    return [(array.dtype.name, array.shape, array.tobytes())]


def outcome(function: Any, args: tuple) -> list:
    """What a function gives, or raises."""
    try:
        return flat(function(*copy.deepcopy(args)))
    except CompileError:
        raise
    except Exception as error:
        return [type(error).__name__, str(error)]


def same(function: Any, args: tuple, executor: str = "interpreter") -> str:
    """Check that a function and its text do the same, that the text is a fixed point; the text."""
    text = relay.to_text(function, *copy.deepcopy(args))
    module = relay.parse_text(text)
    assert str(module) == text
    assert relay.from_json(module.to_json()) == module
    public = type(function).__name__ == "OperatorFunction"
    plain = (lambda *xs: function(*xs)) if public else function
    plain = plain if hasattr(plain, "ir") else relay(plain)
    wanted = outcome(plain._anew(executor=executor), args)
    assert outcome(module.with_executor(executor)["main"], args) == wanted
    return text


@pytest.mark.sampled(26)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("function", "args"), CASES)
def test_the_text_of_a_program_computes_the_same(function, args, executor):
    try:
        relay.to_text(function, *copy.deepcopy(args))
    except CompileError as error:
        assert "which is no value of Relay text" in error.message and any(word in error.message for word in NO_TEXT)
        return
    same(function, args, executor)


@pytest.mark.parametrize(("dilation", "side"), [(2, 3), (1, 3)])
def test_windows_with_gaps(dilation, side):
    text = (
        f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 2, 9, 9), float32]) {{ nn.max_pool2d(%x, pool_size=[{side}, {side}], '
        f"strides=[4, 4], dilation=[{dilation}, {dilation}]) }}"
    )
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 9)).astype(np.float32)
    run = relay.parse_text(text)["main"]
    again = relay.parse_text(relay.to_text(run, x))["main"]
    assert np.array_equal(again(x), run(x))


def polynomial(x, y):
    return x * y + np.tanh(x) - 2.0 * y


def test_a_function_that_is_not_decorated():
    assert same(polynomial, (0.5, 2.0)) == (
        '#[version = "0.0.5"]\n'
        "def @main(%x: float64, %y: float64) -> float64 {\n"
        "  %0 = multiply(%x, %y);\n"
        "  %1 = tanh(%x);\n"
        "  %2 = add(%0, %1);\n"
        "  %3 = multiply(2f64, %y);\n"
        "  subtract(%2, %3)\n"
        "}\n"
    )


def fibonacci(n):
    a, b, i = 0, 1, 0
    while i < n:
        a, b, i = b, a + b, i + 1
    return a


def test_a_loop_is_a_function_that_calls_itself(executor):
    text = same(fibonacci, (20,), executor)
    assert "let %loop = fn (%a: int64, %b: int64, %i: int64)" in text
    with pytest.raises(OverflowError, match="int too large: "):
        relay.parse_text(text).with_executor(executor)["main"](200)


def ranges(n):
    total = 0
    for i in range(n, 0, -3):
        total += i * 2
    for i in range(0, n, 4):
        total -= i
    for i in range(n):
        for j in range(i):
            total += i * j
    return total


@pytest.mark.parametrize("n", [0, 1, 13])
def test_loops_over_ranges(n):
    same(ranges, (n,))


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def test_recursion(executor):
    assert "def @ackermann(%m: int64, %n: int64) -> int64" in same(ackermann, (2, 3), executor)


@dataclass(frozen=True)
class Leaf:
    value: Tensor[Float, (4,)]


@dataclass(frozen=True)
class Node:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Node


def tree_net(t: Tree, w):
    match t:
        case Leaf(value):
            return np.tanh(w @ value)
        case Node(left, right):
            return np.tanh(w @ (tree_net(left, w) + tree_net(right, w)))


def tree_loss(t: Tree, w):
    return np.sum(tree_net(t, w) ** 2)


def some_tree():
    rng = np.random.default_rng(0)
    a, b, c = (Leaf(rng.standard_normal(4).astype(F)) for _ in range(3))
    return Node(a, Node(b, c)), rng.standard_normal((4, 4)).astype(F)


@pytest.mark.sampled(3)
def test_data_types_are_type_definitions(executor):
    text = same(tree_net, some_tree(), executor)
    assert "type LeafOrNode {\n  Leaf(Tensor[(4), float32]),\n  Node(LeafOrNode[], LeafOrNode[]),\n}" in text
    assert "match (%t) {\n    Leaf(%value) => {" in text and "    Node(%left, %right) => {" in text


@pytest.mark.parametrize("wrt", ["w", "t"])
@pytest.mark.sampled(6)
def test_the_gradient_of_a_recursive_function(wrt, executor):
    same(grad(tree_loss, wrt), some_tree(), executor)


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Point:
    x: float
    at: Pair


def moved(p: Point, q):
    return Point(p.x + q[0], Pair(p.at.a * q[1], p.at.b)), q


def test_records_are_types_of_one_constructor():
    text = same(moved, (Point(1.0, Pair(2.0, 3.0)), (4.0, 5.0)))
    assert "type Point {\n  Point(float64, (float64, float64)),\n}" in text


def lstm(xs, wx, wh, b):
    h, c = np.zeros(3), np.zeros(3)
    for x in xs:
        z = wx @ x + wh @ h + b
        i, f, o, g = z[0:3], z[3:6], z[6:9], z[9:12]
        c = relay.sigmoid(f) * c + relay.sigmoid(i) * np.tanh(g)
        h = relay.sigmoid(o) * np.tanh(c)
    return h, c


def lstm_loss(xs, wx, wh, b):
    h, _ = lstm(xs, wx, wh, b)
    return np.sum(h * h)


@pytest.mark.parametrize("function", [lstm, grad(lstm_loss, ("wx", "b"))], ids=["forward", "gradient"])
def test_a_recurrent_network(function):
    rng = np.random.default_rng(1)
    shapes = ((5, 2), (12, 2), (12, 3), (12,))
    same(function, tuple(rng.standard_normal(s) for s in shapes), "native")


def power(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (grad(power), (1.1, 5)),
        (grad(grad(power)), (1.1, 5)),
        (vmap(power, in_axes=(0, None)), (np.array([1.0, 2.0, -0.5]), 4)),
        (relay.softmax, (np.arange(3.0),)),
        (grad(relay.logsumexp), (np.arange(3.0),)),
        (vmap(lambda v: np.sum(v**2 * np.exp(v))), (np.arange(6.0).reshape(2, 3),)),
    ],
    ids=["gradient", "second", "batch", "public", "gradient-of-public", "batch-of-sums"],
)
def test_transformed_functions(function, args):
    same(function, args)


@relay_model
def lenet(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:
    x = relay.tanh(relay.conv2d(x, num_filter=4, ksize=5, no_bias=False))
    x = relay.max_pool(x, ksize=2, strides=2)
    x = relay.tanh(relay.conv2d(x, num_filter=5, ksize=5, no_bias=False))
    x = relay.flatten_layer(relay.max_pool(x, ksize=2, strides=2))
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=20)), num_hidden=10)


def test_a_model_with_its_parameters_as_constants():
    model = relay.create_model(lenet)
    x = np.random.default_rng(2).standard_normal((1, 28, 28)).astype(F)
    text = relay.to_text(model, x)
    assert "nn.conv2d(" in text and "nn.max_pool2d(" in text and "#[metadata]" in text
    assert relay.parse_text(text)["main"](x).tobytes() == model(x).tobytes()
    assert same(lambda x: grad(lambda v: np.sum(model(v)))(x), (x,), "native")


EXACT = np.array([0.1, -0.0, np.inf, 1e-310, np.nan])


def test_constants_are_exact():
    text = same(lambda x: (x * EXACT, x + F(0.1), 1e308 * 10 * x, x == -0.0), (0.3,))
    assert "meta[relay.Constant][0]" in text


def of_size(x: Tensor[Float, ("n", 3)]):  # noqa: F821
    return np.sum(x, axis=0) / x.shape[0]


def test_sizes_are_those_of_the_arguments():
    assert "%x: Tensor[(4, 3), float32]" in same(of_size, (np.ones((4, 3), F),))


def printing(x):
    print(x)
    return x


def growing(n):
    out = []
    for i in range(n):
        out.append(i)
    return out


def by_name(x):
    return {"x": x}


def overwriting(x):
    x[0] = 1.0
    return x


def computed_size(n):
    return np.sum(np.arange(n))


def selected(x, mode):
    return x if mode == "plain" else -x


def own_exception(x):
    if x > 0.0:
        raise Strange
    return x


class Strange(Exception):
    pass


@pytest.mark.parametrize(
    ("function", "args", "words", "line"),
    [
        (printing, (1.0,), "this prints", "print(x)"),
        (growing, (3,), "list whose length", "for i in range(n)"),
        (by_name, (1.0,), "returns a dict", "def by_name"),
        (overwriting, (np.zeros(2),), "changes the argument 'x'", "x[0] = 1.0"),
        (computed_size, (3,), "whose size a value decides", "np.arange(n)"),
        (own_exception, (1.0,), "cannot raise Strange", "raise Strange"),
        (selected, (1.0, "plain"), "argument 'mode' is a text", "def selected"),
        (lambda x: lambda y: x + y, (1.0,), "returns a function", "lambda x"),
        (lambda m, x: m(x), (relay.create_model(lenet), np.zeros((1, 28, 28), F)), "'m' is a model", "lambda m"),
    ],
)
def test_what_relay_cannot_say_is_refused_at_its_place(function, args, words, line):
    with pytest.raises(CompileError) as caught:
        relay.to_text(function, *args)
    message = str(caught.value)
    assert words in message and line in message and "^" in message


def test_primitives_are_operators():
    module = relay.parse_text(
        "def @main(%x: Tensor[(3), float64], %i: int64) {\n"
        '  prim.check(less(%i, 3i64), %i, exception="IndexError", parts=["no ", [0, -1, ""]]);\n'
        "  %0 = prim.dynamic_index(%x, %i, axis=0);\n"
        "  prim.expm1(%0)\n"
        "}"
    )
    x = np.array([0.1, 0.2, 0.3])
    assert module["main"](x, 2) == math.expm1(0.3)
    with pytest.raises(IndexError, match="no 5"):
        module["main"](x, 5)
    assert relay.grad(module["main"], 0)(x, 1).tolist() == [0.0, math.exp(0.2), 0.0]
    cleaned = relay.transform.DeadCodeElimination()(module)
    assert "prim.check" in str(cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%x: float64) { prim.while_loop(%x) }",
        "def @main(%x: float64) { prim.nothing(%x) }",
        "def @main(%x: Tensor[(2), float32]) { prim.dot(%x, %x) }",
        'def @main(%x: bool) { prim.check(%x, exception="Strange", parts=[]) }',
        "def @main(%x: Tensor[(?), float32]) { prim.flip(%x, axes=[0]) }",
    ],
)
def test_primitives_that_are_none_or_do_not_fit(text):
    with pytest.raises(CompileError):
        relay.parse_text(text)
