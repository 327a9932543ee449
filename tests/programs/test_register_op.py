"""`relay.register_op`: operators of users in every executor, with derivatives, batches, native code and their own errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

from myia_relay import (
    CompileError,
    Float64,
    GradError,
    ShapeError,
    Tensor,
    TypeError_,
    check_grads,
    grad,
    jacfwd,
    jacrev,
    jvp,
    relay,
    vmap,
)
from myia_relay.backend.native import library as native_library
from myia_relay.prims.ops.c_functions import parse_signature
from myia_relay.utils.errors import ValueError_

EXECUTORS = ("interpreter", "python", "native")
every_executor = pytest.mark.parametrize("executor", EXECUTORS)
X = np.array([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])


@relay.register_op(elementwise=True)
def softclip(x, *, limit=1.0):
    return limit * np.tanh(x / limit)


@softclip.defvjp
def _(x, out, dout, limit=1.0):
    return (dout * (1.0 - (out / limit) ** 2),)


@relay.register_op(elementwise=True, vjp=lambda x, y, out, dout: (dout * y, dout * x))
def times(x, y):
    return np.multiply(x, y)


def product_type(a, b):
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"inner sizes {a.shape[-1]} and {b.shape[0]} differ")
    return relay.TensorType((a.shape[0], b.shape[1]), a.dtype)


@relay.register_op(infer=product_type)
def product(a, b):
    return a @ b


@product.defvjp
def _(a, b, out, dout):
    return dout @ b.T, a.T @ dout


@relay.register_op(infer=lambda x: (((), x.dtype), (x.shape, "int64"), float))
def summary(x):
    if x.size and x.flat[0] > 100:
        raise ValueError("the first entry is huge")
    return x.sum(), np.argsort(x, axis=-1), float(x.size)


@relay.register_op(infer=lambda x: (x.shape, x.dtype), batch="leading")
def ordered(x):
    return np.sort(x, axis=-1)


CALLS = []


@relay.register_op(infer=lambda x: (x.shape, x.dtype))
def noted(x):
    CALLS.append(np.array(x))
    return np.array(x)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@relay.register_op(infer=lambda x, axis: (x.shape, x.dtype), lower=lambda te, x, axis: te.topi.nn.softmax(x, axis=axis))
def lowered_softmax(x, *, axis=-1):
    return softmax(x, axis)


@lowered_softmax.defvjp
def _(x, out, dout, axis=-1):
    return (out * (dout - np.sum(dout * out, axis=axis, keepdims=True)),)


@relay.register_op(
    elementwise=True,
    lower=lambda te, x, y: te.compute(x.shape, lambda *i: te.tir.exp(x(*i)) * y(*i)),
    vjp=lambda x, y, out, dout: (dout * out, dout * np.exp(x)),
)
def expmul(x, y):
    return np.exp(x) * y


# Values.


@every_executor
def test_an_elementwise_operator_broadcasts_and_promotes(executor):
    f = relay(lambda x, y: times(x, y), executor=executor)
    np.testing.assert_array_equal(f(X, X[0]), X * X[0])
    assert f(2.0, 3.0) == 6.0 and type(f(2.0, 3.0)) is float
    out = f(X.astype(np.float32), 2)
    assert out.dtype == np.float32
    assert f(np.arange(3), np.arange(3)).dtype == np.float64
    assert type(f(np.float32(2), np.float32(3))) is np.float32


@every_executor
def test_static_attributes(executor):
    f = relay(lambda x: softclip(x, limit=2.0) + softclip(x), executor=executor)
    np.testing.assert_allclose(f(X), 2 * np.tanh(X / 2) + np.tanh(X), rtol=1e-15)


@every_executor
def test_several_results_of_several_kinds(executor):
    @relay(executor=executor)
    def f(x):
        total, order, size = summary(x)
        return total * 2.0, order, size

    total, order, size = f(X)
    assert total == X.sum() * 2 and size == 6.0 and type(size) is float
    np.testing.assert_array_equal(order, np.argsort(X, axis=-1))
    assert order.dtype == np.int64


@every_executor
def test_in_loops_branches_and_recursion(executor):
    @relay(executor=executor)
    def f(a, n):
        total = 0.0
        for i in range(n):
            if i % 2 == 0:
                total = total + np.sum(product(a, a.T)) * i
            else:
                total = total - float(softclip(total))
        return total

    @relay(executor=executor)
    def power(a, n):
        return a if n == 1 else product(a, power(a, n - 1))

    total = 0.0
    for i in range(7):
        total = total + (X @ X.T).sum() * i if i % 2 == 0 else total - np.tanh(total)
    np.testing.assert_allclose(f(X, 7), total)
    square = X[:, :2]
    np.testing.assert_allclose(power(square, 5), np.linalg.matrix_power(square, 5))


@every_executor
def test_calls_happen_where_the_program_says(executor):
    @relay(executor=executor)
    def f(x, n):
        noted(x)
        for i in range(n):
            noted(x + i)
        return 1

    del CALLS[:]
    assert f(np.ones(2), 2) == 1
    assert [c[0] for c in CALLS] == [1.0, 1.0, 2.0]
    del CALLS[:]
    f(np.ones(2), 0)
    assert len(CALLS) == 1


@every_executor
def test_symbolic_sizes_take_one_compilation(executor):
    @relay(executor=executor)
    def f(x: Tensor[Float64, ("n", 3)]):  # noqa: F821, UP037
        return product(x, x.T), lowered_softmax(x)

    for rows in (2, 5, 1):
        x = np.linspace(0, 1, rows * 3).reshape(rows, 3)
        p, s = f(x)
        np.testing.assert_allclose(p, x @ x.T)
        np.testing.assert_allclose(s, softmax(x))
    assert f.cache_info().misses == 1


def test_plain_python_means_the_same():
    np.testing.assert_array_equal(times(X, 2), X * 2)
    assert type(times(2, 3)) is float
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        times(1.0)


def test_results_are_memory_of_their_own():
    same = relay.register_op(lambda x: x, name="same", infer=lambda x: (x.shape, x.dtype))
    f = relay(lambda x: same(x), executor="interpreter")
    x = np.ones(3)
    f(x)[0] = 5.0
    assert x[0] == 1.0


@every_executor
def test_arguments_cannot_be_changed(executor):
    @relay.register_op(infer=lambda x: (x.shape, x.dtype))
    def doubled(x):
        x *= 2
        return x

    if executor == "native":  # the definition has a copy there
        pytest.skip("native code hands out copies")
    with pytest.raises(ValueError, match="read-only"):
        relay(lambda x: doubled(x), executor=executor)(np.ones(3))


# Derivatives.


@pytest.mark.sampled(3)
@every_executor
def test_gradients_of_two_orders(executor):
    f = relay(lambda x: np.sum(softclip(x, limit=2.0)), executor=executor)
    np.testing.assert_allclose(grad(f)(X), 1 - np.tanh(X / 2) ** 2)
    check_grads(f, (X,), order=2)
    g = relay(lambda a, b: np.sum(product(a, b) ** 2), executor=executor)
    check_grads(g, (X, X.T), order=2)
    h = relay(lambda x, y: np.sum(times(x, y) * times(y, y)), executor=executor)
    check_grads(h, (X, 1.5), order=2)


@pytest.mark.sampled(3)
@every_executor
def test_gradients_of_a_lowered_operator(executor):
    f = relay(lambda x: np.sum(lowered_softmax(x, axis=0) ** 2), executor=executor)
    check_grads(f, (X,), order=2)
    g = relay(lambda x, y: np.sum(expmul(x, y)), executor=executor)
    check_grads(g, (X, X[0]), order=2)


@every_executor
def test_forward_mode_is_the_transpose(executor):
    f = relay(lambda x: softclip(x) * 2.0, executor=executor)
    np.testing.assert_allclose(jacfwd(f)(X[0]), jacrev(f)(X[0]))
    out, tangent = jvp(f, (X[0],), (np.ones(3),))
    np.testing.assert_allclose(tangent, 2 * (1 - np.tanh(X[0]) ** 2))


@every_executor
def test_a_forward_rule_gives_the_reverse_rule(executor):
    @relay.register_op(elementwise=True, jvp=lambda args, tangents: tangents[0] * args[1] + tangents[1] * args[0])
    def twice_linear(x, y):
        return np.multiply(x, y)

    f = relay(lambda x, y: np.sum(twice_linear(x, y) ** 2), executor=executor)
    check_grads(f, (X, X + 1), order=2)


@every_executor
def test_an_operator_in_terms_of_others(executor):
    @relay.register_op
    def swish(x):
        return x / (1.0 + np.exp(-x))

    @relay.register_op(vjp=lambda x, out, dout, slope: (dout * np.where(x > 0, 1.0, slope) * 10.0,))
    def leaky(x, *, slope=0.1):
        return np.where(x > 0, x, slope * x)

    f = relay(lambda x: np.sum(swish(x)), executor=executor)
    check_grads(f, (X,), order=2)
    np.testing.assert_array_equal(swish(X), X / (1 + np.exp(-X)))
    g = relay(lambda x: np.sum(leaky(x, slope=0.5)), executor=executor)
    np.testing.assert_array_equal(grad(g)(X), np.where(X > 0, 10.0, 5.0))  # the rule's own, not what follows


@every_executor
def test_without_a_rule_the_derivative_is_refused(executor):
    f = relay(lambda x: np.sum(ordered(x)), executor=executor)
    for transform in (grad(f), lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(GradError, match=r"operator ordered has no derivative; add one: @ordered\.defvjp") as info:
            transform(X)
        assert info.value.loc is not None
    g = relay(lambda x: np.sum(relay.stop_gradient(ordered(x)) * x), executor=executor)
    np.testing.assert_array_equal(grad(g)(X), np.sort(X))


def test_a_rule_with_too_few_cotangents():
    @relay.register_op(elementwise=True, vjp=lambda x, y, out, dout: (dout,))
    def half(x, y):
        return x * y

    with pytest.raises(GradError, match="the vjp rule of half returns"):
        grad(relay(lambda x: np.sum(half(x, x))))(X)


# Batches.


@every_executor
def test_batches(executor):
    def by(f):
        return relay(f, executor=executor)

    many = np.stack([X, X * 2, X - 1])
    np.testing.assert_allclose(
        by(lambda a, b: vmap(product, (0, None))(a, b))(many, X.T), np.stack([m @ X.T for m in many])
    )
    np.testing.assert_allclose(by(lambda x: vmap(vmap(ordered))(x))(many), np.sort(many, axis=-1))
    np.testing.assert_allclose(by(lambda x: vmap(lowered_softmax)(x))(many), softmax(many))
    np.testing.assert_allclose(by(lambda x: vmap(vmap(lowered_softmax))(x))(many), softmax(many))
    np.testing.assert_allclose(by(lambda x, y: vmap(expmul, (0, None))(x, y))(many, 2.0), 2 * np.exp(many))
    total, order, size = by(lambda x: vmap(summary)(x))(many)
    np.testing.assert_allclose(total, many.sum((1, 2)))
    np.testing.assert_array_equal(size, [6.0] * 3)
    np.testing.assert_allclose(by(lambda x: vmap(grad(lambda y: np.sum(softclip(y))))(x))(many), 1 - np.tanh(many) ** 2)


@every_executor
def test_a_batch_of_none(executor):
    f = relay(lambda x: vmap(product, (0, None))(x, X.T), executor=executor)
    assert f(np.ones((0, 2, 3))).shape == (0, 2, 2)


@every_executor
def test_batches_of_branches_run_what_each_example_runs(executor):
    @relay(executor=executor)
    def f(x):
        return noted(x) if x > 0.0 else x

    del CALLS[:]
    np.testing.assert_array_equal(vmap(f)(np.array([1.0, -1.0, 2.0])), [1.0, -1.0, 2.0])
    assert sorted(float(c) for c in CALLS) == [1.0, 2.0]


@every_executor
def test_a_batch_function_of_ones_own(executor):
    seen = []

    def batch(batched, x, y):
        seen.append(batched)
        return x + (y if batched[1] else y[None])

    @relay.register_op(infer=lambda x, y: (x.shape, x.dtype), batch=batch)
    def plus(x, y):
        return x + y

    f = relay(lambda x, y: vmap(plus, (0, None))(x, y), executor=executor)
    np.testing.assert_array_equal(f(X, X[0]), X + X[0])
    assert seen == [(True, False)]


# Errors.


@every_executor
def test_what_the_definition_raises_comes_out_at_the_users_line(executor):
    @relay(executor=executor)
    def f(x):
        y = x + 100.0
        return summary(y)[0]  # here

    with pytest.raises(ValueError, match="the first entry is huge") as info:
        f(X)
    lines = [frame.line for frame in traceback.extract_tb(info.tb)]
    assert "return summary(y)[0]  # here" in lines
    assert lines[-1] == 'raise ValueError("the first entry is huge")'
    assert f(X - 200.0) == (X - 100.0).sum()  # and the program is as good as before


@every_executor
@pytest.mark.parametrize(
    ("definition", "error", "text"),
    [
        (lambda x: x[:1], ValueError, r"returned shape \(1,\), and its relation says \(3,\)"),
        (lambda x: x.astype(np.float32), TypeError, "returned float32, and its relation says float64"),
        (lambda x: None, TypeError, "returned None"),
        (lambda x: (x, x), ValueError, r"returned shape \(2, 3\)"),
    ],
)
def test_a_definition_that_contradicts_its_relation(executor, definition, error, text):
    op = relay.register_op(definition, name="odd", infer=lambda x: (x.shape, x.dtype))
    with pytest.raises(error, match=text):
        relay(lambda x: op(x), executor=executor)(np.ones(3))


def test_a_relation_that_refuses():
    with pytest.raises(
        TypeError_, match="operator product does not take these arguments: inner sizes 3 and 2 differ"
    ) as e:
        relay(lambda a: product(a, a))(X)
    assert e.value.loc is not None


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda x: times(x), "missing a required argument: 'y'"),
        (lambda x: times(x, x, x), "too many positional arguments"),
        (lambda x: softclip(x, limit=[1.0]), "limit is a static attribute, and a list cannot be one"),
        (lambda x: softclip(x, limit=x[0, 0]), "softclip: limit must be known at compile time"),
        (lambda x: softclip((x, x)), "operator softclip takes numbers and arrays, and 'x' is"),
        (lambda x: softclip("abc"), "operator softclip takes numbers and arrays, and 'x' is 'abc'"),
    ],
)
def test_wrong_calls(program, text):
    with pytest.raises(TypeError_, match=text) as info:
        relay(program)(X)
    assert info.value.loc is not None


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"times: shapes \(2, 3\) and \(2,\) do not broadcast"):
        relay(lambda x: times(x, x[:, 0]))(X)


def f(x):
    return x


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "add"}, "'add' is an operator of myia_relay itself"),
        ({"batch": "leading"}, "batch is for operators with a relation; give infer="),
        ({"lower": f}, "lower is for operators with a relation"),
        ({"elementwise": True, "infer": f}, "elementwise=True derives infer"),
        ({"infer": f, "dtype": "float32"}, "dtype is for elementwise operators"),
        ({"infer": f, "batch": "first"}, "batch is 'leading' or a function"),
        ({"vjp": f, "jvp": f}, "give vjp or jvp"),
        ({"symbol": "sin"}, "needs symbol= and signature="),
        ({"symbol": "sin", "signature": "sin"}, "is no C signature"),
        ({"symbol": "sin", "signature": "double(complex)"}, "the type 'complex' is none of"),
        ({"symbol": "sin", "signature": "void(double)"}, "is given no place for a result"),
        ({"symbol": "nope", "signature": "double(double)"}, "has no symbol 'nope'"),
        ({"symbol": "f", "library": "/nowhere.so", "signature": "double(double)"}, "cannot be loaded"),
        ({"infer": f, "symbol": "sin", "signature": "void(double *y)"}, "'y' is none of x, out"),
        ({"symbol": "sin", "signature": "double(double, double)"}, "2 parameters, and the operator takes 1"),
    ],
)
def test_options_that_contradict_each_other(options, text):
    with pytest.raises(ValueError_, match=text):
        relay.register_op(f, **options)


def test_what_is_no_function():
    with pytest.raises(TypeError_, match="decorates a function, not int"):
        relay.register_op(3)
    with pytest.raises(TypeError_, match="infer is a function, not str"):
        relay.register_op(f, infer="x")
    with pytest.raises(TypeError_, match=r"has the parameter \*xs"):
        relay.register_op(lambda *xs: xs)


def test_a_lowering_that_fails_or_contradicts_the_relation():
    wrong = relay.register_op(
        lambda x: x, name="wrong", infer=lambda x: (x.shape, x.dtype), lower=lambda te, x: te.topi.sum(x)
    )
    with pytest.raises(TypeError_, match=r"lowering of the operator wrong gives float64\[\], and its relation says"):
        relay(lambda x: wrong(x))(X)
    fails = relay.register_op(
        lambda x: x, name="fails", infer=lambda x: (x.shape, x.dtype), lower=lambda te, x: te.no_such_thing(x)
    )
    with pytest.raises(CompileError, match="lowering of the operator fails fails: .*no_such_thing"):
        relay(lambda x: fails(x))(X)


# C functions.

SOURCE = """
#include <stdint.h>
double addsq(double a, double b) { return a + b * b; }
float halved(float a) { return a / 2; }
int running(const double *x, double *out, int64_t x_size, int64_t scale) {
    double sum = 0;
    for (int64_t i = 0; i < x_size; i++) {
        if (x[i] < 0) return 7;
        sum += x[i] * scale;
        out[i] = sum;
    }
    return 0;
}
void rows(const float *x, const int64_t *x_shape, float *out0, int64_t *out1) {
    for (int64_t i = 0; i < x_shape[0]; i++) {
        out0[i] = 0;
        for (int64_t j = 0; j < x_shape[1]; j++) out0[i] += x[i * x_shape[1] + j];
        out1[i] = x_shape[1];
    }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "ops.c").write_text(SOURCE)
    path = folder / "libops.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, folder / "ops.c"], check=True)
    return path


@pytest.mark.sampled(3)
@every_executor
def test_a_c_function_of_numbers(executor, library):
    addsq = relay.register_op(
        lambda a, b: None, name="addsq", symbol="addsq", library=library, signature="double(double, double)",
        vjp=lambda a, b, out, dout: (dout, 2.0 * b * dout),
    )  # fmt: skip
    f = relay(lambda a, b: np.sum(addsq(a, b)), executor=executor)
    np.testing.assert_allclose(f(X, X[0]), (X + X[0] ** 2).sum())
    check_grads(f, (X, 2.0), order=2)
    g = relay(lambda a: addsq(a, 2), executor=executor)
    assert g(1.0) == 5.0 and addsq(1, 2) == 5.0
    halved = relay.register_op(
        lambda a: None, name="halved", symbol="halved", library=library, signature="float(float)"
    )
    assert relay(lambda x: halved(x), executor=executor)(X).dtype == np.float32


@every_executor
def test_a_c_function_of_arrays(executor, library):
    running = relay.register_op(
        lambda x, *, scale: None, name="running", infer=lambda x, scale: x, symbol="running", library=library,
        signature="int running(const double *x, double *out, int64_t x_size, int64_t scale)",
    )  # fmt: skip
    f = relay(lambda x: running(x, scale=2), executor=executor)
    x = np.arange(8.0)
    np.testing.assert_array_equal(f(x), np.cumsum(x) * 2)
    np.testing.assert_array_equal(f(x[::-2]), np.cumsum(x[::-2]) * 2)  # strided: C gets it contiguous
    np.testing.assert_array_equal(vmap(f)(np.ones((2, 3))), [[2, 4, 6]] * 2)
    with pytest.raises(RuntimeError, match="C function running of the operator running returned 7"):
        f(-x)
    with pytest.raises(TypeError_, match=r"takes 'double \*x', and 'x' is float32\[8\]; convert it with"):
        f(x.astype(np.float32))
    with pytest.raises(TypeError_, match=r"takes an array 'double \*x', and 'x' is float"):
        f(1.0)
    rows = relay.register_op(
        lambda x: None, name="rows", infer=lambda x: (((x.shape[0],), "float32"), ((x.shape[0],), "int64")), symbol="rows",
        library=library, signature="void(const float *x, const int64_t *x_shape, float *out0, int64_t *out1)",
    )  # fmt: skip
    sums, lengths = relay(lambda x: rows(x), executor=executor)(X.astype(np.float32))
    np.testing.assert_allclose(sums, X.sum(1), rtol=1e-6)
    np.testing.assert_array_equal(lengths, [3, 3])


def test_signatures_are_read_as_c_is():
    result, parameters = parse_signature("int spline(const double* restrict x, size_t n, int64_t const *shape);")
    assert result == "int"
    assert [tuple(p) for p in parameters] == [("double", True, "x"), ("size_t", False, "n"), ("int64_t", True, "shape")]
    assert parse_signature("double(void)") == ("double", [])


# Redefinition, and programs in files.


def test_a_redefined_operator_is_noticed_by_the_next_call():
    space = {"relay": relay, "np": np}
    define = "@relay.register_op(elementwise=True)\ndef scaled(x):\n    return x * {}\n"

    def cell(text, name):
        import linecache

        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)

    cell(define.format(2.0), "<cell 1>")
    cell("@relay\ndef f(x):\n    return scaled(x)\n", "<cell 2>")
    assert space["f"](3.0) == 6.0
    cell(define.format(5.0), "<cell 3>")
    assert space["f"](3.0) == 15.0


def test_a_rule_that_is_attached_later_is_noticed():
    op = relay.register_op(lambda x: np.sin(x), name="late", elementwise=True)
    g = grad(relay(lambda x: op(x)))
    with pytest.raises(GradError):
        g(0.5)
    op.defvjp(lambda x, out, dout: (dout * np.cos(x),))
    assert g(0.5) == np.cos(0.5)
    op.defvjp(lambda x, out, dout: (dout * 3.0,))
    assert g(0.5) == 3.0


SCALE = 2


def test_what_a_relation_reads_is_noticed():
    global SCALE
    op = relay.register_op(
        lambda x: np.zeros(len(x) * SCALE), name="longer", infer=lambda x: ((x.shape[0] * SCALE,), x.dtype)
    )
    f = relay(lambda x: op(x))
    assert f(np.ones(3)).shape == (6,)
    SCALE = 3
    try:
        assert f(np.ones(3)).shape == (9,)
    finally:
        SCALE = 2


MODULE = """
import numpy as np
from myia_relay import grad, relay

@relay.register_op(elementwise=True)
def clip(x, *, limit=1.0):
    return limit * np.tanh(x / limit) {change}

@clip.defvjp
def _(x, out, dout, limit=1.0):
    return (dout * {factor},)

@relay.register_op(infer=lambda x: x, lower=lambda te, x: te.compute(x.shape, lambda i: x[i] * {scale}))
def scaled(x):
    return x * {scale}

@relay
def f(x):
    return np.sum(clip(x, limit=2.0)) + np.sum(scaled(x))

x = np.arange(3.0)
g = grad(lambda x: np.sum(clip(x, limit=2.0)))
print(f(x), *g(x), f.cache_info().misses + g.cache_info().misses == 0)
"""


@pytest.mark.skipif(not native_library.supported(), reason="code is not linked here")
def test_programs_with_operators_are_kept_in_files(tmp_path):
    env = {**os.environ, "MYIA_RELAY_CACHE": str(tmp_path / "cache"), "MYIA_RELAY_CACHE_SIZE": "64"}

    def run(**how):
        (tmp_path / "m.py").write_text(
            textwrap.dedent(MODULE).format(**{"change": "", "factor": 1.0, "scale": 3.0} | how)
        )
        out = subprocess.run(
            [sys.executable, "m.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        *numbers, loaded = out.stdout.split()
        return [float(n) for n in numbers], loaded == "True"

    x = np.arange(3.0)
    clip = 2 * np.tanh(x / 2)
    first, loaded = run()
    assert not loaded
    np.testing.assert_allclose(first, [clip.sum() + 9, 1, 1, 1])
    again, loaded = run()
    assert loaded and again == first
    for how, want in (
        ({"change": "+ 1.0"}, [clip.sum() + 3 + 9, 1, 1, 1]),
        ({"factor": 4.0}, [clip.sum() + 9, 4, 4, 4]),
        ({"scale": 5.0}, [clip.sum() + 15, 1, 1, 1]),
    ):
        found, _ = run(**how)
        np.testing.assert_allclose(found, want)
