"""Processes that end while daemon threads run native code, or compile: quietly, and with the status that they end with."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEAD = """
import sys, threading, time
import numpy as np
from myia_relay import relay

@relay
def long(x, n):
    s = 0.0
    for i in range(n):
        s = s + np.sin(x + s)
    return s

@relay
def short(x):
    return x * 2.0 + 1.0

@relay
def product(a):
    return a @ a

def again(function, *args):
    while True:
        function(*args)

def compiles():
    while True:
        relay(lambda x: np.tanh(x) * np.exp(x))(np.ones(3))

def daemon(function, *args):
    threading.Thread(target=function, args=args, daemon=True).start()
"""

CASES = {
    "a long loop": "long(0.5, 10)\ndaemon(long, 0.5, 10**15)\n",
    "many short calls": "short(0.5)\n[daemon(again, short, 0.5) for _ in range(3)]\n",
    "calls without a poll": "a = np.ones((600, 600))\nproduct(a)\ndaemon(again, product, a)\n",
    "compilations": "short(0.5)\ndaemon(compiles)\n",
}


def run(case: str, cache: str) -> subprocess.CompletedProcess:
    program = HEAD + CASES[case] + "time.sleep(0.3)\nprint('end', flush=True)\nsys.exit(3)\n"
    environment = {**os.environ, "MYIA_RELAY_CACHE": cache, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300, env=environment
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(2)
def test_a_process_that_compiled(case):
    found = run(case, "0")
    assert (found.returncode, found.stdout, found.stderr) == (3, "end\n", "")


def test_a_process_that_read_the_cache(tmp_path):
    for _ in range(2):
        found = run("a long loop", str(tmp_path))
        assert (found.returncode, found.stdout, found.stderr) == (3, "end\n", "")


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES)
def test_a_dozen_processes(case):
    for _ in range(12):
        found = run(case, "0")
        assert (found.returncode, found.stdout, found.stderr) == (3, "end\n", "")
