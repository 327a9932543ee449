"""The key of a compiled program, one hash: the machine, the versions, the settings, the function, its arguments.

It includes everything that influences the code and is not a dependency (see `program`). It is computed without
inference, in milliseconds.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..backend.native import layout
from ..backend.native.library import wanted_threads
from ..infer.values.treedef import TreeDef
from ..utils.files import CACHE_VARIABLE, SIZE_VARIABLE
from ..utils.patience import VARIABLE as PATIENCE_VARIABLE
from ..utils.source import PACKAGE
from .describe import describe
from .program import VERSION, describe_treedef

DISTRIBUTIONS = ("apache_tvm", "scipy_openblas32", "ml_dtypes")  # beginnings of names
SIZE = 20  # bytes of a key
INSTRUCTION_SETS = (
    *(
        "sse4",
        "ssse3",
        "avx",
        "fma",
        "f16c",
        "bmi",
        "popcnt",
        "movbe",
        "abm",
        "adx",
        "amx",
        "gfni",
        "vaes",
        "vpclmul",
        "pclmul",
    ),
    *("sha", "aes", "cx16", "xsave", "rdseed", "rdrand", "fsgsbase", "asimd", "sve"),
)
TOLD = (
    "flags",
    "Features",
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "CPU part",
    "CPU implementer",
)
WITHOUT_EFFECT = {
    *(CACHE_VARIABLE, SIZE_VARIABLE, "MYIA_RELAY_DATA", PATIENCE_VARIABLE),
    *("TVM_NUM_THREADS", "TVM_BIND_THREADS", "TVM_THREAD_POOL_SPIN_COUNT"),  # this package sets it too
}


@functools.lru_cache(maxsize=1)
def package_hash() -> str:
    """A hash of this package's own sources."""
    h = hashlib.blake2b(digest_size=SIZE)
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(PACKAGE) for name in names)
    for path in sorted(p for p in paths if p.endswith(".py")):
        with open(path, "rb") as file:
            contents = file.read()
        h.update(f"{path[len(PACKAGE) :]}\0{len(contents)}\0".encode())
        h.update(contents)
    return h.hexdigest()


@functools.lru_cache(maxsize=1)
def processor() -> str:
    """The machine's processor: its name and features, as the system reports them."""
    try:
        with open("/proc/cpuinfo", errors="replace") as file:
            lines = list(itertools.takewhile(str.strip, file))  # of the first one
    except OSError:
        lines = []
    found = [line.strip() for line in lines if line.partition(":")[0].strip() in TOLD]
    return "\n".join([platform.machine(), *found])


def instruction_sets() -> set[str]:
    """The processor's features beyond the baseline of its kind, as far as machine code may use them."""
    lines = [line for line in processor().splitlines() if line.startswith(("flags", "Features"))]
    return {f for line in lines for f in line.partition(":")[2].split() if f.startswith(INSTRUCTION_SETS)}


@functools.lru_cache(maxsize=1)
def versions() -> list[str]:
    """Versions of the packages that take part in compiling; the packages are not imported for this."""
    spec = importlib.util.find_spec("tvm")
    found: list[str] = []
    if spec is not None and spec.origin:
        site = Path(spec.origin).parents[1]
        found = [n for n in os.listdir(site) if n.endswith(".dist-info") and n.startswith(DISTRIBUTIONS)]
        if not any(n.startswith("apache_tvm-") for n in found):  # not installed by pip: the library itself reports it
            libraries = (site / "tvm" / "lib").glob("*.so")
            found += [f"{p} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in libraries]
    return [sys.version, np.__version__, str(sys.flags.optimize), *sorted(found)]


def settings() -> list[str]:
    """Switches in the environment, and the number of threads, now."""
    names = sorted(n for n in os.environ if n.startswith(("MYIA_RELAY_", "TVM_", "LLVM_")) and n not in WITHOUT_EFFECT)
    return [f"threads={wanted_threads()}", *(f"{n}={os.environ[n]}" for n in names)]


def key_of(function: Any, treedefs: list[TreeDef], keywords: tuple[str, ...], how: tuple = ()) -> tuple[str, list[Any]]:
    """The key of a call.

    Args:
        function: the decorated function.
        treedefs: of its arguments.
        keywords: names of the last ones.
        how: in which of the ways of compiling it.

    Returns:
        The key, and where paths to places begin: the function, and the static values among the arguments.

    Raises:
        Unportable: the function or an argument has no description outside of this process.
    """
    statics: list[Any] = []
    arguments = [describe_treedef(s, statics) for s in treedefs]
    facts = [
        [VERSION, package_hash(), processor(), versions(), settings(), layout.supported()],
        describe(function),
        arguments,
        keywords,
        how,
    ]
    text = json.dumps(facts, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=SIZE).hexdigest(), [function, *statics]
