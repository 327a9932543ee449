"""What the key of a compiled program is made of, part by part."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import math
import os
import platform
import types

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT
from myia_relay.cache import describe, key
from myia_relay.infer.values.treedef import Identity, TreeDef

CODE_MAY_USE = {
    *(
        "sse4_1",
        "sse4_2",
        "ssse3",
        "avx",
        "avx2",
        "avx512f",
        "fma",
        "f16c",
        "bmi1",
        "bmi2",
        "popcnt",
        "movbe",
        "abm",
        "adx",
    ),
    *(
        "amx_tile",
        "gfni",
        "vaes",
        "vpclmulqdq",
        "pclmulqdq",
        "sha_ni",
        "aes",
        "cx16",
        "xsave",
        "xsaveopt",
        "rdseed",
        "rdrand",
    ),
    *("fsgsbase", "asimd", "asimddp", "sve", "sve2"),
}


@pytest.mark.parametrize("kind", ["flags", "Features"])
def test_instruction_sets_that_code_may_use(kind, monkeypatch):
    text = f"x86_64\nmodel name\t: avx9 at 3: sse9\n{kind}\t\t: fpu {' '.join(sorted(CODE_MAY_USE))} ht"
    monkeypatch.setattr(key, "processor", lambda: text)
    assert key.instruction_sets() == CODE_MAY_USE


def test_classes_made_in_c_are_told_from_others():
    class Plain:
        pass

    assert Plain.__flags__ & describe.HEAP_TYPE
    assert not any(t.__flags__ & describe.HEAP_TYPE for t in (int, bool, list, type(None), type(len)))


def test_names_are_of_the_very_object():
    assert describe.by_name(math.sin) == ("math", "sin")
    impostor = types.FunctionType(test_names_are_of_the_very_object.__code__, {}, "sin")
    impostor.__module__, impostor.__qualname__ = "math", "sin"
    assert describe.by_name(impostor) is None and describe.by_name(3) is None


def test_ufuncs_are_numpys():
    assert describe.describe(np.sin) != describe.describe(np.cos)
    with pytest.raises(describe.Unportable):
        describe.describe(np.frompyfunc(lambda x: x, 1, 1))


def test_settings_that_change_code(monkeypatch):
    before = key.settings()
    for name in ("MYIA_RELAY_CACHE", "MYIA_RELAY_CACHE_SIZE", "MYIA_RELAY_DATA", "TVM_BIND_THREADS", "HOME"):
        monkeypatch.setenv(name, "7")
        assert key.settings() == before
    monkeypatch.setenv("TVM_THREAD_POOL_SPIN_COUNT", "7")
    assert key.settings() == before
    for name in ("MYIA_RELAY_WITHOUT", "TVM_OTHER", "LLVM_OTHER"):
        monkeypatch.setenv(name, "7")
        assert f"{name}=7" in key.settings()
        monkeypatch.setenv(name, "8")
        assert f"{name}=8" in key.settings()
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    assert key.settings()[0] == "threads=3"
    monkeypatch.setenv("TVM_NUM_THREADS", "4")
    assert key.settings()[0] == "threads=4"
    assert len(key.settings()) == len(before) + 3


def test_settings_in_any_order(monkeypatch):
    found = []
    for names in (("MYIA_RELAY_A", "TVM_B"), ("TVM_B", "MYIA_RELAY_A")):
        with monkeypatch.context() as m:
            for name in names:
                m.setenv(name, "1")
            found.append(key.settings())
    assert found[0] == found[1]


def test_versions_and_the_processor_are_told():
    found = key.versions()
    assert any(n.startswith("apache_tvm-") or ".so" in n for n in found) and len(found) > 3
    assert len(key.processor().splitlines()) > 1 and "\n" not in key.processor().splitlines()[0]


CPU = b"""processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Some \xff CPU @ 2.0GHz
stepping\t: 4
cpu MHz\t\t: 2000.1
flags\t\t: fpu sse4_2 avx2
bogomips\t: 4000.0

processor\t: 1
vendor_id\t: SomebodyElse
flags\t\t: fpu
"""


def test_the_processor_is_what_the_first_one_can_do(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"

    def processor(text):
        path.write_bytes(text)
        return key.processor.__wrapped__()

    monkeypatch.setattr(key, "open", lambda name, *a, **k: open({"/proc/cpuinfo": path}[name], *a, **k), raising=False)
    found = processor(CPU)
    assert "avx2" in found and "GenuineIntel" in found
    assert processor(CPU.replace(b"2000.1", b"1999.9").replace(b"SomebodyElse", b"Nobody")) == found
    for before, after in (
        (b"avx2", b"avx"),
        (b"Genuine", b"Other"),
        (b": 85", b": 86"),
        (b"2.0GHz", b"3.0GHz"),
        (b": 4\n", b": 5\n"),
    ):
        assert processor(CPU.replace(before, after)) != found
    assert processor(CPU.replace(b"cpu family\t: 6", b"cpu family\t: 7")) != found
    arm = b"Features\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
    found = processor(arm)
    assert processor(arm.replace(b": 1", b": 2")) == found
    for before, after in ((b"asimd", b"sve"), (b"0x41", b"0x42"), (b"0xd0c", b"0xd0d")):
        assert processor(arm.replace(before, after)) != found
    path.unlink()
    assert key.processor.__wrapped__() == platform.machine()


def backwards(monkeypatch):
    """Folders are listed in no order."""
    listdir, walk = os.listdir, os.walk
    monkeypatch.setattr(os, "listdir", lambda p: sorted(listdir(p))[::-1])
    monkeypatch.setattr(os, "walk", lambda p: [(f, d, sorted(n)[::-1]) for f, d, n in sorted(walk(p))[::-1]])


def test_versions_are_those_of_what_is_installed(tmp_path, monkeypatch):
    (tmp_path / "tvm" / "lib").mkdir(parents=True)
    libraries = [tmp_path / "tvm" / "lib" / f"{name}.so" for name in "ab"]
    for library in libraries:
        library.write_text("code")
    origin = str(tmp_path / "tvm" / "__init__.py")
    spec = importlib.machinery.ModuleSpec("tvm", None, origin=origin)
    monkeypatch.setattr(importlib.util, "find_spec", {"tvm": spec}.get)
    names = [
        "apache_tvm-0.27.0",
        "apache_tvm_ffi-0.1",
        "scipy_openblas32-0.3",
        "ml_dtypes-0.5",
        "pandas-2.0",
        "apache_tvm.libs",
    ]
    for name in names:
        (tmp_path / (name if name.endswith("libs") else f"{name}.dist-info")).mkdir()
    found = key.versions.__wrapped__()
    assert found[3:] == sorted(f"{n}.dist-info" for n in names[:4])
    with monkeypatch.context() as m:
        backwards(m)
        assert key.versions.__wrapped__() == found
    for name in names[:4]:
        path = tmp_path / f"{name}.dist-info"
        path.rename(tmp_path / f"{name}.1.dist-info")
        assert key.versions.__wrapped__() != found
        (tmp_path / f"{name}.1.dist-info").rename(path)
    libraries[0].write_text("other code")
    assert key.versions.__wrapped__() == found
    (tmp_path / "apache_tvm-0.27.0.dist-info").rename(tmp_path / "elsewhere")
    found = key.versions.__wrapped__()
    libraries[1].write_text("yet other code")
    assert key.versions.__wrapped__() != found and len(found) == len(names) + 2
    for unknown in (None, importlib.machinery.ModuleSpec("tvm", None)):
        monkeypatch.setattr(importlib.util, "find_spec", {"tvm": unknown}.get)
        assert len(key.versions.__wrapped__()) == 3


def test_the_package_is_all_of_its_sources(tmp_path, monkeypatch):
    def package(name, files):
        for path, text in files.items():
            path = tmp_path / name / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(key, "PACKAGE", str(tmp_path / name))
        return key.package_hash.__wrapped__()

    files = {"a.py": "1", "b.py": "2", "c/a.py": "3", "c/d/e.py": "4"}
    found = package("here", files)
    assert package("there", {**files, "a.txt": "1", "__pycache__/a.pyc": "1"}) == found
    with monkeypatch.context() as m:
        backwards(m)
        assert package("here", files) == found
    others = [{"a.py": "9"}, {"c/d/e.py": "9"}, {"x.py": ""}, {"a.py": "2", "b.py": "1"}, {"c/x.py": ""}]
    assert (
        len({found, *(package(f"other{k}", {**files, **other}) for k, other in enumerate(others))}) == len(others) + 1
    )
    assert package("moved", {"a.py": "1", "b.py": "2", "a/a.py": "3", "c/d/e.py": "4"}) != found


def test_everything_is_in_the_key(monkeypatch):
    def f(x, n):
        return x * n

    def g(x, n):
        return x + n

    number, static = TreeDef("dyn", FLOAT, ()), TreeDef("static", Identity(f), ())
    found, roots = key.key_of(f, [number, static], ())
    assert roots == [f, f] and found == key.key_of(f, [number, static], ())[0]
    others = [
        key.key_of(g, [number, static], ()),
        key.key_of(f, [static, number], ()),
        key.key_of(f, [number, TreeDef("static", Identity(g), ())], ()),
        key.key_of(f, [number, static], ("n",)),
        key.key_of(f, [number, static], ("m",)),
        key.key_of(f, [number, static], (), ("batched",)),
    ]
    for name, value in (("package_hash", ""), ("processor", ""), ("versions", []), ("settings", []), ("VERSION", 0)):
        with monkeypatch.context() as m:
            m.setattr(key, name, value if name == "VERSION" else lambda value=value: value)
            others.append(key.key_of(f, [number, static], ()))
    assert len({found, *(o for o, _ in others)}) == len(others) + 1
    assert key.key_of("\ud800", [], ())[0] != key.key_of("\ud801", [], ())[0]  # no text that UTF-8 has
