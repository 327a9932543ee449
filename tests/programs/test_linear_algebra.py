"""NumPy's linear algebra: values, errors, derivatives, batches and symbolic sizes."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float64, GradError, Tensor, grad, jvp, relay, vmap
from tests.programs.cases import Cases, agree

pytestmark = pytest.mark.sampled(3)

SQUARE = np.array([[2.0, -1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 2.0, 5.0]])
RIGHT = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)


def determinant(a: Tensor[Float64, ("n", "n")]):  # noqa: UP037
    return np.linalg.det(a)


def solution(a):
    return np.sum(np.linalg.solve(a, RIGHT) ** 2)


def inverse(a):
    return np.sum(np.linalg.inv(a) ** 3)


def factor(a):
    return np.sum(np.linalg.cholesky(a) ** 3)


def numerically(f, a, step=1e-6):
    out = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        d = np.zeros_like(a)
        d[i] = step
        out[i] = (f(a + d) - f(a - d)) / (2 * step)
    return out


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", [determinant, solution, inverse, factor])
def test_gradient(function, executor):
    a = POSITIVE if function is factor else SQUARE
    got = grad(relay(executor=executor)(function))(a)
    # NumPy's factor is of the lower triangle alone.
    part = np.tril if function is factor else np.asarray
    np.testing.assert_allclose(part(got), part(numerically(function, a)), rtol=1e-6, atol=1e-7)


def cofactors(a):
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(len(a))] for i in range(len(a))]
    return np.array(
        [[(-1) ** (i + j) * np.linalg.det(minor) for j, minor in enumerate(row)] for i, row in enumerate(minors)]
    )


def of_rank(n, rank):
    rng = np.random.default_rng(n)
    return rng.integers(-3, 4, (n, rank)).astype(float) @ rng.integers(-3, 4, (rank, n)).astype(float)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_derivatives_of_determinants_of_every_rank(executor):
    """A determinant is a polynomial, whose derivatives exist where the matrix has no inverse."""

    def along(a, d):
        return np.linalg.det(a + d)

    first = grad(relay(along, executor=executor))
    for n in (1, 3, 8):
        for rank in {0, max(n - 2, 0), n - 1, n}:
            a = of_rank(n, rank)
            want = cofactors(a)
            np.testing.assert_allclose(
                first(a, np.zeros((n, n))), want, atol=1e-13 * np.linalg.norm(a, 2) ** (n - 1) + 1e-12
            )

    d = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [3.0, 0.0, 1.0]])

    def second(a):
        return np.sum(grad(along)(a, np.zeros((3, 3))) * d)

    def third(a):
        return np.sum(grad(second)(a) * d)

    for a in (np.zeros((3, 3)), np.ones((3, 3)), of_rank(3, 2), of_rank(3, 3)):
        line = np.polynomial.Polynomial.fit([-2, -1, 0, 1], [np.linalg.det(a + t * d) for t in (-2, -1, 0, 1)], 3)
        slopes = [line.deriv(k)(0) for k in (1, 2, 3)]
        got = [relay(second, executor=executor)(a), relay(third, executor=executor)(a), np.sum(grad(third)(a) * d)]
        np.testing.assert_allclose(got, slopes, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            jvp(relay(along, executor=executor), (a, 0 * a), (d, 0 * a))[1], slopes[0], atol=1e-9
        )
    stack = np.stack([np.ones((3, 3)), np.eye(3)])
    np.testing.assert_allclose(vmap(first)(stack, 0 * stack), [cofactors(a) for a in stack], atol=1e-12)


@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_sizes_and_batches(executor):
    compiled = relay(executor=executor)(determinant)
    for n in (0, 1, 2, 3):
        np.testing.assert_allclose(compiled(SQUARE[:n, :n].copy()), np.linalg.det(SQUARE[:n, :n]), rtol=1e-12)
    assert compiled.cache_info().misses == 1
    both = np.stack([SQUARE, POSITIVE])
    np.testing.assert_allclose(vmap(compiled)(both), np.linalg.det(both), rtol=1e-12)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 3)), ((4, 4), (4, 4)), ((8, 2), (2, 8)), ((9, 5), (5, 9))])
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_batches_of_products_with_one_left_matrix(shapes, executor):
    """Few small ones are taken one by one, larger ones together; both ways are the same to the last rounding."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=shapes[0])
    for count in (1, 5, 31, 32):
        b = rng.normal(size=(count, *shapes[1]))
        turned = b.transpose(0, 2, 1).copy()
        f = relay(executor=executor)(lambda a, b, t: (relay.vmap(lambda x: a @ x)(b), relay.vmap(lambda x: a @ x.T)(t)))
        for got in f(a, b, turned):
            np.testing.assert_allclose(got, a @ b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [3, 4])
def test_products_of_tangents_that_are_mostly_zero(size):
    """A chain of iterations: each angle moves what hangs on it. Natively, products of zeros are not computed."""

    def chain(angles, first):
        out = np.zeros((len(angles), size, size))
        for k in range(len(angles)):
            iteration = np.eye(size)
            iteration[0, 0], iteration[0, 1] = np.cos(angles[k]), -np.sin(angles[k])
            iteration[1, 0], iteration[1, 1] = np.sin(angles[k]), np.cos(angles[k])
            before = first if k % 4 == 0 else out[k - 1]
            out[k] = before @ iteration @ first
        return out

    rng = np.random.default_rng(5)
    angles, first = rng.normal(size=12), rng.normal(size=(size, size))
    jacobian = relay.jacobian(chain)
    got, want = (relay(executor=e)(jacobian)(angles, first) for e in ("native", "interpreter"))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    for tangent in (
        np.array([0.0, 2.0] * 6),
        np.array([0.0, np.nan] + [0.0] * 10),
        np.array([0.0, np.inf] + [-0.0] * 10),
    ):
        along = [
            relay(executor=e)(
                lambda a, f, t: relay.vmap(lambda s: relay.jvp(lambda a: chain(a, f), (a,), (s * t,))[1])(np.ones(9))
            )
            for e in ("native", "interpreter")
        ]
        with np.errstate(invalid="ignore"):
            got, want = (f(angles, first, tangent) for f in along)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


A = np.array([[4.0, 1.0, -2.0], [1.0, 2.0, 0.5], [-2.0, 0.5, 3.0]])
TALL = np.random.default_rng(0).normal(size=(4, 3))
STACK = np.random.default_rng(1).normal(size=(2, 3, 4))
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
case = Cases()
n = np.linalg.norm


@case((SQUARE, RIGHT), (SQUARE.astype(np.float32), RIGHT.astype(np.float32)), (SQUARE.astype(np.float32), RIGHT))
@case((np.arange(9).reshape(3, 3) ** 2 + np.eye(3, dtype=int), np.arange(6).reshape(3, 2)), (SQUARE[:0, :0], RIGHT[:0]))
def systems(a, b):
    inverse, stacked = np.linalg.inv(a), np.linalg.solve(np.stack([a, a.T]), b)
    return inverse, np.linalg.det(a), np.linalg.slogdet(a), np.linalg.solve(a, b), np.linalg.solve(a, b[:, 0]), stacked


@case((np.stack([A, A + np.eye(3)]),), (A.astype(np.float32),), (A[:0, :0],), (A[:1, :1],))
def symmetric(a):
    w, v = np.linalg.eigh(a)
    values = np.linalg.eigvalsh(a), np.linalg.eigvalsh(a, UPLO="U")
    return np.linalg.cholesky(a), w, np.abs(v), values, np.linalg.eigh(a).eigenvalues, np.linalg.matrix_rank(a)


@case((TALL,), (TALL.T,), (STACK,), (TALL.astype(np.float32),), (SQUARE,), (TALL[:0],), (STACK[:, :, :1],))
def singular_values(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    whole = np.linalg.svd(a)
    return u, s, vh, whole, whole.Vh, np.linalg.svd(a, compute_uv=False), np.linalg.pinv(a), np.linalg.matrix_rank(a)


@case((TALL,), (TALL.T,), (STACK,), (TALL.astype(np.float32),), (SQUARE,), (TALL[:, :0],))
def orthogonal(a):
    return np.linalg.qr(a), np.linalg.qr(a, "complete"), np.linalg.qr(a, mode="r"), np.linalg.qr(a).Q


@case((TALL, RIGHT), (TALL.T, RIGHT), (np.ones((4, 3)), RIGHT), (TALL.astype(np.float32), RIGHT.astype(np.float32)))
def least_squares(a, b):
    b = np.concatenate((b, b))[: a.shape[0]]
    return np.linalg.lstsq(a, b, rcond=None), np.linalg.lstsq(a, b[:, 0], rcond=1e-8)


@case((TALL,), (STACK[0],))
def norms(x):
    matrices = n(x, 2), n(x, -2), n(x, "nuc"), n(x, 1), n(x, -1), n(x, np.inf), n(x, -np.inf), n(x, "fro"), n(x)
    return matrices, n(x[0], 0), n(x[0], -1), n(x[0], 2.5), np.linalg.cond(x), np.linalg.cond(x[:3, :3], 1)


@case((STACK,))
def norms_in_stacks(x):
    return n(x, 2, (0, 1)), n(x, "nuc", (2, 0), True), n(x, 1, (1, 2)), n(x, 1, (2, 1)), n(x, -np.inf, (0, 2), True)


@case((np.array([[np.nan, 1.0], [1.0, 2.0]]),), (np.array([[np.inf, 1.0], [1.0, 2.0]]),))
@case((np.array([[1.0, np.nan], [1.0, 2.0]]),), (np.array([[0.0, np.inf], [0.0, 2.0]]),))
def without_finite_numbers(a):
    return np.linalg.inv(a), np.linalg.solve(a, a[0]), np.linalg.det(a), np.linalg.slogdet(a)


@case((SINGULAR,), (np.array([[0.0, np.nan], [0.0, 1.0]]),))
def determinant_of_singular(a):
    return np.linalg.det(a), np.linalg.slogdet(a), np.linalg.matrix_rank(SINGULAR), np.linalg.pinv(SINGULAR)


@case((SINGULAR,), (np.zeros((2, 3, 3)),))
def singular_inverse(a):
    return np.linalg.inv(a)


@case((SINGULAR,))
def singular_system(a):
    return np.linalg.solve(a, a[0])


@case((-A,), (np.full((2, 2), np.nan),), (np.stack([A, -A]),))
def indefinite(a):
    return np.linalg.cholesky(a)


@case((np.full((3, 3), np.nan),))
def no_eigenvalues(a):
    return np.linalg.eigh(a)[0]


@case((np.full((3, 3), np.nan),))
def no_singular_values(a):
    return np.linalg.svd(a)[1]


@case((A, 2), (A, 0), (A, 3))
def of_computed_sizes(a, k):
    x, y = a[:k, :k], a[:, :k]
    values = np.linalg.svd(y, full_matrices=False)[1], np.linalg.eigvalsh(x), np.linalg.norm(y, "nuc")
    return np.linalg.inv(x), np.linalg.det(x), np.linalg.cholesky(x), values, np.linalg.qr(y), np.linalg.pinv(y)


@case.each
@pytest.mark.sampled(46)
def test_like_numpy(function, args, executor):
    try:
        with np.errstate(all="ignore"):
            want = function(*args)
    except np.linalg.LinAlgError:
        agree(function, args, executor)
        return
    got = relay(executor=executor)(function)(*args)
    compare(got, want)


def compare(got, want):
    """Equal but for rounding: kinds, dtypes, shapes and numbers."""
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for x, y in zip(got, want, strict=True):
            compare(x, y)
        return
    rtol = 2e-4 if want.dtype == np.float32 else 1e-10
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def of_eigh(a):
    w, v = np.linalg.eigh(a)
    return np.sum(np.cos(w) * v[0] ** 2) + np.sum(v**4 * w)


def of_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(u**4 * s) + np.sum(vh**4 * np.sqrt(s)[:, None]) + np.sum(np.linalg.svd(a, compute_uv=False) ** 3)


def of_qr(a):
    q, r = np.linalg.qr(a)
    return np.sum(q**3) + np.sum(np.sin(r))


def of_slogdet(a):
    return np.linalg.slogdet(a)[1] ** 2


def of_pinv(a):
    return np.sum(np.linalg.pinv(a) ** 3)


def of_least_squares(a):
    x, residuals, _, s = np.linalg.lstsq(a, a[:, 0] ** 2, rcond=None)
    return np.sum(x**3) + np.sum(residuals**2) + np.sum(s)


def of_norms(a):
    return np.linalg.norm(a, "nuc") * np.linalg.norm(a, 2) + np.linalg.norm(a, -2) + np.linalg.norm(a, 1)


def of_a_power(a):
    return np.sum(np.linalg.matrix_power(a, -3)) + np.linalg.cond(a)


SMOOTH = [
    (of_eigh, A),
    (of_svd, TALL),
    (of_svd, TALL.T),
    (of_svd, A),
    (of_qr, TALL),
    (of_qr, TALL.T),
    (of_slogdet, SQUARE),
]
SMOOTH += [
    (of_pinv, TALL),
    (of_least_squares, TALL.T),
    (of_norms, TALL),
    (of_a_power, SQUARE),
    (solution, SQUARE),
    (factor, A),
]


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize(
    ("function", "a"), [*SMOOTH, (of_least_squares, TALL)], ids=lambda v: getattr(v, "__name__", "")
)
@pytest.mark.sampled(11)
def test_derivatives_of_what_is_read(function, a, executor):
    got = relay(executor=executor)(grad(function))(a)
    np.testing.assert_allclose(got, numerically(function, a), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("function", "a"), SMOOTH, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.sampled(7)
def test_second_derivatives_and_batches(function, a):
    x = np.random.default_rng(3).normal(size=a.shape)

    def slope(a, x):
        return np.sum(grad(function)(a) * x)

    got = relay(grad(slope))(a, x)
    step = 1e-5
    first = relay(grad(function))
    np.testing.assert_allclose(got, (first(a + step * x) - first(a - step * x)) / (2 * step), rtol=3e-4, atol=3e-4)
    along = relay(lambda a, x: relay.jvp(function, (a,), (x,))[1])(a, x)
    np.testing.assert_allclose(along, np.sum(first(a) * x), rtol=1e-9)
    both = np.stack([a, a + 0.01 * x])
    np.testing.assert_allclose(relay(vmap(function))(both), [function(m) for m in both], rtol=1e-10)
    np.testing.assert_allclose(relay(vmap(grad(function)))(both), [first(m) for m in both], rtol=1e-8, atol=1e-9)


def test_equal_eigenvalues():
    """What does not depend on the basis has its derivative there: the values, and functions of the matrix."""
    got = relay(grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2)))(np.eye(3) * 2.0)
    np.testing.assert_allclose(got, 4 * np.eye(3), atol=1e-14)
    got = relay(grad(lambda a: np.sum(np.linalg.svd(a, full_matrices=False)[1])))(np.eye(3))
    np.testing.assert_allclose(got, np.eye(3), atol=1e-14)

    def rebuilt(a):
        w, v = np.linalg.eigh(a)
        return np.sum(((v * w) @ v.T) ** 2)

    np.testing.assert_allclose(np.tril(relay(grad(rebuilt))(np.eye(3) * 2.0)), 4 * np.eye(3), atol=1e-14)


def test_bases_of_choice_have_no_derivative():
    for function in (lambda a: np.sum(np.linalg.svd(a)[0] ** 3), lambda a: np.sum(np.linalg.qr(a, "complete")[0] ** 3)):
        with pytest.raises(GradError, match="any basis"):
            relay(grad(function))(TALL)


def test_errors_are_at_the_line():
    def f(a):
        b = a + 0.0
        return np.linalg.inv(b)

    for executor in ("interpreter", "python", "native"):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
            relay(executor=executor)(f)(SINGULAR)
        frames = [frame for frame in caught.traceback if frame.path.name == "test_linear_algebra.py"]
        assert "np.linalg.inv(b)" in str(frames[-1].statement)


def test_one_compilation_for_all_sizes():
    @relay
    def f(a: Tensor[Float64, ("n", "n")]):  # noqa: UP037
        w, v = np.linalg.eigh(a @ a.T)
        q, r = np.linalg.qr(a)
        return np.linalg.solve(a, q), (v * w) @ v.T, r, np.linalg.svd(a)[1], np.linalg.cholesky(a @ a.T)

    for size in (1, 3, 0, 40):
        a = np.random.default_rng(size).normal(size=(size, size)) + 2 * np.eye(size)
        x, rebuilt, r, s, factor = f(a)
        np.testing.assert_allclose(a @ x @ r, a, atol=1e-9)
        np.testing.assert_allclose(rebuilt, a @ a.T, atol=1e-10)
        np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-10)
        np.testing.assert_allclose(factor, np.linalg.cholesky(a @ a.T), atol=1e-10)
    assert f.cache_info().misses == 1


def test_many_matrices_are_shared_among_threads():
    a = np.random.default_rng(2).normal(size=(300, 20, 20)) + 8 * np.eye(20)
    x, s, w, q = relay(
        lambda a: (np.linalg.inv(a), np.linalg.svd(a, compute_uv=False), np.linalg.eigvalsh(a), np.linalg.qr(a)[1])
    )(a)
    compare(
        (x, s, w, q), (np.linalg.inv(a), np.linalg.svd(a, compute_uv=False), np.linalg.eigvalsh(a), np.linalg.qr(a)[1])
    )
