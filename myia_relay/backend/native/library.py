"""Machine code in shared objects: loading one, giving it what it calls, calling it.

Idea: the system's loader maps the file and binds what the code takes from the C library, OpenBLAS and TVM's runtime (opened
with global symbols before). What differs from process to process, the function that serves requests and the one that starts
threads, goes through variables of the shared object that are set here. Calls go through `ctypes`; where TVM's Python packages
are loaded anyway they make a quicker callable (`use_packer`).

Input: a file, or the bytes of one. Output: `Library`, which unloads the code when nobody has it any more.
"""

from __future__ import annotations

import _ctypes
import builtins
import ctypes
import functools
import importlib.util
import itertools
import mmap
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...utils.openblas import openblas
from .elf import ALLOCATOR, VERSIONED

SERVE = "myia_relay_serve"  # what compiled code calls for a request, through the variable `__myia_relay_serve`
LAUNCH = "TVMBackendParallelLaunch"
PREFIX = "__tvm_ffi_"  # of the names of functions
SPINS = "2000"  # turns that an idle worker looks for work before it sleeps: half a millisecond on an idle machine

_serve = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object)(builtins.next)
_names = itertools.count(1)
_packer: Callable[[int], Callable] | None = None


def use_packer(packer: Callable[[int], Callable]) -> None:
    """Make functions callable by this: `(address) -> callable of numbers`."""
    global _packer
    _packer = packer


@functools.lru_cache(maxsize=1)
def supported() -> bool:
    """Whether code is linked and loaded here (otherwise TVM's own just-in-time loader does it)."""
    machine = platform.machine() in ("x86_64", "AMD64") and ctypes.sizeof(ctypes.c_void_p) == 8
    if sys.implementation.name != "cpython" or sys.platform != "linux" or not machine:
        return False
    try:
        fd = os.memfd_create("myia_relay", os.MFD_CLOEXEC)
        try:
            os.truncate(fd, mmap.PAGESIZE)
            mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE).close()
        finally:
            os.close(fd)
    except (OSError, AttributeError):  # a system that runs no code from memory
        return False
    return True


def needs_of(code: bytes) -> list[str]:
    """What an object or a shared object calls that is not in it, as `Signature.needs`."""
    found = {"blas": b"scipy_cblas_" in code or b"scipy_LAPACKE_" in code, "threads": LAUNCH.encode() in code}
    return [need for need, is_there in found.items() if is_there]


# --- what the code calls ----------------------------------------------------------------------------------------------


@functools.cache
def kernels() -> str:
    """For which processor OpenBLAS has chosen its kernels: "Haswell", "SkylakeX", ..."""
    name = openblas().scipy_openblas_get_corename
    name.restype = ctypes.c_char_p
    return name().decode()


@functools.cache
def _runtime(package: str, name: str) -> ctypes.CDLL:
    """A library of TVM's runtime; its Python package is not imported.

    Raises:
        ImportError: the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"the package {package} is not installed, and compiled code needs {name}")
    return ctypes.CDLL(str(Path(spec.origin).parent / "lib" / name), mode=ctypes.RTLD_GLOBAL)


def wanted_threads() -> int:
    """How many threads the environment asks for: TVM_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs we may run on."""
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        # OMP_NUM_THREADS may be a list, one number for each level of nesting.
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def prepare_threads(number: int) -> None:
    """Settle how the pool of threads will be; TVM's runtime makes one for each thread that launches a loop, then.

    Idle workers spin before they sleep, and a process waits for that when it ends. TVM's 300,000 turns are 0.1 s on an idle
    machine, but minutes where others want the processor: each turn hands it to them.
    """
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", SPINS)
    os.environ["TVM_NUM_THREADS"] = str(number)


@functools.cache
def launcher() -> int:
    """The address of the function that runs a loop on all threads; the pool, made at its first call, has as many as wanted."""
    prepare_threads(wanted_threads())
    _runtime("tvm_ffi", "libtvm_ffi.so")
    runtime = _runtime("tvm", "libtvm_runtime.so")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(_without_workers, runtime))
    return _address(runtime[LAUNCH])


def _without_workers(runtime: ctypes.CDLL) -> None:
    """In a child: the workers of this thread's pool are not there, so its loops run in it alone. Other threads make new pools.

    The pool itself is left alone: to take it down would be to wait for its workers. So a child ends by `os._exit`, as those
    of `multiprocessing` do.
    """
    runtime._ZN3tvm7runtime9threading17SetMaxConcurrencyEi(1)


@functools.cache
def _allocator() -> dict[str, int]:
    """The addresses of C's allocator, found as `area.free` is."""
    process = ctypes.CDLL(None)
    return {name: _address(process[name]) for name in ALLOCATOR}


def _guarded() -> dict[str, int]:
    """The addresses of the allocator for code that checks its accesses to memory."""
    from .guards import allocator  # most processes have no such code

    return {name: _address(function) for name, function in allocator().items()}


def _address(symbol: Any) -> int:
    return ctypes.cast(symbol, ctypes.c_void_p).value or 0


# --- shared objects ---------------------------------------------------------------------------------------------------


class Library:
    """The code of a shared object.

    Args:
        file: the descriptor of one, which may be closed afterwards; or the contents.
        needs: what it calls: "blas", "threads"; "guards" where its memory shall come from the guarded allocator.

    Raises:
        OSError: it cannot be loaded.
        ImportError: what it needs is not there.
    """

    def __init__(self, file: int | bytes, needs: list[str]):
        _runtime("tvm_ffi", "libtvm_ffi.so")  # where a refused argument is reported
        if "blas" in needs:
            openblas()
        self._handle = 0
        self._dll = self._open(file)
        self._handle = self._dll._handle
        self._set(SERVE, _address(_serve))
        if "threads" in needs:
            self._set(LAUNCH, launcher())
        for name in VERSIONED:
            self._set(f"got_{name}", None)
        allocator = _guarded if "guards" in needs else _allocator
        for name in ALLOCATOR:
            if self._variable(f"got_{name}") is not None:
                self._set(f"got_{name}", allocator()[name])

    def _open(self, file: int | bytes) -> ctypes.CDLL:
        if isinstance(file, int):
            # The loader takes equal names for the same file, and numbers of descriptors come again: the name counts, in dots.
            dots = "".join("./" if bit == "1" else "/" for bit in f"{next(_names):b}")
            return ctypes.CDLL(f"/proc/self/fd/{dots}{file}")
        fd = os.memfd_create("myia_relay", os.MFD_CLOEXEC)
        try:
            view = memoryview(file)
            while view:
                view = view[os.write(fd, view) :]
            return self._open(fd)
        finally:
            os.close(fd)

    def _variable(self, name: str) -> ctypes.c_void_p | None:
        """A variable; None where the code does not call what it is for."""
        try:
            return ctypes.c_void_p.in_dll(self._dll, f"__{name}")
        except ValueError:
            return None

    def _set(self, name: str, address: int | None) -> None:
        """Set a variable, where the code has it; without an address to what `dlsym` finds."""
        variable = self._variable(name)
        if variable is not None:
            variable.value = address if address is not None else _address(self._dll[name.removeprefix("got_")])

    def address(self, symbol: str) -> int:
        """The address of a symbol that the shared object exports.

        Raises:
            AttributeError: it has none of that name.
        """
        return _address(self._dll[symbol])

    def packed(self, name: str) -> Callable | None:
        """A function as a callable of numbers, where this process has the means to make one."""
        return _packer(_address(self._dll[PREFIX + name])) if _packer is not None else None

    def bound(self, name: str, arguments: int, count: int, result: int) -> Callable[[], int]:
        """A call of a function with the addresses of its arguments and its result; returns 0 unless it broke down."""
        function = ctypes.CFUNCTYPE(ctypes.c_int)(_address(self._dll[PREFIX + name]))
        numbers = (ctypes.c_void_p(0), ctypes.c_void_p(arguments), ctypes.c_int32(count), ctypes.c_void_p(result))
        return functools.partial(function, *numbers)

    def invoke(self, name: str, *values: int) -> None:
        """Call a function with integers.

        Raises:
            RuntimeError: the function refused its arguments.
        """
        words = (ctypes.c_int64 * (2 * len(values) + 2))()
        for k, value in enumerate(values):
            words[2 * k], words[2 * k + 1] = 1, value
        at = ctypes.addressof(words)
        if self.bound(name, at, len(values), at + 16 * len(values))():
            raise RuntimeError("a native function refused its arguments")

    def __del__(self, close=_ctypes.dlclose) -> None:
        if self._handle:
            close(self._handle)
