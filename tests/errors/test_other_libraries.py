"""What is said to those who write as in PyTorch: the name of what they mean."""

import operator
import re

import numpy as np
import pytest

from myia_relay import CompileError, relay
from myia_relay.infer.objects.advice import ARRAY_METHODS

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
