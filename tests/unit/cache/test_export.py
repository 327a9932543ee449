"""Libraries: written in one process, run in another without the compiler, with the same conversions, errors and results."""

import subprocess
import sys

import numpy as np
import pytest

import myia_relay
from myia_relay import Float, LoweringError, Tensor, TypeError_, cli, relay, relay_model
from myia_relay.backend.native import elf, library

from .cache_util import imported, python

pytestmark = pytest.mark.skipif(not library.supported(), reason="code is not linked here")

SCALE = 2.0
WEIGHTS = np.arange(4.0)


@relay
def scaled(x, n, k=3):
    assert n > 0, f"n is {n}, x begins with {x[0]}"
    print("n =", n)
    return {"a": x * SCALE + WEIGHTS, "b": (n * k, x.sum(), None, "text")}


@relay_model
def small(x: Tensor[Float, (1, 12, 12)]) -> Tensor[Float, 5]:
    h = relay.tanh(relay.conv2d(x, num_filter=4, ksize=3))
    return relay.linear(relay.flatten_layer(relay.max_pool(h, ksize=2)), num_hidden=5)


def test_functions(tmp_path, capsys):
    path = tmp_path / "f.so"
    x = np.linspace(1, 2, 4)
    scaled.save(path, x, 2, k=5)
    f = relay.load_compiled(path)
    for a in (x, x[::-1], np.repeat(x, 2)[::2], x.astype(">f8")):
        out, expected = f(a, 2, k=7), scaled(a, 2, k=7)
        assert repr(out) == repr(expected)
    assert capsys.readouterr().out == "n = 2\n" * 8
    with pytest.raises(AssertionError, match=r"n is 0, x begins with 1\.0") as caught:
        f(x, 0, k=1)
    assert caught.traceback[-1].lineno + 1 == scaled.__wrapped__.__code__.co_firstlineno + 2
    assert str(caught.traceback[-1].path) == __file__


def test_arguments_that_do_not_fit(tmp_path):
    path = tmp_path / "f.so"
    x = np.ones(4)
    scaled.save(path, x, 2, k=5)
    f = relay.load_compiled(str(path))
    for args, kwargs, message in (
        (
            (np.ones(5), 2),
            {"k": 1},
            r"argument 0 of scaled is float64\[5\], but the library was compiled for float64\[4\]",
        ),
        ((np.ones(4, np.float32), 2), {"k": 1}, r"float32\[4\]"),
        ((x, 2.0), {"k": 1}, "argument 1 of scaled is float"),
        ((x, 2), {}, "takes 3 arguments"),
        ((x, 2, 3), {}, "takes 3 arguments, of which k by name"),
        ((x, object()), {"k": 1}, "cannot be passed"),
    ):
        with pytest.raises(TypeError_, match=message):
            f(*args, **kwargs)


def test_symbolic_sizes(tmp_path):
    @relay
    def norm(x: Tensor[Float, ("n", 3)]):
        return x / np.sqrt(np.sum(x * x))

    norm.save(tmp_path / "n.so", np.ones((2, 3), np.float32))
    f = relay.load_compiled(tmp_path / "n.so")
    for n in (1, 7):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_array_equal(f(x), norm(x))
    with pytest.raises(TypeError_, match="float32"):
        f(np.ones((2, 4), np.float32))


def test_free_names_are_as_they_were(tmp_path):
    module = imported(tmp_path, "K = 2.0\nW = np.ones(3)\n@relay\ndef f(x):\n    return x * K + W\n")
    module.f.save(tmp_path / "f.so", np.ones(3))
    module.K, module.W = 3.0, np.zeros(3)
    np.testing.assert_array_equal(relay.load_compiled(tmp_path / "f.so")(np.ones(3)), np.full(3, 3.0))


def test_what_cannot_be_written(tmp_path):
    @relay
    def with_function(g, x):
        return g(x)

    @relay
    def with_model(x):
        model = relay.create_model(small)
        return model(x)

    with pytest.raises(LoweringError, match="argument"):
        with_function.save(tmp_path / "f.so", abs, 1.0)
    with pytest.raises(LoweringError, match="makes a model"):
        with_model.save(tmp_path / "f.so", np.ones((1, 12, 12), np.float32))
    assert not list(tmp_path.glob("*.so"))


def test_files_that_are_no_libraries(tmp_path):
    path = tmp_path / "f.so"
    scaled.save(path, np.ones(4), 2, k=1)
    data = path.read_bytes()
    for bad in (b"", data[:-1], data[:3000] + b"?" + data[3001:], b"text"):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="f.so: not a library of this compiler, or a damaged one"):
            relay.load_compiled(path)
    with pytest.raises(FileNotFoundError):
        relay.load_compiled(tmp_path / "nothing.so")


def test_a_file_that_is_replaced(tmp_path):
    path = tmp_path / "f.so"
    for k in (1.0, 2.0):
        imported(tmp_path, f"@relay\ndef f(x):\n    return x + {k}\n").f.save(path, 1.0)
        assert relay.load_compiled(path)(1.0) == 1.0 + k


def test_another_processor(tmp_path, monkeypatch):
    from myia_relay.cache import export

    scaled.save(tmp_path / "f.so", np.ones(4), 2, k=1)
    monkeypatch.setattr(export, "instruction_sets", lambda: {"sse4_1"})
    with pytest.raises(ValueError, match="another machine"):
        relay.load_compiled(tmp_path / "f.so")


# A model in a process that has no compiler: neither Python packages of TVM nor its compiler's library can be opened.
RUN = """
import sys
import numpy as np

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tvm", "tvm_ffi") and name not in ("tvm", "tvm_ffi"):
            raise ImportError(name)

from myia_relay import relay
sys.modules["tvm"] = sys.modules["tvm_ffi"] = None  # to import them is an error
import importlib.util
found = importlib.util.find_spec
def find_spec(name, package=None):
    before = sys.modules.pop(name, 0)
    try:
        return found(name, package)
    finally:
        sys.modules[name] = before if before != 0 else None
importlib.util.find_spec = find_spec
model = relay.load_compiled(sys.argv[1])
x = np.load(sys.argv[2])
np.save(sys.argv[3], model(x))
maps = open("/proc/self/maps").read()
print("libtvm_compiler" in maps, sys.modules["tvm"])
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_model_without_the_compiler(tmp_path, threads):
    model = relay.export_model(relay.create_model(small, init=0.3))
    model.save(tmp_path / "m.so")
    x = np.random.default_rng(0).standard_normal((1, 12, 12)).astype(np.float32)
    expected = model(x)
    assert model.params["conv2d_0.weight"].size  # the file has a copy
    model.params = {n: a * 0 for n, a in model.params.items()}
    np.testing.assert_allclose(relay.load_compiled(tmp_path / "m.so")(x), expected, rtol=1e-6)
    np.save(tmp_path / "x.npy", x)
    paths = [str(tmp_path / name) for name in ("m.so", "x.npy", "y.npy")]
    out = python(RUN, *paths, TVM_USE_RUNTIME_LIB="1", TVM_NUM_THREADS=threads)
    assert out.split() == ["False", "None"]
    np.testing.assert_allclose(np.load(paths[2]), expected, rtol=1e-6)


def test_the_command_writes_a_library(tmp_path, capsys):
    (tmp_path / "prog.py").write_text("def f(x, y):\n    return x * y + 1\n")
    path = tmp_path / "lib.so"
    assert cli.main(["compile", f"{tmp_path}/prog.py:f", "--args", "2.0", "3", "-o", str(path)]) == 0
    assert "kernel" in capsys.readouterr().out
    assert relay.load_compiled(path)(4.0, 5) == 21.0
    assert myia_relay.load_compiled is relay.load_compiled


def test_doctor_shows_the_programs(capsys):
    assert cli.main(["doctor"]) == 0
    assert "programs" in capsys.readouterr().out


def test_tools_read_the_file(tmp_path):
    path = tmp_path / "f.so"
    scaled.save(path, np.ones(4), 2, k=1)
    data = path.read_bytes()
    assert data[16:18] == b"\x03\x00" and elf.whole(data)  # a shared object
    code = f"import ctypes; lib = ctypes.CDLL({str(path)!r}); print(lib['__tvm_ffi_main'] is not None)"
    code = f"from myia_relay.backend.native.library import _runtime; _runtime('tvm_ffi', 'libtvm_ffi.so'); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
