"""Random numbers have the same bits on processors with narrower vectors, and on those that contract no products and sums."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
from myia_relay.backend.tvm.tir import pipeline

left_out = sys.argv[1].split(",")
flags = frozenset(f for f in pipeline._flags() if not f.startswith(tuple(left_out)))
pipeline._flags = lambda: flags

from myia_relay import relay

random = relay.random


def draws(key):
    return (
        random.bits(key, (1003,)), random.uniform(key, (1003,), -1.0, 2.5), random.uniform(key, (1003,), dtype=np.float32),
        random.normal(key, (1003,)), random.normal(key, (1003,), np.float32), random.exponential(key, (1003,)),
        random.gumbel(key, (1003,), np.float32), random.gamma(key, 0.7, (1003,)), random.truncated_normal(key, -1.0, 2.0, (1003,)),
        random.randint(key, (1003,), -5, 2**61), random.permutation(key, 103),
    )


key = random.key(7)
for a, b in zip(relay(draws)(key), relay(draws, executor="interpreter")(key), strict=True):
    assert a.tobytes() == b.tobytes()
print(pipeline.vector_bytes())
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("left_out, most", [("avx512", 32), ("avx,fma", 16)])
def test_narrower_vectors_draw_the_same_bits(left_out, most, tmp_path):
    environment = {**os.environ, "MYIA_RELAY_CACHE": str(tmp_path)}
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), left_out],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= most
