"""Relations of operators where less is known than all shapes: nothing wrong may follow, and all must where it is known later."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.dims import Dim, evaluate
from myia_relay.text.operators import OPERATORS
from myia_relay.text.terms.show import show, size_text
from myia_relay.text.terms.terms import ANY, MARK, TensorTerm, TupleTerm
from myia_relay.utils.errors import CompileError, ShapeError, TypeError_

from .operator_calls import agrees, apply, inferred, program, type_of
from .test_operators import CASES


@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
@pytest.mark.sampled(2)
def test_what_is_unknown_is_found_at_the_call(name, args, attrs, expected):
    """The operator in a function of which nothing is declared: its relation is solved where the function is called."""
    assert show(type_of(program(name, args, attrs, through=True))) == show(inferred(name, *args, **attrs))


@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
def test_sizes_that_only_a_run_tells(name, args, attrs, expected):
    """With `?` for all sizes the relation either says what is true, or what it needs to know."""
    try:
        found = type_of(program(name, args, attrs, size=lambda *_: "?"))
    except CompileError as error:
        assert isinstance(error, TypeError_ | ShapeError)
        return
    assert agrees(found, expected)


@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
def test_named_sizes(name, args, attrs, expected):
    """With a name for each size what follows is true of these sizes, or nothing does."""
    values = {}

    def name_of(argument, axis, size):
        # Equal sizes have one name, as the operands of many operators must agree.
        values[f"n{size}"] = size
        return f"n{size}"

    try:
        found = type_of(program(name, args, attrs, size=name_of))
    except CompileError as error:
        assert isinstance(error, TypeError_ | ShapeError)
        return
    assert agrees(_at(found, values), expected)


def _at(t, values):
    """A type at sizes."""
    if isinstance(t, TupleTerm):
        return TupleTerm(tuple(_at(e, values) for e in t.elems))
    sizes = tuple(evaluate(s, lambda key: values[key.split(MARK)[0]]) if isinstance(s, Dim) else s for s in t.shape)
    return TensorTerm(sizes, t.dtype)


RNG = np.random.default_rng(7)


def _shape(least, most, rank=None):
    rank = int(RNG.integers(least, most + 1)) if rank is None else rank
    return tuple(int(n) for n in RNG.integers(1, 5, rank))


def _tensor(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def _thinned(shape):
    """A shape that broadcasts with another: without some of the first axes, and with 1 for some sizes."""
    rest = shape[int(RNG.integers(0, len(shape) + 1)) :]
    return tuple(1 if RNG.random() < 0.3 else n for n in rest)


def random_case(name):
    """Random arguments of an operator, and attributes that fit them."""
    shape = _shape(1, 4)
    x, axis = _tensor(*shape), int(RNG.integers(-len(shape), len(shape)))
    match name:
        case "add" | "maximum" | "less":
            return (x, _tensor(*_thinned(shape))), {}
        case "where":
            return (x > 0, _tensor(*_thinned(shape)), x), {}
        case "sum" | "max" | "mean" | "argmax":
            axes = [int(a) for a in RNG.permutation(len(shape))[: int(RNG.integers(0, len(shape) + 1))]]
            flags = {k: bool(RNG.random() < 0.5) for k in ("keepdims", "exclude")}
            return (x,), {"axis": axes, **flags}
        case "transpose":
            return (x,), {"axes": [int(a) for a in RNG.permutation(len(shape))]}
        case "concatenate":
            other = list(shape)
            other[axis] = int(RNG.integers(1, 4))
            return ((x, _tensor(*other)),), {"axis": axis}
        case "stack":
            return ((x, x),), {"axis": axis}
        case "split":
            cuts = sorted(int(c) for c in RNG.integers(0, shape[axis] + 1, 2))
            return (x,), {"indices_or_sections": cuts, "axis": axis}
        case "strided_slice":
            begin, end = ([int(v) for v in RNG.integers(-5, 6, len(shape))] for _ in range(2))
            return (x,), {
                "begin": begin,
                "end": end,
                "strides": [int(v) for v in RNG.choice([-2, -1, 1, 2], len(shape))],
            }
        case "nn.pad":
            return (x,), {"pad_width": [[int(v) for v in RNG.integers(0, 3, 2)] for _ in shape]}
        case "tile":
            return (x,), {"reps": [int(v) for v in RNG.integers(1, 3, int(RNG.integers(1, 5)))]}
        case "take":
            indices = RNG.integers(0, shape[axis], _shape(0, 2)).astype(np.int32)
            return (x, np.asarray(indices)), {"axis": axis}
        case "expand_dims":
            return (x,), {"axis": axis, "num_newaxis": int(RNG.integers(0, 3))}
        case "nn.dense":
            return (x, _tensor(int(RNG.integers(1, 5)), shape[-1])), {}
        case "nn.conv2d":
            groups, per, outs = (int(v) for v in RNG.integers(1, 3, 3))
            kernel = [int(v) for v in RNG.integers(1, 4, 2)]
            dilation, strides = ([int(v) for v in RNG.integers(1, 3, 2)] for _ in range(2))
            size = [(k - 1) * d + int(RNG.integers(1, 5)) for k, d in zip(kernel, dilation, strict=True)]
            attrs = {
                "groups": groups,
                "dilation": dilation,
                "strides": strides,
                "padding": [int(v) for v in RNG.integers(0, 3, 4)],
            }
            return (_tensor(2, groups * per, *size), _tensor(groups * outs, per, *kernel)), attrs
        case _:
            kernel = [int(v) for v in RNG.integers(1, 4, 2)]
            size = [k + int(RNG.integers(0, 5)) for k in kernel]
            attrs = {
                "pool_size": kernel,
                "strides": [int(v) for v in RNG.integers(1, 4, 2)],
                "ceil_mode": bool(RNG.random() < 0.5),
            }
            return (_tensor(1, 2, *size),), attrs


RANDOM = (
    *("add", "maximum", "less", "where", "sum", "max", "mean", "argmax", "transpose", "concatenate", "stack", "split"),
    *("strided_slice", "nn.pad", "tile", "take", "expand_dims", "nn.dense", "nn.conv2d", "nn.max_pool2d"),
)


@pytest.mark.parametrize("name", RANDOM)
def test_random_shapes(name):
    for _ in range(4):
        args, attrs = random_case(name)
        value = apply(name, *args, **attrs)
        found = inferred(name, *args, **attrs)
        assert agrees(found, value), (show(found), np.shape(value), attrs)
        assert show(type_of(program(name, args, attrs, through=True))) == show(found)


@pytest.mark.campaign
@pytest.mark.parametrize("name", RANDOM)
def test_many_random_shapes(name):
    for _ in range(200):
        args, attrs = random_case(name)
        assert agrees(inferred(name, *args, **attrs), apply(name, *args, **attrs)), (args, attrs)


def test_operators_state_their_arguments_and_attributes():
    for name, op in OPERATORS.items():
        assert op.name == name
        assert op.doc.endswith("."), name
        for key, attr in op.attrs.items():
            assert (
                attr.default is None
                or repr(attr.default) == "needed"
                or attr.checked(attr.default, key) == attr.default
            )


def test_sizes_are_shown_by_their_names():
    found = type_of("def @main(%x: Tensor[(n, 2), float32]) { reshape(%x, newshape=[-1]) }")
    assert isinstance(found, TensorTerm)
    assert size_text(found.shape[0]) == "2*n"
    assert size_text(ANY) == "?"
