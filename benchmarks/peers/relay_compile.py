"""One cold compilation in this compiler: a worker of `benchmarks.compile`, which starts one for every measurement."""

import importlib
import importlib.util
import sys
import time

from benchmarks.workers import serve


def clocks() -> tuple[float, float]:
    """Wall-clock and processor time, in seconds."""
    return time.perf_counter(), time.process_time()


def spent(since: tuple[float, float]) -> dict[str, float]:
    """Both, since then."""
    wall, cpu = clocks()
    return {"wall": wall - since[0], "cpu": cpu - since[1]}


COMPILER = ("backend.tvm.program", "frontend", "infer.transforms", "ad.expand", "opt.pipeline", "ir.verify")
"""The modules that the first compilation imports, with what they import."""


def imports() -> dict[str, dict[str, float]]:
    """What importing takes: the package with the decorator, then what the first compilation would import: TVM, our compiler."""
    out = {}
    start = clocks()
    from myia_relay import relay

    relay(lambda x: x)
    out["import myia_relay"] = spent(start)
    start = clocks()
    import tvm  # noqa: F401  by itself, since most of it is

    out["import tvm"] = spent(start)
    start = clocks()
    for name in COMPILER:
        importlib.import_module(f"myia_relay.{name}")
    out["import the compiler"] = spent(start)
    return out


def compile_module(path: str, executor: str) -> dict:
    """Call the program of a module for the first time, and for the second.

    Args:
        path: a module as `benchmarks.compile_programs` makes it.
        executor: which one.

    Returns:
        "first" and "second": wall and cpu seconds; "stages": seconds by name; "wrong": how the result differs from
        CPython's, or None.
    """
    import numpy as np

    from myia_relay import relay

    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wrapped = getattr(module, "WRAP", None)
    function = relay(executor=executor)(wrapped or module.program)
    figures = {}
    start = clocks()
    result = function(*module.ARGS)
    figures["first"] = spent(start)
    start = clocks()
    function(*module.ARGS)
    figures["second"] = spent(start)
    (compiled,) = function._programs.values()
    figures["stages"] = stages(compiled)
    figures["wrong"] = None
    if wrapped is None:
        sys.setrecursionlimit(100_000)
        expected = module.program(*module.ARGS)
        if type(result) is not type(expected) or not np.allclose(result, expected, rtol=1e-12, atol=0):
            figures["wrong"] = f"{result!r} instead of {expected!r}"
    return figures


def stages(compiled) -> dict[str, float]:
    """Seconds by stage, the native back end's lowering and code generation apart."""
    out = dict(compiled.seconds)
    times = getattr(compiled.run, "times", None)
    if times is not None:
        whole = out.pop("lowered")
        out["lowered"], out["generated"] = times
        out["linked"] = max(0.0, whole - sum(times))
    return out


if __name__ == "__main__":
    serve({"imports": imports, "compile_module": compile_module})
