"""The batch-1 training loop in a process of its own: Ctrl-C leaves whole steps, and memory does not grow with the steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

# With x = 1 and a loss that adds up all outputs, every gradient is 1: after k whole steps all parameters are equal.
PROGRAM = """
    import resource, signal, sys
    import numpy as np
    from myia_relay import Float, Tensor, relay, relay_model

    @relay_model
    def net(x: Tensor[Float, (40,)]) -> Tensor[Float, (30,)]:
        return relay.linear(x, num_hidden=30) + relay.linear(x, num_hidden=30) + relay.linear(x, num_hidden=30)

    @relay
    def loss(x):
        return np.sum(net(x))

    @relay(executor=sys.argv[1])
    def train(model, x, steps):
        for _ in range(steps):
            relay.update_model_params(model, relay.grad(model, loss, (x,)), lr=1.0)
        return model

    model = relay.create_model(net, init=0.0)
    x = np.ones(40, np.float32)
    train(model, x, 3)
    steps = int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even where this was started with SIGINT ignored
    print("start", flush=True)
    try:
        train(model, x, steps)
        print("finished")
    except KeyboardInterrupt:
        print("interrupted")
    values = {float(v) for p in model.params.values() for v in np.unique(p)}
    print(len(values), -min(values) - 3, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
"""


def start(tmp_path, executor: str, steps: int) -> subprocess.Popen:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return subprocess.Popen(
        [sys.executable, path, executor, str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


def finish(process: subprocess.Popen) -> tuple[str, int, float, int]:
    """How it ended, how many different values the parameters have, whole steps, and peak memory in KiB."""
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    lines = out.split("\n")
    assert process.returncode == 0 and len(lines) >= 2, err
    values, steps, memory = lines[-2].split()
    return lines[-3], int(values), float(steps), int(memory)


@pytest.mark.sampled(3)
@pytest.mark.serial
def test_an_interrupt_leaves_whole_steps(tmp_path, executor):
    process = start(tmp_path, executor, 10**9)
    assert process.stdout.readline() == "start\n", process.stderr.read()
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    how, values, steps, _ = finish(process)
    assert how == "interrupted"
    # Beyond 2**24 a float32 no longer counts, so all steps that were made are to be seen.
    assert values == 1 and 0 < steps < 2**24


@pytest.mark.serial
def test_memory_does_not_grow_with_the_steps(tmp_path):
    peaks = []
    for steps in (20_000, 100_000):
        how, values, made, memory = finish(start(tmp_path, "native", steps))
        assert (how, values, made) == ("finished", 1, steps)
        peaks.append(memory)
    assert peaks[1] - peaks[0] < 3_000, f"peak memory in KiB for 20,000 and 100,000 steps: {peaks}"
