"""Pickles and copies of decorated functions, transforms and models; processes that get them."""

import copy
import multiprocessing
import pickle
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import Float, Tensor, custom_vjp, grad, hessian, relay, relay_model, value_and_grad, vmap
from myia_relay.utils.errors import ParseError

from .cache.cache_util import python

RATE = 3.0


@relay
def power(x, y):
    return x**3 * y**4


def square(x):
    return x * x


slope = grad(power)


@custom_vjp
def clipped(x):
    return x * x


@clipped.defvjp
def _(x, out, dout):
    return (dout * 10.0,)


class Scale:
    def __init__(self, k):
        self.k = k

    @relay
    def times(self, x):
        return x * self.k


@dataclass(frozen=True)
class Point:
    x: float

    @relay
    def double(self):
        return self.x * 2


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 2]:
    return relay.dropout(relay.linear(relay.tanh(relay.linear(x, num_hidden=3)), num_hidden=2), 0.5)


@relay
def loss(x: Tensor[Float, 4], y: Tensor[Float, 2]):
    return relay.mse_loss(net(x), y)


def both(value):
    return pickle.loads(pickle.dumps(value)), copy.deepcopy(value)


def test_what_a_module_has_is_itself():
    for f in (power, loss, net, clipped, relay.conv2d, relay.tanh, relay.random.normal):
        assert all(g is f for g in (*both(f), copy.copy(f)))


@pytest.mark.parametrize(
    "f, args",
    [
        (slope, (2.0, 3.0)),
        (value_and_grad(power, ("x", "y")), (2.0, 3.0)),
        (hessian(square), (3.0,)),
        (grad(grad(square)), (3.0,)),
        (relay(vmap(power)), (np.arange(3.0), np.ones(3))),
        (relay(square, executor="interpreter", fastmath=True), (3.0,)),
        (grad(clipped), (3.0,)),
        (Scale(3.0).times, (2.0,)),
        (Point(3.0).double, ()),
    ],
    ids=repr,
)
def test_functions(f, args):
    for g in both(f):
        assert type(g) is type(f) and g.options == f.options
        assert repr(g(*args)) == repr(f(*args))


def test_copies_of_methods_have_objects_of_their_own():
    scale = Scale(3.0)
    copied = copy.deepcopy(scale.times)
    scale.k = 4.0
    assert (scale.times(2.0), copied(2.0)) == (8.0, 6.0)


def test_local_functions_are_copied_but_refused_by_pickle():
    f = relay(lambda x: x * RATE)
    assert copy.deepcopy(f)(2.0) == 6.0
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(f)


def test_a_local_rule_goes_with_its_copy():
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x, out, dout: (dout * 7.0,))
    assert grad(copy.deepcopy(f))(2.0) == 7.0


def test_equal_functions_share_their_programs():
    one, two = both(slope)[0], both(slope)[0]
    one(2.0, 3.0)
    before = two.cache_info().misses
    two(2.0, 3.0)
    assert two.cache_info().misses == before == one.cache_info().misses


def test_models_and_optimisers_train_on_alike():
    x, y = np.linspace(0, 1, 4, dtype=np.float32), np.ones(2, np.float32)
    model = relay.create_model(net, seed=3)
    optimiser = relay.optim.adam(model, lr=0.1)
    optimiser.step(relay.grad(model, loss, (x, y)))
    for again in both(optimiser):
        assert again.model is not model and again.spec.model is model.spec
        for own, other in zip(model.arrays, again.model.arrays):
            assert own is not other and other.ctypes.data % 64 == 0 and other.dtype is own.dtype
    copies = [optimiser, *both(optimiser)]
    for opt in copies:
        opt.step(relay.grad(opt.model, loss, (x, y)))
    for opt in copies[1:]:
        assert all(map(np.array_equal, opt.model.arrays, model.arrays))
    exported = relay.export_model(model)
    assert all(np.array_equal(e(x), exported(x)) for e in both(exported))


def test_a_model_of_another_function_is_refused(monkeypatch):
    data = pickle.dumps(relay.create_model(net))

    @relay_model
    def other(x: Tensor[Float, 4]) -> Tensor[Float, 2]:
        return relay.linear(x, num_hidden=2)

    monkeypatch.setattr(sys.modules[__name__], "net", other)
    with pytest.raises(TypeError, match="other parameters"):
        pickle.loads(data)


TASKS = """
import multiprocessing, sys
import numpy as np
from myia_relay import Float, Tensor, grad, relay, relay_model, vmap

@relay
def f(x, y):
    return x ** 3 * y ** 4

df = grad(f)

@relay_model
def net(x: Tensor[Float, 4]):
    return relay.linear(x, num_hidden=2)

def run(f, *args):
    out = f(*args)
    return out, f.cache_info().misses if hasattr(f, "cache_info") else 0

if __name__ == "__main__":
    model, x = relay.create_model(net), np.ones(4, np.float32)
    tasks = [(f, 2.0, 3.0), (df, 2.0, 3.0), (model, x), (df, 3.0, 4.0)]
    expected = [run(*t)[0] for t in tasks]
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            found = pool.starmap(run, tasks)
        assert all(map(np.array_equal, [out for out, _ in found], expected))
        print(method, [misses for _, misses in found])
"""


def test_processes_get_functions_and_compiled_code(tmp_path):
    script = tmp_path / "tasks.py"
    script.write_text(TASKS)
    methods = [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()]
    environment = {"MYIA_RELAY_CACHE": str(tmp_path / "cache"), "MYIA_RELAY_CACHE_SIZE": "64"}
    lines = python(str(script), *methods, **environment).splitlines()
    assert lines[-1] == "spawn [0, 0, 0, 0]"  # the first process compiled and wrote files


def test_cloudpickle_sends_functions_of_the_main_module(tmp_path):
    pytest.importorskip("cloudpickle")
    sender = """
import cloudpickle, sys
from myia_relay import grad, relay
scale = 3.0
@relay
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
@relay
def f(x):
    return scale * x * x
class Method:
    k = 5.0
    @relay
    def times(self, x):
        return x * self.k
sys.stdout.write(cloudpickle.dumps((f, grad(f), fact, Method().times)).hex())
"""
    receiver = """
import pickle, sys
f, df, fact, times = pickle.loads(bytes.fromhex(sys.argv[1]))
print(f(2.0), df(2.0), fact(5), times(2.0))
"""
    script = tmp_path / "sender.py"
    script.write_text(sender)
    assert python(receiver, python(str(script))) == "12.0 12.0 120 10.0\n"


def test_functions_that_cloudpickle_sends_bring_their_text(tmp_path):
    pytest.importorskip("cloudpickle")
    sender = """
import cloudpickle, functools, sys
import numpy as np
from myia_relay import grad, relay
def twice(x):
    return 2.0 * x
class Shape:
    def area(self, r):
        return 3.0 * twice(r)
shape = Shape()
@relay
def f(x):
    return twice(x) * shape.area(x)
def local(k):
    @relay
    def inner(x):
        return k * twice(x) if x > 0.0 else 1.0 / 0.0
    return inner
sys.stdout.write(cloudpickle.dumps((f, grad(f), local(3.0), functools.partial(local(4.0), 1.0))).hex())
"""
    receiver = """
import pickle, sys, traceback
f, df, inner, bound = pickle.loads(bytes.fromhex(sys.argv[1]))
print(f(2.0), df(2.0), inner(5.0), bound())
try:
    inner(-1.0)
except ZeroDivisionError:
    told = traceback.format_exc()
    print("sender.py" in told, "1.0 / 0.0" in told)

"""
    script = tmp_path / "sender.py"
    script.write_text(sender)
    sent = python(str(script))
    script.unlink()  # as on another machine
    assert python(receiver, sent) == "48.0 48.0 30.0 8.0\nTrue True\n"


def test_a_plain_function_without_its_text_says_what_to_do():
    cloudpickle = pytest.importorskip("cloudpickle")

    def square(x):
        return x * x

    arrived = pickle.loads(cloudpickle.dumps(square))
    if arrived.__code__.co_filename == square.__code__.co_filename:
        pytest.skip("this cloudpickle sends the name of the file")
    with pytest.raises(ParseError, match="cloudpickle has sent it without its source.*decorate it before it is sent"):
        relay(arrived)(2.0)
