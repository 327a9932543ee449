"""What is said to those who write as in PyTorch: the name of what they mean."""

import copy
import operator
import pickle
import re

import numpy as np
import pytest

from myia_relay import CompileError, Float, Tensor, relay, relay_model
from myia_relay.infer.objects.advice import ARRAY_METHODS
from myia_relay.model.elsewhere import MODEL, OPTIMISER

X = np.ones((4, 2))


def no_grad(x):
    with relay.no_grad():
        return x * 2


def no_torch_grad(x):
    with torch.no_grad():  # noqa: F821
        return x * 2


def errors(x):
    with np.errstate(divide="ignore"):
        return 1 / x


def requires(x):
    x.requires_grad = True
    return x


@pytest.mark.parametrize(
    "f, advice",
    [
        (lambda x: x.relu().sum(), "write relay.relu(x)"),
        (lambda x: x.exp(), "write np.exp(x)"),
        (lambda x: x.view(-1), "write x.reshape(...)"),
        (lambda x: x.masked_fill(x > 0, 0.0), "write np.where(mask, value, x)"),
        (lambda x: x.add_(1.0), "write x += y"),
        (lambda x: relay.softmax(x, dim=-1), "the argument 'dim' is not supported in compiled code; write axis="),
        (lambda x: x.mean(dim=0), "write axis="),
        (lambda x: np.sum(x, axis=0, keepdim=True), "write keepdims="),
        (no_grad, "'with no_grad()' is not needed"),
        (no_torch_grad, "'with no_grad()' is not needed"),
        (errors, "'with errstate()' is not needed"),
        (requires, "name what to differentiate by: relay.grad(f, 'x')"),
    ],
)
def test_advice(f, advice):
    with pytest.raises(CompileError) as caught:
        relay(f)(X)
    assert advice in str(caught.value)


def test_advice_names_what_exists():
    for text in ARRAY_METHODS.values():
        for place, name in re.findall(r"\b(relay|np)\.(\w+(?:\.\w+)*)", text):
            operator.attrgetter(name)({"relay": relay, "np": np}[place])


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 2]:
    return relay.linear(x, num_hidden=2)


def test_models_and_optimisers():
    model = relay.create_model(net)
    optimiser = relay.optim.sgd(model, lr=0.1)
    for thing, table in ((model, MODEL), (optimiser, OPTIMISER)):
        for name, advice in table.items():
            assert not hasattr(type(thing), name)
            with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; {advice}")):
                getattr(thing, name)
        with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
            _ = thing.nothing
        assert pickle.loads(pickle.dumps(thing)).step is not None if thing is optimiser else copy.deepcopy(thing).params
    for text in (*MODEL.values(), *OPTIMISER.values()):
        for name in re.findall(r"\brelay\.(\w+(?:\.\w+)*)", text):
            operator.attrgetter(name)(relay)
    with pytest.raises(CompileError, match=r"its shape is \(5, 4\); for a batch of them map the function over it"):
        model(np.ones((5, 4), np.float32))
    assert relay.vmap(model)(np.ones((5, 4), np.float32)).shape == (5, 2)
    with pytest.raises(CompileError, match=r"its shape is \(3,\)$"):
        model(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="sgd: lr is a number, and this is '0.1'"):
        relay.optim.sgd(model, lr="0.1")


def test_options_of_the_decorator():
    with pytest.raises(TypeError, match=r"^relay\(\) got an unexpected keyword argument 'exectuor'"):
        relay(no_grad, exectuor="python")


def test_a_text_where_a_number_belongs():
    with pytest.raises(CompileError, match="sin takes a number or an array, and this is 'a'"):
        relay(lambda x: np.sin(x))("a")
