"""In-place changes of what may be of several types at run time: every path has its result, and raises where CPython raises."""

from __future__ import annotations

import numpy as np
import pytest

import myia_relay
from myia_relay import grad, relay, vmap
from myia_relay.infer.engine.endings import require_ends
from myia_relay.infer.values.treedef import tree_structure
from myia_relay.infer.values.values import Dyn, Spread
from myia_relay.ir.build import Builder
from myia_relay.ir.node import Constant, Graph
from myia_relay.utils.errors import InternalError
from tests.programs.cases import EXECUTORS, Cases, agree

case = Cases()
M = np.array([True, False, True])


@case((1,), (-1,))
def result_behind_a_masked_change(n):
    v = np.zeros(3) if n > 0 else np.zeros(3, np.int64)
    v[v < 1] += 2
    return 7.0


@case((1,), (-1,))
def ranks(n):
    v = np.zeros(3) if n > 0 else np.zeros((2, 3))
    v[v < 1] += 2
    return v


@case((1, M), (-1, M))
def in_a_dict(n, m):
    d = {"v": np.ones(3) if n > 0 else np.ones(3, np.int32)}
    d["v"][m] -= 3
    return d


@case((1, M), (-1, M))
def masks_and_numbers(n, m):
    v = np.ones((3, 2)) if n > 0 else np.ones((3, 2), np.int32)
    v[m, 1] -= 3
    return v


@case((1, M), (-1, M))
def values_for_chosen_rows(n, m):
    v = np.ones((3, 2)) if n > 0 else np.ones((3, 2), np.int32)
    v[m] -= np.arange(4).reshape(-1, 2).astype(np.int32)
    return v


@case((1, M), (-1, M))
def operands(n, m):
    v = np.ones(3)
    v[m] += 2 if n > 0 else 2.5
    return v


@case((1, M), (-1, M))
def indices(n, m):
    v = np.ones(3)
    k = m if n > 0 else 1
    v[k] += 2
    return v


@case((1, M), (-1, M))
def arrays_and_lists(n, m):
    v = np.ones(3) if n > 0 else [1.0, 2.0, 3.0]
    k = m if n > 0 else 0
    v[k] += 2
    return v


@case((1, M), (-1, M))
def in_a_loop(n, m):
    v, s = np.ones(3) if n > 0 else np.ones(3, np.int64), 0.0
    for i in range(3):
        v[m] += i
        s = s + float(v.sum())
    return v, s


@case((1, M), (-1, M))
def copied_to(n, m):
    v = np.ones(3) if n > 0 else np.ones(3, np.int64)
    np.add.at(v, m, 2)
    np.copyto(v, 5, where=~m)
    return v


@case.each
def test_as_in_cpython(function, args, executor):
    agree(function, args, executor)


def kind_that_does_not_fit(n, m):
    v = np.ones(3) if n > 0 else np.ones(3, np.int64)
    v[m] *= 2.5
    return 7.0


def nothing(n, m):
    v = np.ones(3) if n > 0 else None
    v[m] += 2  # pyright: ignore[reportOptionalSubscript]
    return 7.0


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [kind_that_does_not_fit, nothing])
def test_raises_on_one_path(function, executor):
    compiled = relay(function, executor=executor)
    assert compiled(1, M) == 7.0
    with pytest.raises(TypeError):
        function(-1, M)
    with pytest.raises(TypeError):
        compiled(-1, M)


def through_a_union(x, n):
    v = x * 1.0 if n > 0 else np.stack([x, x])
    v[v > 1.0] *= x[0]
    return np.sum(v)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives_and_batches(executor):
    f = relay(through_a_union, executor=executor)
    x = np.array([0.5, 2.0, 3.0])  # s = x0 + x0 (x1 + x2), and twice that
    for n in (1, -1):
        times = 1 if n > 0 else 2
        np.testing.assert_allclose(grad(f)(x, n), [times * 6.0, times * 0.5, times * 0.5])
        np.testing.assert_allclose(vmap(f, (0, None))(np.stack([x, 2 * x]), n), [times * 3.0, times * 11.0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_updated_by_at(executor):
    def chosen(n):
        x, y = np.zeros(3), np.ones(3, np.int64)
        a = myia_relay.at(x) if n > 0 else myia_relay.at(y)
        return a[1].add(3), myia_relay.at(x if n > 0 else y)[0].set(2)

    f = relay(chosen, executor=executor)
    for n, (one, two) in ((1, ([0.0, 3.0, 0.0], [2.0, 0.0, 0.0])), (-1, ([1, 4, 1], [2, 1, 1]))):
        for got, want in zip(f(n), (one, two), strict=True):
            assert got.tolist() == want
            assert got.dtype == np.array(want).dtype


def test_unset_output_is_an_internal_error():
    program, arm = Graph("f"), Graph("f.then")
    b = Builder(arm)
    arm.output = b.emit(myia_relay.ir.prim.REGISTRY["make_struct"], (), {"type": myia_relay.abstract.types.tuple_of()})
    program.apply(arm, type=arm.output.type)
    program.output = Constant(1.0)
    require_ends(program, set())
    with pytest.raises(InternalError, match=r"the output of f\.then is unset"):
        require_ends(program, {arm})


def test_parts_of_constructs_have_no_form():
    with pytest.raises(InternalError, match="Spread"):
        tree_structure(Spread(Dyn(Constant(1))))
