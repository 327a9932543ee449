"""Derivatives as users write them, in every executor: against each other, against formulas, inside of compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import (
    GradError,
    ShapeError,
    TypeError_,
    check_grads,
    checkpoint,
    cond,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    relay,
    scan,
    stop_gradient,
    tree_map,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)

X = np.array([0.4, 1.1, -0.7])


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Layer:
    w: np.ndarray
    n: int


def rosenbrock(v):
    return (1.0 - v[0]) ** 2 + 100.0 * (v[1] - v[0] ** 2) ** 2


def mixing(x):
    s = x * 0.0
    for i in range(4):
        if np.sum(s) > 1.0:
            s = np.sin(s) * x
        else:
            s = s + x * x * (i + 1)
    return np.concatenate([s, s[:1] * x[1:2]])


def power_until(x):
    while x < 100.0:
        x = x * x
    return x


def same(a, b):
    """Trees of equal structure with close numbers."""
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in b)
    if isinstance(b, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if b is None:
        return a is None
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9, atol=1e-12)


# Directional derivatives.


@pytest.mark.sampled(3)
def test_jvp_and_vjp_are_transposes(executor):
    f = relay(executor=executor)(mixing)
    v, w = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.0, 2.0, -1.0])
    out, tangent = jvp(f, (X,), (v,))
    y, pullback = vjp(f, X)
    (cotangent,) = pullback(w)
    assert same(out, mixing(X)) and same(y, out)
    assert np.sum(w * tangent) == pytest.approx(np.sum(cotangent * v), rel=1e-12)


def test_jvp_of_trees(executor):
    @relay(executor=executor)
    def f(p, layer):
        return {"s": p.a * np.sum(layer.w**2) * layer.n, "n": layer.n, "p": (p, None)}

    out, t = jvp(f, (Pair(2.0, 3.0), Layer(X, 4)), (Pair(1.0, 0.5), Layer(X * 0.0, None)))
    square = np.sum(X**2)
    assert same(out["s"], 8.0 * square) and out["n"] == 4 and out["p"] == (Pair(2.0, 3.0), None)
    assert same(t["s"], 4.0 * square) and t["n"] is None and t["p"] == (Pair(1.0, 0.5), None)
    zero = jvp(f, (Pair(2.0, 3.0), Layer(X, 4)), (None, None))[1]
    assert zero["s"] == 0.0 and zero["p"][0] == Pair(0.0, 0.0)


def test_vjp_of_trees_and_missing_cotangents(executor):
    @relay(executor=executor)
    def f(p, x, n):
        return p.a * x * n, p.b

    y, pullback = vjp(f, Pair(2.0, 3.0), X, 3)
    assert same(y, (6.0 * X, 3.0))
    assert same(pullback((np.ones(3), 5.0)), (Pair(3.0 * np.sum(X), 5.0), np.full(3, 6.0), None))
    assert same(pullback((None, 5.0)), (Pair(0.0, 5.0), np.zeros(3), None))


def test_a_pullback_keeps_its_point(executor):
    x = X.copy()
    _, pullback = vjp(relay(executor=executor)(lambda x: x * x), x)
    x[:] = 0.0
    assert same(pullback(np.ones(3)), (2.0 * X,))


def test_a_pullback_does_not_print_again(capsys):
    def loud(x):
        print("once", x)
        return x * x

    assert vjp(loud, 2.0)[1](1.0) == (4.0,)
    assert capsys.readouterr().out == "once 2.0\n"


def test_perturbations_are_not_confused(executor):
    @relay(executor=executor)
    def f(x):
        return x * jvp(lambda y: x + y, (1.0,), (1.0,))[1]

    assert jvp(f, (2.0,), (1.0,)) == (2.0, 1.0)
    assert grad(f)(2.0) == 1.0


def test_while_loops_have_every_derivative(executor):
    f = relay(executor=executor)(power_until)
    first, second = jvp(f, (4.0,), (1.0,))[1], jvp(grad(f), (4.0,), (1.0,))[1]
    assert (first, second) == (256.0, 192.0)
    assert grad(lambda x: jvp(grad(power_until), (x,), (1.0,))[1])(4.0) == 96.0
    points = np.array([3.0, 4.0, 20.0])
    assert same(vmap(lambda x: jvp(power_until, (x,), (1.0,))[1])(points), np.array([8 * 3.0**7, 256.0, 40.0]))


def test_inside_of_compiled_code(executor):
    @relay(executor=executor)
    def f(x):
        y, pullback = vjp(lambda a: a**3, x)
        o, t = jvp(lambda a: a**3, (x,), (1.0,))
        return (
            y + o,
            pullback(1.0)[0] - t,
            hessian(lambda a: a**3)(x),
            hvp(lambda a: a**4, x, 1.0),
            jacobian(np.sin, 0)(x),
        )

    values = f(2.0)
    assert same(values, (16.0, 0.0, 12.0, 48.0, np.cos(2.0)))
    assert grad(lambda x: hvp(lambda a: a**4, x, 1.0))(2.0) == pytest.approx(48.0)


# Jacobians.


@pytest.mark.sampled(3)
def test_jacobians_agree(executor):
    f = relay(executor=executor)(mixing)
    forward, reverse = jacfwd(f)(X), jacrev(f)(X)
    assert forward.shape == (4, 3)
    columns = [(mixing(X + h) - mixing(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    assert np.allclose(forward, np.stack(columns, axis=1), rtol=1e-5, atol=1e-7)
    assert same(reverse, forward) and same(jacobian(f)(X), forward)


def test_jacobians_of_trees_are_laid_out_as_in_jax(executor):
    @relay(executor=executor)
    def f(p, x):
        return {"a": p["w"] @ x, "b": (np.sum(x * x) * p["s"],)}

    p, x = {"w": np.arange(6.0).reshape(2, 3), "s": 2.0}, np.array([1.0, 2.0, 3.0])
    a_w = np.zeros((2, 2, 3))
    a_w[0, 0] = a_w[1, 1] = x
    want = {
        "a": ({"w": a_w, "s": np.zeros(2)}, p["w"]),
        "b": (({"w": np.zeros((2, 3)), "s": 14.0}, 4.0 * x),),
    }
    for transform in (jacfwd, jacrev, jacobian):
        assert same(transform(f, (0, 1))(p, x), want)
    assert same(jacobian(f, "x")(p, x), {"a": want["a"][1], "b": (want["b"][0][1],)})
    assert same(jacobian(f, argnums=1)(p, x=x), jacobian(f, -1)(p, x))


def test_hessians(executor):
    f = relay(executor=executor)(rosenbrock)
    v = np.array([1.0, 2.0])
    want = np.array([[402.0, -400.0], [-400.0, 200.0]])
    assert same(hessian(f)(v), want)
    assert same(hvp(f, v, np.array([1.0, -1.0])), want @ [1.0, -1.0])
    assert same(hvp(f, (v,), (np.array([1.0, -1.0]),)), want @ [1.0, -1.0])
    two = hessian(lambda x, y: x * x * y, (0, 1))(2.0, 3.0)
    assert two == ((6.0, 4.0), (4.0, 0.0))
    product = hvp(lambda x, y: np.sum(x * y * y), (X, X), (X, X))
    assert same(product, (2.0 * X * X, 4.0 * X * X))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 2)])
def test_shapes_of_jacobians(shape):
    x = np.linspace(0.5, 1.0, int(np.prod(shape))).reshape(shape)
    for transform in (jacfwd, jacrev):
        got = transform(lambda a: a * a)(x)
        assert isinstance(got, np.ndarray) and got.shape == shape + shape
        assert np.allclose(got.reshape(x.size, x.size), np.diag(2.0 * x.ravel()))
    assert jacfwd(lambda a: a * a)(x.astype(np.float32)).dtype == np.float32


def test_jacobian_takes_the_cheaper_way():
    """Three inputs, one output: reverse, a single pass, so nothing is batched; the other way round too."""
    assert "3, 3" not in str(jacobian(lambda x: np.sum(np.sin(x))).ir(X))
    assert "3, 3" not in str(jacobian(lambda t: np.sin(t * X)).ir(0.3))
    assert "3, 3" in str(jacfwd(lambda x: np.sum(np.sin(x))).ir(X))


# Rules, checkpoints.


def test_a_rule_at_every_order_and_under_vmap(executor):
    f = custom_vjp(relay(executor=executor)(lambda x: np.exp(x)))

    @f.defvjp
    def _(x, out, dout):
        return (dout * 3.0 * out,)

    assert f(0.5) == pytest.approx(np.exp(0.5))
    assert grad(f)(0.5) == pytest.approx(3 * np.exp(0.5))
    assert grad(grad(f))(0.5) == pytest.approx(9 * np.exp(0.5))
    assert jvp(f, (0.5,), (2.0,))[1] == pytest.approx(6 * np.exp(0.5))
    assert hessian(f)(0.5) == pytest.approx(9 * np.exp(0.5))
    assert same(vmap(grad(f))(X), 3 * np.exp(X))
    assert same(grad(lambda x: np.sum(vmap(f)(x)))(X), 3 * np.exp(X))
    assert grad(lambda x: fori_loop(0, 2, lambda i, v: f(v), x))(0.1) == pytest.approx(
        9 * np.exp(0.1) * np.exp(np.exp(0.1))
    )


def test_rules_of_trees_with_integers(executor):
    f = custom_vjp(relay(executor=executor)(lambda p, n: (p["x"] * n, n)))

    @f.defvjp
    def _(p, n, out, dout):
        return {"x": dout[0] * 7.0 + out[1]}, None

    assert same(grad(lambda p: f(p, 3)[0])({"x": 2.0}), {"x": 10.0})
    # One factor for all examples: its cotangents are summed.
    assert grad(lambda s: np.sum(vmap(lambda z: f({"x": s * z}, 2)[0] * 1.0)(X)))(2.0) == pytest.approx(np.sum(9.0 * X))


def test_a_rule_attached_later_is_noticed():
    f = custom_vjp(lambda x: x)
    gradient = grad(f)
    assert gradient(2.0) == 1.0
    f.defvjp(lambda x, out, dout: (dout * 2.0,))
    assert gradient(2.0) == 2.0
    f.defvjp(lambda x, out, dout: (dout * 5.0,))
    assert gradient(2.0) == 5.0


@pytest.mark.sampled(3)
def test_checkpoints_change_nothing(executor):
    def inner(c, x):
        for _ in range(5):
            c = np.sin(c) * x
        return c

    def outer(step):
        def f(x):
            c = x
            for _ in range(4):
                c = step(c, x)
            return np.sum(c)

        return relay(executor=executor)(f)

    plain, kept = outer(inner), outer(checkpoint(inner))
    assert same(value_and_grad(kept)(X), value_and_grad(plain)(X))
    assert same(hessian(kept)(X), hessian(plain)(X))
    assert "inner.again" in str(grad(kept).ir(X))


# Checking.


def test_check_grads_finds_nothing_where_nothing_is_wrong():
    check_grads(rosenbrock, (np.array([1.0, 2.0]),))
    check_grads(lambda p, n: {"y": np.tanh(p["x"]) * p["s"] * n}, ({"x": X, "s": 2.0}, 3))
    check_grads(lambda w: scan(lambda c, z: (np.tanh(w * c + z), c), 0.1, X)[0], (0.5,), order=3, rtol=1e-4)


def test_check_grads_names_the_worst_entry():
    with pytest.raises(AssertionError, match=r"order 1, argument 0\[1\]: the derivative is \d.*differences say \d"):
        check_grads(
            lambda x: np.concatenate([x[:1] ** 2, stop_gradient(x[1:2]) * x[1:2], x[2:]]), (np.array([1.0, 2.0, 3.0]),)
        )
    f = custom_vjp(lambda x: x**3)
    f.defvjp(lambda x, out, dout: (dout * 3.0 * stop_gradient(x) ** 2,))
    with pytest.raises(AssertionError, match="order 2, argument 0"):
        check_grads(f, (2.0,))
    check_grads(f, (2.0,), order=1)


# Control as functions.


def test_scan(executor):
    f = relay(executor=executor)(lambda c, x: (c + x["k"], {"p": c * x["k"], "n": 1}))
    carry, ys = scan(f, 0.0, {"k": np.array([1.0, 2.0, 3.0])})
    assert carry == 6.0 and same(ys, {"p": np.array([0.0, 2.0, 9.0]), "n": np.ones(3)}) and ys["n"].dtype == np.int64
    assert same(
        scan(lambda c, x: (c + x, c), 0.0, np.array([1.0, 2.0, 3.0]), reverse=True), (6.0, np.array([5.0, 3.0, 0.0]))
    )
    assert same(scan(lambda c, x: (c * 2, c), 1.0, length=3), (8.0, np.array([1.0, 2.0, 4.0])))
    assert same(scan(lambda c, x: (c, c), 1.0, length=0), (1.0, np.zeros(0)))

    @relay(executor=executor)
    def recurrence(w, xs):
        return scan(lambda h, x: (np.tanh(w * h + x), h), np.zeros(2), xs)[1]

    xs = np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
    assert same(jacfwd(recurrence, 1)(0.7, xs), jacrev(recurrence, 1)(0.7, xs))
    assert recurrence(0.7, xs).shape == (3, 2)


def test_control_as_functions(executor):
    @relay(executor=executor)
    def f(x, n):
        a = cond(x > 0, lambda v: v * x, lambda v: -v, 3.0)
        b = while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x * x)
        c = fori_loop(0, n, lambda i, v: v * x + i, 1.0)
        return a, b, c, tree_map(lambda u, v: u + 2.0 * v, (x, {"k": x}), (1.0, {"k": x}))

    assert f(0.5, 3) == (1.5, 16.0, 0.5**3 + 0.5 + 2.0, (2.5, {"k": 1.5}))
    assert f(-0.5, 0)[::2] == (-3.0, 1.0)
    assert same(grad(lambda x: f(x, 3)[2])(0.5), 3 * 0.25 + 1.0)


def test_control_outside_of_compiled_code():
    assert cond(1 > 2, lambda a, b: a, lambda a, b: b, 1.0, 2.0) == 2.0
    assert while_loop(lambda p: p[0] < 5, lambda p: (p[0] + 1, p[1] * 2.0), (0, 1.0)) == (5, 32.0)
    assert fori_loop(2, 5, lambda i, v: v + i, 0) == 9
    assert tree_map(lambda a, b: a - b, [Pair(3.0, 4.0), None], [Pair(1.0, 1.0), None]) == [Pair(2.0, 3.0), None]


# Mistakes.


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jvp(lambda a: a, (X,), (np.ones(2),)), ShapeError, "tangent of argument 0 has shape (2,) where (3,)"),
        (lambda: jvp(lambda a: a, (X,), (X.astype(np.float32),)), TypeError_, "of float32 where float64 belongs"),
        (lambda: jvp(lambda a: a, (X,), (X, X)), TypeError_, "2 tangents for 1 arguments"),
        (lambda: jvp(lambda a: a, ({"k": X},), (X,)), TypeError_, "where a structure like"),
        (lambda: vjp(lambda a: (a, a), X)[1](X), TypeError_, "the cotangent of the result is"),
        (lambda: jacfwd(lambda a: a)(3), GradError, "cannot differentiate by 'a', which is int"),
        (lambda: jacfwd(lambda a: 3)(3.0), GradError, "has no derivative"),
        (lambda: jacobian(lambda a: a, "b")(3.0), GradError, "no parameter 'b'"),
        (lambda: jacobian(lambda a: a, 1)(3.0), GradError, "called with 1 positional"),
        (lambda: hvp(lambda a: a, X, X), GradError, "scalar float result"),
        (lambda: jacfwd(3.0), GradError, "the first argument must be a function"),
        (lambda: scan(lambda c, x: c, 0.0, X), TypeError_, "it returns a pair (carry, y)"),
        (lambda: scan(lambda c, x: (c, x), 0.0, (X, X[:2])), ShapeError, "first axes (and length) differ: 3, 2"),
        (lambda: scan(lambda c, x: (c, x), 0.0), TypeError_, "give xs"),
        (lambda: scan(lambda c, x: ((c, c), x), 0.0, X), TypeError_, "changes its type"),
        (lambda: fori_loop(0.0, 3, lambda i, v: v, 0), TypeError_, "lower is float"),
        (lambda: tree_map(lambda a, b: a, (1, 2), (1,)), TypeError_, "the trees differ"),
        (lambda: grad(wrong_rule)(2.0, 3.0), GradError, "a tuple with a cotangent (or None) for each of the 2"),
    ],
)
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@custom_vjp
def wrong_rule(x, y):
    return x * y


@wrong_rule.defvjp
def _(x, y, out, dout):
    return dout


def weighted(a, *rest, scale=1.0):
    return np.sum(a) * scale * rest[0] + rest[-1] ** 2


@pytest.mark.parametrize("wrt, want", [(1, 6.0), (2, 6.0), (-1, 6.0), ((0, 2), (4.0, 6.0)), ("a", 4.0)])
def test_arguments_that_a_star_collects(wrt, want):
    assert grad(weighted, wrt)(3.0, 2.0, 3.0, scale=2.0) == want
    assert (
        relay(lambda *x: grad(lambda *y: weighted(*y, scale=2.0), wrt if wrt != "a" else 0)(*x))(3.0, 2.0, 3.0) == want
    )


def test_what_a_star_collects_has_no_gradient_by_name():
    with pytest.raises(GradError, match="'rest' collects arguments"):
        grad(weighted, "rest")(3.0, 2.0, 3.0)
    with pytest.raises(GradError, match="'scale' is keyword-only"):
        grad(weighted, "scale")(3.0, 2.0, 3.0, scale=2.0)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_mixed_derivatives_of_powers_of_zero(executor):
    """`a ** b log(a)` is what its derivatives by b and then by a tell: they may be infinite, and are not taken for 0 or 1."""

    def power(a, b):
        return a**b

    def mixed(a, b):
        return grad(lambda a: grad(power, 1)(a, b))(a), grad(lambda b: grad(power)(a, b))(b)

    compiled = relay(mixed, executor=executor)
    np.testing.assert_array_equal(compiled(0.0, 1.0), (-np.inf, -np.inf))
    np.testing.assert_array_equal(compiled(0.0, 2.0), (0.0, 0.0))
    np.testing.assert_allclose(compiled(2.0, 1.0), (1 + np.log(2), 1 + np.log(2)))
    for n, want in ((1.0, [1.0, -np.inf]), (2.0, [0.0, 2.0, -np.inf]), (3.0, [0.0, 0.0, 6.0])):
        f = relay(lambda x, n: x ** (n + x), executor=executor)
        for slope in want:
            f = grad(f)
            assert f(0.0, n) == slope
