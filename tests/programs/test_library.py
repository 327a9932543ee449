"""Functions of `math` and NumPy that are written in the language: CPython's and NumPy's results, in every executor."""

from __future__ import annotations

import inspect
import math
import types
import warnings

import numpy as np
import pytest

from myia_relay import CompileError, check_grads, relay
from myia_relay.library.sources import SOURCES
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS

from .compare import differences

EXECUTORS = ("interpreter", "python", "native")
NAN = math.nan
V = np.array([1.5, -2.0, 0.25, 4.0])
W = np.array([0.5, 3.0, -1.0])
M = np.array([[1.0, -2.5, 3.0], [0.5, 4.0, -1.5]])
H = np.array([[1.0, NAN, 3.0], [NAN, 4.0, -1.5]])
SQUARE = np.array([[2.0, -1.0, 0.0], [1.0, 3.0, -1.0], [0.0, 2.0, 5.0]])
STACK = np.stack((SQUARE, SQUARE[::-1], SQUARE.T + 1))
SYMMETRIC = SQUARE @ SQUARE.T + np.eye(len(SQUARE))
ORDER = np.array([[1, 0, 1], [0, 0, 1]])
U, R, Z = np.array([3, 1, 4, 1, 5]), np.array([1, 1, 6, 3, 3]), np.array([0.0, 0.0, 1.5, 0.0, -2.0, 0.0])

CASES = {
    math.gcd: [(12, 18), (0, 0), (-8, 12), (0, 5), (2**62, 6)],
    math.lcm: [(4, 6), (0, 5), (-3, 7), (2**62, 3)],
    math.isqrt: [(0,), (1,), (15,), (16,), (2**53 - 1,), (2**63 - 1,), (3037000499**2,), (3037000499**2 - 1,), (-1,)],
    math.factorial: [(0,), (1,), (5,), (20,), (21,), (-1,)],
    math.comb: [(5, 2), (5, 0), (5, 6), (61, 30), (0, 0), (70, 35), (-1, 2), (5, -1)],
    math.perm: [(5, 2), (5, 5), (5, 6), (0, 0), (-1, 2), (5, -2)],
    math.dist: [((1.0, 2.0), (4.0, 6.0)), ((0.5,), (2.5,)), ((1.0, 2.0, 2.0), (0.0, 0.0, 0.0))],
    math.remainder: [
        (5.0, 3.0),
        (-5.0, 3.0),
        (7.5, 5.0),
        (2.5, 1.0),
        (3.5, 1.0),
        (1e300, 7.0),
        (1.0, math.inf),
        (-0.0, 1.0),
        (NAN, 1.0),
        (1.0, NAN),
        (math.inf, 1.0),
        (1.0, 0.0),
    ],
    math.modf: [(2.75,), (-2.75,), (-0.0,), (math.inf,), (-math.inf,), (1e300,), (3.0,)],
    math.ldexp: [
        (0.75, 3),
        (1.0, -1074),
        (0.75, -1074),
        (1.5, 1023),
        (-0.0, 5),
        (1e-310, 1020),
        (1.0, 2000),
        (1.0, -3000),
        (3.0, -1075),
        (1e300, -2000),
        (5e-324, 2000),
        (math.inf, 3),
    ],
    math.frexp: [(8.0,), (0.3,), (-1e300,), (5e-324,), (0.0,), (-0.0,), (math.inf,)],
    np.fmax: [(V, 0.0), (M, H), (1.0, NAN), (NAN, NAN)],
    np.fmin: [(V, 0.0), (H, M), (NAN, 1.0)],
    np.gcd: [(np.array([12, 0, -9]), np.array([18, 5, 6])), (np.int32(12), 18), (V, 2)],
    np.lcm: [(np.array([12, 0, -9]), 4), (4, 6)],
    np.unwrap: [(V * 3,), (M, None, 0), (np.array([0.0, 4.0, 8.5]).astype(np.float32),)],
    np.polyfit: [(np.arange(5.0), np.arange(5.0) ** 2 + 1, 2), (np.arange(3), np.array([1, 3, 2]), 1)],
    np.apply_along_axis: [(np.sum, 0, M), (np.cumsum, 1, M)],
    np.sinc: [(V,), (np.array([0.0, 1.0, 0.5]),), (0.0,)],
    np.logaddexp2: [(V, 1.0), (1.0, 3.0)],
    np.signbit: [(np.array([-1.0, 0.0, -0.0, 3.0]),)],
    np.fmod: [
        (np.array([1.5, -2.5, -0.0, np.inf]), 2.0),
        (np.array([5, -5, 7]), -3),
        (V.astype(np.float32), 2),
        (-5.5, np.inf),
    ],
    np.modf: [(np.array([1.5, -2.5, -0.0, np.inf, -7.25]),), (2.5,), (np.float32(-3.25),), (3,)],
    np.divmod: [(V, 2), (7, -2), (np.array([7, -7]), np.array([2, 3]))],
    np.iscomplexobj: [(V,), (V * 1j,), (2.0,), (1j,), ([1.0, 2.0],)],
    np.isrealobj: [(V,), (V * 1j,), (2.0,)],
    np.iscomplex: [(V,), (np.array([1j, 2.0, NAN]),), (2.0,)],
    np.isreal: [(V,), (np.array([1j, 2.0, NAN]),), (2.0,), (np.float32(2),)],
    np.isneginf: [(np.array([-np.inf, 0.0, np.inf, NAN]),)],
    np.isposinf: [(np.array([-np.inf, 0.0, np.inf, NAN]),)],
    np.nansum: [(H,), (H, 0), (H, 1), (M.astype(np.float32), 0)],
    np.nanprod: [(H,), (H, 1)],
    np.nanmax: [(H,), (H, 0), (H.astype(np.float32), 1)],
    np.nanmin: [(H,), (H, 0)],
    np.nanmean: [(H,), (H, 1), (H.astype(np.float32),)],
    np.nanvar: [(H,), (H, 1)],
    np.nanstd: [(H,), (H, 1)],
    np.array_equal: [(V, V), (V, W), (V, V + 1), (np.array([1, 2]), np.array([1.0, 2.0]))],
    np.allclose: [(V, V * (1 + 1e-7)), (V, V + 0.1)],
    np.append: [(V, W), (M, M, 0), (M, 7.0)],
    np.rot90: [(M,), (M, 2), (M, 3), (M, 4)],
    np.kron: [(V, W), (M, SQUARE)],
    np.cross: [(W, W[::-1].copy()), (M, M * M)],  # of two elements: test_numpy_sweep, for NumPy warns
    np.meshgrid: [(V, W)],
    np.take_along_axis: [(M, ORDER[:, :2], 1), (V, np.array([3, 0]), 0), (M, ORDER, 0)],
    np.polyval: [(W, V), (W, 2.0), (np.array([1, 2, 3]), 2)],
    np.vander: [(V,), (V, 3), (V, 3, True)],
    np.interp: [
        (np.array([-1.0, 0.0, 0.5, 2.0, 9.0]), np.array([0.0, 1.0, 4.0]), W),
        (0.25, np.array([0.0, 1.0, 4.0]), W),
    ],
    np.convolve: [(V, W), (W, V), (V, W, "same"), (V, W, "valid"), (V, V, "same"), (V, V[:2], "same")],
    np.correlate: [(V, W), (V, W, "full"), (V, W, "same")],
    np.argsort: [
        (V, -1, "stable"),
        (M, 0, "stable"),
        (np.round(np.sin(np.arange(300.0)), 1), -1, "stable"),
        (H, 1, "stable"),
    ],
    np.sort: [
        (V,),
        (M,),
        (M, 0),
        (np.sin(np.arange(300.0)),),
        (np.array([NAN, 1.0, NAN, 0.0]),),
        (np.array([3, 1, 2]),),
    ],
    np.unique: [(V,), (ORDER,), (H,), (np.zeros(0),), (np.array([0.5, 0.5, 0.5]),)],
    np.searchsorted: [
        (np.sort(V), V),
        (np.sort(V), 1.5),
        (np.sort(V), 1.5, "right"),
        (np.array([1, 2, 2, 5]), np.array([0, 2, 9])),
        (np.array([1.0, 2.0, NAN]), np.array([NAN, 5.0]), "right"),
    ],
    np.quantile: [(V, 0.3), (V, 0.0), (V, 1.0), (M, 0.75, 1), (V, 1.5)],
    np.percentile: [(V, 30), (M, 50.0, 0), (H, 20.0), (V, [5, 50]), (M, np.array([0.0, 99.5]), 1), (V, [50, 101])],
    np.average: [(V,), (M, 0), (M, 1, W), (M, 0, np.array([2, 1])), (M, None, M), (M, 1, V), (M.astype(np.float32),)],
    np.median: [(V,), (W,), (M, 0), (M, 1), (H,), (np.array([1, 2, 4]),)],
    np.linalg.matrix_power: [
        *((SQUARE, 0), (SQUARE, 1), (SQUARE, 5), (SQUARE, -2), (STACK, 3), (STACK, 0), (STACK, -1)),
        (np.array([[2, 1], [1, 1]]), -1),
    ],
    np.linalg.multi_dot: [([M, SQUARE, SQUARE],)],
    np.linalg.det: [
        (SQUARE,),
        (np.array([[0, 2], [3, 4]]),),
        (np.zeros((0, 0)),),
        (np.ones((2, 2)),),
        (SYMMETRIC.astype(np.float32),),
        *((STACK,), (STACK[:0],), (STACK[None].astype(np.int8),)),
    ],
    np.linalg.solve: [
        *((STACK, W), (STACK, STACK), (SQUARE, STACK), (STACK, W[:, None])),
        (SYMMETRIC, W[:3]),
        (SYMMETRIC[::-1].copy(), SQUARE),
        (np.array([[0, 1], [2, 3]]), np.array([1, 2])),
        (np.ones((2, 2)), np.ones(2)),
        (SYMMETRIC.astype(np.float32), SQUARE),
    ],
    np.linalg.inv: [(STACK,), (SYMMETRIC,), (np.array([[0, 2], [3, 4]]),), (np.ones((2, 2)),)],
    np.linalg.cholesky: [
        (STACK @ np.swapaxes(STACK, 1, 2),),
        (SYMMETRIC,),
        (-SYMMETRIC,),
        (np.array([[4, 2], [2, 3]]),),
    ],
    # Sets.
    np.setdiff1d: [(V, W), (U, R), (R, U), (ORDER, U), (U, np.zeros(0)), (V.astype(np.float32), W), (U, R, True)],
    np.intersect1d: [
        (V, V[::-1].copy()),
        (U, R),
        (ORDER, U),
        (U, np.zeros(0, int)),
        (U.astype(np.int8), R.astype(np.int16)),
    ],
    np.union1d: [(V, W), (U, R), (ORDER, U), (V, U), (np.zeros(0), U)],
    np.setxor1d: [(V, W), (U, R), (U, U), (np.zeros(0, int), U)],
    # Parts taken out and put in.
    np.trim_zeros: [(Z,), (Z, "f"), (Z, "b"), (np.zeros(3),), (U,), (Z.astype(np.float32),)],
    np.delete: [
        *((V, 1), (V, -1), (V, 4), (V, -5), (M, 1, 0), (M, 2, 1), (M, 0, -1), (M, 3), (U, np.array([0, 2, -1]))),
        *((V, np.array([0, 9])), (V, V > 0), (V, np.array([True])), (M, np.array([0, 2]), 1), (V, np.zeros(0, int))),
    ],
    np.insert: [
        *((V, 1, 9.0), (V, -1, 9.0), (V, 4, 9.0), (V, 5, 9.0), (U, 2, 1.7), (U, 2, np.array([7, 8]))),
        *((M, 1, W, 0), (M, 1, 5.0, 1), (M, 1, W[:2], 1), (M, 1, 5.0), (M, np.array([1]), M[:1], 0)),
        *((V, np.array([1, 3]), np.array([7.0, 8.0])), (V, np.array([3, 1, 1]), W), (V, np.array([0, 2]), 5.0)),
        *((M, np.array([0, 2]), W[:2], 1), (V, np.array([1, 9]), 5.0), (M, np.array([0, 2]), 1.0, 1)),
        *((V, np.array([1, 2]), W), (M, 1, M, 0), (M, np.array([1]), W, 0)),
    ],
    np.resize: [(V, 6), (V, (2, 3)), (M, (4, 2)), (U, 0), (np.zeros(0), 3), (M, (2,))],
    # Intervals.
    np.digitize: [
        *(
            (V, np.sort(W)),
            (V, np.sort(W), True),
            (V, -np.sort(-W)),
            (V, -np.sort(-W), True),
            (V, W),
            (0.5, np.sort(W)),
        ),
        *((U, R), (V, np.array([1.5, 1.5])), (V, np.zeros(0)), (H, np.sort(W))),
    ],
    np.histogram: [
        *((V,), (V, 3), (M, 4), (U, 4), (U.astype(np.int8), 3), (V.astype(np.float32), 5), (V, np.sort(W))),
        *((V, W), (np.zeros(0), 3), (np.full(3, 2.0), 3), (H,), (V, 0), (V, 3, (0.0, 1.0)), (V, 3, (1.0, 0.0))),
        *((np.zeros(0, int),), (V, 3, (0, 2)), (V, 3, None, True), (V, 3, None, None, V), (V, 3, None, None, W)),
    ],
    np.histogram_bin_edges: [(V,), (V, 3), (U, 4), (V.astype(np.float32), 5), (V, np.sort(W)), (np.zeros(0),), (V, 0)],
    np.logspace: [
        (0, 3),
        (0.0, 2.0, 5),
        (1, 3, 4, False),
        (0, 3, 4, True, 2),
        (0, 3, 1),
        (2, 1, 0),
        (np.float32(1), np.float32(2), 3),
    ],
    np.geomspace: [
        (1, 1000, 4),
        (1.0, 9.0, 3),
        (-1.0, -8.0, 4),
        (0.0, 1.0),
        (1, 256, 8, False),
        (256, 1, 5),
        (2, 5, 1),
        (-1.0, 8.0, 3),
    ],
    # Positions.
    np.lexsort: [((U, R),), ((np.array([1, 1, 0, 0]), V),), ((V, np.array([1, 1, 0, 0])),), ((V,),)],
    np.unravel_index: [
        (7, (3, 4)),
        (np.array([0, 5, 11]), (3, 4)),
        (12, (3, 4)),
        (-1, (3, 4)),
        (np.array([[1, 2]]), (2, 2, 3)),
        (3, (6,)),
    ],
    np.ravel_multi_index: [
        ((1, 2), (3, 4)),
        ((U % 3, R % 4), (3, 4)),
        ((3, 0), (3, 4)),
        ((np.array([0, -1]), np.array([0, 1])), (3, 4)),
    ],
    np.ix_: [(U, R), (U,), (np.array([True, False, True]), U), (np.array([0]), np.array([1, 2]), np.array([3]))],
    np.tril_indices: [(3,), (3, 1), (3, -1, 4), (0,), (2, 0, 3)],
    np.triu_indices: [(3,), (3, 1), (3, -1, 4), (0,), (2, 0, 3)],
    # Choices.
    np.select: [
        *(([V > 0], [V]), ([V > 0, V < -1], [V, 2 * V]), ([V > 0, V < -1], [V, U[:4]], 7), ([V > 9], [V], NAN)),
        *(([V > 0], [V.astype(np.float32)], 1.5), ([U > 1], [U.astype(np.int8)]), ([V > 0], [V, V])),
    ],
    np.choose: [
        (ORDER, [M, -M]),
        (np.array([0, 2, 1]), [W, W + 1, W + 2]),
        (np.array([0, 2]), [1, 2]),
        (np.array([1, 0]), [1, 2.5]),
        (np.array([-1]), [1, 2]),
    ],
    # Differences, moments, windows.
    np.ediff1d: [(V,), (M,), (U,), (V[:1],), (V.astype(np.float32),)],
    np.gradient: [
        *(
            (V,),
            (V.astype(np.float32),),
            (U,),
            (U.astype(np.int8),),
            (V, 0.5),
            (V.astype(np.float32), 0.5),
            (V, 2),
            (V[:1],),
        ),
        *(
            (V, np.array([0.0, 1.0, 3.0, 4.0])),
            (V.astype(np.float32), np.array([0.0, 1.0, 3.0, 4.0])),
            (V, np.array([0, 1, 3, 4])),
        ),
        *(
            (V, W),
            (M,),
            (M, 2.0),
            (M, 2.0, 0.5),
            (M, 1.0, np.array([0.0, 1.0, 3.0])),
            (V, np.float64(0.5)),
            (M, W),
            (V, -1.5),
        ),
        *((V.astype(np.float32), np.float64(0.5)), (V, 1.0, 2.0)),
    ],
    np.cov: [
        *(
            (V,),
            (M,),
            (M, None, False),
            (M, M),
            (W, W[::-1].copy()),
            (V.astype(np.float32),),
            (U,),
            (M, None, True, True),
        ),
        *((M, None, True, False, 0), (M, M, False), (V[:1],), (M[:0],), (M[:, :1],), (W[:2], V), (M[:1], None, False)),
        *((M, W, True), (M, np.array([1.0, 2.0]), False), (M, None, True, False, 5)),
    ],
    np.corrcoef: [(M,), (W, W[::-1].copy()), (M, None, False), (V,), (M.astype(np.float32), M), (U, R)],
    np.lib.stride_tricks.sliding_window_view: [
        (V, 2),
        (V, 4),
        (V, 5),
        (M, 2, 1),
        (M, (2, 2)),
        (M, 2, 0),
        (M, 2),
        (M, (2, 2), (0, 1)),
    ],
    np.dstack: [((V, V),), ((M, M),), ((M[None], M[None]),), ((V, U[:4]),), ((V, W),)],
}
if hasattr(np, "trapezoid"):
    CASES[np.trapezoid] = [(V,), (M,), (V, np.array([0.0, 1.0, 3.0, 4.0])), (V, None, 0.5)]

# What selects a branch of a library function is known at compile time.
STATIC = {"axis", "q", "mode", "k", "n", "N", "increasing", "indexing"}


def caller(function, given: tuple):
    """A function that calls `function` with arrays and numbers as arguments, and the rest written down as constants."""
    known = SOURCES.get(function)
    own = list(inspect.signature(known).parameters) if known else IMPLEMENTATIONS[function].positional or ("x",)
    names, words, values = [], [], []
    for i, value in enumerate(given):
        name = own[min(i, len(own) - 1)]
        static = value is None or isinstance(value, str | bool) or (name in STATIC and function.__module__ != "math")
        if static:
            words.append(f"np.{value!r}" if isinstance(value, np.ndarray) else repr(value))
        else:
            names.append(f"v{i}")
            words.append(f"v{i}")
            values.append(value)
    modules = {"math": "math", "numpy.linalg": "np.linalg", "numpy.lib.stride_tricks": "np.lib.stride_tricks"}
    module = modules.get(function.__module__, "np")
    text = f"def call({', '.join(names)}):\n    return {module}.{function.__name__}({', '.join(words)})\n"
    return text, values


def outcome(function, values):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # np.cov of too few numbers
        try:
            return function(*values)
        except (ValueError, OverflowError, TypeError, IndexError) as error:
            return type(error), str(error)


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Modules of callers: source that can be read back."""
    folder = tmp_path_factory.mktemp("callers")

    def load(text: str) -> types.ModuleType:
        file = folder / f"caller_{len(list(folder.iterdir()))}.py"
        file.write_text("import math\nimport numpy as np\n\n" + text)
        module = types.ModuleType(file.stem)
        module.__file__ = str(file)
        exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
        return module

    return load


@pytest.mark.sampled(120)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", list(CASES), ids=lambda f: f.__name__)
def test_means_what_the_library_means(function, executor, modules):
    for given in CASES[function]:
        text, values = caller(function, given)
        call = modules(text).call
        want = outcome(call, values)
        got = outcome(relay(call, executor=executor), values)
        if isinstance(want, tuple) and isinstance(want[0], type):
            refused = issubclass(got[0], CompileError) and issubclass(got[0], want[0])
            assert got == want or refused, (given, got, want)
        elif isinstance(want, int) and abs(want) >= 1 << 63:
            assert got[0] is OverflowError, (given, got)
        else:
            assert not differences(got, want), (given, got, want)


ELSEWHERE = {np.angle, np.argpartition, np.bincount, np.isin, np.partition}  # test_order_and_counts
MODULES = ("numpy.linalg", "numpy.fft")  # test_linear_algebra, test_fourier


def test_every_function_is_tested():
    assert {f for f in SOURCES if not f.__module__.startswith(MODULES)} <= {*CASES, *ELSEWHERE}


@relay
def smooth(x, y):
    mixed = np.convolve(x, y, "same") + np.interp(x, np.array([-3.0, 0.1, 6.0]), y)
    return np.sum(mixed) + np.polyval(y, x[0]) + np.sum(np.kron(x, y) ** 2) + np.nanmean(np.fmax(x, 0.3))


@relay
def powers(a):
    return (
        np.sum(np.linalg.matrix_power(a, 3)) + math.lgamma(np.sum(a) * 1.0) + math.dist((a[0, 0], 1.0), (0.5, a[1, 1]))
    )


def test_gradients():
    check_grads(smooth, (V, W), order=2)
    check_grads(lambda a: powers(a), (SQUARE,), order=2)


def test_the_frames_of_the_library_do_not_show():
    @relay
    def f(n):
        return math.isqrt(n)

    with pytest.raises(ValueError, match="isqrt") as failed:
        f(-4)
    last = failed.traceback[-1]  # pytest shows the frames that Python would
    assert last.name == "f" and "math.isqrt(n)" in str(last.statement)
