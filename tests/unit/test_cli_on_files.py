"""The commands that take a file of the user: run, ir, explain, profile, cache, train; and completion."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from myia_relay import cli

PROGRAM = """
import numpy as np

def cube(x, y=1.0):
    return x * x * x / y

def parts(x):
    return {"sum": np.sum(x), "twice": x + x}

def positive(x):
    assert x > 0.0, "not positive"
    return x
"""


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    (tmp_path / "program_of_a_user.py").write_text(PROGRAM)
    return f"{tmp_path}/program_of_a_user.py"


def test_run(program, tmp_path, capsys):
    assert cli.main(["run", f"{program}:cube", "-3", "2.0"]) == 0
    assert cli.main(["run", f"{program}:cube", "--args", "-3", "-.5e0", "--executor", "python"]) == 0
    assert cli.main(["run", f"{program}:cube", "inf"]) == 0
    assert capsys.readouterr().out == "-13.5\n54.0\ninf\n"
    np.save(tmp_path / "x.npy", np.arange(3.0))
    out = tmp_path / "out.npy"
    assert cli.main(["run", f"{program}:cube", f"{tmp_path}/x.npy", "--export", str(out)]) == 0
    assert np.load(out).tolist() == [0.0, 1.0, 8.0]
    assert cli.main(["run", f"{program}:parts", str(out), "--export", str(tmp_path / "parts.npz")]) == 0
    with np.load(tmp_path / "parts.npz") as parts:
        assert parts["sum"] == 9.0 and parts["twice"].tolist() == [0.0, 2.0, 16.0]
    assert cli.main(["run", f"{program}:parts", str(out), "--export", str(out)]) == 1
    assert "is written as .npz" in capsys.readouterr().err


def test_exceptions_of_a_program_that_is_run(program, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", f"{program}:positive", "-1.0"])
    assert stop.value.code == 1
    err = capsys.readouterr().err
    assert "program_of_a_user.py" in err and err.endswith("AssertionError: not positive\n")
    assert "myia_relay/cli" not in err and "api.py" not in err


def test_commands_that_look_inside(program, tmp_path, capsys):
    assert cli.main(["ir", f"{program}:cube", "2.0"]) == 0
    assert "mul(" in capsys.readouterr().out
    assert cli.main(["ir", f"{program}:cube", "2.0", "--format", "svg", "-o", f"{tmp_path}/a.svg"]) == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert cli.main(["ir", f"{program}:cube", "2.0", "--stage", "none"]) == 1
    assert "choose one of parsed, inferred" in capsys.readouterr().err
    assert cli.main(["explain", f"{program}:cube", "float64[9]"]) == 0
    assert "passes" in capsys.readouterr().out
    words = ["--trace", f"{tmp_path}/t.json", "--flame", f"{tmp_path}/f.svg"]
    assert cli.main(["profile", f"{program}:cube", "float64[1000]", *words]) == 0
    assert "program_of_a_user.py:5" in capsys.readouterr().out
    assert json.loads((tmp_path / "t.json").read_text()) and (tmp_path / "f.svg").read_text().startswith("<svg")


def test_cache(program, capsys):
    assert cli.main(["cache", "list"]) == 0
    assert capsys.readouterr().out == "no compiled programs are kept\n"
    for words in (["cube", "2.0"], ["positive", "1.0"]):
        assert cli.main(["run", f"{program}:{words[0]}", words[1]]) == 0
    capsys.readouterr()
    assert cli.main(["cache", "list", "--paths"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["function", "bytes", "last", "used", "file"]
    assert sorted(row.split()[0] for row in rows) == ["cube", "positive"]
    assert all(Path(row.split()[-1]).is_file() for row in rows)
    assert cli.main(["cache", "info"]) == 0
    assert "2 compiled programs" in capsys.readouterr().out
    assert cli.main(["cache", "clear", "cube"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 compiled programs, 0.0 MB")
    assert cli.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 compiled programs")


def test_completion(monkeypatch, capsys):
    for shell in ("zsh", "fish"):
        assert cli.main(["completion", shell]) == 0
        assert cli.COMPLETION in capsys.readouterr().out
    monkeypatch.setenv(cli.COMPLETION, "bash_complete")
    for words, expected in [("myia-relay pro", "plain,profile"), ("myia-relay train --opt", "plain,--optimizer")]:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        with pytest.raises(SystemExit) as stop:
            cli.main([])
        assert stop.value.code == 0 and expected in capsys.readouterr().out.splitlines()


NET = """
import numpy as np
from myia_relay import relay, relay_model, Tensor, Float

@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(x, 3)

@relay(executor="python")
def squares(x, y):
    d = net(x) - y
    return np.sum(d * d)

@relay(executor="python")
def accuracy(x, y):
    return np.argmax(net(x)) == np.argmax(y)

def data():
    x = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
    return x, np.eye(3, dtype=np.float32)[np.argmax(x[:, :3], 1)]
"""


def test_train_a_model_of_a_file(tmp_path, capsys):
    (tmp_path / "net_of_a_user.py").write_text(NET)
    file = f"{tmp_path}/net_of_a_user.py"
    words = ["--loss", "squares", "--batch-size", "16", "--resume", f"{tmp_path}/run", "--log", f"{tmp_path}/log.csv"]
    words += ["--optimizer", "sgd", "--lr", "0.01"]
    assert cli.main(["train", f"{file}:net", *words, "--epochs", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("net on data; 2 epochs, batches of 16, Sgd 0.01\n") and "accuracy " in out
    log = (tmp_path / "log.csv").read_text()
    assert log.splitlines()[0] == "epoch,loss,seconds,steps,accuracy" and len(log.splitlines()) == 3
    words += ["--save", f"{tmp_path}/net.safetensors", "--validation", f"{tmp_path}/xy.npz"]
    np.savez(tmp_path / "xy.npz", x=np.zeros((5, 4), np.float32), y=np.zeros((5, 3), np.float32))
    assert cli.main(["train", f"{file}:net", *words, "--epochs", "3"]) == 0
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert len(rows) == 4 and rows[0].endswith("val_squares,val_accuracy") or rows[0].endswith("val_loss,val_accuracy")
    assert rows[1].startswith(log.splitlines()[1]), "the log goes on where the run was interrupted"
    assert (tmp_path / "net.safetensors").is_file()
    for words, message in [
        ([f"{file}:nett"], "did you mean 'net'"),
        ([f"{file}:net"], "has no function 'loss' of one example"),
        ([f"{file}:net", "--loss", "mse", "--data", "missing"], "has no 'missing'"),
        ([f"{file}:net", "--loss", "mse", "--metric", "acuracy"], "did you mean 'accuracy'"),
    ]:
        assert cli.main(["train", *words]) == 1
        assert message in capsys.readouterr().err
