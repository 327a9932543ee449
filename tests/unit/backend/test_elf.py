"""The linker, on objects that LLVM and a C compiler write: places, tables, data of all kinds; and what it refuses."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from myia_relay.backend.native import elf, library

pytestmark = pytest.mark.skipif(not library.supported(), reason="code is not linked here")
ROOT = Path(__file__).resolve().parents[3]
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="objects for these tests come from a C compiler")

SOURCE = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>
static int counter = 41;
int zeros[5000];
double numbers[3] = {1.5, 2.5, -0.0};
static const char *names[] = {"a", "bc", "def"};
static int one(int x) { return x + 1; }
static int two(int x) { return x * 2; }
int (*table[])(int) = {one, two};
double *inside = numbers + 1;
extern int served(long);
double power(double x, double y) { return pow(x, y) + fmod(x, y); }
int count(void) { return ++counter; }
int length(int k) { return (int)strlen(names[k]); }
int apply(int k, int x) { return table[k](x); }
double pointed(void) { return *inside; }
long sum(void) { long s = 0; zeros[4999] += 7; for (int i = 0; i < 5000; i++) s += zeros[i]; return s; }
int ask(long x) { return served(x) + 1; }
int (*self(void))(void) { return count; }
int pick(int x) {
    switch (x) { case 0: return 5; case 1: return 9; case 2: return -4; case 3: return 77; case 4: return 1; }
    return 0;
}
static __attribute__((aligned(64))) char wide[64] = {1};
int aligned(void) { return (int)((long)wide % 64) + wide[0] - 1; }
const double large[20000] = {[19999] = 3.25};
double far(int k) { return large[k]; }
"""


def compiled(folder, source: str = SOURCE, *flags: str) -> bytes:
    """An object of C source."""
    (folder / "x.c").write_text(source)
    command = ["cc", "-c", "-fPIC", "-w", *(flags or ("-O1",)), "x.c", "-o", "x.o"]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "x.o").read_bytes()


@needs_cc
@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O2",), ("-O2", "-ffunction-sections", "-fdata-sections"), ("-O1", "-g")]
)
def test_code_and_data_of_all_kinds(tmp_path, flags):
    (tmp_path / "x.so").write_bytes(elf.link([compiled(tmp_path, SOURCE, *flags)], b"payload", slots=("served",)))
    lib = ctypes.CDLL(str(tmp_path / "x.so"))
    lib.power.restype = lib.pointed.restype = lib.far.restype = ctypes.c_double
    lib.power.argtypes = [ctypes.c_double] * 2
    lib.sum.restype = ctypes.c_long
    lib.self.restype = ctypes.CFUNCTYPE(ctypes.c_int)
    assert lib.power(2.0, 10.0) == 1026.0
    assert (lib.count(), lib.count(), lib.self()()) == (42, 43, 44)
    assert [lib.length(k) for k in range(3)] == [1, 2, 3]
    assert (lib.apply(0, 5), lib.apply(1, 5)) == (6, 10)
    assert lib.pointed() == 2.5 and lib.far(19999) == 3.25
    assert (lib.sum(), lib.sum()) == (7, 14)
    assert [lib.pick(k) for k in range(6)] == [5, 9, -4, 77, 1, 0]
    assert lib.aligned() == 0
    serve = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long)(lambda x: int(x) * 3)
    ctypes.c_void_p.in_dll(lib, "__served").value = ctypes.cast(serve, ctypes.c_void_p).value
    assert lib.ask(14) == 43
    assert ctypes.c_void_p.in_dll(lib, "__got_pow").value
    assert bytes(elf.payload_of((tmp_path / "x.so").read_bytes())) == b"payload"


@needs_cc
def test_c_programs_can_be_linked_with_it(tmp_path):
    (tmp_path / "libx.so").write_bytes(elf.link([compiled(tmp_path)], slots=("served",)))
    (tmp_path / "main.c").write_text(
        "double power(double, double);\nint main(void) { return power(2.0, 3.0) == 10.0 ? 7 : 1; }\n"
    )
    subprocess.run(["cc", "main.c", "libx.so", "-o", "main", "-Wl,-rpath,$ORIGIN", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "main")]).returncode == 7


FIRST = """
#include <math.h>
int shared = 5;
static int own = 100;
int __attribute__((weak)) both(void) { return 1; }
extern int other(int);
extern long served(long);
int first(int x) { return other(x) + own + both() + shared; }
double root(double x) { return sqrt(x) + pow(x, 1.5); }
long one(long x) { return served(x); }
"""
SECOND = """
#include <math.h>
extern int shared;
extern long served(long);
static int own = 200;
int both(void) { return 2; }
int other(int x) { own += 1; return x + own + shared; }
double raised(double x) { return pow(x, 2.0); }
long two(long x) { return 10 * served(x); }
"""


@needs_cc
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-ffunction-sections", "-fdata-sections")])
def test_two_objects_are_one_library(tmp_path, flags):
    objects = [compiled(tmp_path, source, *flags) for source in (FIRST, SECOND)]
    (tmp_path / "x.so").write_bytes(elf.link(objects, slots=("served",)))
    lib = ctypes.CDLL(str(tmp_path / "x.so"))
    lib.root.restype = lib.raised.restype = ctypes.c_double
    lib.root.argtypes = lib.raised.argtypes = [ctypes.c_double]
    both = lib.both()  # the first definition of a name is everybody's
    assert both == 1
    assert lib.first(3) == 3 + 201 + 5 + 100 + both + 5
    assert (lib.root(4.0), lib.raised(3.0)) == (10.0, 9.0)
    serve = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(lambda x: x + 1)
    ctypes.c_void_p.in_dll(lib, "__served").value = ctypes.cast(serve, ctypes.c_void_p).value
    assert (lib.one(1), lib.two(1)) == (2, 20)


@needs_cc
def test_exports_can_be_few(tmp_path):
    (tmp_path / "x.so").write_bytes(elf.link([compiled(tmp_path)], slots=("served",), exported=("po",)))
    lib = ctypes.CDLL(str(tmp_path / "x.so"))
    assert lib.power and lib.pointed
    with pytest.raises(AttributeError):
        _ = lib.count


@needs_cc
@pytest.mark.parametrize(
    "source, message",
    [("__thread int x = 3; int f(void) { return x; }", "thread-local"), ("int x; int f(void) { return x; }", "common")],
)
def test_what_is_not_understood_is_refused(tmp_path, source, message):
    with pytest.raises(elf.LinkError, match=message):
        elf.link([compiled(tmp_path, source, "-O1", "-fcommon")])


def test_what_is_no_object_is_refused():
    for data in (
        b"",
        b"\x7fELF" + bytes(100),
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, 62) + bytes(50),
    ):
        with pytest.raises(elf.LinkError):
            elf.link([data])


def test_checksum():
    assert not elf.whole(b"") and not elf.whole(bytes(100))
    with pytest.raises(ValueError, match="no|not"):
        elf.payload_of(bytes(1000))


def test_code_is_unloaded_when_nobody_has_it(tmp_path):
    from myia_relay import relay

    def maps() -> int:
        with open("/proc/self/maps") as file:
            return sum("memfd:myia_relay" in line for line in file)

    gc.collect()
    before = maps()

    def use() -> None:
        f = relay(eval_free)
        assert f(2.0) == 5.0
        assert maps() > before

    use()
    gc.collect()
    assert maps() == before


def eval_free(x):
    return x * 2.0 + 1.0


LISTS = """
from myia_relay import relay

@relay
def squares(n):
    xs, rows = [], []
    for i in range(n):
        xs.append(i * i)
        rows.append([i, n])
    while len(xs) > 3:
        xs.pop()
    return xs, rows

for n in range(100):
    squares(n)
print(squares(5))
"""


def test_memory_is_freed_by_the_allocator_that_it_is_from(tmp_path):
    """glibc's debugging allocator hides its names from `dlsym`, not from the loader: code once got memory from it, and
    Python gave that back to the C library."""
    (tmp_path / "lists.py").write_text(LISTS)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "lists.py")], env=env, capture_output=True, text=True, timeout=600
    )
    if "cannot be preloaded" in done.stderr:
        pytest.skip("no libc_malloc_debug.so.0 here")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "([0, 1, 4], [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5]])\n"
