"""Our own pipeline from tirx to machine code: structural passes only, no arithmetic simplification.

Idea: TVM's default pipeline rewrites user arithmetic as if floats were reals and integers never wrapped (`x - x -> 0`,
`x == x -> True`, `a + b < a -> False`). What those rewrites gain on indices, LLVM gains too, and LLVM is exact. This
pipeline therefore only flattens buffers, vectorises, unrolls and builds the packed ABI; arithmetic reaches LLVM as it
was written, and `exact.py` writes it so that it survives. (Buffers have one axis from the start, but without the
flattening, which takes as long as all other passes together, code is slower: an LSTM's gradient takes 1.4 times as
long.)

Input: a PrimFunc, a dict of name -> PrimFunc, or an IRModule. Output: a runtime module, `module["name"](*arrays)`.

Source: the passes of `tvm.tirx.compilation_pipeline`, minus StmtSimplify, NarrowDataType, CommonSubexprElim and
StorageRewrite; measured on apache-tvm 0.27.

Two rules for the PrimFuncs that are given to it:

- Allocate small buffers with `block.local` (annotation `disable_lower_builtin`). A plain AllocBuffer becomes a call of
  TVMBackendAllocWorkspace, which is slow, keeps LLVM from using registers, and fails in private functions.
- Buffers that callers own need `data_alignment=<itemsize>` (see `param`), or plain NumPy memory segfaults.
"""

from __future__ import annotations

import contextlib
import functools
import platform
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx
from tvm.target import codegen

from ...native.standalone import TargetMachine

PIPELINE = "myia_exact"
NEON = 16  # bytes of the vectors that every other machine has

_standalone: ContextVar[TargetMachine | None] = ContextVar("standalone", default=None)


def standalone() -> TargetMachine | None:
    """The machine on which code will run without Python, where such code is being made."""
    return _standalone.get()


@contextlib.contextmanager
def made_for(machine: TargetMachine) -> Iterator[None]:
    """Code that is made meanwhile runs without Python, on this machine."""
    token = _standalone.set(machine)
    try:
        yield
    finally:
        _standalone.reset(token)


def c_function(name: str) -> str:
    """The function that code calls for one of C's whose arguments are not 64 bits wide everywhere."""
    return name if standalone() is None else f"myia_relay_{name}"


# Feature names that LLVM may assume from the CPU's name while a hypervisor masks them; LLVM name -> /proc/cpuinfo name.
_MASKABLE = {
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
}


def _factory() -> tuple[Any, Any, Any]:
    """Returns the (module pass, host finaliser, device finaliser) that `tirx.build` asks a pipeline for."""
    transform = tirx.transform
    sequence = tvm.ir.transform.Sequential(
        [
            transform.FlattenBuffer(),
            transform.VectorizeLoop(True),
            transform.UnrollLoop(),
            transform.AnnotateEntryFunc(),
            transform.MakePackedAPI(),
        ]
    )

    @tvm.transform.module_pass(opt_level=0)
    def lower(mod: tvm.ir.IRModule, _ctx: tvm.transform.PassContext) -> tvm.ir.IRModule:
        return sequence(mod)

    # LowerIntrin is needed for FloorDiv/FloorMod in index expressions. It also turns Add(Mul(a, b), c) into a
    # fused multiply-add, which exact.mul prevents by its fence (and which contract=True welcomes).
    host = functools.partial(tvm.ir.transform.Sequential, [transform.LowerTVMBuiltin(), transform.LowerIntrin()])
    device = functools.partial(tvm.ir.transform.Sequential, [transform.LowerIntrin()])
    return lower, host, device


tirx.register_tir_pipeline(PIPELINE, _factory)


@functools.cache
def host_target(cpu: str | None = None, features: tuple[str, ...] = ()) -> tvm.target.Target:
    """The LLVM target of this machine.

    Args:
        cpu: LLVM's CPU name; None asks LLVM. `"generic"` gives portable code of the architecture's baseline.
        features: further LLVM features, e.g. `("+avx2", "-avx512f")`.

    Returns:
        The target, with 512-bit vectors allowed where the machine has them and features masked by a
        hypervisor taken out.
    """
    name = cpu or codegen.llvm_get_system_cpu()
    attrs = list(features)
    if cpu is None:
        attrs += [f"-{feature}" for feature in _masked()]
        if "avx512f" in _flags():
            attrs.append("-prefer-256-bit")
    target = {"kind": "llvm", "mcpu": name}
    if attrs:
        target["mattr"] = attrs
    return tvm.target.Target(target)


@functools.cache
def _flags() -> frozenset[str]:
    """Returns the x86 feature flags the kernel reports, or nothing elsewhere."""
    info = Path("/proc/cpuinfo")
    if platform.machine() not in ("x86_64", "AMD64") or not info.exists():
        return frozenset()
    for line in info.read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def _masked() -> list[str]:
    """Returns LLVM features that the CPU's name may imply but the kernel does not report."""
    flags = _flags()
    return [llvm for llvm, kernel in _MASKABLE.items() if kernel not in flags] if flags else []


def vector_bytes() -> int:
    """Width in bytes of the widest vectors worth using on the machine that code is made for (16, 32 or 64)."""
    machine = standalone()
    return NEON if machine is not None and machine.triple else _host_vector_bytes()


@functools.cache
def _host_vector_bytes() -> int:
    target = host_target()
    # llvm_get_vector_width says 512 for every x86 CPU, so ask for the features instead.
    if codegen.target_has_features("avx512f", target):
        return 64
    return 32 if codegen.target_has_features("avx", target) else 16


def lanes(dtype: str) -> int:
    """How many elements of `dtype` one vector of this machine holds."""
    return vector_bytes() * 8 // tvm.DataType(dtype).bits


def param(name: str, shape: tuple[Any, ...], dtype: str, **options: Any) -> Any:
    """A buffer parameter for memory that a caller owns: only element-aligned, as NumPy's may be.

    Args:
        name: its name in messages about wrong arguments.
        shape: ints or int64 vars (symbolic dimensions take their value from the argument).
        dtype: element type.
        **options: passed to `tirx.decl_buffer`.

    Returns:
        The buffer.
    """
    align = max(1, tvm.DataType(dtype).bits // 8)
    return tirx.decl_buffer(shape, dtype, name=name, data_alignment=align, **options)


def prim_func(params: list[Any], body: Any, *, noalias: bool = True, private: bool = False) -> Any:
    """A PrimFunc with the attributes the pipeline wants.

    Args:
        params: buffers and vars.
        body: the statement.
        noalias: promise that no two buffers overlap, which LLVM needs for vectorising loops.
        private: not callable from outside; its linkage is internal.

    Returns:
        The PrimFunc.
    """
    func = tirx.PrimFunc(params, body)
    if noalias:
        func = func.with_attr("tirx.noalias", True)
    return func.with_attr("myia.private", True) if private else func


def build(
    functions: Any,
    *,
    target: tvm.target.Target | None = None,
    cpu: str | None = None,
    features: tuple[str, ...] = (),
) -> Any:
    """Compiles PrimFuncs.

    Args:
        functions: a PrimFunc (callable as "main" unless it has a global symbol), a mapping of name -> PrimFunc, or an
            IRModule. In a mapping every function not made `private` gets its name as symbol.
        target: the target; None makes one from `cpu` and `features` (see `host_target`).
        cpu: LLVM CPU name.
        features: LLVM features with sign.

    Returns:
        A `tvm.runtime.Module`; `module["name"]` is callable with NumPy arrays and numbers.
    """
    if isinstance(functions, tirx.PrimFunc):
        attrs = functions.attrs
        symbol = str(attrs["global_symbol"]) if attrs and "global_symbol" in attrs else "main"
        functions = {symbol: functions}
    if isinstance(functions, Mapping) and not isinstance(functions, tvm.IRModule):
        functions = tvm.IRModule({name: _exposed(name, func) for name, func in functions.items()})
    return tirx.build(functions, target=target or host_target(cpu, tuple(features)), pipeline=PIPELINE)


def _exposed(name: str, func: Any) -> Any:
    """Gives a public function its symbol."""
    if func.attrs and "myia.private" in func.attrs:
        return func.without_attr("global_symbol") if "global_symbol" in func.attrs else func
    return func.with_attr("global_symbol", name)
