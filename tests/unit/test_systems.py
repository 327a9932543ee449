"""Other systems, as far as this one can play them: without what macOS and Windows lack, with and without TVM."""

import pytest

from .cache.cache_util import python

# What the standard library needs is imported before it is taken away.
PROGRAM = """
import csv, ctypes, gzip, http.client, importlib.resources, logging, mmap, multiprocessing.util, os, platform, resource, sys
import urllib.request, ml_dtypes, numpy as np, safetensors.numpy, scipy_openblas32, tqdm
import click, rich.console, rich.table

system, tvm = sys.argv[1:]
if tvm == "no":
    sys.modules["tvm"] = sys.modules["tvm_ffi"] = None
else:
    import tvm, tvm_ffi

def lacks(module, *names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

lacks(os, "memfd_create", "MFD_CLOEXEC", "sched_getaffinity")
if system == "win32":
    lacks(os, "fork", "register_at_fork", "getuid", "geteuid", "fchmod", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK")
    lacks(mmap, "MAP_ANONYMOUS", "MAP_PRIVATE", "MAP_NORESERVE", "PROT_READ", "PROT_EXEC")
    ctypes.cdll.msvcrt = ctypes.CDLL(None)

    class Named(ctypes.CDLL):
        def __init__(self, name, *args, **kwargs):
            if name is None:
                raise TypeError("a library needs a name on Windows")
            super().__init__(name, *args, **kwargs)

    ctypes.CDLL = Named
    for name in ("fcntl", "pwd", "resource", "termios"):
        sys.modules[name] = None
platform.machine = lambda: {"darwin": "arm64", "win32": "AMD64"}[system]
platform.libc_ver = lambda *args: ("", "")
sys.platform = system

from myia_relay import Float, LoweringError, Tensor, cli, grad, relay, relay_model

@relay_model
def net(x: Tensor[Float, 4]):
    return relay.linear(relay.tanh(relay.linear(x, num_hidden=3)), num_hidden=2)

def body(x, n):
    total = 0.0
    for i in range(n):
        total += np.sum(np.tanh(x * i) @ x.T)
    return total

def loss(x):
    return np.sum(np.exp(-x) * x)

x = np.linspace(0, 1, 6).reshape(2, 3)
expected = body(x, 4)
for executor in ("interpreter", "python", "native") if tvm == "yes" else ("interpreter", "python"):
    assert np.isclose(relay(body, executor=executor)(x, 4), expected)
    assert np.allclose(grad(relay(loss, executor=executor))(x), np.exp(-x) * (1 - x))
run = relay(lambda model, x: model(x), executor="interpreter")
assert run(relay.create_model(net), np.ones(4, np.float32)).shape == (2,)
try:
    relay(body)(x, 4) if tvm == "no" else relay(body).save("body.so", x, 4)
except LoweringError as error:
    print(error.message)
cli.main(["doctor"])
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "system, tvm",
    [
        ("darwin", "yes"),
        ("win32", "no"),
        pytest.param("win32", "yes", marks=pytest.mark.campaign),
        pytest.param("darwin", "no", marks=pytest.mark.campaign),
    ],
)
def test_a_system_imports_interprets_and_says_what_is_missing(tmp_path, system, tvm):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    out = python(str(script), system, tvm, MYIA_RELAY_CACHE=str(tmp_path))
    message, doctor = out.split("\n", 1)
    if tvm == "no":
        assert message.startswith("native code needs the compiler TVM") and "executor='interpreter'" in message
        assert "native    native code needs the compiler TVM" in doctor
    else:
        assert message == "body cannot be written as a library: machine code of another system than Linux on x86-64"
        assert "native    by TVM's loader; each process compiles" in doctor
