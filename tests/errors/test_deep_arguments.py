"""Arguments and free names that contain themselves, or are nested very deeply: a refusal with a place."""

from __future__ import annotations

import subprocess
import sys

import pytest

from myia_relay import CompileError, InternalError, relay


def nested(kind, levels=100_000):
    out = [1.0]
    for _ in range(levels):
        out = {"a": out} if kind is dict else kind([out])
    return out


def cyclic_list():
    out: list = [1.0]
    out.append(out)
    return out


def cyclic_dict():
    out: dict = {}
    out["a"] = [out]
    return out


def constant(x):
    return 1


CYCLE = cyclic_list()


def of_a_free_name(x):
    return len(CYCLE) + x


@pytest.mark.parametrize("static", [(), ("x",)])
@pytest.mark.parametrize("make", [cyclic_list, cyclic_dict])
def test_an_argument_that_contains_itself(make, static, executor):
    with pytest.raises(TypeError, match="argument 'x': it holds a (list|dict) that contains itself") as caught:
        relay(constant, executor=executor, static=static)(make())
    assert isinstance(caught.value, CompileError) and caught.value.origin is not None


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.sampled(2)
def test_an_argument_of_many_levels(kind, executor):
    with pytest.raises(TypeError, match="argument 'x': it is nested more than 500 levels deep") as caught:
        relay(constant, executor=executor)(nested(kind))
    assert not isinstance(caught.value, InternalError)


def test_an_argument_of_some_levels(executor):
    assert relay(constant, executor=executor)(nested(list, 30)) == 1


def test_a_free_name_that_contains_itself():
    with pytest.raises(
        TypeError, match="'CYCLE' cannot be used in compiled code: it holds a list that contains itself"
    ):
        relay(of_a_free_name)(1)


ASSERTS = """
from myia_relay import relay

def f(x):
    assert x > 0, "positive"
    assert (x := x + 1.0)
    return x, __debug__

for executor in ("interpreter", "python", "native"):
    try:
        print(relay(executor=executor)(f)(-2.0) == f(-2.0), f(-2.0))
    except AssertionError as error:
        print(error)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("option", [[], ["-O"]])
def test_asserts_are_those_of_the_interpreter(option, tmp_path):
    """`python -O` drops them, with the assignments in them."""
    file = tmp_path / "asserts.py"
    file.write_text(ASSERTS)
    out = subprocess.run([sys.executable, *option, str(file)], capture_output=True, text=True, timeout=600)
    wanted = "True (-2.0, False)" if option else "positive"
    assert out.stdout.splitlines() == [wanted] * 3, out.stderr
