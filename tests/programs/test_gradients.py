"""Gradients of programs, in every executor: central differences, closed forms, and the structure of what comes back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import grad, relay, value_and_grad, vmap
from tests.programs.gradient_sources import ARRAY, SCALAR, Body, Line, branching, halving, until_large
from tests.slopes import slopes

POINT = np.array([0.7, -0.4, 1.3])


def slope(f, x, h=1e-5):
    """The central difference of a function of one float."""
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("f", "points"), SCALAR, ids=lambda v: getattr(v, "__name__", ""))
def test_scalar_programs_to_order_three(f, points, executor):
    compiled = relay(executor=executor)(f)
    first = grad(compiled)
    second = grad(first)
    third = grad(second)
    for x in points:
        assert type(first(x)) is float
        assert first(x) == pytest.approx(slope(f, x), rel=1e-6, abs=1e-8)
        assert second(x) == pytest.approx(slope(first, x), rel=1e-6, abs=1e-7)
        assert third(x) == pytest.approx(slope(second, x), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("f", ARRAY, ids=lambda f: f.__name__)
@pytest.mark.sampled(5)
def test_array_programs(f, executor):
    first = grad(relay(executor=executor)(f))
    got = first(POINT)
    assert got.dtype == np.float64 and got.shape == POINT.shape
    np.testing.assert_allclose(got, slopes(f, POINT), rtol=1e-6, atol=1e-8)
    # A Hessian times a direction: the gradient of a product with the gradient.
    direction = np.array([0.3, -1.0, 0.6])

    @relay(executor=executor)
    def along(x):
        return np.sum(first(x) * direction)

    want = (first(POINT + 1e-5 * direction) - first(POINT - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(grad(along)(POINT), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("f", "x", "closed"),
    [
        (branching, 2.0, (12.0, 12.0, 6.0)),
        (branching, 0.25, (math.cos(0.25), -math.sin(0.25), -math.cos(0.25))),
        (lambda x: x * (x * (x * (x * x))), 1.5, (5 * 1.5**4, 20 * 1.5**3, 60 * 1.5**2)),
    ],
)
def test_closed_forms(f, x, closed, executor):
    g = relay(executor=executor)(f)
    for want in closed:
        g = grad(g)
        assert g(x) == pytest.approx(want, rel=1e-12)


@pytest.mark.sampled(3)
def test_gradient_of_a_gradient_inside_of_compiled_code(executor):
    """The second derivative through an `if` and a `while`, in all ways to write it."""
    for f, x in ((branching, 0.9), (halving, 0.2), (until_large, 0.7)):

        @relay(executor=executor)
        def inside(x, f=f):
            return grad(grad(f))(x)

        @relay(executor=executor)
        def outer(x, f=f):
            return grad(lambda y: value_and_grad(f)(y)[1])(x)

        want = grad(grad(relay(executor=executor)(f)))(x)
        assert inside(x) == pytest.approx(want, rel=1e-12) and outer(x) == pytest.approx(want, rel=1e-12)
        assert want == pytest.approx(slope(lambda v, f=f: slope(f, v, 1e-4), x, 1e-4), rel=1e-4)


def test_perturbations_are_not_confused(executor):
    @relay(executor=executor)
    def f(x):
        return x * grad(lambda y: x + y)(1.0)

    assert grad(f)(3.0) == 1.0

    @relay(executor=executor)
    def g(x):
        return grad(lambda y: x * y * grad(lambda z: z * x * y)(y))(2.0)

    assert g(3.0) == pytest.approx(2 * 3.0**2 * 2.0) and grad(g)(3.0) == pytest.approx(4 * 3.0 * 2.0)


def test_by_name_by_position_and_several(executor):
    @relay(executor=executor)
    def f(x, y, z=2.0):
        return x * x * y + z * y

    assert grad(f, "y")(2.0, 3.0) == 6.0 and grad(f, 1)(2.0, 3.0) == 6.0 and grad(f, -1)(2.0, 3.0) == 6.0
    assert grad(f, ("x", "y"))(2.0, 3.0) == (12.0, 6.0) and grad(f, (1, 0))(2.0, 3.0) == (6.0, 12.0)
    assert grad(f, argnums=(0, 2))(2.0, 3.0, 1.0) == (12.0, 3.0)
    assert grad(f, "z")(2.0, 3.0, z=5.0) == 3.0
    assert value_and_grad(f, ["x", "y"])(2.0, 3.0) == (18.0, (12.0, 6.0))


def test_auxiliary_results(executor):
    @relay(executor=executor)
    def f(x, n):
        return x * x, (n, {"double": 2.0 * x})

    assert grad(f, has_aux=True)(3.0, 4) == (6.0, (4, {"double": 6.0}))
    assert value_and_grad(f, has_aux=True)(3.0, 4) == ((9.0, (4, {"double": 6.0})), 6.0)


def test_gradients_have_the_structure_of_their_argument(executor):
    @relay(executor=executor)
    def f(p, line, body):
        a, (b, c) = p["pair"]
        return a * b + c * p["scale"] + line.slope * a + body.mass * body.position[0]

    p = {"pair": (2.0, [3.0, 4.0]), "scale": 5.0}
    line, body = Line(6.0, 7.0), Body(8.0, (9.0, 10.0))
    got = grad(f, (0, 1, 2))(p, line, body)
    assert got == (
        {"pair": (9.0, [2.0, 5.0]), "scale": 4.0},
        Line(2.0, 0.0),
        Body(9.0, (8.0, 0.0)),
    )
    assert type(got[1]) is Line and type(got[2]) is Body


def test_integers_in_a_tree_have_no_gradient(executor):
    f = relay(executor=executor)(lambda t: t["x"] ** t["n"])
    assert grad(f)({"x": 3.0, "n": 2}) == {"x": 6.0, "n": None}


def test_vmap_and_grad_compose(executor):
    def pieces(x):
        return x * x * x if x > 0.5 else x * x

    f = relay(executor=executor)(pieces)
    xs = np.array([-1.0, 0.2, 0.9, 2.0])
    want = np.array([slope(pieces, float(x)) for x in xs])
    np.testing.assert_allclose(vmap(grad(f))(xs), want, rtol=1e-8)
    loops = relay(executor=executor)(until_large)
    np.testing.assert_allclose(
        vmap(grad(loops))(np.abs(xs)), [slope(until_large, abs(float(x))) for x in xs], rtol=1e-6
    )

    @relay(executor=executor)
    def total(xs):
        return np.sum(vmap(lambda x: x * np.sin(x))(xs))

    np.testing.assert_allclose(grad(total)(xs), np.sin(xs) + xs * np.cos(xs), rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(grad(f)))(xs), [2.0, 2.0, 5.4, 12.0], rtol=1e-12)


def test_convolutions_and_pools(executor):
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(1, 6, 6)), rng.normal(size=(2, 1, 3, 3)), rng.normal(size=2)

    @relay(executor=executor)
    def f(x, w, b):
        y = relay.max_pool(relay.tanh(relay.conv2d(x, w, b)), ksize=2, strides=2)
        return np.sum(y * y * y)

    for index, (argument, got) in enumerate(zip((x, w, b), grad(f, (0, 1, 2))(x, w, b))):

        def alone(v, index=index):
            return f(*[v if k == index else a for k, a in enumerate((x, w, b))])

        np.testing.assert_allclose(got, slopes(alone, argument), rtol=1e-5, atol=1e-7)


def test_duplicated_and_aliased_arguments(executor):
    f = relay(executor=executor)(lambda x, y: np.sum(x * x * y))
    x = POINT.copy()
    gx, gy = grad(f, (0, 1))(x, x)
    np.testing.assert_allclose(gx, 2 * x * x, rtol=1e-15)
    np.testing.assert_allclose(gy, x * x, rtol=1e-15)
    # Overlapping views, and the same scalar twice.
    data = np.arange(1.0, 5.0)
    gx, gy = grad(f, (0, 1))(data[:3], data[1:])
    np.testing.assert_allclose(gx, 2 * data[:3] * data[1:])
    np.testing.assert_allclose(gy, data[:3] ** 2)
    assert grad(relay(executor=executor)(lambda a, b: a * a * b), (0, 1))(3.0, 3.0) == (18.0, 9.0)
    np.testing.assert_array_equal(data, [1.0, 2.0, 3.0, 4.0])


def test_kinds_and_dtypes_are_kept(executor):
    f = relay(executor=executor)(lambda x: np.sum(x * x))
    for dtype in (np.float32, np.float64):
        got = grad(f)(POINT.astype(dtype))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, 2 * POINT.astype(dtype))
    zero = grad(f)(np.array(1.5))
    assert isinstance(zero, np.ndarray) and zero.shape == () and zero == 3.0
    single = grad(relay(executor=executor)(lambda x: x * x))(np.float32(1.5))
    assert type(single) is np.float32 and single == 3.0
    empty = grad(f)(np.zeros((0, 3)))
    assert empty.shape == (0, 3) and empty.dtype == np.float64


def test_ties_and_where_like_numpy_and_jax(executor):
    f = relay(executor=executor)(lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0)))
    got = grad(f)(np.array([4.0, -1.0]))
    np.testing.assert_allclose(got, [0.25, 0.0])
    assert grad(relay(executor=executor)(lambda x: np.max(x)))(np.array([1.0, 1.0])).sum() == 1.0
    product = grad(relay(executor=executor)(lambda x: np.prod(x)))(np.array([2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(product, [0.0, 6.0, 0.0])


def test_the_differences_see_a_wrong_gradient():
    assert slope(lambda x: x * x, 3.0) != pytest.approx(5.0, rel=1e-3)
    np.testing.assert_allclose(slopes(lambda x: float(np.sum(x * x)), POINT), 2 * POINT, rtol=1e-8)
