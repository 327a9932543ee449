"""The table of public names, in both directions: what is in it is reachable and works, and nothing else is reachable."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import myia_relay
from myia_relay import relay
from myia_relay.functions import Sized
from myia_relay.model import layers
from myia_relay.prims.api.nn_api import NN_OPS, op
from myia_relay.utils.errors import InternalError
from myia_relay.utils.names import LAYERS, MODULES, OPERATORS, PUBLIC

_rng = np.random.default_rng(3)
X = _rng.uniform(-2, 2, (4, 3))
IMAGES = _rng.uniform(-2, 2, (2, 3, 6, 6))


def _uniform(*shape):
    return _rng.uniform(-1, 1, shape)


def _recurrent(gates):
    names = {"weight_ih_l0": (3,), "weight_hh_l0": (2,), "bias_ih_l0": (), "bias_hh_l0": ()}
    return {name: _uniform(gates * 2, *rest) for name, rest in names.items()}


ARGUMENTS = {
    "adaptive_avg_pool": ((IMAGES,), {"size": 4}),
    "argmax": ((X,), {"axis": 1}),
    "attention": ((X, X, X), {"causal": True}),
    "avg_pool": ((IMAGES,), {"ksize": 2}),
    "batch_norm": ((X, *(_rng.uniform(0.5, 2, 3) for _ in range(4))), {}),
    "conv1d": ((IMAGES[0], _uniform(4, 6, 3)), {"padding": 1}),
    "conv2d": ((IMAGES, _uniform(4, 3, 3, 3)), {}),
    "conv3d": ((IMAGES, _uniform(4, 2, 2, 3, 3)), {}),
    "conv_transpose2d": ((IMAGES, _uniform(3, 4, 3, 3)), {"strides": 2}),
    "cosine_similarity": ((X, _uniform(4, 3)), {}),
    "dropout": ((X, 0.5, np.uint64(7)), {}),
    "embedding": ((np.array([[0, 2], [1, 1]]), X), {}),
    "flatten_layer": ((IMAGES,), {}),
    "global_avg_pool": ((IMAGES,), {}),
    "glu": ((_uniform(3, 4),), {}),
    "group_norm": ((_uniform(2, 4, 3, 3), _uniform(4), _uniform(4)), {"num_groups": 2}),
    "gru": ((_uniform(5, 3), _recurrent(3)), {}),
    "gru_cell": ((_uniform(3), _uniform(2), _uniform(6, 3), _uniform(6, 2)), {}),
    "huber_loss": ((X, _uniform(4, 3)), {}),
    "kl_divergence": ((X, np.abs(_uniform(4, 3))), {}),
    "l1_loss": ((X, _uniform(4, 3)), {}),
    "layer_norm": ((X, _uniform(3), _uniform(3)), {}),
    "linear": ((X, _uniform(5, 3)), {}),
    "lstm": ((_uniform(5, 2, 3), _recurrent(4)), {}),
    "lstm_cell": ((_uniform(3), (_uniform(2), _uniform(2)), _uniform(8, 3), _uniform(8, 2)), {}),
    "max_pool": ((IMAGES,), {"ksize": 2}),
    "mse_loss": ((X, _uniform(4, 3)), {}),
    "multi_head_attention": ((_uniform(5, 4), _uniform(12, 4), _uniform(4, 4)), {"num_heads": 2}),
    "nll_loss": ((X, np.array([0, 2, 1, 1])), {}),
    "one_hot": ((np.array([0, 2, 1]),), {"num_classes": 3}),
    "pad": ((IMAGES,), {"padding": 1}),
    "rms_norm": ((X, _uniform(3)), {}),
    "rnn": ((_uniform(5, 3), _recurrent(1)), {}),
    "rnn_cell": ((_uniform(3), _uniform(2), _uniform(2, 3), _uniform(2, 2)), {}),
    "sigmoid_cross_entropy": ((X, np.abs(_uniform(4, 3))), {}),
    "softmax_cross_entropy": ((X, np.array([0, 2, 1, 1])), {}),
    "top_k": ((X,), {"k": 2}),
    "upsample": ((IMAGES,), {"scale": 2}),
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
    assert set(NN_OPS) <= set(OPERATORS)
    assert {name for name, value in vars(layers).items() if isinstance(value, layers.Layer)} == set(LAYERS)
    assert {name for name, value in vars(layers).items() if isinstance(value, Sized)} == set(OPERATORS)
    assert all(PUBLIC[name] == "model.layers" for name in OPERATORS)


def test_an_operator_without_a_public_name_is_refused():
    with pytest.raises(InternalError, match="not in utils.names.OPERATORS"):
        op("nameless")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_have_the_signature_and_the_text_of_what_users_call(name):
    operator = getattr(relay, name)
    parameters = inspect.signature(operator).parameters
    assert "b" not in parameters and "args" not in parameters and "the builder" not in operator.__doc__
    if name in LAYERS and name not in ("batch_norm", "layer_norm", "rms_norm", "dropout"):
        assert list(parameters)[-2:] == ["init", "unshared"] and "weight" not in parameters
    with pytest.raises(AttributeError):
        _ = type(operator).__signature__


def arrays_of(value):
    """The arrays of a tree of tuples."""
    return [a for part in value for a in arrays_of(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_pickled_by_name(name):
    operator = getattr(relay, name)
    assert pickle.loads(pickle.dumps(operator)) is operator


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_work_inside_of_compiled_code_and_outside(name):
    args, attrs = ARGUMENTS.get(name, ((X,), {}))
    operator = getattr(relay, name)
    outside = operator(*args, **attrs)

    def inside(*args):
        return operator(*args, **attrs)

    assert operator.__doc__
    for executor in ("interpreter", "python", "native"):
        found = relay(inside, executor=executor)(*args)
        for one, other in zip(arrays_of(found), arrays_of(outside), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "dropout"])  # whose examples differ by design
def test_operators_are_batched(name):
    (first, *rest), attrs = ARGUMENTS.get(name, ((X,), {}))
    operator = getattr(relay, name)
    flipped = first[::-1].copy()

    def one(x, *rest):
        return operator(x, *rest, **attrs)

    run = relay(one, executor="interpreter")
    batched = relay.vmap(run, (0, *[None] * len(rest)))(np.stack((first, flipped)), *rest)
    for k, x in enumerate((first, flipped)):
        for found, wanted in zip(arrays_of(batched), arrays_of(run(x, *rest)), strict=True):
            np.testing.assert_allclose(found[k], wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [n for n in OPERATORS if n not in ("argmax", "one_hot", "embedding", "top_k", "flatten_layer")]
)
def test_operators_are_differentiated(name):
    (first, *rest), attrs = ARGUMENTS.get(name, ((X,), {}))
    operator = getattr(relay, name)

    def summed(x):
        out = operator(x, *rest, **attrs)
        return np.mean(np.sin(out[0] if isinstance(out, tuple) else out))

    relay.check_grads(relay(summed, executor="interpreter"), (first,), order=1)
