"""Row kernels: the same results as array by array, which programs get them, and where they end."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.adbench import hand
from myia_relay import CompileError, relay
from myia_relay.backend.interpreter import run
from myia_relay.backend.tvm.kernels import soa
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.rewrite import all_graphs
from myia_relay.ir.verify import verify
from myia_relay.opt.kernels.soa_kernels import SoaKernels
from myia_relay.opt.kernels.zero_blocks import families, skippable
from tests.property.thresholds import low

pytestmark = pytest.mark.sampled(2)

RNG = np.random.default_rng(5)


def kernels(function, *args) -> int:
    """How many row kernels the native program has."""
    graph = SoaKernels()(relay(function).ir(*args, stage="optimized").graph)
    verify(graph, "rows")
    return sum(getattr(n.fn, "name", "") == "map_rows" for g in all_graphs(graph) for n in g.nodes)


def flat(value):
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, tuple) else [np.asarray(value)]


def agree(function, *args, rtol=1e-12):
    """Native code and the interpreter give the same, kinds and shapes included."""
    got, want = flat(relay(function)(*args)), flat(relay(executor="interpreter")(function)(*args))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        if g.dtype.kind == "f":
            scale = np.max(np.abs(w[np.isfinite(w)]), initial=1.0)
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * scale, equal_nan=True)
        else:
            np.testing.assert_array_equal(g, w)


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def turned(axis, x):
    square = np.sum(axis * axis)
    if square == 0.0:
        return x + cross(axis, x)
    angle = np.sqrt(square)
    unit = axis / angle
    return x * np.cos(angle) + cross(unit, x) * np.sin(angle) + unit * (np.dot(unit, x) * (1.0 - np.cos(angle)))


def turned_rows(axes, points):
    return relay.vmap(turned)(axes, points)


def turned_jacobians(axes, points):
    return relay.vmap(relay.jacobian(turned, (0, 1)))(axes, points)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("n", [32, 33, 39, 40, 1000])
@pytest.mark.parametrize("function", [turned_rows, turned_jacobians])
def test_rows_of_three(function, n):
    axes, points = RNG.normal(size=(n, 3)), RNG.normal(size=(n, 3))
    axes[5] = 0.0
    axes[7, 1], points[9, 2], points[11] = np.nan, np.inf, -0.0
    assert kernels(function, axes, points) == 1
    agree(function, axes, points)


@pytest.mark.parametrize("function", [turned_rows, turned_jacobians])
def test_the_interpreter_runs_row_kernels(function):
    args = RNG.normal(size=(2, 33, 3))
    graph = relay(function).ir(*args).graph
    planned = SoaKernels()(graph)
    assert any(getattr(n.fn, "name", "") == "map_rows" for g in all_graphs(planned) for n in g.nodes)
    for got, want in zip(flat(run(planned, args)), flat(run(graph, args)), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 31])
def test_few_rows_are_left_alone(n):
    axes, points = RNG.normal(size=(n, 3)), RNG.normal(size=(n, 3))
    assert kernels(turned_rows, axes, points) == 0
    agree(turned_rows, axes, points)


def test_float32():
    axes, points = RNG.normal(size=(50, 3)).astype(np.float32), RNG.normal(size=(50, 3)).astype(np.float32)
    assert kernels(turned_jacobians, axes, points) == 1
    agree(turned_jacobians, axes, points, rtol=2e-5)


def gathered(table, which, x):
    def one(i, x):
        row = table[i]
        return turned(row[:3], x) * row[3] + table[-i - 1, :3]

    return relay.vmap(one)(which, x)


def test_rows_that_are_picked_from_tables():
    table, which, x = RNG.normal(size=(11, 5)), RNG.integers(-11, 11, 70), RNG.normal(size=(70, 3))
    assert kernels(gathered, table, which, x) == 1
    agree(gathered, table, which, x)


def test_an_index_out_of_bounds_is_reported_before_the_kernel():
    table, which, x = RNG.normal(size=(11, 5)), RNG.integers(0, 11, 70), RNG.normal(size=(70, 3))
    which[40] = 11

    def f(table, which, x):
        return turned_rows(table[which, :3], x)

    with pytest.raises(IndexError, match="index 11 is out of bounds for axis 0 with size 11"):
        relay(f)(table, which, x)


def posed(matrices, weights, points, corners):
    out = np.zeros_like(points)
    for b in range(len(matrices)):
        out = out + weights[:, b, None] * (points @ matrices[b, :, :3].T + matrices[b, :, 3])
    return (out @ matrices[0, :, :3].T + 1.0)[corners]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [40, 90, 200])
def test_loops_and_rows_of_rows(count):
    """What is picked of rows is computed for these alone, where they are fewer; else all rows are."""
    args = RNG.normal(size=(3, 3, 4)), RNG.random((90, 3)), RNG.normal(size=(90, 3)), RNG.integers(0, 90, count)
    agree(posed, *args)

    def by_matrices(matrices, *rest):
        return relay.jvp(lambda m: posed(m, *rest), (matrices,), (np.ones_like(matrices),))[1]

    agree(by_matrices, *args)
    agree(relay.jacobian(posed), *args)
    assert kernels(relay.jacobian(posed), *args) >= 1


@pytest.mark.parametrize("span", [(0, 4, 1), (3, -1, -1), (4, 0, -2), (2, 2, 1), (1, 5, 3)])
def test_loops_of_any_step(span):
    start, stop, step = span

    def f(x, y):
        out = x * 1.0
        for k in range(start, stop, step):
            out = np.stack((out[:, 1] * y[:, k], out[:, 0] - out[:, 2], out[:, 2] * 0.5 + k), axis=1)
        z = np.concatenate((out[:, :2], x[:, 1:]), axis=1)
        return np.sum(z * z, axis=1)[:, None] * out + z[:, :3]

    agree(f, RNG.normal(size=(45, 3)), RNG.normal(size=(45, 5)))


def test_arrays_without_elements():
    def moved(x, y):
        doubled = np.concatenate((x * 2.0, x), axis=1)
        return doubled, np.reshape(doubled[:0], (0, 45)), np.reshape(y, (0, 45, 2)), np.reshape(y * 2.0, (45, 0, 3))

    def flat(x, y):
        rows = (x * 2.0)[:, 0]
        return rows * rows, np.reshape(np.transpose(y) * rows * rows, (0, 9, 5)), np.exp(x) * x, np.tanh(x) + x

    def carried(x, y):
        out = x * 1.0
        for k in range(3):
            out, y = out * 2.0 + k + np.sum(y, axis=1)[:, None], y * 1.5
        return out, np.tanh(out) * out, np.exp(out) + x, y

    agree(moved, RNG.normal(size=(45, 1)), np.zeros((45, 0)))
    agree(flat, RNG.normal(size=(45, 1)), np.zeros((45, 0)))
    agree(carried, RNG.normal(size=(45, 3)), np.zeros((45, 0)))


def turned_pairs(x):
    return np.exp(x) * x + np.stack((x[:, 1], x[:, 0], x[:, 2]), axis=1)


def flattened(x):
    flat = np.reshape(turned_pairs(x), (135,)) * 2.0
    z = np.tanh(flat * np.sum(flat)) + flat
    w = np.reshape(z, (45, 3))
    return z, np.stack((w[:, 1] * w[:, 0], w[:, 0] - w[:, 2], np.exp(w[:, 2])), axis=1)


def flattened_columns(x):
    flat = np.reshape(np.transpose(turned_pairs(x)), (135,)) * 2.0
    z = np.tanh(flat * np.sum(flat)) + flat
    w = np.transpose(np.reshape(z, (3, 45)))
    return z, np.stack((w[:, 1] * w[:, 0], w[:, 0] - w[:, 2], np.exp(w[:, 2])), axis=1)


def two_on_top(x):
    y = turned_pairs(x)
    flat = np.reshape(np.stack((y, y * 2.0), axis=0), (90, 3)) * 2.0
    z = np.tanh(flat * np.sum(flat)) + flat * np.reshape(np.stack((y, x), axis=0), (90, 3))
    return z, np.reshape(z, (2, 45, 3))[1] * y, np.sum(z * z, axis=1)


@pytest.mark.parametrize("f", [flattened, flattened_columns, two_on_top])
def test_a_second_kernel_finds_the_rows_where_the_first_has_put_them(f):
    """Merged with another axis: the sum over all rows comes between the two."""
    agree(f, RNG.normal(size=(45, 3)) * 0.3)


def test_as_many_rows_as_columns():
    """A square array whose rows another kernel knows."""

    def f(x, y):
        square = np.reshape(np.tanh(np.exp(y) * y), (1, 40)) * np.pad(np.reshape(y * 2.0, (1, 40)), ((1, 38), (0, 0)))
        return square * np.sum(square), square @ x, np.tanh(x * y[:, None]) * np.exp(x) + x

    agree(f, RNG.normal(size=(40, 3)), RNG.normal(size=40))


def shapes(x, k, flag):
    """Everything that moves numbers about, truth values and integers among them."""
    pairs = np.concatenate((x[:, ::2], x[:, 1:2] + 1.0), axis=1)
    swapped = np.transpose(pairs.reshape(len(x), 1, 3), (0, 2, 1))
    signs = swapped[:, :, 0] > x
    whole = k * 3 // 2 - k % 5
    chosen = np.where(signs & flag[:, None], pairs, np.where(whole < 0, -x, x * 2.0))
    most = np.maximum(np.max(chosen, axis=1), np.min(x, axis=1))
    return (
        signs,
        whole,
        chosen,
        most,
        np.prod(x, axis=1),
        np.all(signs, axis=1),
        swapped,
        np.abs(chosen).astype(np.float32),
    )


def test_moving_numbers_about():
    x, k, flag = RNG.normal(size=(37, 3)), RNG.integers(-9, 9, (37, 3)), RNG.random(37) < 0.5
    x[3], x[4, 1] = np.nan, np.inf
    agree(shapes, x, k, flag)


def test_a_value_that_comes_back_ends_a_kernel():
    def f(axes, points):
        first = turned_rows(axes, points)
        middle = np.sum(first, axis=0)
        return turned_rows(first - middle, points), middle, turned_rows(points, axes)

    args = RNG.normal(size=(64, 3)), RNG.normal(size=(64, 3))
    assert kernels(f, *args) == 2
    agree(f, *args)


def test_effects_keep_their_place(capsys):
    def f(axes, points):
        first = turned_rows(axes, points)
        print("first", first[3, 0] > -1e9)
        second = turned_rows(first, axes)
        if np.isnan(second[0, 0]):
            raise ValueError("nan")
        return turned_rows(second, points)

    args = RNG.normal(size=(64, 3)), RNG.normal(size=(64, 3))
    agree(f, *args)
    assert capsys.readouterr().out == "first True\n" * 2
    args[0][0] = np.nan
    with pytest.raises(ValueError, match="nan"):
        relay(f)(*args)


def test_results_into_given_arrays_and_operands_that_live_on():
    function = relay(lambda a, p: (turned_rows(a, p), a + p))
    axes, points = RNG.normal(size=(35, 3)), RNG.normal(size=(35, 3))
    want = function(axes, points)
    out = np.empty((35, 3)), np.empty((35, 3))
    assert function.into(out)(axes, points) is out
    np.testing.assert_array_equal(out, want)
    function.into((points, out[1]))(axes, points)  # over an operand
    np.testing.assert_array_equal(points, want[0])


def test_several_axes_of_one_extent_are_left_alone():
    def f(x):
        y = x - np.sum(x, axis=0)
        for _ in range(3):
            y = np.stack((y[:, 0], y[:, 1] * x[:, 0], y[:, 2]), axis=1)
        return y @ y.T, np.sum(y[:, None] * y, axis=2)

    agree(f, RNG.normal(size=(36, 3)))


class Program:
    """A random function of rows of three numbers, one number and one index, the same for one seed."""

    def __init__(self, seed):
        self.seed = seed

    def text(self) -> str:
        r = random.Random(self.seed)
        lines = ["def one(a, b, s, i):"]
        vectors, numbers = ["a", "b", "table[i]"], ["s", "0.5", "a[1]"]
        for k in range(r.randint(4, 10)):
            v, w, s, t = r.choice(vectors), r.choice(vectors), r.choice(numbers), r.choice(numbers)
            name, expr, many = f"v{k}", "", True
            match r.randrange(10):
                case 0:
                    expr = f"{v} * {s} + {w}"
                case 1:
                    expr = f"np.array([{v}[2], {s}, {w}[0] * {t}])"
                case 2:
                    expr, many = f"np.sum({v} * {w}) / (1.0 + {s} * {s})", False
                case 3:
                    expr = f"np.where({v} > {s}, {w}, np.sin({v}))"
                case 4:
                    expr, many = f"np.max({v}) - np.min({w}) * {s}", False
                case 5:
                    expr = f"table[:3] @ {v} - {w}"
                case 6:
                    expr = f"np.concatenate(({v}[1:], {w}[:1]))"
                case 7:
                    expr, many = f"np.exp(-{s} * {s}) + np.tanh({t})", False
                case 8:
                    lines += [f"    {name} = {v}", f"    for k in range({r.randint(0, 3)}):"]
                    lines += [f"        {name} = {name} * 0.5 + {w}[k]"]
                case 9:
                    lines += [
                        f"    if {s} > {t}:",
                        f"        {name} = {v} - 1.0",
                        "    else:",
                        f"        {name} = {w} * {s}",
                    ]
            if expr:
                lines.append(f"    {name} = {expr}")
            (vectors if many else numbers).append(name)
        lines.append(f"    return {vectors[-1]} * {numbers[-1]}, {r.choice(numbers)} + 0.0")
        return "\n".join(lines)

    def function(self, path, what: str):
        source = "import numpy as np\nfrom myia_relay import relay\ntable = np.arange(12.0).reshape(4, 3) / 7.0 - 0.5\n"
        path = path / f"rows_{self.seed}.py"
        path.write_text(
            f"{source}\n\n{self.text()}\n\n\ndef every(a, b, s, i):\n    return relay.vmap({what})(a, b, s, i)\n"
        )
        names: dict = {"__file__": str(path)}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names["every"]


TRANSFORMS = [
    "one",
    "relay.jacobian(lambda *x: one(*x)[0], (0, 2))",
    "relay.grad(lambda *x: np.sum(one(*x)[0]), (0, 1))",
]


@pytest.mark.parametrize("what", TRANSFORMS)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(12)
def test_random_programs(seed, what, tmp_path):
    n = 32 + seed
    args = RNG.normal(size=(n, 3)), RNG.normal(size=(n, 3)), RNG.normal(size=n), RNG.integers(-4, 4, n)
    function = Program(seed).function(tmp_path, what)
    try:
        agree(function, *args, rtol=1e-9)
    except CompileError as error:
        pytest.skip(f"refused: {error.message}")


def chained(angles, points):
    """Each angle moves some of the points only, so most tangents are zero in most iterations."""
    out = np.zeros_like(points)
    for k in range(len(angles)):
        moved = points * np.cos(angles[k]) + 0.5 * np.sin(angles[k])
        out = out + (points[:, :1] > 0.1 * k) * moved
    return out


def test_turns_whose_tangents_are_zero_are_skipped():
    angles, points = np.linspace(-1.0, 1.0, 6), RNG.normal(size=(41, 3))
    jacobian = relay.jacobian(chained)
    assert kernels(jacobian, angles, points) == 1
    agree(jacobian, angles, points)
    for tangent in (np.array([0.0, 1.0, 0.0, -0.0, 2.0, 0.0]), np.array([0.0, np.inf, 0.0, np.nan, 2.0, 0.0])):
        agree(lambda a, p, t: relay.jvp(lambda a: chained(a, p), (a,), (t,))[1], angles, points, tangent)


def picked_inside(table, which, weights):
    """Rows of a table are picked before, inside of and after a loop."""
    out = np.zeros((len(which), 3))
    for k in range(3):
        out = out + weights[k] * table[which][:, k : k + 3] * table[k, 0]
    return out + table[which, 1:4] * table[which, :1]


def test_rows_are_picked_inside_of_a_loop():
    args = RNG.normal(size=(20, 6)), RNG.integers(-20, 20, 50), RNG.normal(size=3)
    agree(picked_inside, *args)
    agree(relay.jacobian(picked_inside, 2), *args)
    agree(relay.grad(lambda t, w, k: np.sum(picked_inside(t, w, k) ** 2), (0, 2)), *args)


def differences(x):
    """Rows of longer arrays, from another row on, every second one, and backwards."""
    left, right = x[:-1], x[1:]
    step = right - left
    crossed = np.stack((step[:, 1] * left[:, 2], step[:, 2] * left[:, 0], step[:, 0] * left[:, 1]), axis=1)
    return crossed / (1.0 + np.sum(step * step, axis=1))[:, None], x[1::2, :2] * np.sum(x[::2] * x[1::2], axis=1)[
        :, None
    ]


@pytest.mark.parametrize("n", [34, 66, 80, 81])
def test_rows_that_begin_further_down(n):
    x = RNG.normal(size=(n - n % 2, 3))
    assert kernels(differences, x) >= 1
    agree(differences, x)
    agree(relay.grad(lambda x: np.sum(differences(x)[0]) + np.sum(differences(x)[1])), x)


@pytest.mark.parametrize("side", [2, 4])
def test_channels_of_small_images_are_no_rows(side):
    """Batch normalisation does little with each of many numbers, which would take LLVM seconds: loop nests are as good."""

    def f(x, filters, scale, shift):
        for k in range(3):
            x = relay.conv2d(x, filters)
            apart = x - np.mean(x, axis=(0, 2, 3), keepdims=True)
            spread = np.sqrt(np.mean(apart * apart, axis=(0, 2, 3), keepdims=True) + 1e-5)
            normal = apart / spread * scale[k, :, None, None] + shift[k, :, None, None]
            x = x + np.maximum(normal, 0.0)
        return np.sum(x * x)

    x, filters = RNG.normal(size=(8, 64, side, side)), RNG.normal(size=(64, 64, 1, 1))
    args = x, filters, RNG.random((3, 64)), RNG.random((3, 64))
    assert kernels(relay.grad(f, (0, 1, 2, 3)), *args) == 0
    agree(relay.grad(f, (0, 1, 2, 3)), *args, rtol=1e-10)


def test_picks_from_one_array():
    """Few rows in all: they are computed alone, and once; many: the array is."""

    def f(matrices, weights, points, i, j, k):
        all_ = posed(matrices, weights, points, np.arange(len(points)))
        return all_[i] * 0.5 + all_[j] - all_[k]

    for n in (33, 70):
        i, j, k = (RNG.integers(-120, 120, n) for _ in range(3))
        args = RNG.normal(size=(3, 3, 4)), RNG.random((120, 3)), RNG.normal(size=(120, 3)), i, j, k
        agree(f, *args)
        agree(relay.jacobian(f), *args)
        j[5] = 120
        with pytest.raises(IndexError, match="index 120"):
            relay(f)(*args)


def test_equal_loops_are_computed_once():
    def f(x, n):
        def powers(y):
            out = y * 1.0
            for k in range(n):
                if out[0] > 1e6:
                    raise OverflowError("too large")
                out = out * y[k % len(y)] + 0.5
            return out

        return powers(x), powers(x) + 1.0, powers(x * 2.0)

    graph = relay(f).ir(np.ones(3), 4, stage="optimized").graph
    assert sum(getattr(m.fn, "name", "") in ("for_loop", "while_loop") for m in graph.nodes) == 2
    agree(f, np.array([1.5, 0.5, 2.0]), 5)
    with pytest.raises(OverflowError, match="too large"):
        relay(f)(np.array([15.0, 50.0, 20.0]), 9)


def test_what_turns_skip_is_found_out_for_all_blocks(monkeypatch):
    """In parallel too, in loops that begin anywhere, and where what is skipped holds NaN."""

    def sparse(x, w, points):
        out = np.zeros_like(points)
        for k in range(2, 12, 2):
            out = out + points * w[k, :3] * np.sin(x[k]) + w[k, 3:]
        return out

    jacobian = relay.jacobian(sparse)
    args = RNG.normal(size=12), RNG.normal(size=(12, 6)), RNG.normal(size=(20_000, 3))
    args[1][4, 1], args[2][77] = np.nan, np.inf
    agree(lambda x, w, p: relay.jvp(lambda x: sparse(x, w, p), (x,), (np.eye(12)[4],)), *args)
    args = (args[0], RNG.normal(size=(12, 6)), RNG.normal(size=(20_000, 3)))
    got = relay(jacobian)(*args)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "soa_kernels")
    want = relay(relay.jacobian(sparse))(*args)
    monkeypatch.delenv("MYIA_RELAY_WITHOUT")
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    agree(jacobian, args[0], args[1], args[2][:53])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directions", [2, 3, 4, 9])
def test_rows_that_are_picked_lie_together(directions):
    """Positions of triangles: three rows of Jacobians are picked for each, many more in all than there are."""

    def between(x, matrices, points, corners, weights):
        turned = np.zeros_like(points)
        for k in range(len(matrices)):
            turned = turned + (points @ matrices[k]) * np.cos(x[k % len(x)] + points[:, :1])
        a, b, c = turned[corners[:, 0]], turned[corners[:, 1]], turned[corners[:, 2]]
        return weights[:, :1] * a + weights[:, 1:] * b + (1.0 - weights[:, :1] - weights[:, 1:]) * c

    def both(*args):
        return between(*args), relay.jacobian(between)(*args)

    n = 57
    matrices, points = RNG.normal(size=(4, 3, 3)), RNG.normal(size=(41, 3))
    corners, weights = RNG.integers(-41, 41, (n, 3)), RNG.random((n, 2))
    args = RNG.normal(size=directions), matrices, points, corners, weights
    assert kernels(both, *args) == 2
    agree(both, *args)
    corners[50, 2] = 41
    with pytest.raises(IndexError, match="index 41"):
        relay(both)(*args)


@pytest.mark.parametrize("width", [5, 7, 8, 9, 15, 16, 17])
def test_rows_of_many_numbers(width):
    """They are turned into rows of memory, eight at a time."""

    def f(x, y):
        parts = [x[:, k % 3] * y[:, (k + 1) % 3] + float(k) for k in range(width)]
        return np.stack(parts, axis=1), np.stack((x[:, 0] * y[:, 1], x[:, 2] - y[:, 0]), axis=1)

    args = RNG.normal(size=(43, 3)), RNG.normal(size=(43, 3))
    assert kernels(f, *args) == 1
    agree(f, *args)


def test_turns_of_blocks_without_weight_are_skipped(monkeypatch):
    """Skinning: most points hang on few bones. Blocks of points with no weight on a bone do not look at its tangents."""

    def skinned(angles, points, weights):
        iterations = np.zeros((len(angles), 3, 3))
        for k in range(len(angles)):
            c, s = np.cos(angles[k]), np.sin(angles[k])
            iterations[k] = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        out = np.zeros_like(points)
        for k in range(weights.shape[1]):
            out = out + weights[:, k, None] * (points @ iterations[k].T + 1.0)
        return np.stack((out[:, 0] * points[:, 1], out[:, 2] - out[:, 0], points[:, 2] * out[:, 1]), axis=1)

    n, bones = 90, 7
    points, weights = RNG.normal(size=(n, 3)), np.zeros((n, bones))
    weights[np.arange(n), np.arange(n) * bones // n] = 0.75
    weights[40:44, 1], weights[3, 5], weights[4, 6] = 0.25, -0.5, -0.0
    jacobian = relay.jacobian(skinned)
    args = RNG.normal(size=bones), points, weights
    assert kernels(jacobian, *args) >= 1
    agree(jacobian, *args)
    agree(lambda *args: (skinned(*args), relay.jacobian(skinned)(*args)), *args)
    agree(relay.jacobian(skinned, (0, 2)), *args)
    weights[3, 5] = np.nan
    assert np.isnan(relay(jacobian)(*args)[3, :, 5]).any()
    weights[3, 5] = 0.0
    monkeypatch.setattr(soa, "LONGEST", 0)  # nothing is noted before the first block
    agree(jacobian, *args)


def test_directions_are_one_family():
    """What an iteration adds to each direction is the same, of tangents from other places, and is written once."""

    def twisted(angles, points, weights, scale):
        iterations = np.zeros((len(angles), 3))
        for k in range(len(angles)):
            iterations[k] = np.array([np.cos(angles[k]), np.sin(angles[k]), angles[k] * scale[k]])
        out = np.zeros_like(points)
        for k in range(weights.shape[1]):
            out = out + weights[:, k, None] * (points * iterations[k] + points[:, ::-1] * iterations[k, 1])
        return np.stack((out[:, 0] * points[:, 1], out[:, 2] - out[:, 0], points[:, 2] * out[:, 1]), axis=1)

    args = RNG.normal(size=6), RNG.normal(size=(64, 3)), RNG.random((64, 6)), RNG.normal(size=6)
    for wrt, counts in ((0, [6]), ((0, 3), [12])):
        jacobian = relay.jacobian(twisted, wrt)
        graph = SoaKernels()(relay(jacobian).ir(*args, stage="optimized").graph)
        loops = [n for g in all_graphs(graph) if g.name.endswith(".rows") for n in g.nodes if n.fn.name == "for_loop"]
        found = []
        for loop in loops:
            body, n = loop.attrs["body"], loop.attrs["carried"]
            uniform = {0} | {k - 2 for k, a in enumerate(loop.args) if k >= 3 + n and a in loop.graph.params}
            found += [len(f.groups) for f in families(skippable(body, n, uniform), body)]
        assert found == counts
        agree(jacobian, *args)


def moved(angles, points):
    """Much work for each row."""
    out = np.zeros_like(points)
    for k in range(6):
        iteration = np.array([[np.cos(angles[k]), 0.5, 0.0], [0.0, 1.0, np.sin(angles[k])], [angles[k], 0.0, 1.0]])
        out = out + np.tanh(points @ iteration) * angles[k]
    return out


def corner_distances(angles, points, corners, places):
    at = moved(angles, points)
    return places - (at[corners[:, 0]] + at[corners[:, 1]] * 2.0 - at[corners[:, 2]])


def vertex_distances(angles, points, corners, places):
    return places - moved(angles, points)[corners[:, 0]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "function, n",
    [(corner_distances, n) for n in (32, 39, 40, 41, 100)] + [(vertex_distances, 200), (vertex_distances, 383)],
)
def test_rows_that_are_picked_are_computed_once(function, n, monkeypatch):
    """Few of many: once each, in order, wherever and however often they are picked."""

    def both(*args):
        return function(*args), relay.jacobian(function)(*args)

    args = RNG.normal(size=6), RNG.normal(size=(400, 3)), RNG.integers(-400, 400, (n, 3)), RNG.normal(size=(n, 3))
    args[2][:8, 0] = args[2][3, 0]
    args[2][8:12] = 0, 399, -400
    graph = SoaKernels()(relay(both).ir(*args, stage="optimized").graph)
    verify(graph, "rows")
    assert sum(getattr(m.fn, "name", "") == "distinct" for m in graph.nodes) == 1
    agree(both, *args)
    agree(relay.grad(lambda *args: np.sum(function(*args) ** 2), (0, 1)), *args)
    all_alike = args[0], args[1], np.full_like(args[2], 7), args[3]
    agree(both, *all_alike)
    compiled = relay(both)
    compiled(*args)
    args[2][n - 1, 0] = 400
    with pytest.raises(IndexError, match="index 400"):
        compiled(*args)
    args[2][n - 1, 0] = -401
    with pytest.raises(IndexError, match="index -401"):
        compiled(*args)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "distinct_gathers")
    graph = SoaKernels()(relay(both).ir(*all_alike, stage="optimized").graph)
    assert not any(getattr(m.fn, "name", "") == "distinct" for m in graph.nodes)


def test_picks_that_hardly_meet_are_not_sorted_out():
    for function, size in ((corner_distances, 50), (vertex_distances, 50), (vertex_distances, 100)):
        picks = RNG.integers(-size, size, (45, 3))
        args = RNG.normal(size=6), RNG.normal(size=(size, 3)), picks, RNG.normal(size=(45, 3))
        graph = SoaKernels()(relay(relay.jacobian(function)).ir(*args, stage="optimized").graph)
        assert not any(getattr(m.fn, "name", "") == "distinct" for m in graph.nodes)
        agree(relay.jacobian(function), *args)


def test_the_meaning_of_distinct():
    indices = np.array([5, -3, 2, 5, 99, 2])
    out = REGISTRY["distinct"].reference(indices, size=10, room=8)
    assert out.tolist() == [0, 2, 5, 9, 0, 0, 0, 0, *[2, 0, 1, 2, 3, 1], 4]


def test_the_jacobian_of_a_hand_is_computed_by_vertex():
    """Three operations for each number in memory pay in a kernel of this size: four times as fast as loop nests."""
    bones, vertices, pairs = 22, 60, 80
    model = hand.Model(
        (-1, 0, *range(1, bones - 1)),
        RNG.normal(size=(bones, 4, 4)),
        RNG.normal(size=(bones, 4, 4)),
        RNG.normal(size=(vertices, 3)),
        RNG.random((vertices, bones)),
    )
    args = RNG.normal(size=26), model, RNG.integers(0, vertices, pairs), RNG.normal(size=(pairs, 3))
    assert kernels(hand.simple_jacobian, *args) == 2


@pytest.mark.parametrize("executor", ["python", "native"])
def test_rows_picked_from_a_square_table(executor):
    """The table has two axes of the extent, and was asked for the one of its rows: an internal error."""

    def f(x):
        y = x[np.argsort(x[:, -1], kind="stable")]
        return y.sum(axis=0) / 2.0 + y[0]

    def g(x, i):
        y = x[np.array([1, 0]) * i][:, 0]
        return np.exp(y * 2.0 + i) * y

    x = np.array([[1.0, 5.0], [2.0, 3.0]])
    with low():
        np.testing.assert_array_equal(relay(executor=executor)(f)(x), f(x))
        np.testing.assert_allclose(relay(executor=executor)(g)(x, 1), g(x, 1), rtol=1e-14)
