"""Code for another machine is the same bytes, whatever machine makes it: its vectors, caches, processors and names do not count."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from myia_relay.backend.native import library

from .cache_util import ROOT

PROGRAM = """
import hashlib, os, platform, sys
from tvm.target import codegen

vectors, processors, machine = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.sched_getaffinity = lambda pid: set(range(processors))
os.cpu_count = lambda: processors
sysconf = os.sysconf
os.sysconf = lambda name: processors << 20 if "CACHE" in str(name) else sysconf(name)
platform.machine = lambda: machine
platform.libc_ver = lambda *args, **kwargs: ("musl" if processors == 1 else "glibc", "")
codegen.llvm_get_system_cpu = lambda: "generic" if vectors < 64 else "skylake-avx512"
codegen.target_has_features = lambda features, target: vectors >= (64 if "avx512" in str(features) else 32)

import numpy as np
from myia_relay import Float, Float64, Tensor, relay, relay_model
from myia_relay.backend.tvm.tir import pipeline
from myia_relay.opt.kernels.soa_kernels import SoaKernels
pipeline._flags = lambda: frozenset({"avx512f"}) if vectors == 64 else frozenset()
assert pipeline.vector_bytes() == vectors

def turned(axis, x):
    angle = np.sqrt(np.sum(axis * axis))
    crossed = np.stack([axis[1] * x[2] - axis[2] * x[1], axis[2] * x[0] - axis[0] * x[2], axis[0] * x[1] - axis[1] * x[0]])
    return x * np.cos(angle) + crossed * np.sin(angle)

@relay
def rows(axes: Tensor[Float64, (40, 3)], points: Tensor[Float64, (40, 3)]):
    return relay.vmap(turned)(axes, points)

@relay
def dense(a: Tensor[Float, (40, 64)], b: Tensor[Float, (64, 48)]):
    c = np.tanh(a @ b)
    return c, np.sum(c, axis=0), np.mean(c), np.argmax(c, axis=1), np.sort(c[0]), np.fft.fft(c[0])

@relay
def large(x: Tensor[Float64, (3000, 2000)]):
    return x * 2.0 + 1.0

@relay_model
def network(x: Tensor[Float, (3, 12, 12)]):
    h = relay.relu(relay.batch_norm(relay.conv2d(x, 8, ksize=3, padding=1), axis=0))
    h = relay.max_pool(relay.conv2d(h, 8, ksize=3), 2, strides=2)
    return relay.softmax(relay.linear(relay.flatten_layer(h), 10))

ones = lambda *shape: np.ones(shape, np.float32)
EXAMPLES = {
    "rows": (rows, np.ones((40, 3)), np.ones((40, 3))), "dense": (dense, ones(40, 64), ones(64, 48)),
    "large": (large, np.ones((3000, 2000))), "network": (relay.create_model(network),),
}
for target in sys.argv[5:]:
    for name, (function, *values) in EXAMPLES.items():
        path = f"{sys.argv[4]}/{name}.a"
        relay.export_library(function, path, *values, target=target)
        print(target, name, hashlib.sha256(open(path, "rb").read()).hexdigest())
"""

HOSTS = [(16, 1, "aarch64"), (64, 48, "x86_64")]
TARGETS = ["aarch64-linux-gnu", "x86_64-linux-gnu -mcpu=x86-64-v3"]


def made(folder, host) -> str:
    command = [sys.executable, "-c", PROGRAM, *map(str, host), str(folder), *TARGETS]
    environment = {**os.environ, "MYIA_RELAY_CACHE": "0", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(host[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not library.supported(), reason="pretends to be other machines than Linux on x86-64")
def test_the_machine_that_compiles_does_not_count(tmp_path):
    first, other = [made(tmp_path, host) for host in HOSTS]
    assert len(first.splitlines()) == 2 * 4
    assert other.splitlines() == first.splitlines()
