"""Processes killed at random moments while they train, write the cache and export: whoever comes after sees whole files only, and
training that is taken up ends with the same bits as training that nobody disturbed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.cache.program import unpack

PROGRAM = """
    import os, sys
    import numpy as np
    from myia_relay import Float, Tensor, relay, relay_model

    folder, rounds = sys.argv[1], int(sys.argv[2])

    @relay_model
    def net(x: Tensor[Float, 6]) -> Tensor[Float, 3]:
        return relay.linear(relay.dropout(relay.tanh(relay.linear(x, num_hidden=64)), 0.25), num_hidden=3)

    @relay
    def loss(x: Tensor[Float, 6], y: Tensor[Float, 3]):
        return relay.softmax_cross_entropy(net(x), y)

    class Export(relay.Callback):
        count = 0

        def on_epoch_end(self, *_):
            self.count += 1
            if self.count % 3 == 0:
                relay.export_model(model).save(f"{folder}/model.so")

    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, 6)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 3000)]
    model = relay.create_model(net, seed=1)
    optimizer = relay.optim.adam(model, lr=0.01)
    print("ready", flush=True)
    options = dict(batch_size=50, optimizer=optimizer, seed=3, checkpoint=f"{folder}/run", callbacks=[Export()])
    relay.fit(model, loss, (x, y), epochs=rounds, **options)
    np.savez(f"{folder}/ended.npz", *model.arrays, *optimizer.arrays)
    os.replace(f"{folder}/ended.npz", f"{folder}/end.npz")
"""


def start(program, folder, cache, rounds: int) -> subprocess.Popen:
    """The program, once it has read what it needs."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "MYIA_RELAY_CACHE": str(cache), "MYIA_RELAY_CACHE_SIZE": "64"}
    command = [sys.executable, str(program), str(folder), str(rounds)]
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.stdout.close()
    return process


def check_files(folder, cache) -> None:
    """What readers see: nothing, or whole files."""
    for path in cache.rglob("*.so"):
        assert unpack(path.read_bytes())[0]["name"]
    if (folder / "model.so").exists():
        scores = relay.load_compiled(folder / "model.so")(np.ones(6, np.float32))
        assert scores.shape == (3,) and np.all(np.isfinite(scores))


def campaign(tmp_path, text: str, kills: int, rounds: int, longest: float) -> None:
    program = tmp_path / "train.py"
    program.write_text(textwrap.dedent(text))
    moments = random.Random(7)
    cache, folders = tmp_path / "cache", [tmp_path / "killed 0"]
    for k in range(kills):
        if k % 10 == 9:  # compile again, so that there is something to write
            for path in cache.rglob("*.so"):
                path.unlink()
        if (folders[-1] / "end.npz").exists():  # there is no more to kill in this one
            folders.append(tmp_path / f"killed {k}")
        process = start(program, folders[-1], cache, rounds)
        time.sleep(moments.uniform(0, longest))
        process.kill()
        process.wait()
        check_files(folders[-1], cache)
    for where in (folders[-1], tmp_path / "undisturbed"):
        assert start(program, where, cache, rounds).wait(timeout=600) == 0
    check_files(folders[-1], cache)
    for folder in folders:
        with np.load(tmp_path / "undisturbed" / "end.npz") as one, np.load(folder / "end.npz") as two:
            assert one.files == two.files
            for name in one.files:
                assert one[name].tobytes() == two[name].tobytes(), (folder.name, name)


def test_killed_once(tmp_path):
    small = PROGRAM.replace("relay.dropout(relay.tanh(relay.linear(x, num_hidden=64)), 0.25)", "x")
    campaign(tmp_path, small, kills=1, rounds=2, longest=1.5)


@pytest.mark.campaign
def test_killed_fifty_times(tmp_path):
    campaign(tmp_path, PROGRAM, kills=50, rounds=150, longest=4)
