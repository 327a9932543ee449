"""Functions in many threads and processes at once: of joblib and Dask, and all of them on one cache of programs."""

import importlib.util
import os
import subprocess
import sys
import threading

import pytest

from myia_relay import relay

from .cache.cache_util import ROOT, python

TASKS = """
import sys
import numpy as np
from myia_relay import Float, Tensor, grad, relay, relay_model, value_and_grad, vmap

scale = 3.0

@relay
def f(x, y):
    return scale * x ** 3 * y ** 4

@relay_model
def net(x: Tensor[Float, 4]):
    return relay.linear(x, num_hidden=2)

def run(g, *args):
    out = g(*args)
    return out, g.cache_info().misses if hasattr(g, "cache_info") else 0

def flat(value):
    return np.concatenate([flat(v) for v in value]) if isinstance(value, tuple) else np.ravel(value)

def joblib_(tasks):
    import joblib
    return joblib.Parallel(n_jobs=2)(joblib.delayed(run)(*t) for t in tasks)

def dask_(tasks):
    import dask
    return dask.compute(*[dask.delayed(run)(*t) for t in tasks], scheduler="processes", num_workers=2)

def distributed_(tasks):
    from dask.distributed import Client, LocalCluster
    options = dict(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        return client.gather([client.submit(run, *t, pure=False) for t in tasks])

if __name__ == "__main__":
    model, x = relay.create_model(net), np.ones(4, np.float32)
    both, local = relay(vmap(value_and_grad(f))), relay(lambda x: scale * np.sum(np.sin(x)))
    tasks = [(f, 2.0, 3.0), (grad(f), 2.0, 3.0), (both, np.arange(3.0), np.ones(3)), (model, x), (local, x)]
    expected = [run(*t)[0] for t in tasks]
    found = globals()[sys.argv[1] + "_"](tasks)
    for (out, _), want in zip(found, expected):
        assert np.array_equal(flat(out), flat(want))
    print([misses for _, misses in found])
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("package", ["joblib", "dask", "distributed"])
def test_workers_of_other_packages_get_compiled_code(tmp_path, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    script = tmp_path / "tasks.py"
    script.write_text(TASKS)
    environment = {"MYIA_RELAY_CACHE": str(tmp_path / "cache"), "MYIA_RELAY_CACHE_SIZE": "64"}
    lines = python(str(script), package, **environment).splitlines()
    assert lines[-1] == "[0, 0, 0, 0, 0]"  # this process compiled and wrote files; the workers read them


SHARED = """
import sys, threading
import numpy as np
from myia_relay import Float, Tensor, grad, relay, relay_model

threads, rounds = int(sys.argv[1]), int(sys.argv[2])

def product(x, w):
    return np.sum(np.tanh(x @ w))

def sums(x, n):
    kept, total = [], 0.0
    for i in range(n):
        kept.append(x * i)
        total += kept[-1]
    return total, kept

def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)

def checked(x, k):
    if k % 3 == 0:
        raise ValueError(f"k is {k}, x is {x}")
    return x * k

@relay_model
def net(x: Tensor[Float, 12]):
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=7)), num_hidden=2)

def outcome(f, *args):
    try:
        return repr(f(*args))
    except ValueError as error:
        return str(error)

def work(k, found):
    rng = np.random.default_rng(k)
    x, w = rng.standard_normal((4, 5)), rng.standard_normal((5, 3))
    image = rng.standard_normal(12).astype(np.float32)
    start.wait()
    for i in range(rounds):
        calls = [(product, x, w), (gradient, x, w), (sums, 0.5 * k, 3 + i % 4), (power, 1.1, k + i), (checked, 0.25, k + i)]
        calls.append((model, image))
        found.append([outcome(functions.get(f, f), *args) for f, *args in calls])

plain = [product, sums, power, checked]
functions = {f: relay(f) for f in plain}
gradient = grad(functions[product], "w")
model = relay.create_model(net, seed=1)
start = threading.Barrier(threads)
results = [[] for _ in range(threads)]
workers = [threading.Thread(target=work, args=(k, results[k])) for k in range(threads)]
[t.start() for t in workers]
[t.join() for t in workers]
again = [[] for _ in range(threads)]
start = threading.Barrier(1)
for k in range(threads):
    work(k, again[k])
assert results == again  # in turn, as at once
for k in range(threads):
    for i, answers in enumerate(again[k]):
        rng = np.random.default_rng(k)
        x, w = rng.standard_normal((4, 5)), rng.standard_normal((5, 3))
        assert np.isclose(float(answers[0].split("(")[-1].rstrip(")")), product(x, w))
        assert answers[2] == outcome(sums, 0.5 * k, 3 + i % 4) and answers[4] == outcome(checked, 0.25, k + i)
        assert np.isclose(float(answers[3]), power(1.1, k + i))
print("right")
"""


def share(tmp_path, processes: int, threads: int, rounds: int) -> None:
    environment = {"MYIA_RELAY_CACHE": str(tmp_path / "cache"), "MYIA_RELAY_CACHE_SIZE": "64", "PYTHONPATH": str(ROOT)}
    script = tmp_path / "shared.py"
    script.write_text(SHARED)
    command = [sys.executable, str(script), str(threads), str(rounds)]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = [subprocess.Popen(command, env={**os.environ, **environment}, **pipes) for _ in range(processes)]
    for process in running:
        out, errors = process.communicate(timeout=500)
        assert (process.returncode, out) == (0, "right\n"), errors


def test_processes_and_threads_share_functions_and_the_cache(tmp_path):
    share(tmp_path, 2, 4, 20)


@pytest.mark.campaign
def test_six_processes_and_eight_threads_share_functions_and_the_cache(tmp_path):
    for attempt in range(3):
        (tmp_path / str(attempt)).mkdir()
        share(tmp_path / str(attempt), 6, 8, 300)


def test_python_runs_while_compiled_code_does():
    """Compiled code holds no lock of the interpreter."""

    @relay
    def spin(n, x):
        total = 0.0
        for _ in range(n):
            total = total * 0.5 + x
        return total

    assert spin(2, 1.0) == 1.5
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        spin(30_000_000, 1.0)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    turns = 0
    while not ended.is_set():
        turns += 1
    thread.join()
    assert turns > 1000
