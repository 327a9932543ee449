"""The command line: what it prints, its exit statuses, and the user's mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from myia_relay import cli
from myia_relay.cli import arguments, bench, commands, environment
from myia_relay.cli.train import choose_data
from myia_relay.model import datasets
from myia_relay.model.history import History
from myia_relay.utils.errors import TypeError_

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, **variables: str) -> subprocess.CompletedProcess:
    """Run the command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "myia_relay", *words], capture_output=True, text=True, env=environment
    )


def test_help():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for command in commands.COMMANDS:
        (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [command]]
        assert not line.endswith("..."), "the first line of its help is too long"


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "Usage:"),
        (("trian",), "did you mean 'train'?"),
        (("train",), "Missing argument"),
        (("train", "alexnet"), "neither lenet nor FILE.py:MODEL"),
        (("train", "lenet", "--epochs", "0"), "0 is not in the range"),
        (("train", "lenet", "--data", "cifar"), "none of auto, mnist"),
        (("train", "lenet", "--epoch", "3"), "--epochs"),
        (("run", "f.py:f", "x + 1"), "neither a Python literal nor a type"),
        (("run", "f.py:f", "missing.npy"), "missing.npy"),
        (("cache", "clean"), "No such command 'clean'"),
    ],
)
def test_a_wrong_command_line(words, message, capsys):
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert "Usage:" in err and message in err and out == ""


def test_statuses_of_processes():
    done = run("trian")
    assert done.returncode == 2 and "Usage:" in done.stderr and "Traceback" not in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "myia_relay", "doctor", "--json"]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(writer)
    assert done.returncode == 141 and done.stderr == b""


def test_doctor(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernel").write_bytes(bytes(2_500_000))
    done = run("doctor", MYIA_RELAY_CACHE=str(tmp_path / "cache"), MYIA_RELAY_DATA=str(tmp_path))
    assert done.returncode == 0 and done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    values = dict(line.split(None, 1) for line in lines if " " in line)
    assert values["numpy"] == np.__version__
    assert values["holds"] == "1 files, 2.5 MB"
    assert values["folder"] == f"{tmp_path / 'cache'} (MYIA_RELAY_CACHE)"
    assert values["mnist"].startswith("not here")
    assert values["cpu"] and values["cores"] and values["products"].startswith("OpenBLAS for ")
    done = run("doctor", "--json", MYIA_RELAY_CACHE=str(tmp_path / "cache"), MYIA_RELAY_DATA=str(tmp_path))
    found = {name: text for part in json.loads(done.stdout).values() for name, text in part.items()}
    assert {name: " ".join(text.split()) for name, text in values.items()}.items() <= found.items()
    assert list((tmp_path / "cache").iterdir()) == [tmp_path / "cache" / "kernel"], "doctor wrote something"


def test_doctor_finds_data(mnist_dir, capsys):
    assert cli.main(["doctor"]) == 0
    assert f"{mnist_dir}\n" in capsys.readouterr().out


def test_doctor_names_a_wrong_variable(capsys, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_DATA", "/nowhere/at/all")
    assert cli.main(["doctor"]) == 0
    assert "which is not a folder" in capsys.readouterr().out


# Errors: raised by a command, shown by main.


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (arguments.UsageError("no such thing"), 1, "error: no such thing\n"),
        (datasets.DatasetError("no data"), 1, "error: no data\n"),
        (TypeError_("an int is no array"), 1, "TypeError_: an int is no array\n"),
        (FileNotFoundError("there is no file x"), 1, "error: there is no file x\n"),
    ],
)
def test_errors(error, status, message, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(environment, "sections", fail)
    assert cli.main(["doctor"]) == status
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err and out == "" and len(err.strip().splitlines()) == 1
    if status == 1:
        with pytest.raises(type(error)):
            cli.main(["--traceback", "doctor"])


def test_our_own_errors_are_not_hidden(monkeypatch):
    def fail():
        raise ZeroDivisionError

    monkeypatch.setattr(environment, "sections", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


# The choice of data.


def test_mnist_where_it_is(mnist_dir, capsys):
    name, train, test = choose_data("auto")
    assert (name, len(train), len(test)) == ("mnist", 60000, 10000)
    assert capsys.readouterr() == ("", "")


def test_digits_where_mnist_is_not(monkeypatch, capsys):
    def missing():
        raise datasets.DatasetError("mnist was not found and cannot be downloaded. Tried:\n  here\n  there")

    monkeypatch.setattr(datasets, "mnist", missing)
    name, train, test = choose_data("auto")
    assert (name, len(train), len(test)) == ("digits", 1437, 360)
    out = capsys.readouterr().out
    assert out == "no MNIST here (mnist was not found and cannot be downloaded): using digits, part of the package\n"
    with pytest.raises(datasets.DatasetError):
        choose_data("mnist")


# train, with a stand-in for the compiler: what is asked of it, and what is printed.


@pytest.fixture
def trainer(monkeypatch):
    """A stand-in for `relay.fit` and the model: remembers what it was called with."""
    calls = {}

    class Model:
        def save(self, path):
            Path(path).write_text("parameters")

    def fit(model, loss, data, **options):
        calls.update(options, loss=loss, data=data)
        if "fit" in calls.get("interrupt", ()):
            raise KeyboardInterrupt
        losses = [2.5] + [0.25] * (options["epochs"] * -(-len(data) // options["batch_size"]) - 1)
        return History([{"epoch": 1, "loss": 0.125}], losses)

    def create_model(function, *, seed):
        calls.update(function=function, model_seed=seed)
        return Model()

    program = SimpleNamespace(lenet="lenet", loss="loss", accuracy=lambda model, data: 0.9875)
    optim = SimpleNamespace(adam=lambda model, lr: ("adam", lr))
    monkeypatch.setattr(
        "myia_relay.relay", SimpleNamespace(fit=fit, create_model=create_model, optim=optim), raising=False
    )
    monkeypatch.setitem(sys.modules, "myia_relay.model.lenet", program)
    monkeypatch.setattr("myia_relay.model.lenet", program, raising=False)
    return calls


def test_train(trainer, capsys, tmp_path):
    words = ["--data", "digits", "--epochs", "2", "--batch-size", "100", "--seed", "7", "--save", str(tmp_path / "m")]
    assert cli.main(["train", "lenet", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "LeNet on digits: 1,437 images to train, 360 to test; 2 epochs, batches of 100, Adam 0.001"
    assert lines[1] == "loss           0.1250 (first step 2.5000)"
    assert lines[2] == "test accuracy  98.75 %"
    assert "steps/s" in lines[3] and "images/s" in lines[3]
    assert (tmp_path / "m").read_text() == "parameters"
    assert trainer["epochs"] == 2 and trainer["batch_size"] == 100 and len(trainer["data"]) == 1437
    assert trainer["optimizer"] == ("adam", 1e-3) and trainer["seed"] == trainer["model_seed"] == 7
    assert trainer["shuffle"] and trainer["function"] == "lenet" and trainer["loss"] == "loss"


def test_train_by_default(trainer, capsys):
    assert cli.main(["train", "lenet", "--data", "digits"]) == 0
    assert trainer["epochs"] == 20 and trainer["batch_size"] == 64


def test_ctrl_c_while_training(trainer, capsys, tmp_path):
    trainer["interrupt"] = ("fit",)
    assert cli.main(["train", "lenet", "--data", "digits", "--save", str(tmp_path / "m")]) == 130
    assert capsys.readouterr().err == "\nstopped by Ctrl-C; nothing was written\n"
    assert not (tmp_path / "m").exists()


# compile: what it is given.


@pytest.mark.parametrize(
    ("text", "value"),
    [("2.0", 2.0), ("-3", -3), ("True", True), ("(1, 2.5)", (1, 2.5)), ("{'a': 1}", {"a": 1}), ("None", None)],
)
def test_literal_arguments(text, value):
    found = arguments.example(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("float32[3,4]", "float32", (3, 4)),
        ("int64[2]", "int64", (2,)),
        ("bool[1, 2]", "bool", (1, 2)),
        ("uint8[]", "uint8", ()),
        ("bfloat16[2]", "bfloat16", (2,)),
    ],
)
def test_array_arguments(text, dtype, shape):
    found = arguments.example(text)
    assert found.dtype.name == dtype and found.shape == shape and not found.any()


@pytest.mark.parametrize("text", ["x + 1", "float33[2]", "f(", "float32[a]", "__import__('os')"])
def test_bad_arguments(text):
    with pytest.raises(ValueError, match="is no array type|is neither a Python literal nor a type"):
        arguments.example(text)


def test_load_function(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "helper_of_user.py").write_text("factor = 3\n")
    (tmp_path / "user_module.py").write_text(
        "import helper_of_user\ndef triple(x):\n    return helper_of_user.factor * x\n"
    )
    function = arguments.load(f"{tmp_path}/user_module.py:triple")
    assert function(2) == 6 and sys.modules["user_module"].triple is function
    for text, message in [
        (f"{tmp_path}/user_module.py:tripel", "has no 'tripel'; did you mean 'triple'"),
        (f"{tmp_path}/nothing.py:f", "there is no file"),
        ("user_module.py", "does not name a function"),
        (f"{tmp_path}/user_module.py:a b", "does not name a function"),
    ]:
        with pytest.raises(arguments.UsageError, match=message):
            arguments.load(text)


def test_compile_reports(tmp_path):
    (tmp_path / "module.py").write_text("def cube(x):\n    return x * x * x\n")
    done = run("compile", f"{tmp_path}/module.py:cube", "--ir", "--args", "float32[8]")
    assert done.returncode == 0, done.stderr
    assert "mul" in done.stdout and "float32[8]" in done.stdout and "native program cube" in done.stdout
    done = run("compile", f"{tmp_path}/module.py:cube", "--args", "'text'")
    assert done.returncode == 1 and "can't multiply sequence" in done.stderr and "Traceback" not in done.stderr


def test_bench_needs_a_checkout(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "site-packages" / "myia_relay" / "cli" / "bench.py"))
    assert cli.main(["bench"]) == 1
    assert "run this in a checkout" in capsys.readouterr().err


def test_bench_hands_on_words_and_status(monkeypatch, tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()  # without it, a `benchmarks` on PYTHONPATH goes first
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys\nsys.exit(len(sys.argv))\n")
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "myia_relay" / "cli" / "bench.py"))
    assert cli.main(["bench", "lenet", "--quick"]) == 3
