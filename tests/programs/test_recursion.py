"""Functions that call themselves and each other: in all executors what CPython makes of them, and never a crash."""

from __future__ import annotations

import _thread
import subprocess
import sys
import textwrap
import threading
import traceback

import numpy as np
import pytest

from myia_relay import grad, relay
from tests.slopes import slopes

EXECUTORS = ["interpreter", "python", "native"]


def fact(n):
    return 1 if n == 0 else n * fact(n - 1)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def hanoi(n):
    return 0 if n == 0 else hanoi(n - 1) + 1 + hanoi(n - 1)


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def halves(x, n):
    if n == 0:
        return x
    y = halves(x * 0.5, n - 1)
    return y + x


def parts(x, n):
    if n == 0:
        return x, 1
    y, count = parts(x + 1.0, n - 1)
    z, more = parts(x * 2.0, n - 2 if n > 1 else 0)
    return y - z, count + more


def filled(x, n):
    y = x * 1.0
    if n > 0:
        z = filled(x + n, n - 1)
        for i in range(x.shape[0]):
            y[i] = z[i] * 2.0
            y[i] += n
    return y


def first(n):
    return 0 if n <= 0 else second(n - 1) + second(n - 2) + 1


def second(n):
    return 1 if n <= 0 else first(n - 1) * 2 + first(n - 3)


def in_a_loop(n):
    if n == 0:
        return 0
    total = 0
    for i in range(n):
        total = total + in_a_loop(i) + 1
    return total


def positive(n):
    if n < 0:
        return False
    return n == 0 or not positive(n - 1)


def narrow(x, flag):
    if x > np.float32(100.0):
        return x
    y = narrow(x * np.float32(1.5), not flag)
    return y - x if flag else y + np.float32(0.1)


def mixed(n, total):
    """Tail calls and others in one function."""
    if n == 0:
        return total
    if n % 3 == 0:
        return mixed(n - 1, total + mixed(n // 3, 0))
    return mixed(n - 1, total + n)


CASES = [
    (fact, (20,)),
    (fib, (15,)),
    (ackermann, (2, 3)),
    (gcd, (1071, 462)),
    (is_even, (10,)),
    (is_even, (501,)),
    (hanoi, (7,)),
    (power, (1.01, 300)),
    (halves, (np.arange(6.0), 10)),
    (parts, (np.arange(4.0), 6)),
    (filled, (np.arange(5.0), 4)),
    (first, (14,)),
    (in_a_loop, (7,)),
    (positive, (9,)),
    (narrow, (np.float32(1.25), True)),
    (mixed, (40, 0)),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f, args", CASES, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.sampled(4)
def test_recursion_is_pythons(f, args, executor):
    got, want = relay(executor=executor)(f)(*args), f(*args)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


def count(n, total):
    return total if n == 0 else count(n - 1, total + 1)


def endless(n):
    return 0 if n == -1 else 1 + endless(n + 1)


def endless_tail(n):
    return 0 if n == -1 else endless_tail(n + 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_a_hundred_thousand_calls_deep(executor):
    assert relay(executor=executor)(deep)(100_000) == 100_000


def test_tail_calls_are_a_loop():
    assert relay(count)(1_000_000, 0) == 1_000_000
    assert relay(is_even)(1_000_000) is True
    assert relay(executor="python")(count)(20_000, 0) == 20_000
    assert relay(executor="interpreter")(count)(20_000, 0) == 20_000


@pytest.mark.parametrize(
    "f, executor", [*((endless, e) for e in EXECUTORS), (endless_tail, "native"), (endless_tail, "python")]
)
@pytest.mark.sampled(5)
def test_recursion_without_end_is_an_error_at_the_users_line(f, executor):
    with pytest.raises(RecursionError) as caught:
        relay(executor=executor)(f)(0)
    shown = "".join(traceback.format_exception(caught.value))
    assert f.__name__ in shown and "maximum recursion depth exceeded" in shown
    assert f'{__file__}", line {f.__code__.co_firstlineno}' in shown or f"line {f.__code__.co_firstlineno + 1}" in shown
    assert relay(executor=executor)(fib)(10) == 55  # and life goes on


def test_again_after_an_error_and_in_threads():
    f = relay(deep)
    for _ in range(3):
        with pytest.raises(RecursionError):
            f(10_000_000)
        assert f(1000) == 1000
    results = []
    threads = [threading.Thread(target=lambda: results.append(f(120_000))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [120_000] * 4


def bottom(n):
    if n == 0:
        raise ValueError(f"the bottom, {n}")
    if n < 0:
        return 0
    return 1 + bottom(n - 1)


def noisy(n):
    if n == 0:
        return 0
    print("down", n)
    r = noisy(n - 1)
    print("up", n)
    return r + n


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("n", [0, 5, 500])
def test_exceptions_come_from_below(executor, n):
    with pytest.raises(ValueError, match="the bottom, 0"):
        relay(executor=executor)(bottom)(n)
    assert relay(executor=executor)(bottom)(-1) == 0


def test_exceptions_and_prints_on_a_continued_stack(capfd):
    with pytest.raises(ValueError, match="the bottom, 0"):
        relay(bottom)(120_000)
    assert relay(noisy)(80_000) == 80_000 * 80_001 // 2


@pytest.mark.parametrize("executor", EXECUTORS)
def test_prints_are_in_order(executor, capfd):
    assert relay(executor=executor)(noisy)(3) == 6
    assert capfd.readouterr().out == "down 3\ndown 2\ndown 1\nup 1\nup 2\nup 3\n"


def test_array_frames_end_in_an_error_too():
    def tower(x, n):
        return x if n == 0 else tower(x * 0.5, n - 1) + x

    f = relay(tower)
    x = np.ones(2000)
    np.testing.assert_allclose(f(x, 60), np.full(2000, 2.0))
    with pytest.raises(RecursionError):
        f(x, 1_000_000)


def test_no_depth_ends_the_process():
    code = """
    from myia_relay import relay

    def deep(n, x, y, z):
        if n == 0:
            return x
        return deep(n - 1, x + 1.0, y * 0.5, z - x) * 0.5 + y / (z * z + 1.0)

    for n in (50_000, 150_000, 5_000_000):
        try:
            print(relay(deep)(n, 1.0, 2.0, 3.0) > 0)
        except RecursionError:
            print("RecursionError")
    """
    done = subprocess.run([sys.executable, "-c", _as_file(code)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "RecursionError"]


def wander(n, m=1):
    return m if n < 1 else wander(n - 1, m * 3 % 1000) + wander(n - 1, (m + 7) % 1000)


def loops(n):
    total = 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                total = (total * 3 + i + j + k) % 1000003
    return total


@pytest.mark.parametrize(("f", "small", "large"), [(wander, 5, 80), (loops, 3, 20_000)])
def test_an_interrupt_is_heard(f, small, large, interruptible):
    # Not a loop that iterations for long without another one in it: calls, none of them equal, and short loops in each other.
    compiled = relay(f)
    assert compiled(small) == f(small)
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        compiled(large)  # would take years


def _as_file(code: str) -> str:
    """Functions need a file to be read from."""
    return textwrap.dedent(
        f"""
        import runpy, tempfile, os
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "program.py")
            with open(path, "w") as file:
                file.write({textwrap.dedent(code)!r})
            runpy.run_path(path)
        """
    )


OFFSETS = np.array([0.5, 0.25, 2.0])
STEPS = np.array([1, 2, 1])


def reads_globals_late(x, n):
    if n >= 3:
        return x
    y = reads_globals_late(x * 0.5, n + STEPS[n])
    return y + OFFSETS[n] if n < 2 else y * OFFSETS[0]


def calls_what_reads_globals(x):
    def go(n):
        return 0.0 if n > 2 else np.sum(x * OFFSETS[n]) + go(n + STEPS[n])

    return go(0) + reads_globals_late(x[0], 0)


@pytest.mark.sampled(3)
def test_global_arrays_in_a_recursion(executor):
    """A function may turn out to take one when its callers went on already."""
    x = np.array([1.0, -2.0, 0.5])
    f = relay(executor=executor)(calls_what_reads_globals)
    assert f(x) == calls_what_reads_globals(x)
    got = relay(executor=executor)(grad(calls_what_reads_globals))(x)
    np.testing.assert_allclose(got, slopes(calls_what_reads_globals, x), atol=1e-7)
