"""One long epoch of `relay.fit`: a step leaves a float32 behind, its loss, and nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.model.history import Counts

ROOT = Path(__file__).resolve().parents[2]
FIRST, LAST = 2_000, 22_000
ALLOWED = 4 * (LAST - FIRST)
SLACK = ALLOWED // 4  # arrays that grow have room for an eighth more


def test_counts_take_memory_for_changes_only():
    counts = Counts()
    for _ in range(1000):
        counts.add(64, 10)
    counts.add(7)
    assert len(counts.runs) == 2 and len(counts) == 10_001
    assert counts.array().tolist() == [64] * 10_000 + [7]
    assert Counts(counts.array()).runs == counts.runs
    assert len(Counts()) == 0 and Counts().array().tolist() == []


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(x, 3)


@relay
def loss(x, y):
    return relay.mse_loss(net(x), y)


class Measure(relay.Callback):
    """What Python has allocated, and what is resident, after the first and after the last step; in bytes."""

    def __init__(self):
        self.found: list[tuple[int, int]] = []

    def on_batch_end(self, run):
        if run.step in (FIRST, LAST):
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
            self.found.append((tracemalloc.get_traced_memory()[0], pages * os.sysconf("SC_PAGE_SIZE")))


def read():
    x, y = np.ones(4, np.float32), np.zeros(3, np.float32)
    for _ in range(LAST):
        yield x, y


def main(traced: str) -> None:
    if traced == "traced":
        tracemalloc.start()
    measure = Measure()
    data = relay.data.batches(read, 1, shuffle=False, prefetch=0)
    history = relay.fit(relay.create_model(net), loss, data, verbose=False, callbacks=[measure])
    assert history.steps == LAST
    print(*(last - first for first, last in zip(*measure.found, strict=True)))


@pytest.mark.campaign
@pytest.mark.parametrize("traced", ["traced", "resident"])
def test_a_step_leaves_a_float_behind(traced):
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.test_memory_of_epochs", traced],
        cwd=ROOT,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    allocated, resident = map(int, done.stdout.split())
    if traced == "traced":
        assert ALLOWED // 2 < allocated < ALLOWED + SLACK
    else:
        assert resident < ALLOWED + SLACK + 256 * 1024


if __name__ == "__main__":
    main(sys.argv[1])
