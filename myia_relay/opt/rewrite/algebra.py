"""The tables of rules: arithmetic, logic, kinds of numbers, shapes, products, structures.

Each line states an equation. Those about floats hold for NaN, infinities and both zeros (tests check this): x - 0 is x
for every x, x + 0 is not (-0 + 0 is +0), and x + (-0) is again.
"""

from __future__ import annotations

from ...abstract.dims import known_size, product
from ...abstract.types import INT, Array, Scalar, Struct
from ...ir.build import Builder, Var, as_type
from ...ir.node import Apply, Constant, Node, applies
from ...ir.prim import REGISTRY
from ...ir.updates import is_update
from ...prims.rules.broadcast import broadcast_to, cast, reduce_sum, reshape
from ...prims.rules.relations import broadcast_shapes
from .rules import Lit, Match, Op, Rule, Table, Wildcard, X, Y, Z, filled


def _is_int(m: Match) -> bool:
    return not m.type.is_float


def _power_of_two(m: Match) -> int | None:
    """The exponent of a divisor that is a power of two, of signed integers."""
    value = filled(m.args[1]) if m.type.dtype in ("int8", "int16", "int32", "int64") else None
    if value is None or int(value) <= 0 or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


def _mask(m: Match):
    k, x = _power_of_two(m), Var(m.builder, m.args[0])
    return None if k is None or x.type != m.type else REGISTRY["bitwise_and"](x, x.const((1 << k) - 1))


def _shift(m: Match):
    k, x = _power_of_two(m), Var(m.builder, m.args[0])
    return None if k is None or x.type != m.type else REGISTRY["right_shift"](x, x.const(k))


INTEGERS = (
    Rule("mask_mod", Op("mod", X, Y), _mask, "x % 2**k = x & (2**k - 1) for integers"),
    Rule("shift_floordiv", Op("floordiv", X, Y), _shift, "x // 2**k = x >> k for integers"),
)


def _joined(outer: int, inner: int):
    """One offset in place of two, modulo 2**64: where sums wrap, both wrap alike."""

    def replacement(m: Match):
        x, numbers = m["x"], (m.args[0].args[1], m.args[1])
        if m.type.dtype != "int64" or x.type != m.type or not all(isinstance(n, Constant) for n in numbers):
            return None
        total = sum(sign * int(n.value) for sign, n in zip((inner, outer), numbers))
        total = (total + (1 << 63)) % (1 << 64) - (1 << 63)
        return x - x.const(-total) if -(1 << 63) < total < 0 else x + x.const(total)

    return replacement


_SIGNS = {"add": 1, "sub": -1}
OFFSETS = tuple(
    Rule(
        f"join_{outer}_{inner}",
        Op(outer, Op(inner, X, Y), Z),
        _joined(_SIGNS[outer], _SIGNS[inner]),
        "(x + a) + b = x + (a + b)",
    )
    for outer in _SIGNS
    for inner in _SIGNS
)
"""Needed by passes that compare values: a sum that the user wrote in two steps keeps a name for each, and is as fast."""


def _has_sign(m: Match) -> bool:
    """Whether values may be negative: -x of an unsigned x is another large number."""
    return not m.type.dtype.startswith("uint")


ARITHMETIC = (
    Rule("drop_mul_one", Op("mul", X, Lit(1)), X, "x * 1 = x", swap=True),
    Rule("drop_div_one", Op("div", X, Lit(1)), X, "x / 1 = x"),
    Rule("drop_sub_zero", Op("sub", X, Lit(0)), X, "x - 0 = x"),
    Rule("drop_add_minus_zero", Op("add", X, Lit(-0.0)), X, "x + (-0) = x", lambda m: m.type.is_float, swap=True),
    Rule("drop_add_zero_int", Op("add", X, Lit(0)), X, "x + 0 = x for integers", _is_int, swap=True),
    Rule("drop_add_zero", Op("add", X, Lit(0)), X, "x + 0 = x but for x = -0", exact=False, swap=True),
    Rule("fold_mul_zero_int", Op("mul", X, Lit(0)), Lit(0), "x * 0 = 0 for integers", _is_int, swap=True),
    Rule("fold_mul_zero", Op("mul", X, Lit(0)), Lit(0), "x * 0 = 0 but for infinities and NaN", exact=False, swap=True),
    Rule("make_neg", Op("mul", X, Lit(-1)), Op("neg", X), "x * -1 = -x", swap=True),
    Rule("cancel_neg", Op("neg", Op("neg", X)), X, "--x = x"),
    Rule("turn_sub_neg", Op("sub", X, Op("neg", Y)), Op("add", X, Y), "x - (-y) = x + y"),
    Rule("turn_add_neg", Op("add", X, Op("neg", Y)), Op("sub", X, Y), "x + (-y) = x - y", swap=True),
    Rule("cancel_neg_mul", Op("mul", Op("neg", X), Op("neg", Y)), Op("mul", X, Y), "(-x) (-y) = x y"),
    Rule("cancel_neg_div", Op("div", Op("neg", X), Op("neg", Y)), Op("div", X, Y), "(-x) / (-y) = x / y"),
    Rule("drop_pow_one", Op("pow", X, Lit(1)), X, "x ** 1 = x"),
    Rule("fold_pow_zero", Op("pow", X, Lit(0)), Lit(1), "x ** 0 = 1, for NaN as well"),
    Rule("square_pow_two", Op("pow", X, Lit(2)), Op("mul", X, X), "x ** 2 = x x", exact=False),
    Rule(
        "cube_pow_three", Op("pow", X, Lit(3)), Op("mul", Op("mul", X, X), X), "x ** 3 = x x x", exact=False,
    ),
    Rule("join_div", Op("mul", Op("div", Lit(1), Y), X), Op("div", X, Y), "(1 / y) x = x / y", exact=False, swap=True),
    Rule("drop_floordiv_one", Op("floordiv", X, Lit(1)), X, "x // 1 = x for integers", _is_int),
    Rule("fold_abs_abs", Op("abs", Op("abs", X)), Op("abs", X), "||x|| = |x|"),
    Rule("drop_abs_neg", Op("abs", Op("neg", X)), Op("abs", X), "|-x| = |x| where there are signs", _has_sign),
)  # fmt: skip


LOGIC = (
    Rule("cancel_not", Op("logical_not", Op("logical_not", X)), X, "not not x = x"),
    Rule("drop_and_true", Op("logical_and", X, Lit(True)), X, "x and True = x", swap=True),
    Rule("fold_and_false", Op("logical_and", X, Lit(False)), Lit(False), "x and False = False", swap=True),
    Rule("drop_or_false", Op("logical_or", X, Lit(False)), X, "x or False = x", swap=True),
    Rule("fold_or_true", Op("logical_or", X, Lit(True)), Lit(True), "x or True = True", swap=True),
    Rule("drop_and_same", Op("logical_and", X, X), X, "x and x = x"),
    Rule("drop_or_same", Op("logical_or", X, X), X, "x or x = x"),
    Rule("take_where_true", Op("where", Lit(True), X, Y), X, "where(True, x, y) = x"),
    Rule("take_where_false", Op("where", Lit(False), X, Y), Y, "where(False, x, y) = y"),
    Rule("drop_where_same", Op("where", Z, X, X), X, "where(c, x, x) = x"),
    Rule("swap_where_not", Op("where", Op("logical_not", Z), X, Y), Op("where", Z, Y, X), "where(not c, x, y)"
         " = where(c, y, x)"),
)  # fmt: skip


_EXACT_IN = {
    "bool": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
}
"""dtype -> dtypes that hold all of its values."""


def _same_type(m: Match) -> bool:
    return m.nodes["x"].type == m.type


def _there_and_back(m: Match) -> bool:
    return m.type.dtype == m["x"].dtype and m.inner(0)["dtype"] in (m.type.dtype, *_EXACT_IN.get(m.type.dtype, ()))


def _through(m: Match):
    if m.inner(0)["dtype"] not in (m["x"].dtype, *_EXACT_IN.get(m["x"].dtype, ())):
        return None
    return cast(m["x"], **m.attrs)


KINDS = (
    Rule("drop_cast", Op("cast", X), X, "cast(x) = x to its own type", _same_type),
    Rule("cancel_cast", Op("cast", Op("cast", X)), X, "there and back without loss", _there_and_back),
    Rule("join_cast", Op("cast", Op("cast", X)), _through, "cast(cast(x)) = cast(x) where the first loses nothing"),
    Rule("cancel_as_scalar", Op("as_scalar", Op("as_array", X)), X, "as_scalar(as_array(x)) = x"),
    Rule("cancel_as_array", Op("as_array", Op("as_scalar", X)), X, "as_array(as_scalar(x)) = x"),
    Rule("drop_as_scalar", Op("as_scalar", X), X, "as_scalar(x) = x", _same_type),
    Rule("drop_as_array", Op("as_array", X), X, "as_array(x) = x", _same_type),
)


def _compose(m: Match):
    outer, inner = m.attrs["perm"], m.inner(0)["perm"]
    return REGISTRY["transpose"](m["x"], perm=tuple(inner[i] for i in outer))


def _identity(m: Match) -> bool:
    return tuple(m.attrs["perm"]) == tuple(range(len(m.attrs["perm"])))


def _size(m: Match):
    (size,) = m["x"].shape
    x = m["x"]
    return x.const(size, INT) if isinstance(size, int) else x.apply_primitive(REGISTRY["dim_size"], (), {"dim": size})


def _reshape(m: Match):
    return reshape(m["x"], shape=m.attrs["shape"])


def _broadcast(m: Match):
    return broadcast_to(m["x"], shape=m.attrs["shape"])


def _unit_transpose(m: Match) -> bool:
    """Whether only axes of size 1 move: the row-major order stays the same."""
    shape = m["x"].shape
    moved = [a for a in m.attrs["perm"] if shape[a] != 1]
    return moved == sorted(moved)


def _sum_of_broadcast(m: Match):
    """sum(broadcast(x)): over axes along which x was repeated, it is a product."""
    x, t = m["x"], m.args[0].type
    lead = len(t.shape) - len(x.shape)
    factor, rest = 1, []
    for axis in m.attrs["axes"]:
        own = x.shape[axis - lead] if axis >= lead else 1
        if own == 1 and isinstance(t.shape[axis], int):
            factor *= t.shape[axis]
        else:
            rest.append(axis)
    if len(rest) == len(m.attrs["axes"]) or not t.is_float:
        return None
    kept = [t.shape[a] for a in range(len(t.shape)) if a in rest or a not in m.attrs["axes"]]
    ones = [1 if a in m.attrs["axes"] and a not in rest else d for a, d in enumerate(t.shape)]
    base = reshape(x, shape=(*(1,) * lead, *x.shape)) if lead else x
    if tuple(base.shape) != tuple(ones):
        base = broadcast_to(base, shape=tuple(ones))
    kept_axes = [a for a in range(len(t.shape)) if a in rest or a not in m.attrs["axes"]]
    small = reshape(base, shape=tuple(kept))
    out = reduce_sum(small, axes=tuple(kept_axes.index(a) for a in rest)) if rest else small
    out = out * out.const(factor)
    shape = m.type.shape
    return reshape(out, shape=shape) if tuple(out.shape) != tuple(shape) else out


def _row_of_slice(m: Match):
    """The row is taken first if the slice leaves the rows as they are: the adjoint then adds to a row."""
    x, inner = m["x"], m.inner(0)
    axis, rank = m.attrs["axis"], len(x.shape)
    if rank < 2 or inner["starts"][axis] or inner["steps"][axis] != 1 or inner["sizes"][axis] != x.shape[axis]:
        return None
    rest = {name: tuple(v for k, v in enumerate(values) if k != axis) for name, values in inner.items()}
    return REGISTRY["slice"](REGISTRY["dynamic_index"](x, m["y"], axis=axis), **rest)


def _sums_units(m: Match) -> bool:
    shape = m["x"].shape
    return all(shape[a] == 1 for a in m.attrs["axes"])


def _plain_reshape(m: Match):
    x = m["x"]
    if isinstance(m.type, Scalar):
        return reshape(x, shape=())
    return reshape(x, shape=m.type.shape)


def _reshape_plus_zero(m: Match):
    """A reshape in place of a sum over axes of size 1. A sum starts at 0.0, so the sum of -0.0 alone is 0.0: add 0."""
    out = _plain_reshape(m)
    return out + out.const(0) if out.type.is_float else out


def _flattened_otherwise(m: Match) -> bool:
    """Whether an array is flattened to a size that has another name than its own: one that a check found equal."""
    x, flat = m["x"], m.args[0]
    while not applies(flat, "reshape"):
        flat = flat.args[0]
    return isinstance(x.type, Array) and len(flat.type.shape) == 1 and flat.type.shape != (product(x.shape),)


def _flat(x: Var) -> Var:
    return x if x.ndim == 1 else reshape(x, shape=(product(x.shape),))


def _own_nonzero(m: Match):
    return REGISTRY["flat_nonzero"](_flat(m["x"]), size=m.attrs["size"])


def _own_count(m: Match):
    return reduce_sum(cast(_flat(m["x"]), **m.inner(0)), **m.attrs)


SHAPES = (
    Rule(
        "own_nonzero", Op("flat_nonzero", Op("reshape", X)), _own_nonzero,
        "the positions that a mask selects of several arrays are listed once", _flattened_otherwise,
    ),
    Rule(
        "own_count", Op("reduce_sum", Op("cast", Op("reshape", X))), _own_count, "and counted once",
        lambda m: _flattened_otherwise(m) and m["x"].dtype == "bool" and isinstance(m.type, Scalar) and not m.type.is_float,
    ),
    Rule("drop_transpose", Op("transpose", X), X, "transpose by the identity", _identity),
    Rule("join_transpose", Op("transpose", Op("transpose", X)), _compose, "(x^p)^q = x^(p q)"),
    Rule("reshape_transpose", Op("transpose", X), _plain_reshape, "it moves only axes of size 1", _unit_transpose),
    Rule("drop_reshape", Op("reshape", X), X, "reshape to its own shape", _same_type),
    Rule("join_reshape", Op("reshape", Op("reshape", X)), _reshape, "reshape(reshape(x)) = reshape(x)"),
    Rule("drop_broadcast", Op("broadcast_to", X), X, "broadcast to its own shape", _same_type),
    Rule("join_broadcast", Op("broadcast_to", Op("broadcast_to", X)), _broadcast, "broadcast(broadcast(x))"),
    Rule("drop_reshape_as_array", Op("reshape", Op("as_array", X)), _reshape, "reshape takes scalars"),
    Rule("drop_broadcast_as_array", Op("broadcast_to", Op("as_array", X)), _broadcast, "broadcast_to takes scalars"),
    Rule(
        "reshape_sum_of_units", Op("reduce_sum", X), _plain_reshape, "a sum over axes of size 1", _sums_units, exact=False,
    ),
    Rule("add_sum_of_units", Op("reduce_sum", X), _reshape_plus_zero, "the same, as 0 + x", _sums_units),
    Rule(
        "scale_sum_of_broadcast", Op("reduce_sum", Op("broadcast_to", X)), _sum_of_broadcast, "sum(x, ..., x) = n x",
        exact=False,
    ),
    Rule(
        "negate_sum", Op("reduce_sum", Op("neg", X)), lambda m: -reduce_sum(m["x"], **m.attrs), "sum(-x) = -sum(x)", exact=False,
    ),
    Rule(
        "row_of_slice", Op("dynamic_index", Op("slice", X), Y), _row_of_slice, "x[:, a:b][i] = x[i][a:b]",
    ),
    Rule(
        "length_of_array", Op("list_len", Op("list_from_array", X)), _size, "len(list(x)) = the size of x",
    ),
    Rule(
        "cancel_list_from_array", Op("list_to_array", Op("list_from_array", X)), X, "there and back without loss", _same_type,
    ),
    Rule("drop_concatenate", Op("concatenate", X), X, "concatenate(x) = x"),
    Rule(
        "drop_slice", Op("slice", X), X, "a slice of everything",
        lambda m: _same_type(m) and not any(m.attrs["starts"]) and all(s == 1 for s in m.attrs["steps"]),
    ),
    Rule(
        "drop_pad", Op("pad", X, Y), X, "padding by nothing",
        lambda m: not any(m.attrs["low"]) and not any(m.attrs["high"]) and not any(m.attrs["interior"]),
    ),
)  # fmt: skip


def _flip_flag(prim: str, position: int, flag: str):
    def replacement(m: Match):
        args = [Var(m.builder, a) for a in m.args]
        args[position] = m["x"]
        return REGISTRY[prim](*args, **{**m.attrs, flag: not m.attrs[flag]})

    return replacement


def _swaps(position: int, perm: tuple[int, ...]):
    return lambda m: tuple(m.inner(position)["perm"]) == perm


def _product_of_sums(m: Match):
    """Sums over rows or columns of a matrix product: of one factor, times the other."""
    a, b = m["x"], m["y"]
    ta, tb = m.inner(0)["transpose_a"], m.inner(0)["transpose_b"]
    if m.attrs["axes"] == (0,):
        out = REGISTRY["matvec"](b, reduce_sum(a, axes=(1 if ta else 0,)), transpose=not tb)
    elif m.attrs["axes"] == (1,):
        out = REGISTRY["matvec"](a, reduce_sum(b, axes=(0 if tb else 1,)), transpose=ta)
    else:
        return None
    return reshape(out, shape=m.type.shape) if m.attrs["keepdims"] else out


_T = Op("transpose", X)
PRODUCTS = (
    Rule("absorb_dot_a", Op("dot", _T, Y), _flip_flag("dot", 0, "transpose_a"), "A^T B by a flag", _swaps(0, (1, 0))),
    Rule("absorb_dot_b", Op("dot", Y, _T), _flip_flag("dot", 1, "transpose_b"), "A B^T by a flag", _swaps(1, (1, 0))),
    Rule("absorb_matvec", Op("matvec", _T, Y), _flip_flag("matvec", 0, "transpose"), "A^T x", _swaps(0, (1, 0))),
    Rule("sum_dot", Op("reduce_sum", Op("dot", X, Y)), _product_of_sums, "1^T (A B) = (1^T A) B", exact=False),
    Rule(
        "absorb_batched_a", Op("batched_dot", _T, Y), _flip_flag("batched_dot", 0, "transpose_a"), "A^T B by a flag",
        _swaps(0, (0, 2, 1)),
    ),
    Rule(
        "absorb_batched_b", Op("batched_dot", Y, _T), _flip_flag("batched_dot", 1, "transpose_b"), "A B^T by a flag",
        _swaps(1, (0, 2, 1)),
    ),
)  # fmt: skip


def _is_update(node: Node, prim: str) -> bool:
    """Whether a node is an update of zeros."""
    return isinstance(node, Apply) and node.fn is REGISTRY[prim] and filled(node.args[0]) == 0


def _into(prim: str):
    def replacement(m: Match):
        total, update = m.args if _is_update(m.args[1], prim) else m.args[::-1]
        if not _is_update(update, prim) or not total.type == update.type == m.type:
            return None
        return m.builder.emit(REGISTRY[prim], (total, *update.args[1:]), update.attrs)

    return replacement


def _merge(prim: str) -> Rule:
    """The adjoint of an element read in a loop stays an update of one element, instead of a sum of whole arrays."""
    update = Op(prim, X, Y, Z)
    return Rule(
        f"merge_{prim}", Op("add", W, update), _into(prim), f"w + {prim}(0, ...) = {prim}(w, ...)", None, False, True
    )


def _reads(part: Node, array: Node) -> bool:
    """Whether a value is a changed part of an array, which is then read."""
    while is_update(part):
        part = part.args[0]
    return applies(part, "dynamic_index", "dynamic_slice") and part.args[0] is array


def _updated(m: Match):
    return REGISTRY["dynamic_update"](m["x"], m["y"], m["z"], axis=m.attrs["axis"])


W = Wildcard("w")


def _restore(add: str, update: str, read: str) -> Rule:
    """The adjoint of `y[i] += v`: the cotangent of the old entry i is that of the new one."""

    def same_axis(m: Match) -> bool:
        return m.attrs == m.inner(0) and m.attrs["axis"] == m.inner(1)["axis"]

    pattern = Op(add, Op(update, X, Lit(0), Y), Op(read, X, Y), Y)
    return Rule(f"restore_{add}", pattern, X, "x with x[i] added where 0 was put = x", same_axis, exact=False)


UPDATES = (
    *(_merge(prim) for prim in ("index_add", "slice_add", "scatter_add")),
    _restore("slice_add", "dynamic_update_slice", "dynamic_slice"),
    Rule(
        "fill_index_add",
        Op("index_add", Op("dynamic_update", X, Lit(0), Z), Y, Z),
        _updated,
        "what is added to a part that was made zero takes its place",
        lambda m: m.attrs["axis"] == m.inner(0)["axis"],
        exact=False,
    ),
    Rule(
        "drop_update_same",
        Op("dynamic_update", X, Op("dynamic_index", X, Z), Z),
        X,
        "x[i] = x[i] is nothing",
        lambda m: m.attrs["axis"] == m.inner(1)["axis"],
    ),
    Rule(
        "join_updates",
        Op("dynamic_update", Op("dynamic_update", X, W, Z), Y, Z),
        _updated,
        # Only in derived code: what a user writes element by element is changed in place, element by element.
        "the last of two assignments stays",
        lambda m: m.attrs["axis"] == m.inner(0)["axis"] and not _reads(m.args[1], m.args[0]),
        exact=False,
    ),
)


def unbroadcast_operand(builder: Builder, prim, args: tuple[Node, ...], type) -> tuple[Node, ...]:
    """Drop broadcasts of operands that an elementwise operation does by itself.

    f(broadcast(x), y) = f(x, y)  where the shape of the result stays; an array filled with one number counts
    """
    if not isinstance(type, Array) or len(args) < 2:
        return args
    out = list(args)
    for i, arg in enumerate(args):
        inner = _without_broadcast(builder, arg)
        if inner is None:
            continue
        others = [a.type for j, a in enumerate(out) if j != i]
        if isinstance(inner.type, Array) or any(isinstance(t, Array) for t in others):
            if broadcast_shapes(prim.name, inner.type.shape, *(t.shape for t in others)) == type.shape:
                out[i] = inner
    return tuple(out)


def _without_broadcast(builder: Builder, node: Node) -> Node | None:
    """What an array is broadcast from."""
    if isinstance(node, Apply) and node.fn is REGISTRY["broadcast_to"]:
        inner = node.args[0]
        # A Python number next to arrays stays an array: kinds must not mix if all others are scalars.
        return (
            inner if not isinstance(inner.type, Scalar) or not inner.type.weak or isinstance(inner, Constant) else None
        )
    if isinstance(node, Constant) and isinstance(node.type, Array) and known_size(node.type.size) > 1:
        value = filled(node)
        if value is not None:
            t = Scalar(node.type.dtype)
            return builder.constant(as_type(value, t), t)
    return None


def unit_axes(shape, inner) -> list[int] | None:
    """The axes of size 1 that `shape` has in addition to `inner`; None if they differ otherwise."""
    units, matched = [], 0
    for axis, size in enumerate(shape):
        if matched < len(inner) and size == inner[matched]:
            matched += 1
        elif size == 1:
            units.append(axis)
        else:
            return None
    return units if units and matched == len(inner) else None


def _units_of(node: Node) -> list[int] | None:
    """The axes of size 1 that a reshape adds, if that is all it does."""
    if not isinstance(node, Apply) or node.fn is not REGISTRY["reshape"] or not isinstance(node.args[0].type, Array):
        return None
    return unit_axes(node.type.shape, node.args[0].type.shape)


def sink_units(builder: Builder, prim, args: tuple[Node, ...], attrs, type) -> Node | None:
    """Add axes of size 1 after an operation instead of before: batching makes many, and between kernels they vanish.

    f(reshape(x), y) = reshape(f(x, reshape(y)))
    """
    if prim.kind == "elementwise" and isinstance(type, Array):
        units = next((u for a in args if a.type.shape == type.shape and (u := _units_of(a)) is not None), None)
        if units is None:
            return None
        rank = len(type.shape)
        less = []
        for arg in args:
            shape = arg.type.shape
            kept = tuple(d for axis, d in enumerate(shape, rank - len(shape)) if axis not in units)
            less.append(arg if kept == shape else reshape(Var(builder, arg), shape=kept).node)
        found = Var(builder, builder.emit(prim, tuple(less), attrs))
        return reshape(found, shape=type.shape).node if isinstance(found.type, Array) else None
    if prim.kind == "reduce":
        units = _units_of(args[0])
        if units is None or not isinstance(args[0], Apply):
            return None
        rest = [a for a in range(len(args[0].type.shape)) if a not in units]
        axes = tuple(rest.index(a) for a in attrs["axes"] if a not in units)
        if not axes:
            return None
        found = Var(builder, builder.emit(prim, (args[0].args[0],), {**attrs, "axes": axes, "keepdims": False}))
        if found.type == type:
            return found.node
        return reshape(found, shape=type.shape).node if isinstance(type, Array) else None
    return None


def whole_struct(args: tuple[Node, ...], type) -> Node | None:
    """make_struct(s[0], ..., s[n]) = s, of a structure of the same type."""
    first = args[0] if args else None
    if not isinstance(first, Apply) or first.fn is not REGISTRY["get_item"] or not isinstance(type, Struct):
        return None
    struct = first.args[0]
    for i, arg in enumerate(args):
        if not isinstance(arg, Apply) or arg.fn is not first.fn or arg.args[0] is not struct or arg.attrs["index"] != i:
            return None
    return struct if struct.type == type else None


STOP = Rule("drop_stop_gradient", Op("stop_gradient", X), X, "stop_gradient(x) = x, once everything is differentiated")
GIVEN = Rule(
    "drop_determinant", Op("determinant", X, Y, Z), Y, "determinant(x, y, z) = y, once everything is differentiated"
)

TABLE = Table(*ARITHMETIC, *INTEGERS, *LOGIC, *KINDS, *SHAPES, *PRODUCTS, *UPDATES)
FINAL = Table(*TABLE.rules, STOP, GIVEN)
"""With the rules for what only derivatives look at: for graphs without transforms."""
