"""Every function of `exact` against NumPy or CPython: edge values, at run time and as constants, scalar and vector."""

import itertools
import math
import operator

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")
ml_dtypes = pytest.importorskip("ml_dtypes")

from myia_relay.backend.tvm.tir import exact, pipeline  # noqa: E402
from myia_relay.backend.tvm.tir.block import Block, const, load, vload  # noqa: E402

NAN, INF = math.nan, math.inf
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    10.0,
    -2.5,
    3.0,
    0.5,
    1e-310,
    1e300,
    -1e300,
    5e-324,
    NAN,
    INF,
    -INF,
    2.0**63,
    -(2.0**63),
]
MIN, MAX = -(1 << 63), (1 << 63) - 1
INTS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 63, 64, MIN, MIN + 1, MAX, MAX - 1, 1 << 32, -(1 << 31), 3037000500, 1 << 62]
MODES = ["scalar", "vector", "loop"]


def run(op, arrays, out_dtypes, mode, constants=None):
    """Applies `op(block, *exprs) -> exprs` elementwise, compiled in the given mode.

    Args:
        op: the function under test.
        arrays: equally long one-dimensional inputs.
        out_dtypes: of the outputs.
        mode: one element at a time, vectors of 8, or a TVM vectorized loop of 8.
        constants: {position: Python number} of operands that are constants in the program instead.
    """
    constants = constants or {}
    n = -(-len(arrays[0]) // 8) * 8
    arrays = [np.concatenate([a, np.full(n - len(a), a[0])]) for a in arrays]
    outs = [np.zeros(n, d) for d in out_dtypes]
    ins = [pipeline.param(f"x{k}", (n,), str(a.dtype)) for k, a in enumerate(arrays)]
    results = [pipeline.param(f"r{k}", (n,), d) for k, d in enumerate(out_dtypes)]
    lanes = 8 if mode == "vector" else 1
    b = Block()

    def body(offset):
        def operand(k):
            if k in constants:
                dtype = str(arrays[k].dtype)
                return const(constants[k], f"{dtype}x{lanes}" if lanes > 1 else dtype)
            return vload(ins[k], offset, lanes)

        values = op(b, *(operand(k) for k in range(len(ins))))
        values = values if isinstance(values, tuple) else (values,)
        for result, value, dtype in zip(results, values, out_dtypes):
            b.vstore(result, exact.cast(dtype, value), offset)

    with b.loop(n // 8) as i:
        if mode == "vector":
            body(i * 8)
        else:
            with b.loop(8, "vectorized" if mode == "loop" else "serial", "j") as j:
                body(i * 8 + j)
    pipeline.build(pipeline.prim_func([*ins, *results], b.stmt()))["main"](*arrays, *outs)
    return outs


def same(got, want):
    """Equal to the bit, but for the payload and sign of NaNs."""
    with np.errstate(all="ignore"):
        got, want = np.asarray(got)[: len(want)], np.asarray(want, dtype=np.asarray(got).dtype)
    if got.dtype.kind == "f":
        assert np.array_equal(np.isnan(got), np.isnan(want)), (got, want)
        finite = ~np.isnan(got)
        assert np.array_equal(np.signbit(got)[finite], np.signbit(want)[finite]), (got, want)
        got, want = got[finite], want[finite]
    assert np.array_equal(got, want), [(g, w) for g, w in zip(got, want) if g != w]


def pairs(values, dtype):
    grid = list(itertools.product(values, values))
    with np.errstate(over="ignore"):
        return [np.array([p[k] for p in grid], "float64" if "float" in dtype else dtype).astype(dtype) for k in (0, 1)]


FLOAT_OPS = {
    "add": (lambda b, x, y: exact.add(x, y), np.add),
    "sub": (lambda b, x, y: exact.sub(x, y), np.subtract),
    "mul": (lambda b, x, y: exact.mul(x, y), np.multiply),
    "div": (lambda b, x, y: exact.div(x, y), np.divide),
    "maximum": (exact.maximum, lambda x, y: np.where((x > y) | np.isnan(x), x, y)),
    "minimum": (exact.minimum, lambda x, y: np.where((x < y) | np.isnan(x), x, y)),
    "copysign": (lambda b, x, y: exact.copysign(x, y), np.copysign),
    "mul_sub": (
        lambda b, x, y: exact.sub(exact.mul(x, y), const(1.0, str(x.ty.dtype))),
        lambda x, y: x * y - x.dtype.type(1),
    ),
    "mul_add": (lambda b, x, y: exact.add(x, b.let(exact.mul(x, y))), lambda x, y: x + x * y),
    "x_minus_x": (lambda b, x, y: exact.sub(x, x), lambda x, y: x - x),
    "x_times_0": (lambda b, x, y: exact.mul(x, const(0.0, str(x.ty.dtype))), lambda x, y: x * x.dtype.type(0)),
    "x_plus_0": (lambda b, x, y: exact.add(x, const(0.0, str(x.ty.dtype))), lambda x, y: x + x.dtype.type(0)),
    "x_over_x": (lambda b, x, y: exact.div(x, x), lambda x, y: x / x),
}
TIR = tvm.tirx
COMPARE = {
    "lt": (TIR.LT, operator.lt),
    "le": (TIR.LE, operator.le),
    "gt": (TIR.GT, operator.gt),
    "ge": (TIR.GE, operator.ge),
    "eq": (TIR.EQ, operator.eq),
    "ne": (exact.ne, operator.ne),
    "not_lt": (lambda x, y: TIR.Not(TIR.LT(x, y)), lambda x, y: ~(x < y)),
    "not_ge": (lambda x, y: TIR.Not(TIR.GE(x, y)), lambda x, y: ~(x >= y)),
    "self_eq": (lambda x, y: TIR.EQ(x, x), lambda x, y: x == x),
    "self_ne": (lambda x, y: exact.isnan(x), lambda x, y: x != x),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOAT_OPS)
@pytest.mark.sampled(5)
def test_float_binary(name, dtype, mode):
    op, meaning = FLOAT_OPS[name]
    x, y = pairs(FLOATS, dtype)
    with np.errstate(all="ignore"):
        same(run(op, [x, y], [dtype], mode)[0], meaning(x, y))


@pytest.mark.parametrize("dtype", ["float16", "int64", "int8"])
def test_extrema_of_other_types(dtype):
    """Of halves the first of equals, for which NumPy has no vector code; integers have no NaN."""
    x, y = pairs(
        [v for v in FLOATS if abs(v) != 2.0**63] if dtype == "float16" else [0, 1, -1, 5, -7, 127, -128], dtype
    )
    first, second = run(lambda b, p, q: (exact.maximum(b, p, q), exact.minimum(b, p, q)), [x, y], [dtype] * 2, "scalar")
    same(first, np.maximum(x, y))
    same(second, np.minimum(x, y))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.0, 10.0, NAN, INF, -INF, 5e-324])
@pytest.mark.sampled(9)
def test_float_constants_do_not_fold_wrongly(value, mode):
    names = ["add", "sub", "mul", "div", "maximum", "minimum", "mul_sub", "mul_add"]
    x = np.array(FLOATS)
    y = np.full_like(x, value)

    def all_ops(b, p, q):
        return tuple(FLOAT_OPS[n][0](b, p, q) for n in names)

    with np.errstate(all="ignore"):
        for position in (0, 1):
            args = [x, y] if position == 1 else [y, x]
            outs = run(all_ops, args, ["float64"] * len(names), mode, {position: value})
            for out, name in zip(outs, names):
                same(out, FLOAT_OPS[name][1](*args))
        both = run(all_ops, [y, y], ["float64"] * len(names), mode, {0: value, 1: value})
        for out, name in zip(both, names):
            same(out, FLOAT_OPS[name][1](y, y))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_comparisons(dtype, mode):
    values = INTS if dtype == "int64" else FLOATS
    x, y = pairs(values, dtype)

    def all_ops(b, p, q):
        return tuple(op(p, q) for op, _ in COMPARE.values())

    with np.errstate(all="ignore"):
        for out, (_, meaning) in zip(run(all_ops, [x, y], ["int32"] * len(COMPARE), mode), COMPARE.values()):
            same(out, meaning(x, y).astype("int32"))


@pytest.mark.parametrize("mode", MODES)
def test_one_tenth(mode):
    x = np.array([0.1])
    times_ten = lambda b, p: exact.sub(exact.mul(p, const(10.0, str(p.ty.dtype))), const(1.0, str(p.ty.dtype)))  # noqa: E731
    assert run(times_ten, [x], ["float64"], mode)[0][0] == 0.0
    assert run(times_ten, [x], ["float64"], mode, {0: 0.1})[0][0] == 0.0
    fused = lambda b, p: exact.fma(p, const(10.0, str(p.ty.dtype)), const(-1.0, str(p.ty.dtype)))  # noqa: E731
    assert abs(run(fused, [x], ["float64"], mode)[0][0]) < 1e-16


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_unary(dtype, mode):
    with np.errstate(over="ignore"):
        x = np.array(FLOATS + [0.4999999, 1.5, -0.5, 2.5]).astype(dtype)
    table = [
        (lambda b, v: exact.neg(v), np.negative),
        (exact.absolute, np.abs),
        (exact.sign, np.sign),
        (lambda b, v: exact.floor(v), np.floor),
        (lambda b, v: exact.ceil(v), np.ceil),
        (lambda b, v: exact.trunc(v), np.trunc),
        (lambda b, v: exact.rint(v), np.rint),
        (lambda b, v: exact.sqrt(v), np.sqrt),
    ]
    outs = run(lambda b, v: tuple(op(b, v) for op, _ in table), [x], [dtype] * len(table), mode)
    with np.errstate(all="ignore"):
        for out, (_, meaning) in zip(outs, table):
            same(out, meaning(x))


@pytest.mark.parametrize("mode", MODES)
def test_float_divmod(mode):
    x, y = pairs(FLOATS + [7.0, -7.0], "float64")
    got = run(exact.float_divmod, [x, y], ["float64", "float64"], mode)
    want = []
    for p, q in zip(x.tolist(), y.tolist()):
        if q == 0:
            with np.errstate(all="ignore"):
                want.append((float(np.float64(p) / np.float64(q)), NAN))
        else:
            want.append(divmod(p, q))
    for k in (0, 1):
        same(got[k], np.array([w[k] for w in want]))


def wrap(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_checked_and_wrapping(name, mode):
    x, y = pairs(INTS, "int64")
    # 3 * 2**63 - 1 is congruent to the maximum modulo 2**64: the saturating test for overflow would miss it.
    x, y = np.append(x, 5), np.append(y, (3 * (1 << 63) - 1) // 5)
    checked = {"add": exact.checked_add, "sub": exact.checked_sub, "mul": exact.checked_mul}[name]
    plain = {"add": exact.wrapping_add, "sub": exact.wrapping_sub, "mul": exact.wrapping_mul}[name]
    meaning = getattr(operator, name)
    value, flag, wrapped = run(
        lambda b, p, q: (*checked(b, p, q), plain(p, q)), [x, y], ["int64", "int32", "int64"], mode
    )
    exactly = [meaning(int(p), int(q)) for p, q in zip(x, y)]
    same(value, np.array([wrap(v) for v in exactly]))
    same(wrapped, np.array([wrap(v) for v in exactly]))
    same(flag, np.array([v != wrap(v) for v in exactly]))


@pytest.mark.parametrize("constant", [MIN, MAX, -1, 0, 1, 3])
@pytest.mark.sampled(6)
def test_int_constants(constant):
    x = np.array(INTS)
    y = np.full_like(x, constant)
    for position in (0, 1):
        args = [x, y] if position else [y, x]
        for checked, meaning in [
            (exact.checked_add, operator.add),
            (exact.checked_mul, operator.mul),
            (exact.checked_sub, operator.sub),
        ]:
            for mode in MODES:
                value, flag = run(checked, args, ["int64", "int32"], mode, {position: constant})
                exactly = [meaning(int(p), int(q)) for p, q in zip(*args)]
                same(value, np.array([wrap(v) for v in exactly]))
                same(flag, np.array([v != wrap(v) for v in exactly]))
        for mode in MODES:
            check_divmod(args, mode, {position: constant})


def check_divmod(args, mode, constants=None):
    def op(b, p, q):
        return (*exact.int_divmod(b, p, q), *exact.division_flags(b, p, q))

    quotient, remainder, by_zero, overflow = run(op, args, ["int64", "int64", "int32", "int32"], mode, constants)
    want = [(wrap(int(p) // int(q)), int(p) % int(q)) if q else (0, 0) for p, q in zip(*args)]
    same(quotient, np.array([w[0] for w in want]))
    same(remainder, np.array([w[1] for w in want]))
    same(by_zero, args[1] == 0)
    same(overflow, (args[0] == MIN) & (args[1] == -1))


@pytest.mark.parametrize("mode", MODES)
def test_int_divmod(mode):
    check_divmod(pairs(INTS, "int64"), mode)


@pytest.mark.parametrize("mode", MODES)
def test_shifts(mode):
    x, n = pairs(INTS, "int64")
    keep = n >= 0
    x, n = x[keep], n[keep]

    def op(b, p, q):
        return exact.shift_left(b, p, q), exact.shift_right(b, p, q)

    left, right = run(op, [x, n], ["int64", "int64"], mode)
    exactly = [int(p) << min(int(q), 200) for p, q in zip(x, n)]
    same(left, np.array([wrap(v) for v in exactly]))
    same(right, np.array([int(p) >> min(int(q), 200) for p, q in zip(x, n)]))


@pytest.mark.parametrize("mode", MODES)
def test_int_unary(mode):
    x = np.array(INTS)
    outs = run(
        lambda b, v: (exact.neg(v), exact.absolute(b, v), exact.sign(b, v)),
        [x],
        ["int64"] * 3,
        mode,
    )
    for out, want in zip(outs, [-x, np.abs(x), np.sign(x)]):
        same(out, want)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int64", "int32"])
def test_float_to_int(target, dtype, mode):
    edge = [
        2.0**31,
        2.0**31 - 1,
        -(2.0**31),
        -(2.0**31) - 0.5,
        -(2.0**31) - 1,
        2.0**31 - 0.5,
        2.0**62,
        -(2.0**63) - 2048,
        1.9,
        -1.9,
    ]
    with np.errstate(over="ignore"):
        x = np.array(FLOATS + edge).astype(dtype)
    value, bad = run(lambda b, v: exact.float_to_int(b, v, target), [x], [target, "int32"], mode)
    bits = 64 if target == "int64" else 32
    fits = [math.isfinite(v) and -(1 << bits - 1) <= int(v) < 1 << bits - 1 for v in x.tolist()]
    same(bad, ~np.array(fits))
    same(value, np.array([int(v) if ok else -(1 << bits - 1) for v, ok in zip(x.tolist(), fits)]))


@pytest.mark.parametrize("mode", MODES)
def test_casts(mode):
    x, i = np.array(FLOATS), np.array(INTS)
    wide, narrow, true = run(
        lambda b, v: (exact.cast("float64", exact.cast("float32", v)), exact.cast("float32", v), exact.cast("bool", v)),
        [x],
        ["float64", "float32", "int32"],
        mode,
    )
    with np.errstate(over="ignore"):
        same(narrow, x.astype("float32"))
        same(wide, x.astype("float32").astype("float64"))
    same(true, [bool(v) for v in FLOATS])
    as_float, true, low = run(
        lambda b, v: (exact.cast("float64", v), exact.cast("bool", v), exact.cast("int32", v)),
        [i],
        ["float64", "int32", "int32"],
        mode,
    )
    same(as_float, i.astype("float64"))
    same(true, i != 0)
    same(low, i.astype("int32"))


@pytest.mark.parametrize("mode", MODES)
def test_bfloat16(mode):
    """To nearest, ties to even, and NaN as in ml_dtypes, to the bit; back without loss."""
    upper = [0, 1, 2, 0x7F, 0x80, 0x3F80, 0x3F81, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FBF, 0x7FC0, 0x7FFF]
    lower = [0, 1, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    bits = [(sign | u) << 16 | v for sign in (0, 0x8000) for u in upper for v in lower]
    x = np.array(bits, "uint32").view("float32")
    with np.errstate(all="ignore"):
        want = x.astype(ml_dtypes.bfloat16)
    (words,) = run(exact.to_bfloat16, [x], ["uint16"], mode)
    same(words, want.view("uint16"))
    (back,) = run(lambda b, v: exact.from_bfloat16(v), [words], ["float32"], mode)
    same(back, want.astype("float32"))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "expm1", "log1p", "atan", "sinh", "erf"])
def test_libm_equals_cpython(name):
    def meaning(v):
        try:
            return getattr(math, name)(v)
        except OverflowError:
            return INF if v > 0 or name in ("exp", "expm1") else -INF
        except ValueError:
            return -INF if v == 0 or (name == "log1p" and v == -1) else NAN

    x = np.array(list(FLOATS) + list(np.linspace(-5, 5, 41)))
    same(run(lambda b, v: exact.libm(name, v), [x], ["float64"], "scalar")[0], [meaning(v) for v in x.tolist()])


def test_libm_of_vectors():
    """Lane by lane, where LLVM has the function; of any other it is refused."""
    x = np.linspace(0.25, 4.0, 16)
    exp, power = run(lambda b, v: (exact.libm("exp", v), exact.libm("pow", v, v)), [x], ["float64"] * 2, "vector")
    same(exp, [math.exp(v) for v in x.tolist()])
    same(power, [v**v for v in x.tolist()])
    with pytest.raises(ValueError, match="erf has no vector form"):
        exact.libm("erf", vload(pipeline.param("x", (8,), "float64"), 0, 8))


def test_pow_equals_cpython():
    x = np.random.default_rng(0).uniform(0.1, 50, 4000)
    for exponent in (2.0, 0.5, 3.0, -1.0, 10.0):
        got = run(
            lambda b, v, e: exact.libm("pow", v, e),
            [x, np.full_like(x, exponent)],
            ["float64"],
            "scalar",
            {1: exponent},
        )
        same(got[0], [v**exponent for v in x.tolist()])
    got = run(lambda b, base, v: exact.libm("pow", base, v), [np.full_like(x, 2.0), x], ["float64"], "scalar", {0: 2.0})
    same(got[0], [2.0**v for v in x.tolist()])


def test_long_chains_compile_in_linear_time():
    b = Block()
    p = pipeline.param("p", (1,), "float64")
    x = b.let(load(p, 0))
    for _ in range(200):
        x = b.let(exact.add(exact.mul(x, x), exact.maximum(b, x, exact.mul(x, const(0.5, "float64")))))
    b.store(p, x, 0)
    value = np.array([0.0])
    pipeline.build(pipeline.prim_func([p], b.stmt()))["main"](value)
    assert value[0] == 0.0


def test_control_flow_and_recursion_in_private_functions():
    """The collector's loop/when/otherwise/while, and a private function with a local buffer calling itself."""
    n, out = tvm.tirx.Var("n", "int64"), pipeline.param("out", (1,), "int64")
    b = Block()
    total, k = b.local("int64"), b.local("int64")
    b.store(total, const(0, "int64"), 0)
    b.store(k, const(0, "int64"), 0)
    with b.while_(TIR.LT(load(k, 0), n)):
        with b.when(TIR.EQ(TIR.Mod(load(k, 0), const(2, "int64")), const(0, "int64"))):
            b.store(total, TIR.Add(load(total, 0), load(k, 0)), 0)
        with b.otherwise():
            b.store(total, TIR.Sub(load(total, 0), const(1, "int64")), 0)
        b.store(k, TIR.Add(load(k, 0), const(1, "int64")), 0)
    b.store(out, load(total, 0), 0)
    result = np.zeros(1, "int64")
    pipeline.build(pipeline.prim_func([n, out], b.stmt()))["main"](10, result)
    assert result[0] == sum(v if v % 2 == 0 else -1 for v in range(10))


def test_portable_target_gives_the_same():
    x, y = pairs(FLOATS, "float64")
    p = [pipeline.param(f"p{k}", (len(x),), "float64") for k in range(3)]
    b = Block()
    with b.loop(len(x) // 4) as i:
        u, v = vload(p[0], i * 4, 4), vload(p[1], i * 4, 4)
        b.vstore(p[2], exact.add(exact.mul(u, v), exact.maximum(b, u, v)), i * 4)
    func = pipeline.prim_func(p, b.stmt())
    results = []
    for cpu in (
        (None, "x86-64", "haswell")
        if tvm.target.codegen.llvm_get_system_triple().startswith("x86_64")
        else (None, "generic")
    ):
        out = np.zeros_like(x)
        pipeline.build({"f": func}, cpu=cpu)["f"](x, y, out)
        results.append(out)
    with np.errstate(all="ignore"):
        for out in results:
            same(out, x * y + np.where((x > y) | np.isnan(x), x, y))


def test_what_is_no_cast_is_refused():
    x, y = const(1.5, "float32"), const(1.5, "float64")
    for target in ("int64", "int8", "uint8"):
        with pytest.raises(ValueError, match="float_to_int"):
            exact.cast(target, x)
    assert exact.cast("float32", x) is x and exact.dtype_of(exact.cast("float64", x)) == "float64"
    assert exact.dtype_of(exact.cast("bool", y)) == "bool" and exact.dtype_of(exact.cast("float32", y)) == "float32"


def test_a_product_is_fenced_unless_it_may_be_contracted():
    x = vload(pipeline.param("x", (8,), "float64"), 0, 1)
    plain = exact.mul(x, x, contract=True)
    assert type(plain).__name__ == "Mul" != type(exact.mul(x, x)).__name__
    n = vload(pipeline.param("n", (8,), "int64"), 0, 1)
    assert type(exact.mul(n, n)).__name__ == "Mul"
