"""The table of public names, in both directions: what is in it is reachable and works, and nothing else is reachable."""

from __future__ import annotations

import numpy as np
import pytest

import myia_relay
from myia_relay import relay
from myia_relay.model import layers
from myia_relay.prims.api.nn_api import NN_OPS, op
from myia_relay.utils.errors import InternalError
from myia_relay.utils.names import MODULES, OPERATORS, PUBLIC

_rng = np.random.default_rng(3)
X = _rng.uniform(-2, 2, (4, 3))
IMAGES = _rng.uniform(-2, 2, (2, 3, 6, 6))

ARGUMENTS = {
    "argmax": ((X,), {"axis": 1}),
    "avg_pool": ((IMAGES,), {"ksize": 2}),
    "conv2d": ((IMAGES, _rng.uniform(-1, 1, (4, 3, 3, 3))), {}),
    "flatten_layer": ((IMAGES,), {}),
    "linear": ((X, _rng.uniform(-1, 1, (5, 3))), {}),
    "max_pool": ((IMAGES,), {"ksize": 2}),
    "one_hot": ((np.array([0, 2, 1]),), {"num_classes": 3}),
    "softmax_cross_entropy": ((X, np.array([0, 2, 1, 1])), {}),
}
"""Of operators that take something else than one array."""


def test_every_public_name_is_reachable():
    for name in (*PUBLIC, *MODULES):
        assert getattr(relay, name) is getattr(myia_relay, name)


def test_nothing_else_is_reachable():
    assert dir(relay) == sorted({*PUBLIC, *MODULES})
    assert set(myia_relay.__all__) == {"relay", *PUBLIC, *MODULES}
    for name in ("exp", "dot", "NN_OPS", "operators_of"):
        assert not hasattr(relay, name) and not hasattr(myia_relay, name)


def test_every_operator_is_implemented_and_every_implementation_is_an_operator():
    assert set(NN_OPS) == set(OPERATORS)
    assert {name for name, value in vars(layers).items() if isinstance(value, layers.OperatorFunction)} == set(
        OPERATORS
    )
    assert all(PUBLIC[name] == "model.layers" for name in OPERATORS)


def test_an_operator_without_a_public_name_is_refused():
    with pytest.raises(InternalError, match="not in utils.names.OPERATORS"):
        op("nameless")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_work_inside_of_compiled_code_and_outside(name):
    args, attrs = ARGUMENTS.get(name, ((X,), {}))
    operator = getattr(relay, name)
    outside = operator(*args, **attrs)

    def inside(*args):
        return operator(*args, **attrs)

    assert operator.__doc__
    for executor in ("interpreter", "python", "native"):
        np.testing.assert_allclose(relay(inside, executor=executor)(*args), outside, rtol=1e-6)
