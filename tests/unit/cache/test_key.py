"""What the key of a compiled program is made of, part by part."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

from myia_relay.cache import describe, key

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
    text = f"x86_64\nmodel\t: 85\n{kind}\t\t: fpu {' '.join(sorted(CODE_MAY_USE))} ht"
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


def test_versions_and_the_processor_are_told():
    found = key.versions()
    assert any(n.startswith("apache_tvm-") or ".so" in n for n in found) and len(found) > 3
    assert len(key.processor().splitlines()) > 1 and "\n" not in key.processor().splitlines()[0]
    assert len(key.package_hash()) == 32
