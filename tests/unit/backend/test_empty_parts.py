"""Nothing is read of an array that turns out to be empty: here it ends where memory that nobody may read begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, mmap
import numpy as np
from myia_relay import Float64, Tensor, relay

area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
x = np.frombuffer(area, count=mmap.PAGESIZE // 8).reshape(-1, 4)
n = len(x)
Rows = Tensor[Float64, ("n", 4)]


def joined(x: Rows, k: int):
    return np.concatenate([x[:2], x[k:]])


def padded(x: Rows, k: int):
    return np.pad(x[k:], ((1, 1), (0, 0)))


def added(x: Rows, k: int):
    rows, total = x[k:], np.zeros(4)
    for i in range(len(rows)):
        total += rows[i]
    return total


def appended(x: Rows, k: int):
    rows = x[k:]
    for i in range(2):
        rows = np.concatenate([rows, x[:1]])
    return rows


def both(x: Rows, y: Tensor[Float64, ("m", 4)]):
    return np.concatenate([x, y])


for k in (n, n - 1, 0):
    np.testing.assert_array_equal(relay(CASE)(x, k), CASE(x, k))
np.testing.assert_array_equal(relay(both)(x[n:], x), x)
np.testing.assert_array_equal(relay(both)(x, x[n:]), x)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects memory by mprotect")
@pytest.mark.parametrize("case", ["joined", "padded", "added", "appended"])
@pytest.mark.sampled(4)
def test_nothing_is_read_of_what_turns_out_to_be_empty(case, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("CASE", case))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
