"""Ctrl-C by the handler that the process has: ignored, a function of the user's, or Python's own; in every executor."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.utils.interrupts import poll, whole_steps
from myia_relay.utils.raising import for_user

ITERATIONS = {  # some tenths of a second, of iterations without and with an update
    "interpreter": (10**4, 10**3),
    "python": (10**5, 10**4),
    "native": (3 * 10**8, 2 * 10**7),
}
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer to interrupt with")


class Foreign(Exception):
    """What a handler of the user's raises."""


@contextmanager
def handled(handler) -> Iterator[None]:
    """A handler of SIGINT, which comes soon and then again and again."""
    before = signal.signal(signal.SIGINT, handler)
    alarm = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, before)


@relay_model
def net(x: Tensor[Float, (5,)]) -> Tensor[Float, (3,)]:
    return relay.linear(x, num_hidden=3)


@relay
def loss(x):
    return np.sum(net(x))


def count(model, x, n):
    """Counts, without an update."""
    total = 0
    for i in range(n):
        total += i % 7
    return total


def train(model, x, n):
    """A training step each iteration."""
    total = 0
    for i in range(n):
        relay.update_model_params(model, relay.grad(model, loss, (x,)), lr=1.0)
        total += i % 7
    return total


def program(executor: str, body, times: int = 1):
    """A call that takes a while, and what it returns."""
    n = ITERATIONS[executor][body is train] * times
    f = relay(executor=executor)(body)
    model, x = relay.create_model(net, init=0.0), np.ones(5, np.float32)
    f(model, x, 3)
    whole, rest = divmod(n, 7)
    return (lambda: f(model, x, n)), whole * 21 + sum(range(rest)), model


@pytest.mark.sampled(3)
@needs_timer
@pytest.mark.parametrize("body", [count, train])
def test_ignored(executor, body):
    run, expected, model = program(executor, body)
    with handled(signal.SIG_IGN):
        assert run() == expected


@needs_timer
@pytest.mark.parametrize("body", [count, train])
@pytest.mark.sampled(6)
def test_a_handler_that_returns(executor, body):
    heard = []
    run, expected, model = program(executor, body)
    with handled(lambda number, frame: heard.append(number)):
        for _ in range(100):  # a fast machine is done before the first signal comes
            assert run() == expected
            if heard:
                break
    assert heard and set(heard) == {signal.SIGINT}


@needs_timer
@pytest.mark.parametrize("body", [count, train])
def test_a_handler_that_raises(executor, body):
    def stop(number, frame):
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Foreign("enough")

    run, _, model = program(executor, body, 100)
    with handled(stop), pytest.raises(Foreign, match="^enough$"):
        run()
    assert len({float(v) for p in model.params.values() for v in np.unique(p)}) == 1, "whole steps"


def test_the_handler_runs_between_steps():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    handler = signal.getsignal(signal.SIGINT)
    try:
        with whole_steps(), whole_steps():
            signal.raise_signal(signal.SIGINT)
            assert not heard
            poll()
            assert heard == [1]
            signal.raise_signal(signal.SIGINT)
        assert heard == [1, 1] and signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exception_that_a_library_let_pass():
    """A handler that runs while NumPy's own Python code does raises the user's exception, not an internal error of ours."""

    def user(values):
        raise Foreign("enough")

    names = {"np": np, "user": user}
    exec(compile("def ours():\n    np.apply_along_axis(user, 0, np.ones(3))", "<myia_relay test>", "exec"), names)
    with pytest.raises(Foreign) as caught:
        names["ours"]()
    assert for_user(caught.value, debug=False) is caught.value
