"""The cache of programs: found again by what they are, never stale, and harmless whatever happens to its files."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from myia_relay import ShapeError, grad, relay
from myia_relay.backend.native import library
from myia_relay.cache import store

from .cache_util import NAME, PLAIN, files, imported, loaded, python

pytestmark = [
    pytest.mark.skipif(not library.supported(), reason="code is not linked here"),
    pytest.mark.usefixtures("folder"),
]


def test_found_again(folder):
    first = imported(folder, PLAIN).f
    assert first(2.0, 3.0) == 648.0 and not loaded(first) and first.cache_info().misses == 1
    again = imported(folder, PLAIN).f
    assert again(2.0, 3.0) == 648.0 and loaded(again)
    assert again(3.0, 2.0) == 432.0 and again.cache_info().misses == 0
    assert again(2, 3) == 648 and again.cache_info().misses == 1  # other types, another program
    assert "loaded" not in again.explain(2.0, 3.0) and "main" in again.asm(2.0, 3.0)  # these compile where they have to


# What a program is about that other processes find again: the expression, and its arguments.
FOUND = {
    "det": ("np.linalg.det(x)", "np.eye(3)"),
    "slogdet": ("np.linalg.slogdet(x)", "np.eye(3)"),
    "eigh": ("np.linalg.eigh(x).eigenvalues", "np.eye(3)"),
    "svd": ("np.linalg.svd(x)", "np.eye(3)"),
    "qr": ("np.linalg.qr(x)", "np.eye(3)"),
    "gradient of det": ("grad(lambda a: np.linalg.det(a))(x)", "np.eye(3)"),
    "unique": ("np.unique(x, return_counts=True)", "np.array([2, 1, 2])"),
    "list": ("sum(x) + len(x)", "[1.0, 2.0]"),
    "list of integers": ("[v * 2 for v in x]", "[1, 2, 3]"),
    "list that is handed back": ("x", "[1, 2, 3]"),
    "nested lists": ("[[v + 1 for v in row] for row in x]", "[[1, 2], [3]]"),
    "dict with a list": ("x['a'] + x['b'][0]", "{'a': 1.0, 'b': [2.0]}"),
    "lists that are made": ("[[i * j for j in range(i)] for i in range(x)]", "4"),
}


@pytest.mark.parametrize("what", FOUND)
@pytest.mark.sampled(3)
def test_what_other_processes_find(folder, what):
    expression, argument = FOUND[what]
    text = f"@relay\ndef f(x):\n    return {expression}\n"
    made, again = imported(folder, text).f, imported(folder, text).f
    want, got = made(eval(argument)), again(eval(argument))
    assert not loaded(made) and loaded(again)
    assert repr(got) == repr(want)


# Program, the same with a change, what to call: the change is noticed wherever it is.
CHANGES = {
    "body": ("@relay\ndef f(x):\n    return x + 1.0\n", "@relay\ndef f(x):\n    return x + 2.0\n"),
    "operands": ("@relay\ndef f(x):\n    return x - 1.0\n", "@relay\ndef f(x):\n    return 1.0 - x\n"),
    "helper": (
        "def h(x):\n    return x * 2.0\n@relay\ndef f(x):\n    return h(x)\n",
        "def h(x):\n    return x * 3.0\n@relay\ndef f(x):\n    return h(x)\n",
    ),
    "helper of a helper": (
        "def g(x): return x + 1.0\ndef h(x): return g(x)\n@relay\ndef f(x):\n    return h(x)\n",
        "def g(x): return x + 5.0\ndef h(x): return g(x)\n@relay\ndef f(x):\n    return h(x)\n",
    ),
    "decorated helper": (
        "@relay\ndef h(x):\n    return x * 2.0\n@relay\ndef f(x):\n    return h(x)\n",
        "@relay\ndef h(x):\n    return x * 3.0\n@relay\ndef f(x):\n    return h(x)\n",
    ),
    "global": ("K = 2.0\n@relay\ndef f(x):\n    return x * K\n", "K = 3.0\n@relay\ndef f(x):\n    return x * K\n"),
    "kind of a global": (
        "K = 2\n@relay\ndef f(x):\n    return K, x\n",
        "K = True\n@relay\ndef f(x):\n    return K, x\n",
    ),
    "sign of a zero": (
        "K = 0.0\n@relay\ndef f(x):\n    return K * abs(x)\n",
        "K = -0.0\n@relay\ndef f(x):\n    return K * abs(x)\n",
    ),
    "last bit": (
        "K = np.float32(0.1)\n@relay\ndef f(x):\n    return K\n",
        "K = np.nextafter(np.float32(0.1), np.float32(1))\n@relay\ndef f(x):\n    return K\n",
    ),
    "container": (
        "K = {'a': [1.0, 2.0]}\n@relay\ndef f(x):\n    return x * K['a'][1]\n",
        "K = {'a': [1.0, 4.0]}\n@relay\ndef f(x):\n    return x * K['a'][1]\n",
    ),
    "string": (
        "MODE = 'a'\n@relay\ndef f(x):\n    return x if MODE == 'a' else -x\n",
        "MODE = 'b'\n@relay\ndef f(x):\n    return x if MODE == 'a' else -x\n",
    ),
    "default": ("@relay\ndef f(x, k=2.0):\n    return x * k\n", "D = 3.0\n@relay\ndef f(x, k=D):\n    return x * k\n"),
    "computed default": (
        "D = 2.0\ndef h(x, k=D): return x * k\n@relay\ndef f(x):\n    return h(x)\n",
        "D = 3.0\ndef h(x, k=D): return x * k\n@relay\ndef f(x):\n    return h(x)\n",
    ),
    "cell": (
        "def make(k):\n    @relay\n    def f(x):\n        return x * k\n    return f\nf = make(2.0)\n",
        "def make(k):\n    @relay\n    def f(x):\n        return x * k\n    return f\nf = make(3.0)\n",
    ),
    "function chosen": (
        "def a(x): return x + 1.0\ndef b(x): return x + 2.0\nh = a\n@relay\ndef f(x):\n    return h(x)\n",
        "def a(x): return x + 1.0\ndef b(x): return x + 2.0\nh = b\n@relay\ndef f(x):\n    return h(x)\n",
    ),
    "builtin hidden by a global": (
        "@relay\ndef f(x):\n    return abs(x)\n\n\n",
        "@relay\ndef f(x):\n    return abs(x)\n\ndef abs(x): return 7.0\n",
    ),
    "class": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: float\n    def m(self): return self.a\n"
        "@relay\ndef f(x):\n    return P(x).m()\n",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: float\n    def m(self): return -self.a\n"
        "@relay\ndef f(x):\n    return P(x).m()\n",
    ),
    "default by keyword": (
        "def h(x, *, k=2.0): return x * k\n@relay\ndef f(x):\n    return h(x)\n",
        "def h(x, *, k=2.0): return x * k\n@relay\ndef f(x):\n    return h(x)\nh.__kwdefaults__['k'] = 3.0\n",
    ),
    "method bound anew": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: float\n    def m(self): return self.a\n"
        "@relay\ndef f(x):\n    return P(x).m()\n",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: float\n    def m(self): return self.a\n"
        "@relay\ndef f(x):\n    return P(x).m()\n\ndef other(self): return -self.a\nP.m = other\n",
    ),
    "default of a field": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    a: float\n    b: float = 1.0\n"
        "@relay\ndef f(x):\n    return P(x).b\n",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    a: float\n    b: float = 2.0\n"
        "@relay\ndef f(x):\n    return P(x).b\n",
    ),
    "base class": (
        "class B:\n    def m(self): return 1.0\nfrom dataclasses import dataclass\n@dataclass(frozen=True)\nclass P(B):\n"
        "    a: float\n@relay\ndef f(x):\n    return P(x).m() + x\n",
        "class B:\n    def m(self): return 2.0\nfrom dataclasses import dataclass\n@dataclass(frozen=True)\nclass P(B):\n"
        "    a: float\n@relay\ndef f(x):\n    return P(x).m() + x\n",
    ),
    "derivative": (
        "def h(x): return x * x\n@relay\ndef f(x):\n    return grad(h)(x)\n",
        "def h(x): return x * x * x\n@relay\ndef f(x):\n    return grad(h)(x)\n",
    ),
    "order of parameters": ("def h(a, b): return a - b\n@relay\ndef f(x):\n    return h(a=x, b=1.0)\n",)
    + ("def h(b, a): return a + b\n@relay\ndef f(x):\n    return h(a=x, b=1.0)\n",),
    "static argument of an option": (
        "@relay(fastmath=False)\ndef f(x):\n    return x / 3.0\n",
        "@relay(debug_nans=True)\ndef f(x):\n    return x / 3.0 + 1.0\n",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(folder, name):
    before, after = CHANGES[name]
    for text in (before, after, before):
        module = imported(folder, text)
        expected = module.f.__wrapped__(2.0) if name != "derivative" else {before: 4.0, after: 12.0}[text]
        result = module.f(2.0)
        assert repr(result) == repr(expected) and type(result) is type(expected)
    assert loaded(module.f), "the first program is still good"


def test_an_annotation_that_is_computed(folder):
    text = "N = {}\n@relay\ndef f(x: Tensor[Float64, (N,)]):\n    return x.sum()\n"
    assert imported(folder, text.format(3)).f(np.ones(3)) == 3.0
    with pytest.raises(ShapeError):
        imported(folder, text.format(4)).f(np.ones(3))


def test_static_values(folder):
    text = "@relay(static='n')\ndef f(x, n):\n    return x * n\n"
    assert imported(folder, text).f(2.0, 3) == 6.0
    again = imported(folder, text).f
    assert again(2.0, 4) == 8.0 and not loaded(again)
    last = imported(folder, text).f
    assert last(2.0, 3) == 6.0 and loaded(last)


def test_functions_as_arguments(folder):
    text = "def a(x): return x + {}\n@relay\ndef f(g, x):\n    return g(x)\n"
    for k, hit in ((1.0, False), (2.0, False), (1.0, True)):
        module = imported(folder, text.format(k))
        assert module.f(module.a, 1.0) == 1.0 + k and loaded(module.f) == hit


def test_free_names_are_watched_after_loading(folder):
    text = "K = 2.0\ndef h(x): return x * K\n@relay\ndef f(x):\n    return h(x)\n"
    imported(folder, text).f(1.0)
    module = imported(folder, text)
    assert module.f(1.0) == 2.0 and loaded(module.f)
    module.K = 5.0
    assert module.f(1.0) == 5.0
    module.h = lambda x: x - 1.0
    assert module.f(1.0) == 0.0


CLASSES = """
from dataclasses import dataclass

def h(x, *, k=2.0): return x * k

@dataclass(frozen=True)
class P:
    a: float
    def m(self): return self.a
    @property
    def p(self): return 10.0
    def __mul__(self, x): return self.a * x

@relay
def f(p): return p.m() + p.p + p * 2.0 + h(p.a)
"""


def test_members_and_keyword_defaults_are_watched_after_loading(folder):
    first = imported(folder, CLASSES)
    assert first.f(first.P(1.0)) == 1.0 + 10.0 + 2.0 + 2.0
    module = imported(folder, CLASSES)
    p = module.P(1.0)
    assert module.f(p) == 15.0 and loaded(module.f)
    module.h.__kwdefaults__["k"] = 3.0
    assert module.f(p) == 16.0
    module.P.p = property(lambda self: 20.0)
    assert module.f(p) == 26.0
    module.P.__mul__ = lambda self, x: 100.0
    assert module.f(p) == 124.0


def test_arrays_in_free_names_are_arguments(folder):
    text = "W = np.full(3, {})\n@relay\ndef f(x):\n    return x * W\n"
    np.testing.assert_array_equal(imported(folder, text.format(2.0)).f(np.ones(3)), np.full(3, 2.0))
    module = imported(folder, text.format(2.0).replace("full(3, 2.0)", "full(3, 5.0)"))
    np.testing.assert_array_equal(module.f(np.ones(3)), np.full(3, 5.0))
    assert loaded(module.f)
    module.W = np.ones(4)
    with pytest.raises(ValueError):
        module.f(np.ones(3))


def test_every_kind_of_result(folder):
    text = (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: object\n    b: object\n"
        "@relay\ndef f(x, n):\n    return {'r': P(x * n, [n, None]), 's': ('text', x.sum(), n > 1, np.int8(3))}\n"
    )
    results = []
    for _ in range(2):
        module = imported(folder, text)
        results.append(module.f(np.arange(3.0), 2))
        assert type(results[-1]["r"]) is module.P
    assert loaded(module.f) and repr(results[0]) == repr(results[1])


def test_symbolic_sizes_and_into(folder):
    text = "@relay\ndef f(x: Tensor[Float64, ('n',)]):\n    return np.tanh(x) + x[::-1]\n"
    for hit in (False, True):
        f = imported(folder, text).f
        for n in (3, 5, 4000):
            x = np.linspace(-1, 1, n)
            np.testing.assert_allclose(f(x), np.tanh(x) + x[::-1])
            out = np.empty(n)
            assert f.into(out)(x[::-1]) is out
            np.testing.assert_allclose(out, np.tanh(x[::-1]) + x)
        assert len(f._programs) == 1 and loaded(f) == hit


def test_functions_of_numpy_that_are_written_here(folder):
    text = "@relay\ndef f(x):\n    return np.cross(x, x[::-1])\n"
    for hit in (False, True):
        f = imported(folder, text).f
        x = np.array([1.0, 2.0, 4.0])
        np.testing.assert_allclose(f(x), np.cross(x, x[::-1]))
        assert loaded(f) == hit


def test_large_constants(folder):
    text = "@relay\ndef f(x):\n    return x @ np.eye(70) + np.arange(70) * 1.5\n"
    x = np.random.default_rng(0).standard_normal((70, 70))
    for hit in (False, True):
        f = imported(folder, text).f
        np.testing.assert_allclose(f(x), x + np.arange(70) * 1.5)
        assert loaded(f) == hit


# Files.


@pytest.mark.parametrize("harm", ["truncated", "empty", "flipped", "foreign", "other library"])
def test_damaged_files(folder, harm):
    imported(folder, PLAIN).f(2.0, 3.0)
    (path,) = files()
    data = path.read_bytes()
    bad = {
        "truncated": data[:-1000],
        "empty": b"",
        "flipped": data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        "foreign": b"\x7fELF" + os.urandom(20000),
        "other library": Path(library._runtime("tvm_ffi", "libtvm_ffi.so")._name).read_bytes(),
    }[harm]
    path.unlink()
    path.write_bytes(bad)
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and not loaded(f)
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and loaded(f)


def test_a_folder_that_cannot_be_written(folder, monkeypatch):
    (folder / "cache").write_text("a file stands where the folder should be")
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and f.cache_info().misses == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_refuses(folder, monkeypatch, code):
    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(store, "_write", refuse)
    assert imported(folder, PLAIN).f(2.0, 3.0) == 648.0
    assert not files()


@pytest.mark.parametrize(
    "name, value", [("MYIA_RELAY_CACHE", "0"), ("MYIA_RELAY_CACHE", "off"), ("MYIA_RELAY_CACHE_SIZE", "0")]
)
def test_switched_off(folder, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    for _ in range(2):
        f = imported(folder, PLAIN).f
        assert f(2.0, 3.0) == 648.0 and not loaded(f)
    assert not list((folder / "cache").rglob("*.so"))


def test_settings_are_part_of_the_key(folder, monkeypatch):
    imported(folder, PLAIN).f(2.0, 3.0)
    for name, value in (("MYIA_RELAY_SOMETHING", "1"), ("OMP_NUM_THREADS", "7")):
        with monkeypatch.context() as m:
            m.delenv("TVM_NUM_THREADS", raising=False)
            m.setenv(name, value)
            f = imported(folder, PLAIN).f
            assert f(2.0, 3.0) == 648.0 and not loaded(f)


def test_old_files_make_room(folder, monkeypatch):
    for k in range(6):
        imported(folder, PLAIN + f"# {k}\n@relay\ndef g(x):\n    return x + {k}\n").g(1.0)
        os.utime(files()[-1], (1e9 + k, 1e9 + k))
    paths = files()
    total = sum(p.stat().st_size for p in paths)
    for k, path in enumerate(sorted(paths)):
        os.utime(path, (1e9 + k, 1e9 + k))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", str(total * 0.75 / 1e6))
    store.sweep(folder / "cache" / "programs", now=True)
    left = files()
    assert 0 < sum(p.stat().st_size for p in left) <= total * 0.75 and set(left) == set(sorted(paths)[-len(left) :])


def test_variants_of_one_key_are_bounded(folder):
    for k in range(store.VARIANTS + 4):
        assert imported(folder, "K = 1\n@relay\ndef f(x):\n    return x * K\n").f(1.0) == 1.0
        module = imported(folder, "K = 1\n@relay\ndef f(x):\n    return x * K\n")
        module.K = k + 2
        assert module.f(1.0) == k + 2
    assert len(files()) <= store.VARIANTS


def test_deleted_while_in_use(folder):
    imported(folder, PLAIN).f(2.0, 3.0)
    f = imported(folder, PLAIN).f
    assert f(2.0, 3.0) == 648.0 and loaded(f)
    shutil.rmtree(folder / "cache")
    assert f(3.0, 2.0) == 432.0
    again = imported(folder, PLAIN).f
    assert again(2.0, 3.0) == 648.0 and not loaded(again)


def test_what_has_no_description_is_not_kept(folder):
    class Thing:
        k = 2.0

    thing = Thing()

    @relay
    def f(x):
        return x * thing.k

    assert f(1.0) == 2.0 and not files()
    thing.k = 3.0
    assert f(1.0) == 3.0


def test_transformed_functions(folder):
    for hit in (False, True):
        g = grad(imported(folder, PLAIN).f, "x")
        assert g(2.0, 3.0) == 972.0 and loaded(g) == hit
        second = grad(grad(imported(folder, PLAIN).f, "x"), "y")
        assert second(2.0, 3.0) == 1296.0 and loaded(second) == hit


# Another process.

SCRIPT = """
import sys
import myia_relay
import os, signal, threading, time
import numpy as np
from myia_relay import relay

@relay
def checked(x, n):
    assert n > 0, f"n is {n}, x is {x}"
    for i in range(n):
        print("iteration", i, i * 0.5)
    return x * n

@relay
def deep(n):
    if n == 0:
        return 0
    return 1 + max(deep(n - 1), 0)

@relay
def spin(n):
    t = 0
    for i in range(n):
        t += i * i % 7
    return t

@relay
def product(a, b):
    return np.tanh(a @ b).sum(axis=0)

print(checked(np.ones(2), 2))
try:
    checked(np.ones(2), -1)
except AssertionError as error:
    tb = error.__traceback__
    while tb.tb_next:
        tb = tb.tb_next
    print("AssertionError", error, tb.tb_lineno, tb.tb_frame.f_code.co_name)
print(deep(60000))
try:
    deep(10**7)
except RecursionError as error:
    print("RecursionError")
print(spin(10))
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    spin(10**12)
except KeyboardInterrupt:
    print("interrupted")
print(spin(11))
print(product(np.eye(300), np.ones((300, 3)))[:1])
results = []
threads = [threading.Thread(target=lambda: results.append(spin(10**6))) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(set(results)))
print("compiler", "tvm" in sys.modules, "tvm_ffi" in sys.modules, file=sys.stderr if len(sys.argv) > 1 else sys.stdout)
"""


@pytest.mark.serial
def test_another_process_runs_without_the_compiler(folder, monkeypatch):
    for name in [n for n in os.environ if n.startswith("TVM_")]:
        monkeypatch.delenv(name)  # the first process sets some when it compiles: these are not part of the key
    script = folder / "script.py"
    script.write_text(SCRIPT)
    first, second = (python(str(script)) for _ in range(2))
    assert first.splitlines()[-1] == "compiler True True"
    assert second.splitlines()[-1] == "compiler False False"
    assert first.splitlines()[:-1] == second.splitlines()[:-1]
    assert "AssertionError n is -1, x is [1. 1.] 10 checked" in second and "interrupted" in second


def test_two_processes_at_once(folder):
    import subprocess
    import sys

    from .cache_util import HEAD, ROOT

    script = folder / "both.py"
    script.write_text(HEAD + PLAIN + "for k in range(3):\n    print(f(2.0, 3.0), f(2, k))\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = {p.communicate(timeout=300)[0] for p in running}
    assert len(outputs) == 1 and all(p.returncode == 0 for p in running)
    assert len(files()) == 2 and not list((folder / "cache").rglob("*.tmp"))
    assert NAME not in outputs


def test_importing_imports_no_compiler():
    assert python("import sys, myia_relay; print('tvm' in sys.modules, 'tvm_ffi' in sys.modules)").split() == [
        "False",
        "False",
    ]


LAYERS = """
from myia_relay import Float, Tensor, relay_model, value_and_grad

@relay_model
def net(x: Tensor[Float, (5, 4)]):
    h = relay.batch_norm(relay.linear(x, 4, init="xavier_uniform"))
    ys, _ = relay.gru(relay.dropout(h, 0.5), 4, bidirectional=True)
    return relay.multi_head_attention(ys, 2)

def loss(x):
    return np.sum(net(x) ** 2)

@relay
def f(model, x):
    value, grads = value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value
"""


def test_training_steps_of_layers(folder):
    values = []
    for hit in (False, True):
        module = imported(folder, LAYERS)
        model = relay.create_model(module.net, seed=1, init=0.5)
        x = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
        values.append([module.f(model, x) for _ in range(3)])
        assert loaded(module.f) == hit
    assert values[0] == values[1] and len(set(values[0])) == 3
