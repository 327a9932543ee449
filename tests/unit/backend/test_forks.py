"""Processes that fork: children run parallel loops and compile, whatever the parent and its threads have done before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

HEAD = """
import multiprocessing, os, sys, threading, time, warnings
import numpy as np
from myia_relay import relay
warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads

@relay
def f(x):
    return np.tanh(x) * 2.0 + np.exp(x)

@relay
def g(x):
    return np.sin(x) - np.exp(x) * 3.0

X = np.linspace(-1.0, 1.0, 300_000).reshape(300, 1000)

def check_f(_=None):
    np.testing.assert_allclose(f(X), np.tanh(X) * 2.0 + np.exp(X), rtol=1e-12, atol=1e-12)
    return os.getpid()

def check_g():
    np.testing.assert_allclose(g(X), np.sin(X) - np.exp(X) * 3.0, rtol=1e-12, atol=1e-12)

def forked(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work()
        print("child is done", flush=True)
        os._exit(0)  # as children of `multiprocessing` end: TVM's pool waits for its workers otherwise
    assert os.waitpid(pid, 0)[1] == 0
    work()
"""

CASES = {
    "nothing before": "forked(lambda: (check_f(), check_g()))",
    "compiled before": "f.tir(X); g.tir(X)\nforked(lambda: (check_f(), check_g()))",
    "run before": "check_f()\nforked(lambda: (check_f(), check_g()))\nforked(lambda: forked(check_g))",
    "a thread in the child": """
def work():
    workers = [threading.Thread(target=w) for w in (check_f, check_g, check_f)]
    [w.start() for w in workers], [w.join() for w in workers]
check_f()
forked(work)
""",
    "run by another thread before": """
t = threading.Thread(target=check_f); t.start(); t.join()
forked(check_f)
""",
    "multiprocessing": """
check_f()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert os.getpid() not in pool.map(check_f, range(8))
print("child is done")
""",
    "while a thread compiles": """
from myia_relay import api
begun = threading.Event()
compile_program = api.compile_program
def slowly(*args):
    begun.set()
    time.sleep(0.3)
    return compile_program(*args)
api.compile_program = slowly
t = threading.Thread(target=check_f); t.start()
begun.wait()
forked(lambda: (check_f(), check_g()))
t.join()
""",
    "while a thread holds a lock": """
held, free = threading.Event(), threading.Event()
def hold():
    with f._lock:
        held.set()
        free.wait()
t = threading.Thread(target=hold); t.start()
held.wait()
pid = os.fork()
if pid == 0:
    check_f()
    print("child is done", flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
free.set()
t.join()
check_f()
""",
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(4)
def test_a_child_runs_parallel_loops(tmp_path, case):
    path = tmp_path / "forks.py"
    path.write_text(HEAD + CASES[case] + "\nprint('parent is done')\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TVM_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")  # Python says there what goes wrong in a hook of a fork
    assert set(done.stdout.splitlines()) == {"child is done", "parent is done"}


def test_a_process_with_several_heaps_forks(tmp_path):
    """Threads that pass trees have a heap each; together these take more address space than there is memory."""
    path = tmp_path / "heaps.py"
    path.write_text(
        """
import os
from myia_relay.backend.native.heap import Heap

heaps = [Heap() for _ in range(3)]
pid = os.fork()
if pid == 0:
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_no_workers_without_parallel_loops(tmp_path):
    """Compiling starts none, so that a process has none to wait for when it ends."""
    path = tmp_path / "few.py"
    path.write_text(
        HEAD
        + """
before = len(os.listdir("/proc/self/task"))
small = relay(lambda x: np.tanh(x) + 1.0)
g.tir(X)
small(np.ones(3))
assert len(os.listdir("/proc/self/task")) == before
check_f()
assert len(os.listdir("/proc/self/task")) == before + 1
assert os.environ["TVM_THREAD_POOL_SPIN_COUNT"]
"""
    )
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("no /proc")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TVM_NUM_THREADS": "2"}
    env.pop("MYIA_RELAY_CHECKED", None)  # such code runs its loops in one thread
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
